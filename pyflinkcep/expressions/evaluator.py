# SPDX-License-Identifier: Apache-2.0
"""SQL on one event as a Python function, for lists without Spark, and what a condition compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Decimal
from functools import lru_cache
from itertools import chain
from typing import Any

import attrs

from pyflinkcep.errors import CepError, ConditionError, InputError
from pyflinkcep.expressions.compiler import compiled
from pyflinkcep.expressions.grammar import Syntax
from pyflinkcep.expressions.numbers import BIGINT, common, digits_of_value
from pyflinkcep.expressions.parser import EventReader, event_tree
from pyflinkcep.expressions.program import CompiledExpressions, Kind, Type
from pyflinkcep.expressions.sql_types import (
    ARRAY,
    INTERVAL,
    MAP,
    STRUCT,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    SqlType,
    of_kind,
)
from pyflinkcep.expressions.sql_values import kind_of, truth
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
    shown,
)
from pyflinkcep.expressions.values import (
    Function,
    Typed,
    aggregated,
    column,
    function_of,
    given,
    typed_function,
)


@attrs.frozen(eq=False)
class RowTypes:
    """The types of columns."""

    # By the name of the column, or, of values that are given, by their places.
    types: Mapping[str, SqlType | None] = attrs.field(factory=dict)
    # Where clocks without a zone are, and what the clock of timestamps shows; None for that of each
    # value.
    zone: tzinfo | None = None

    def of(self, leaf: Leaf) -> SqlType | None:
        """Return the type of a column; names are compared as in Spark."""
        assert isinstance(leaf, Column)
        name = str(leaf.attribute) if leaf.index is None else leaf.index
        if name not in self.types:
            same = [other for other in self.types if other.casefold() == name.casefold()]
            name = same[0] if len(same) == 1 else name
        return self.types.get(name)

    def leaf(self, leaf: Leaf) -> Function:
        """Return the function of a column."""
        assert isinstance(leaf, Column)
        own = column(str(leaf.attribute)) if leaf.index is None else given(int(leaf.index))
        change = _reading(self.of(leaf), self.zone)
        return own if change is None else lambda event: change(own(event))


UNTYPED = RowTypes()
"""The types of columns of which nothing is known."""


def _reading(type_: SqlType | None, zone: tzinfo | None) -> Function | None:
    """Return what makes values of a type those that functions know; None if they are."""
    if type_ is None:
        return None
    if type_ == TIMESTAMP:
        return lambda time: None if time is None else _plain(time).astimezone(zone or UTC)
    if type_ == TIMESTAMP_NTZ:
        return _plain
    if type_ == INTERVAL:
        return lambda length: None if length is None else length // _MICROSECOND * _MICROSECOND
    inner = [_reading(part, zone) for part in type_.inner]
    if type_.name == MAP:
        key, value = inner
        return lambda pairs: pairs if pairs is None else {
            key(k) if key else k: value(v) if value else v
            for k, v in (pairs.items() if isinstance(pairs, Mapping) else pairs)
        }  # fmt: skip
    if type_.name == ARRAY and inner[0] is not None:
        element = inner[0]
        return lambda values: values and [element(value) for value in values]
    if type_.name == STRUCT and any(inner):
        changes = dict(zip(type_.fields, inner, strict=True))
        return lambda fields: fields and {
            name: change(fields[name]) if change else fields[name]
            for name, change in changes.items()
        }  # fmt: skip
    return None


_MICROSECOND = timedelta(microseconds=1)


def _plain(time: Any) -> Any:
    """Return a time of Python, without parts of microseconds."""
    if time is None or type(time) is datetime:
        return time
    return time.replace(nanosecond=0).to_pydatetime() if hasattr(time, "nanosecond") else time


def event_condition(text: str, types: RowTypes = UNTYPED) -> Callable[[Any], bool]:
    """Return whether an event satisfies a SQL condition, as a function; NULL counts as false."""
    function = event_function(text, types)

    def holds(event: Any) -> bool:
        try:
            return truth(function(event)) is True
        except InputError as cause:
            raise ConditionError(f"the condition {text!r}: {cause.message}", cause.hint) from cause

    return holds


def event_function(text: str, types: RowTypes = UNTYPED) -> Function:
    """Return a function that computes a SQL expression for an event, by ANSI's rules."""
    return event_value(text, types).function


def event_value(text: str, types: RowTypes = UNTYPED) -> Typed:
    """Return a function that computes a SQL expression for an event, and the type of its values."""
    tree = event_tree(text)
    return typed_function(
        tree, types.leaf, types=types.of, zone=types.zone, where=f"the condition {text!r}: "
    )


def columns_of(text: str) -> list[str]:
    """Return the names of the columns that an expression over an event reads."""
    found = leaves(event_tree(text))
    return [str(leaf.attribute) for leaf in found if isinstance(leaf, Column)]


