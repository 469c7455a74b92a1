# SPDX-License-Identifier: Apache-2.0
"""
How the components of a composed pattern may follow one another.

A composed pattern stands for a finite number of *words*: sequences of its components, each at most
once. ``SEQ(A a, (B b | C c)?, D d)`` has the words *a b d*, *a c d* and *a d*. In a group that
repeats a component is taken once in each iteration, and its name in a word tells which.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

import attrs

__all__ = [
    "AnyOrder",
    "Choice",
    "One",
    "Optional",
    "Repeated",
    "Sequence",
    "Shape",
    "TooManyWordsError",
    "Word",
    "enclosing",
    "inner",
    "iteration_of",
    "ones",
    "variable_of",
    "words",
]

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

    Parameters
    ----------
    shape : Shape
        The shape.
    most : int
        The most words.
    events : int, optional
        The most events of a match, which bounds groups that repeat.
    negated : frozenset of str
        The variables that take no event.

    Raises
    ------
    TooManyWordsError
        If there are more than `most`, or infinitely many.

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
