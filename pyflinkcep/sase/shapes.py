# SPDX-License-Identifier: Apache-2.0
"""
How the components of a composed pattern may follow one another.

A composed pattern stands for a finite number of *words*: sequences of its components, each at most
once. ``SEQ(A a, (B b | C c)?, D d)`` has the words *a b d*, *a c d* and *a d*.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs

__all__ = [
    "AnyOrder",
    "Choice",
    "One",
    "Optional",
    "Sequence",
    "Shape",
    "TooManyWordsError",
    "Word",
    "words",
]

Word = tuple[str, ...]
"""Variables in the order of their events; negated ones stand in their gaps."""


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


Shape = One | Sequence | Choice | AnyOrder | Optional


def words(shape: Shape, most: int) -> list[Word]:
    """
    Return the words of a shape, each once.

    Raises
    ------
    TooManyWordsError
        If there are more than `most`.

    Examples
    --------
    >>> words(AnyOrder((One("a"), Sequence((One("b"), One("c"))))), 9)
    [('a', 'b', 'c'), ('b', 'a', 'c'), ('b', 'c', 'a')]
    """
    return list(_limited(_words(shape, most), most))


def _limited(found: Iterable[Word], most: int) -> Iterator[Word]:
    known: dict[Word, None] = {}
    for word in found:
        known[word] = None
        if len(known) > most:
            raise TooManyWordsError
    yield from known


def _words(shape: Shape, most: int) -> Iterator[Word]:
    if isinstance(shape, One):
        yield (shape.variable,)
    elif isinstance(shape, Optional):
        yield from words(shape.part, most)
        yield ()
    elif isinstance(shape, Choice):
        for part in shape.parts:
            yield from words(part, most)
    else:
        join = _interleaved if isinstance(shape, AnyOrder) else _joined
        found: list[Word] = [()]
        for part in shape.parts:
            own = words(part, most)
            found = list(_limited((w for a in found for b in own for w in join(a, b)), most))
        yield from found


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