def part_value(
    text: str,
    part: Syntax,
    values: Mapping[Syntax, int] | None = None,
    types: RowTypes = UNTYPED,
) -> Typed:
    """Return a function that computes a part of an expression, and the type of its values."""
    tree = EventReader(text, values).part(part)
    return typed_function(tree, types.leaf, types=types.of, zone=types.zone)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def local_expressions(
    expressions: Iterable[tuple[str, MatchExpression]], events: Iterable[Any], ansi: bool = True
) -> tuple[CompiledExpressions, Callable[[Any], Sequence[Any]]]:
    """Compile match expressions for events that are Python objects."""
    named = list(expressions)
    samples = list(events)
    texts = [sql for _, expression in named for sql in expression.event_parts()]
    types = decimal_types(texts, lambda name: list(map(column(name), samples)))
    found = {
        sql: kind_of_values(
            sql, _values(sql, samples, types), is_computed=not isinstance(event_tree(sql), Column)
        )
        for sql in dict.fromkeys(texts)
    }
    kinds = {sql: kind for sql, kind in found.items() if kind is not None}
    compiled_ = compiled(named, kinds, ansi)
    fields = [(event_function(field.sql, types), field.kind) for field in compiled_.fields]

    def of_event(event: Any) -> tuple[Any, ...]:
        return tuple(machine_value(function(event), kind) for function, kind in fields)

    return compiled_, of_event


def decimal_types(
    texts: Iterable[str], values: Callable[[str], list[Any]], declared: RowTypes = UNTYPED
) -> RowTypes:
    """Return the types of the columns that hold decimals, as the digits of a result need them."""
    types = dict(declared.types)
    for name in dict.fromkeys(chain.from_iterable(map(columns_of, texts))):
        with suppress(CepError):  # raised where it is computed
            own = values(name) if name not in types else []
            if any(isinstance(value, Decimal) for value in own):
                types[name] = of_kind(kind_of_values(name, own))
    return RowTypes(types)


def _values(sql: str, samples: Iterable[Any], types: RowTypes) -> list[Any]:
    """Return the values of a part about one event; what has none fails when it is asked for."""
    function, values = event_function(sql, types), []
    failure: ArithmeticError | None = None
    for sample in samples:
        try:
            values.append(function(sample))
        except ArithmeticError as cause:
            failure = cause
    if failure is not None and all(value is None for value in values):
        hint = "test for it in the condition, with CASE or nullif"
        raise InputError(f"{sql!r} has no value for any event: {failure}", hint) from failure
    return values


def kind_of_values(sql: str, values: Iterable[Any], *, is_computed: bool = False) -> Kind | None:
    """Return the kind of a part about one event; None if it is always NULL."""
    found = dict.fromkeys(_kind_of(sql, value) for value in values if value is not None)
    others = set(found) - {Kind.DOUBLE}
    # Decimals beside doubles are doubles where SQL has made them; fields hold either.
    if len(others) < len(found) and others <= {Kind.BIGINT}:
        return Kind.DOUBLE
    if len(others) < len(found) and is_computed and all(map(_is_exact, others)):
        return Kind.DOUBLE
    digits = [kind.digits or BIGINT for kind in found]
    if any(kind.is_decimal for kind in found) and all(map(_is_exact, found)):
        return Kind.decimal(common(digits))
    if len(found) > 1:
        names = " and ".join(kind.value for kind in found)
        raise InputError(f"{sql!r}: expected values of one type, got {names}", "cast it")
    return next(iter(found), None)


def _kind_of(sql: str, value: Any) -> Kind:
    if isinstance(value, datetime) and value.tzinfo is None:
        return Kind.TIMESTAMP_NTZ
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise InputError(f"{sql!r}: {value} is no decimal of SQL", "use None, or floats")
        return Kind.decimal(digits_of_value(value))
    kind = kind_of(value)
    if kind is not None:
        return kind
    raise without_kind(sql, type(value).__name__)


def without_kind(sql: str, found: str) -> InputError:
    """Return the error for a part about one event of a type with which nothing is computed."""
    return InputError(
        f"{sql!r}: expected a number, boolean, string or time, got {found}",
        "use a value of such a type",
    )


def _is_exact(kind: Kind) -> bool:
    return kind is Kind.BIGINT or kind.is_decimal


def machine_value(value: Any, kind: Kind) -> Any:
    """Return a value in the form that programs use."""
    if value is None:
        return None
    if isinstance(value, datetime):
        aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        return (aware - _EPOCH) // timedelta(microseconds=1)
    if isinstance(value, date):
        return value.toordinal() - _EPOCH.toordinal()
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    if kind.type is Type.DECIMAL:
        return Decimal(value)
    if kind.type is Type.FLOAT:
        return float(value)
    return int(value) if kind is Kind.BOOLEAN else value


# --- what a condition compared, part by part, for those who ask why it did not hold

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
    """Return what a SQL condition about one event compared; nothing if only Spark can say."""
    try:
        return _answered(_parts_of_sql(text), event)
    except (CepError, ArithmeticError):
        return ()


@lru_cache(maxsize=128)
def _parts_of_sql(text: str) -> tuple[_Part, ...]:
    """Return the parts of SQL about one event, which is asked about many events."""
    return tuple(_parts(event_tree(text), UNTYPED.leaf))


def compared_in_match(
    condition: MatchExpression, event: Any, taken: Taken, order: Sequence[Any]
) -> tuple[Compared, ...]:
    """Return what SQL over stages compared; nothing if only Spark can say."""
    events = {**taken, WHOLE: order}

    def leaf(part: Leaf) -> Function:
        return _aggregate(part, events) if isinstance(part, Aggregate) else _computed(part.sql)

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
