# SPDX-License-Identifier: Apache-2.0
"""A query as data."""

from __future__ import annotations

import re
from enum import Enum

import attrs

from pyflinkcep.expressions.tree import Literal, Tree
from pyflinkcep.sase.shapes import Shape, Word, variable_of, words

__all__ = [
    "CONTIGUOUS",
    "EVENT_TIME",
    "EVENT_TYPE",
    "MOST_WORDS",
    "OUTSIDE",
    "Column",
    "Component",
    "Form",
    "Query",
    "Strategy",
    "Totals",
    "default_variable",
]


MOST_WORDS = 128
"""The most sequences of components that a pattern may stand for."""


OUTSIDE = (
    "a negated component or a closure of a ; query at an end, about which events outside of the "
    "window decide"
)
"""Why totals of a query's windows are refused."""


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


CONTIGUOUS = (Strategy.STRICT_CONTIGUITY, Strategy.PARTITION_CONTIGUITY)
"""The strategies that skip no event."""


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
        The least number of events of a component that repeats.
    most : int or None
        The greatest number of them, in SEQ.
    in_group : bool
        Whether it is in a group that repeats, which takes it once in each iteration.
    goes_on : bool
        Whether it is negated after the negated component before it, as one sequence:
        ``~(SEQ(B b, C c))``.
    at : int
        Its place in the text.
    """

    type: str
    variable: str
    repeats: bool = False
    negated: bool = False
    least: int = 1
    most: int | None = None
    in_group: bool = False
    goes_on: bool = False
    at: int = attrs.field(default=0, eq=False)

    @property
    def takes_many(self) -> bool:
        """Whether a match may have several of its events."""
        return self.repeats or self.in_group


def default_variable(type_: str) -> str:
    """Return the variable of an element without one: its type, or the last part of a dotted one."""
    is_dotted = re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)+", type_) is not None
    return (type_.rpartition(".")[2] if is_dotted else type_).lower()


EVENT_TYPE, EVENT_TIME = "type", "matchTimestamp"
"""The attributes of events that matches become, beside the columns of RETURN."""


@attrs.frozen
class Column:
    """A column of RETURN; `given` says whether its name was written after AS."""

    value: Tree
    name: str
    given: bool


@attrs.frozen
class Totals:
    """
    ``SLIDE … GROUP BY …``: totals of all matches in windows, in place of matches.

    Attributes
    ----------
    slide : int, milliseconds
        The time from the start of a window to that of the next; the window of the query is their
        length.
    groups : tuple of str
        The attributes of GROUP BY; the events of each value are a stream of its own.
    aggregates : tuple of str
        The aggregates of RETURN, as ``compressed().aggregate`` takes them.
    """

    slide: int
    groups: tuple[str, ...] = ()
    aggregates: tuple[str, ...] = ()


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
    shape : Shape or None
        How the components of a composed pattern may follow one another; None for one after
        another.
    most_events : int or None
        ``WITHIN n EVENTS``: the most events of the partition, of any type, from the first event of
        a match to its last; then there is no `window`.
    event : str or None
        ``RETURN EVENT type(…)``: the type of the events that matches become.
    before : Query or None
        The query whose events it reads, before THEN.
    totals : Totals or None
        What is totalled in windows, if matches are not listed.
    most_taken : int or None
        The most events of a match, if its `window` is `most_events` of events numbered by time.
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
    shape: Shape | None = None
    most_events: int | None = None
    event: str | None = None
    before: Query | None = None
    totals: Totals | None = None
    most_taken: int | None = None

    @property
    def positive(self) -> tuple[Component, ...]:
        """The components that take events."""
        return tuple(part for part in self.components if not part.negated)

    @property
    def negations(self) -> tuple[tuple[Component, ...], ...]:
        """The negated components, those of a negated sequence together."""
        found: list[tuple[Component, ...]] = []
        for part in self.components:
            if part.goes_on:
                found[-1] = (*found[-1], part)
            elif part.negated:
                found.append((part,))
        return tuple(found)

    @property
    def variables(self) -> list[str]:
        """The variables that take events, in order."""
        return [part.variable for part in self.positive]

    @property
    def has_window(self) -> bool:
        """Whether a match's last event is bounded by its first."""
        return self.window is not None or self.most_events is not None

    @property
    def is_composed(self) -> bool:
        """Whether it stands for other queries, see :mod:`pyflinkcep.sase.alternatives`."""
        counted = (part.least > 1 or part.most is not None for part in self.components)
        return self.form is Form.SEQ and (self.shape is not None or any(counted))

    def words(self) -> list[Word]:
        """
        Return the sequences of components that the pattern stands for; see ``shapes.py``.

        Raises
        ------
        TooManyWordsError
            If there are more than :data:`MOST_WORDS`.
        """
        if self.shape is None:
            return [tuple(part.variable for part in self.components)]
        negated = frozenset(part.variable for part in self.components if part.negated)
        return words(self.shape, MOST_WORDS, self.most_events or self.most_taken, negated)

    @property
    def looks_back(self) -> bool:
        """Whether earlier events decide too: a negated component or a closure comes first."""
        return any(self._decides_at_an_end(word[0]) for word in self.words())

    @property
    def looks_ahead(self) -> bool:
        """Whether later events decide too: a negated component or a closure comes last."""
        return any(self._decides_at_an_end(word[-1]) for word in self.words())

    def _decides_at_an_end(self, variable: str) -> bool:
        part = self.component(variable)
        return part.negated or (self.form is Form.LIST and part.repeats)

    @property
    def takes_several(self) -> bool:
        """Whether every match has components of several events."""
        return all(
            sum(not self.component(name).negated for name in word) > 1 for word in self.words()
        )

    @property
    def is_global(self) -> bool:
        """Whether some strategy sees the whole stream, not just one partition."""
        return any(strategy is Strategy.STRICT_CONTIGUITY for _, strategy in self.strategies)

    @property
    def key(self) -> tuple[str, ...]:
        """The attributes that part events: those of GROUP BY, and of ``[attr]`` unless global."""
        groups = () if self.totals is None else self.totals.groups
        return tuple(dict.fromkeys((*groups, *(() if self.is_global else self.equal))))

    def strategy_of(self, variable: str) -> Strategy:
        """Return the strategy of a variable, or of a name in a word."""
        found = dict(self.strategies)
        own = found.get(variable_of(variable), Strategy.SKIP_TILL_ANY_MATCH)
        return found.get(variable, own)

    def component(self, variable: str) -> Component:
        """Return the component of a variable, or of a name in a word."""
        names = variable, variable_of(variable)
        return next(part for part in self.components if part.variable in names)

    def place(self, variable: str) -> int:
        """Return the index of a variable's component."""
        return [part.variable for part in self.components].index(variable)
