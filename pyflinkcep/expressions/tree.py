# SPDX-License-Identifier: Apache-2.0
"""SQL over what a partial match has taken: ``where("price > avg(up.price)")``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from pyflinkcep.conditions import IterativeCondition
from pyflinkcep.errors import NotSupportedError

__all__ = [
    "AGGREGATES",
    "WHOLE",
    "Aggregate",
    "Constant",
    "EventPart",
    "MatchExpression",
    "Operation",
    "Part",
]

WHOLE = "match"
"""In place of a stage: all events that the partial match has taken, in their order."""

AGGREGATES = ("first", "last", "count", "sum", "min", "max", "avg")
"""The functions over the events that a partial match has taken for a stage."""


@attrs.frozen
class EventPart:
    """What looks at the current event only: Spark computes it. `text` is SQL over its columns."""

    text: str


@attrs.frozen
class Constant:
    """A literal; a decimal such as 0.8 is a double."""

    value: int | float | str | bool | None
    text: str


@attrs.frozen
class Aggregate:
    """
    A function over the events that the partial match has taken for a stage.

    Attributes
    ----------
    function : str
        One of :data:`AGGREGATES`.
    stage : str
        The stage, as it was written, or :data:`WHOLE`.
    argument : str or None
        SQL over the columns of those events; None to count the events themselves.
    text : str
        All of it as SQL.
    """

    function: str
    stage: str
    argument: str | None
    text: str


@attrs.frozen
class Operation:
    """
    An operator over parts at least one of which is about the partial match.

    Attributes
    ----------
    operator : str
        ``+ - * / % neg``, ``= <> < <= > >= <=>``, ``and or not``, ``is null`` or ``coalesce``.
    operands : tuple of Part
        Two; one of ``neg``, ``not`` and ``is null``; any number of ``coalesce``.
    text : str
        All of it as SQL.
    """

    operator: str
    operands: tuple[Part, ...]
    text: str


Part = EventPart | Constant | Aggregate | Operation


class MatchExpression(IterativeCondition):
    """
    A SQL expression over the event and what the partial match has taken before it.

    Written as ``where("price > avg(up.price)")``: inside ``first``, ``last``, ``count``, ``sum``,
    ``min``, ``max`` and ``avg`` a stage's name before a column means the events that the partial
    match has taken for that stage, and ``match`` all that it has taken. Spark computes what looks
    at one event only; the aggregates are kept up to date with each event that is taken. NULL
    counts as false.

    Attributes
    ----------
    text : str
        The expression as SQL.
    tree : Part
        The expression taken apart.
    owners : frozenset of str
        What stands before the dot of qualified columns outside of aggregates: no stages.
    """

    def __init__(self, text: str, tree: Part, owners: Iterable[str]) -> None:
        self.text = text
        self.tree = tree
        self.owners = frozenset(owners)

    def filter(self, value: Any, ctx: Any) -> bool:
        """Raise: only Spark can evaluate the parts about one event."""
        raise NotSupportedError(
            f"the condition {self.text!r} can only be evaluated on Spark",
            "run the pattern on a DataFrame with CEP.pattern(...), "
            "or write the condition as a function of (event, ctx)",
        )

    def event_parts(self) -> Iterator[str]:
        """Give the SQL of everything that is computed of one event, in order."""
        yield from _event_parts(self.tree)

    def stages(self) -> Iterator[str]:
        """Give the stages that the aggregates name."""
        yield from _stages(self.tree)

    def __repr__(self) -> str:
        return self.text


def _event_parts(part: Part) -> Iterator[str]:
    if isinstance(part, EventPart):
        yield part.text
    elif isinstance(part, Aggregate) and part.argument is not None:
        yield part.argument
    elif isinstance(part, Operation):
        for operand in part.operands:
            yield from _event_parts(operand)


def _stages(part: Part) -> Iterator[str]:
    if isinstance(part, Aggregate):
        yield part.stage
    elif isinstance(part, Operation):
        for operand in part.operands:
            yield from _stages(operand)
