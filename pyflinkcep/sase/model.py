# SPDX-License-Identifier: Apache-2.0
"""A query as data."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from enum import Enum

import attrs

from pyflinkcep.expressions.tree import Literal, Tree

Word = tuple[str, ...]
"""Variables in the order of their events; negated ones stand in their gaps. A variable of a group
that repeats is followed by the numbers of the iterations, the outermost first: ``a\\t2``. A negated
one in AND stands in each gap of the group, and is numbered in the same way."""

_ITERATION = "\t"


def variable_of(name: str) -> str:
    """Return the variable of a name in a word."""
    return name.partition(_ITERATION)[0]


def iteration_of(name: str) -> tuple[int, ...]:
    """Return the numbers of the iterations of a name in a word, the outermost first."""
    numbers = name.partition(_ITERATION)[2]
    return tuple(map(int, numbers.split("."))) if numbers else ()


class TooManyWordsError(Exception):
    """A pattern has more words than allowed."""


@attrs.frozen
class One:
    """A component, by its variable."""

    variable: str


@attrs.frozen
class Sequence:
    """``SEQ(p, q)``: one part after another."""

    parts: tuple[Shape, ...]


@attrs.frozen
class Choice:
    """``p | q``: one of the parts."""

    parts: tuple[Shape, ...]


@attrs.frozen
class AnyOrder:
    """``AND(p, q)``: all parts, their events in any order; each part keeps its own."""

    parts: tuple[Shape, ...]


@attrs.frozen
class Optional:
    """``p?``: the part or nothing."""

    part: Shape


@attrs.frozen
class Repeated:
    """``p+``, ``p*``, ``p{n,m}``: iterations of the part; `most` is None if nothing bounds them."""

    part: Shape
    least: int
    most: int | None


Shape = One | Sequence | Choice | AnyOrder | Optional | Repeated


def inner(shape: Optional | Repeated | Sequence | Choice | AnyOrder) -> tuple[Shape, ...]:
    """Return the parts of a shape."""
    return (shape.part,) if isinstance(shape, Optional | Repeated) else shape.parts


def ones(shape: Shape) -> Iterator[One]:
    """Yield the components of a shape, in the order of the text."""
    if isinstance(shape, One):
        yield shape
        return
    for part in inner(shape):
        yield from ones(part)


def enclosing(
    shape: Shape, negated: Collection[str], groups: tuple[int, ...] = ()
) -> dict[str, tuple[int, ...]]:
    """
    Return for each variable the groups around it that repeat, the outermost first.

    A negated one in AND, which stands in several gaps, is a group of its own.
    """
    if isinstance(shape, One):
        return {shape.variable: groups}
    found: dict[str, tuple[int, ...]] = {}
    for part in inner(shape):
        is_numbered = isinstance(shape, Repeated) or _stands_in_gaps(shape, part, negated)
        own = (*groups, id(part)) if is_numbered else groups
        found |= enclosing(part, negated, own)
    return found


def _stands_in_gaps(shape: Shape, part: Shape, negated: Collection[str]) -> bool:
    """Whether a part of a shape is a negated component in AND."""
    return isinstance(shape, AnyOrder) and isinstance(part, One) and part.variable in negated


def words(
    shape: Shape, most: int, events: int | None = None, negated: frozenset[str] = frozenset()
) -> list[Word]:
    """
    Return the words of a shape, each once.

    Examples
    --------
    >>> words(AnyOrder((One("a"), Sequence((One("b"), One("c"))))), 9)
    [('a', 'b', 'c'), ('b', 'a', 'c'), ('b', 'c', 'a')]
    """
    return list(_limited(_Words(most, events, negated).of(shape), most))


def _limited(found: Iterable[Word], most: int) -> Iterator[Word]:
    known: dict[Word, None] = {}
    for word in found:
        known[word] = None
        if len(known) > most:
            raise TooManyWordsError
    yield from known


_Join = Callable[[Word, Word], Iterator[Word]]


@attrs.frozen
class _Words:
    most: int
    events: int | None
    negated: frozenset[str]

    def all(self, shape: Shape) -> list[Word]:
        return list(_limited(self.of(shape), self.most))

    def of(self, shape: Shape) -> Iterator[Word]:
        if isinstance(shape, One):
            yield (shape.variable,)
        elif isinstance(shape, Optional):
            yield from self.all(shape.part)
            yield ()
        elif isinstance(shape, Choice):
            for part in shape.parts:
                yield from self.all(part)
        elif isinstance(shape, Repeated):
            yield from self.iterations(shape)
        elif isinstance(shape, AnyOrder):
            yield from self.in_any_order(shape)
        else:
            yield from self.joined(shape.parts, _joined)

    def in_any_order(self, shape: AnyOrder) -> Iterator[Word]:
        """Yield the orders of parts, with the negated components in each gap."""
        absent = [part for part in shape.parts if _stands_in_gaps(shape, part, self.negated)]
        names = [one.variable for part in absent for one in ones(part)]
        taken = (part for part in shape.parts if part not in absent)
        for word in self.joined(taken, _interleaved):
            yield tuple(_with_gaps(word, names))

    def joined(self, parts: Iterable[Shape], join: _Join) -> list[Word]:
        """Return the words of parts, joined."""
        found: list[Word] = [()]
        for part in parts:
            own = self.all(part)
            found = list(_limited((w for a in found for b in own for w in join(a, b)), self.most))
        return found

    def iterations(self, shape: Repeated) -> Iterator[Word]:
        """Yield the words of a group that repeats; an iteration without an event is none."""
        every = self.all(shape.part)
        own = [word for word in every if self.size(word)]
        least = shape.least if len(own) == len(every) else 0
        most = shape.most
        if most is None:
            if self.events is None:
                raise TooManyWordsError
            # One more than may match, for its first event may be taken by a run that waits.
            shortest = min(map(self.size, own), default=1)
            most = max(least, (self.events - 1) // shortest + 1)
        found: list[Word] = [()]
        for number in range(1, most + 1):
            if number > least:
                yield from found
            again = [tuple(_iterated(name, number) for name in word) for word in own]
            found = list(_limited((a + b for a in found for b in again), self.most))
        yield from found

    def size(self, word: Word) -> int:
        """Return the number of components of a word that take events."""
        return sum(variable_of(name) not in self.negated for name in word)


def _iterated(name: str, number: int) -> str:
    """Return a name in an iteration of a group around it."""
    variable, _, inner = name.partition(_ITERATION)
    return f"{variable}{_ITERATION}{number}" + (f".{inner}" if inner else "")


def _with_gaps(word: Word, absent: Iterable[str]) -> Iterator[str]:
    """Yield a word with negated components between any two of its own."""
    for number, name in enumerate(word):
        yield from (_iterated(other, number) for other in absent if number)
        yield name


def _joined(one: Word, other: Word) -> Iterator[Word]:
    yield one + other


def _interleaved(one: Word, other: Word) -> Iterator[Word]:
    if not one or not other:
        yield one + other
        return
    for rest in _interleaved(one[1:], other):
        yield one[:1] + rest
    for rest in _interleaved(one, other[1:]):
        yield other[:1] + rest


MOST_WORDS = 128
"""The most sequences of components that a pattern may stand for."""


MOST_WINDOWS = 1440
"""In how many windows an event may be, each with a copy of it: those of a day by minutes."""

TOTALS = ("count", "sum", "avg", "min", "max", "stddev")
"""The aggregates over all matches."""

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
    """A component of the pattern."""

    type: str  # The type of its events
    variable: str  # Its name
    repeats: bool = False  # Whether it is a Kleene plus (SEQ) or a closure (``;``)
    negated: bool = False  # Whether such an event forbids a match
    least: int = 1  # The least number of events of a component that repeats
    most: int | None = None  # The greatest number of them, in SEQ
    # Whether it is in a group that repeats, which takes it once in each iteration.
    in_group: bool = False
    # Whether it is negated after the negated component before it, as one sequence: ``~(SEQ(B b, C
    # c))``.
    goes_on: bool = False
    at: int = attrs.field(default=0, eq=False)  # Its place in the text

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
    """``SLIDE … GROUP BY …``: totals of all matches in windows, in place of matches."""

    # The time from the start of a window to that of the next; the window of the query is their
    # length.
    slide: int
    # The attributes of GROUP BY; the events of each value are a stream of its own.
    groups: tuple[str, ...] = ()
    # The aggregates of RETURN, as ``compressed().aggregate`` takes them.
    aggregates: tuple[str, ...] = ()


@attrs.frozen
class Query:
    """The parsed text of a query."""

    form: Form  # SEQ or ``;``
    components: tuple[Component, ...]  # The pattern, in order
    # By variable; empty if the query names none, which means skip_till_any_match.
    strategies: tuple[tuple[str, Strategy], ...] = ()
    equal: tuple[str, ...] = ()  # The attributes of the tests ``[attr]``
    constants: tuple[tuple[str, Literal], ...] = ()  # The tests ``[attr = literal]``
    conditions: tuple[Tree, ...] = ()  # The conditions of WHERE, all of which must hold
    window: int | None = None  # The longest time from the first to the last event, inclusive
    having: Tree | None = None  # The condition that filters matches
    columns: tuple[Column, ...] | None = None  # RETURN
    source: str | None = None  # The name after FROM
    # How the components of a composed pattern may follow one another; None for one after another.
    shape: Shape | None = None
    # ``WITHIN n EVENTS``: the most events of the partition, of any type, from the first event of a
    # match to its last; then there is no `window`.
    most_events: int | None = None
    # ``RETURN EVENT type(…)``: the type of the events that matches become.
    event: str | None = None
    before: Query | None = None  # The query whose events it reads, before THEN
    totals: Totals | None = None  # What is totalled in windows, if matches are not listed
    # The most events of a match, if its `window` is `most_events` of events numbered by time.
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
        """Return the sequences of components that the pattern stands for."""
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
