# SPDX-License-Identifier: Apache-2.0
"""A query as data."""

from __future__ import annotations

import re
from enum import Enum

import attrs

from pyflinkcep.expressions.tree import Literal, Tree

__all__ = ["Column", "Component", "Form", "Query", "Strategy", "default_variable"]


class Form(Enum):
    """How the pattern is written, which decides what it means."""

    SEQ = "SEQ"
    LIST = ";"


class Strategy(Enum):
    """Which events a run may skip."""

    STRICT_CONTIGUITY = "strict_contiguity"
    PARTITION_CONTIGUITY = "partition_contiguity"
    SKIP_TILL_NEXT_MATCH = "skip_till_next_match"
    SKIP_TILL_ANY_MATCH = "skip_till_any_match"


@attrs.frozen
class Component:
    """
    A component of the pattern.

    Attributes
    ----------
    type : str
        The type of its events.
    variable : str
        Its name.
    repeats : bool
        Whether it is a Kleene plus (SEQ) or a closure (``;``).
    negated : bool
        Whether such an event forbids a match.
    least : int, at least 1
        The least number of events of a closure.
    at : int
        Its place in the text.
    """

    type: str
    variable: str
    repeats: bool = False
    negated: bool = False
    least: int = 1
    at: int = attrs.field(default=0, eq=False)


def default_variable(type_: str) -> str:
    """Return the variable of an element without one: its type, or the last part of a dotted one."""
    is_dotted = re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)+", type_) is not None
    return (type_.rpartition(".")[2] if is_dotted else type_).lower()


@attrs.frozen
class Column:
    """A column of RETURN; `given` says whether its name was written after AS."""

    value: Tree
    name: str
    given: bool


@attrs.frozen
class Query:
    """
    The parsed text of a query.

    Attributes
    ----------
    form : Form
        SEQ or ``;``.
    components : tuple of Component
        The pattern, in order.
    strategies : tuple of (str, Strategy)
        By variable; empty if the query names none, which means skip_till_any_match.
    equal : tuple of str
        The attributes of the tests ``[attr]``.
    constants : tuple of (str, Literal)
        The tests ``[attr = literal]``.
    conditions : tuple of Tree
        The conditions of WHERE, all of which must hold.
    window : int or None, milliseconds
        The longest time from the first to the last event, inclusive.
    having : Tree or None
        The condition that filters matches.
    columns : tuple of Column or None
        RETURN.
    source : str or None
        The name after FROM.
    """

    form: Form
    components: tuple[Component, ...]
    strategies: tuple[tuple[str, Strategy], ...] = ()
    equal: tuple[str, ...] = ()
    constants: tuple[tuple[str, Literal], ...] = ()
    conditions: tuple[Tree, ...] = ()
    window: int | None = None
    having: Tree | None = None
    columns: tuple[Column, ...] | None = None
    source: str | None = None

    @property
    def positive(self) -> tuple[Component, ...]:
        """The components that take events."""
        return tuple(part for part in self.components if not part.negated)

    @property
    def variables(self) -> list[str]:
        """The variables that take events, in order."""
        return [part.variable for part in self.positive]

    @property
    def looks_back(self) -> bool:
        """Whether earlier events decide too: a negated component or a closure comes first."""
        first = self.components[0]
        return first.negated or (self.form is Form.LIST and first.repeats)

    @property
    def looks_ahead(self) -> bool:
        """Whether later events decide too: a negated component or a closure comes last."""
        last = self.components[-1]
        return last.negated or (self.form is Form.LIST and last.repeats)

    @property
    def is_global(self) -> bool:
        """Whether some strategy sees the whole stream, not just one partition."""
        return any(strategy is Strategy.STRICT_CONTIGUITY for _, strategy in self.strategies)

    def strategy_of(self, variable: str) -> Strategy:
        """Return the strategy of a variable."""
        return dict(self.strategies).get(variable, Strategy.SKIP_TILL_ANY_MATCH)

    def component(self, variable: str) -> Component:
        """Return the component of a variable."""
        return next(part for part in self.components if part.variable == variable)

    def place(self, variable: str) -> int:
        """Return the index of a variable's component."""
        return [part.variable for part in self.components].index(variable)
