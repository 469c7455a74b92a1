# SPDX-License-Identifier: Apache-2.0
"""Finds the matches in the rows of a partition: depth first, in the order of preference."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import attrs

from pyflinkcep.errors import OutOfMemoryError, SkipError
from pyflinkcep.kernel import make_search
from pyflinkcep.match_recognize.standard.program import Op, Program
from pyflinkcep.match_recognize.tree import Skip, SkipTo

__all__ = ["UNKNOWN", "Conditions", "Match", "Place", "find_matches"]

_MOST_REMEMBERED = 500_000
_MOST_BYTES = 1 << 28
UNKNOWN = 2
"""In place of an answer: the condition was not asked."""

_OPEN = -1
"""In place of where a match ends: rows that have not come yet decide."""


@attrs.frozen(eq=False)
class Match:
    """
    A match.

    Attributes
    ----------
    start : int
        Its first row; for an empty match the row where it was found.
    labels : bytes
        For each of its rows the number of the variable.
    hidden : bytes
        For each of its rows 1 if it is left out of the output, else 0.
    number : int
        Its number in the partition, from 1.
    """

    start: int
    labels: bytes
    hidden: bytes
    number: int

    @property
    def end(self) -> int:
        """The row after its last one."""
        return self.start + len(self.labels)


@attrs.define(eq=False)
class Place:
    """
    How far the search in a partition has come, rows counted from the first that is there.

    Attributes
    ----------
    start : int
        The row with which the next match may begin.
    number : int
        How many matches were found.
    settled : int
        The row before which all are in a match that was found, or in none.
    before : int
        How many rows of the partition came before the first that is there.
    """

    start: int = 0
    number: int = 0
    settled: int = 0
    before: int = 0

    def forget(self, rows: int) -> None:
        """Count rows from a later one on."""
        self.start -= rows
        self.settled -= rows
        self.before += rows


class Conditions(Protocol):
    """
    What DEFINE says about the rows of a partition.

    Attributes
    ----------
    initial : tuple
        What is known of a match without rows.
    updates : list of callable or None
        By variable: makes of what is known of a match and a row what is known once the row is
        taken; None if that changes nothing.
    remembers : bool
        Whether what is known of a match is all of it that conditions look at.
    is_timeless : bool
        Whether nothing depends on which match it is: not on its number, not on its first row.
    """

    initial: tuple[Any, ...]
    updates: list[Callable[[tuple[Any, ...], int], tuple[Any, ...]] | None]
    remembers: bool
    is_timeless: bool

    def answers(self, variable: int) -> bytearray | None:
        """
        Return whether the condition of a variable holds for each row; :data:`UNKNOWN` if not asked.

        None if it looks at more than the row's position.
        """

    def begin(self, start: int, number: int, labels: bytearray) -> None:
        """Turn to another match; `labels` has the variables of its rows as they are taken."""

    def holds(self, variable: int, row: int, known: tuple[Any, ...]) -> bool:
        """Whether a condition holds for a row, given what is known with the row taken."""

    def limit(self, start: int, size: int) -> int:
        """Return the first row that is too late for a match that begins with a row."""

    def is_open(self, start: int) -> bool:
        """Whether a match that begins with a row may have rows that have not come yet."""


def find_matches(
    program: Program,
    conditions: Conditions,
    size: int,
    skip: Skip,
    subsets: dict[str, tuple[str, ...]],
    place: Place | None = None,
) -> Iterator[Match]:
    """
    Find the matches of a partition, up to where rows that have not come yet decide.

    Parameters
    ----------
    program : Program
        PATTERN.
    conditions : Conditions
        DEFINE.
    size : int
        The number of rows.
    skip : Skip
        Where to look for the next match.
    subsets : dict of str to tuple of str
        The variables of each union, for `skip`.
    place : Place, optional
        Where to begin; it is moved on to where the search has come.

    Yields
    ------
    Match
        Matches in the order of their first rows, empty ones among them.

    Raises
    ------
    SkipError
        If a match has no row to skip to, or only its first.

    Notes
    -----
    Ways are tried in the order of preference. So what is found before a way asks for a row that
    has not come yet is the preferred match whatever comes, and at that row nothing is decided.

    Cost: if conditions look at positions only, a place in the program that failed at a row is
    never tried there again: rows times program. Else it is not tried again in one search with
    the same things known of the match.
    """
    place = Place() if place is None else place
    try:
        search = _Search(program, conditions, size, place.before)
    except MemoryError as cause:
        raise _out_of_memory() from cause
    target = None
    if skip.variable is not None:
        names = subsets.get(skip.variable, (skip.variable,))
        target = frozenset(program.variables.index(name) for name in names)
    while place.start < size:
        found = search.run(place.start, place.number + 1)
        if search.is_open:
            return
        if found is None:
            place.start += 1
            continue
        place.number += 1
        yield found
        place.start = _next_start(found, skip, target)


def _out_of_memory() -> OutOfMemoryError:
    return OutOfMemoryError(
        "out of memory while looking for a match",
        "give the workers more memory, PARTITION BY more columns, or write WITHIN",
    )


def _next_start(match: Match, skip: Skip, target: frozenset[int] | None) -> int:
    if not match.labels or skip.to is SkipTo.NEXT_ROW:
        return match.start + 1
    if target is None:
        return match.end
    rows = [match.start + at for at, label in enumerate(match.labels) if label in target]
    if not rows:
        raise SkipError(
            "AFTER MATCH SKIP failed: pattern variable is not present in match",
            "skip to a variable that every match has, or TO NEXT ROW",
            stage=skip.variable,
        )
    row = rows[0] if skip.to is SkipTo.FIRST else rows[-1]
    if row == match.start:
        raise SkipError(
            "AFTER MATCH SKIP failed: cannot skip to first row of match",
            "it would find the same match again: skip TO NEXT ROW",
            stage=skip.variable,
        )
    return row


class _Search:
    """
    The machine.

    A place in a search is a number made of an instruction's, the open rounds that have taken a
    row (a bit each) and the row. The stack has the places of other ways, and below each of them
    the place of its SPLIT, made negative, which is remembered as failed when it comes up.
    """

    def __init__(self, program: Program, conditions: Conditions, size: int, before: int) -> None:
        self.is_open = False
        self._first = 0 if before == 0 else _OPEN
        self._program = program
        self._code = [(int(op), first, second) for op, first, second in program.code]
        self._conditions = conditions
        self._size = size
        self._labels = bytearray(size)
        self._hidden = bytearray(size)
        splits = [at for at, (op, _, _) in enumerate(program.code) if op is Op.SPLIT]
        self._numbers = {at: number for number, at in enumerate(splits)}
        self._flags = bytearray()
        self._failed: set[tuple[int, tuple[Any, ...]]] = set()
        places = (len(splits) << program.loops) * (size + 1)
        is_positional = conditions.is_timeless and not any(conditions.updates)
        self._has_flags = is_positional and conditions.remembers and places <= _MOST_BYTES
        self._answers = [conditions.answers(v) for v in range(len(program.variables))]
        self._compiled = make_search(
            tuple((int(op), first, second) for op, first, second in program.code),
            program.loops,
            size,
            self._first,
            places if self._has_flags else 0,
            conditions.remembers,
            _MOST_REMEMBERED,
            conditions.initial,
            tuple(conditions.updates),
            conditions.holds,
            tuple(self._answers),
            self._labels,
            self._hidden,
        )
        if self._has_flags and self._compiled is None:
            self._flags = bytearray(places)

    def run(self, start: int, number: int) -> Match | None:
        """Return the preferred match that begins with a row, None if there is none."""
        conditions = self._conditions
        conditions.begin(start, number, self._labels)
        limit, is_open = conditions.limit(start, self._size), conditions.is_open(start)
        find = self._find if self._compiled is None else self._compiled.find
        try:
            end = find(start, limit, is_open)
        except MemoryError as cause:
            raise _out_of_memory() from cause
        self.is_open = end == _OPEN
        if end is None or self.is_open:
            return None
        size = end - start
        return Match(start, bytes(self._labels[:size]), bytes(self._hidden[:size]), number)

    def _find(self, start: int, limit: int, is_open: bool) -> int | None:
        """See :class:`~pyflinkcep.kernel.Search`, which does the same."""
        self._failed.clear()
        code, size, width = self._code, self._size, self._size + 1
        loops = self._program.loops
        every = (1 << loops) - 1
        conditions, updates = self._conditions, self._conditions.updates
        labels, hidden, all_answers = self._labels, self._hidden, self._answers
        numbers, failed, flags = self._numbers, self._failed, self._flags
        has_flags, remembers = self._has_flags, conditions.remembers
        first_row = self._first
        stack = array("q")
        states: list[tuple[Any, ...]] = []
        pc, row, mask, state = 0, start, 0, conditions.initial
        while True:
            op, first, second = code[pc]
            if op == 0:  # TAKE
                if row < limit:
                    taken = state
                    labels[row - start] = first
                    update = updates[first]
                    if update is not None:
                        taken = update(state, row)
                    answers = all_answers[first]
                    if answers is None:
                        holds: int = conditions.holds(first, row, taken)
                    else:
                        holds = answers[row]
                        if holds == UNKNOWN:
                            holds = answers[row] = conditions.holds(first, row, taken)
                    if holds:
                        hidden[row - start] = second
                        row += 1
                        mask, state = every, taken
                        pc += 1
                        continue
                elif is_open and row == size:
                    return _OPEN
            elif op == 1:  # SPLIT
                place = ((numbers[pc] << loops) | mask) * width + row
                if not (flags[place] if has_flags else (place, state) in failed):
                    stack.append(~place)
                    stack.append(((second << loops) | mask) * width + row)
                    if not has_flags:
                        states.append(state)
                    pc = first
                    continue
            elif op == 2:  # JUMP
                pc = first
                continue
            elif op == 3 or op == 4:  # START, END
                if row == (first_row if op == 3 else size):
                    pc += 1
                    continue
            elif op == 5:  # MARK
                mask &= ~(1 << first)
                pc += 1
                continue
            elif op == 6:  # CHECK
                if mask >> first & 1:
                    pc += 1
                    continue
                if second >= 0:
                    pc = second
                    continue
            else:
                return row
            while stack:
                place = stack.pop()
                if place >= 0:
                    rest, row = divmod(place, width)
                    pc, mask = rest >> loops, rest & every
                    if not has_flags:
                        state = states[-1]
                    break
                if has_flags:
                    flags[~place] = 1
                elif remembers and len(failed) < _MOST_REMEMBERED:
                    failed.add((~place, states.pop()))
                else:
                    states.pop()
            else:
                return None
