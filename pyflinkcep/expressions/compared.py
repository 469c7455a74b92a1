# SPDX-License-Identifier: Apache-2.0
"""Which values a condition compared, part by part, for those who ask why it did not hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import attrs

from pyflinkcep.errors import CepError
from pyflinkcep.expressions.evaluator import event_function
from pyflinkcep.expressions.grammar import parsed
from pyflinkcep.expressions.parser import EventReader
from pyflinkcep.expressions.sql_values import truth
from pyflinkcep.expressions.text import shown
from pyflinkcep.expressions.tree import (
    WHOLE,
    Aggregate,
    Call,
    Column,
    Leaf,
    Literal,
    MatchExpression,
    Operation,
    Tree,
    leaves,
)
from pyflinkcep.expressions.values import Function, aggregated, column, function_of

Taken = Mapping[str, Sequence[Any]]
"""The events that a partial match has taken, by stage."""

_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>", "like", "in", "is null", "is not null")


@attrs.frozen
class Compared:
    """One of the conditions that AND joins, and what it compared."""

    text: str  # The condition
    holds: bool  # Whether it holds; NULL does not
    values: tuple[tuple[str, Any], ...]  # What was compared, apart from literals, and its values


def compared_in_sql(text: str, event: Any) -> tuple[Compared, ...]:
    """
    Return what a SQL condition about one event compared; nothing if only Spark can say.

    Examples
    --------
    >>> kind, price = compared_in_sql("kind = 'a' and price * 2 > 9", {"kind": "b", "price": 5})
    >>> kind.holds, kind.values, price.holds, price.values
    (False, (('kind', 'b'),), True, (('price * 2', 10),))
    """
    try:
        return _answered(_parts_of_sql(text), event)
    except (CepError, ArithmeticError):
        return ()


@lru_cache(maxsize=128)
def _parts_of_sql(text: str) -> tuple[_Part, ...]:
    """Return the parts of SQL about one event, which is asked about many events."""
    return tuple(_parts(EventReader(text).part(parsed(text)), _of_event))


def compared_in_match(
    condition: MatchExpression, event: Any, taken: Taken, order: Sequence[Any]
) -> tuple[Compared, ...]:
    """Return what SQL over stages compared; nothing if only Spark can say."""
    events = {**taken, WHOLE: order}

    def leaf(part: Leaf) -> Function:
        return _aggregate(part, events) if isinstance(part, Aggregate) else _sql_of_event(part)

    try:
        return _answered(_parts(condition.tree, leaf), event)
    except (CepError, ArithmeticError):
        return ()


@attrs.frozen
class _Part:
    """One of the conditions that AND joins, ready to be evaluated, and what it compares."""

    text: str
    function: Function
    values: tuple[tuple[str, Function], ...]


def _parts(tree: Tree, leaf: Callable[[Leaf], Function]) -> Iterator[_Part]:
    for part in _conjuncts(tree):
        values = {shown(value): function_of(value, leaf) for value in _operands(part)}
        yield _Part(shown(part), function_of(part, leaf), tuple(values.items()))


def _answered(parts: Iterable[_Part], event: Any) -> tuple[Compared, ...]:
    return tuple(
        Compared(
            part.text,
            truth(part.function(event)) is True,
            tuple((text, value(event)) for text, value in part.values),
        )
        for part in parts
    )


def _conjuncts(tree: Tree) -> Iterator[Tree]:
    if isinstance(tree, Operation) and tree.operator == "and":
        for part in tree.operands:
            yield from _conjuncts(part)
    else:
        yield tree


def _operands(tree: Tree) -> Iterator[Tree]:
    """Yield what a comparison compares, apart from literals; otherwise the values it reads."""
    if isinstance(tree, Operation) and tree.operator in _COMPARISONS:
        yield from (part for part in tree.operands if not _is_constant(part))
    elif isinstance(tree, Operation | Call):
        for part in tree.operands:
            yield from _operands(part)
    elif not isinstance(tree, Literal):
        yield tree


def _is_constant(tree: Tree) -> bool:
    return not any(True for _ in leaves(tree))


# --- leaves


def _of_event(leaf: Leaf) -> Function:
    assert isinstance(leaf, Column)
    return column(str(leaf.attribute))


def _sql_of_event(leaf: Column) -> Function:
    return _computed(leaf.sql)


def _computed(sql: str | None) -> Function:
    """Return what SQL computes for an event; the event itself without SQL."""
    return (lambda event: event) if sql is None else event_function(sql)


def _aggregate(leaf: Aggregate, taken: Taken) -> Function:
    of = _computed(leaf.argument)

    def value(event: Any) -> Any:
        events = [*taken.get(leaf.stage, ()), *([event] if leaf.with_event else [])]
        if leaf.function in ("first", "last"):
            events = (
                events[leaf.offset :]
                if leaf.function == "first"
                else events[: len(events) - leaf.offset]
            )
        return aggregated(leaf.function, [of(one) for one in events])

    return value
