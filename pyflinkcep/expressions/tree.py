# SPDX-License-Identifier: Apache-2.0
"""SQL over what a partial match has taken: ``where("price > avg(up.price)")``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
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
    "Interval",
    "MatchExpression",
    "Operation",
    "Part",
]

WHOLE = "match"
"""Instead of a stage: all events that the partial match has taken, in order."""

AGGREGATES = ("first", "last", "count", "sum", "min", "max", "avg")
"""The functions over the events that a partial match has taken for a stage."""


@attrs.frozen
class EventPart:
    """
    A part that reads only the current event; the engine computes it.

    Attributes
    ----------
    text : str
        SQL over the event's columns, as it was written.
    """

    text: str


@attrs.frozen
class Interval:
    """An interval of days, hours, minutes and seconds, in microseconds."""

    microseconds: int


@attrs.frozen
class Constant:
    """A literal and its text; 0.8 is a Decimal, 0.8D and 8e-1 are floats."""

    value: int | float | str | bool | Decimal | Interval | None
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
        The stage as written, or :data:`WHOLE`.
    argument : str or None
        SQL over the columns of those events; None to count the events themselves.
    text : str
        All of it as SQL.
    offset : int, at least 0
        For first and last: the number of events from the beginning or the end.
    with_event : bool
        Whether the current event counts as the last of those events.
    """

    function: str
    stage: str
    argument: str | None
    text: str
    offset: int = 0
    with_event: bool = False


@attrs.frozen
class Operation:
    r"""
    An operator over parts, at least one of which reads the partial match.

    Attributes
    ----------
    operator : str
        With two operands ``+ - * / % div ||``, ``= <> < <= > >= <=>``, ``and or``, ``like`` (the
        second is a Constant that has ``\`` as its escape), ``timestampdiff UNIT``, ``datediff``;
        with one ``neg``, ``abs``, ``not`` and ``is null``; with any number ``coalesce``,
        ``greatest``, ``least``, ``in`` (a value, then the alternatives) and ``case`` (conditions
        and values in turn; an odd last one is for ELSE).
    operands : tuple of Part
        Its operands.
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
    ``min``, ``max`` and ``avg`` a stage's name before a column refers to the events that the
    partial match has taken for that stage, and ``match`` to all that it has taken; ``last(up.price,
    1)`` is the last but one. The engine computes parts that read one event only; the aggregates are
    updated with each event taken. NULL counts as false.

    Attributes
    ----------
    text : str
        The expression as SQL.
    tree : Part
        The expression as a tree.
    owners : frozenset of str
        The qualifiers of columns outside aggregates, which are not stages.
    key : str
        The key of the expression's program in a pattern: its text, and its stage if its aggregates
        include the current event.
    """

    def __init__(
        self, text: str, tree: Part, owners: Iterable[str] = (), own_stage: str = ""
    ) -> None:
        self.text = text
        self.tree = tree
        self.owners = frozenset(owners)
        self.key = f"{own_stage}: {text}" if _counts_the_event(tree) else text

    def filter(self, value: Any, ctx: Any) -> bool:
        """Raise: only an engine can evaluate the parts on one event."""
        raise NotSupportedError(
            f"the condition {self.text!r} can only be evaluated on Spark",
            "run the pattern on a DataFrame with CEP.pattern(...), "
            "or write the condition as a function of (event, ctx)",
        )

    def event_parts(self) -> Iterator[str]:
        """Yield the SQL of everything that is computed from one event, in order."""
        yield from _event_parts(self.tree)

    def stages(self) -> Iterator[str]:
        """Yield the stages that the aggregates name."""
        yield from (part.stage for part in _leaves(self.tree) if isinstance(part, Aggregate))

    def __repr__(self) -> str:
        return self.text


def _leaves(part: Part) -> Iterator[Part]:
    if isinstance(part, Operation):
        for operand in part.operands:
            yield from _leaves(operand)
    else:
        yield part


def _event_parts(part: Part) -> Iterator[str]:
    for leaf in _leaves(part):
        if isinstance(leaf, EventPart):
            yield leaf.text
        elif isinstance(leaf, Aggregate) and leaf.argument is not None:
            yield leaf.argument


def _counts_the_event(tree: Part) -> bool:
    return any(isinstance(part, Aggregate) and part.with_event for part in _leaves(tree))
