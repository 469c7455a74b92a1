# SPDX-License-Identifier: Apache-2.0
"""The search for matches in Python, the specification of the compiled one."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, NamedTuple

from pyflinkcep.engines.rows.program import Op, Program
from pyflinkcep.engines.rows.values import UNKNOWN, Known, RowConditions

MOST_REMEMBERED = 500_000
"""The most failed places, with what is known there, remembered in one search."""

MOST_BYTES = 1 << 28
"""The most places of a partition marked as failed."""

OPEN = -1
"""Stands for the end of a match: future rows decide."""

_NO_ROW = -2


class Configuration(NamedTuple):
    """A place in a search."""

    # The next instruction, and the row it looks at.
    pc: int
    row: int
    mask: int  # The open rounds of loops that have taken a row, a bit each
    known: Known  # What conditions know of the match so far

    def at(self, pc: int) -> Configuration:
        """Return the same at another instruction."""
        return Configuration(pc, self.row, self.mask, self.known)


class _FailedPlaces:
    """The places of a partition from which no match follows, whatever row it begins at."""

    def __init__(self, program: Program) -> None:
        splits = [at for at, (op, _, _) in enumerate(program.code) if op is Op.SPLIT]
        self._numbers = {at: number for number, at in enumerate(splits)}
        self._loops = program.loops
        self._rows = range(0)
        self._flags = bytearray()

    def size(self, rows: int) -> int:
        """Return the number of bytes for a partition."""
        return (len(self._numbers) << self._loops) * (rows + 1)

    def turn_to(self, rows: range) -> None:
        """Forget the places of the last partition."""
        self._rows = rows
        self._flags = bytearray(self.size(len(rows)))

    def begin(self) -> None:
        """Begin a match at another row, for which the same places have failed."""

    def add(self, place: Configuration) -> None:
        """Remember a place."""
        self._flags[self._index(place)] = 1

    def __contains__(self, place: Configuration) -> bool:
        return bool(self._flags[self._index(place)])

    def _index(self, place: Configuration) -> int:
        above = (self._numbers[place.pc] << self._loops) | place.mask
        return above * (len(self._rows) + 1) + place.row - self._rows.start


class _FailedStates:
    """The places from which the match that begins at a row cannot go on, with what it knows."""

    def __init__(self, remembers: bool) -> None:
        self._most = MOST_REMEMBERED if remembers else 0
        self._places: set[Configuration] = set()

    def turn_to(self, rows: range) -> None:
        """Turn to another partition."""

    def begin(self) -> None:
        """Forget the places of the last match."""
        self._places.clear()

    def add(self, place: Configuration) -> None:
        """Remember a place, unless there are too many."""
        if len(self._places) < self._most:
            self._places.add(place)

    def __contains__(self, place: Configuration) -> bool:
        return place in self._places


def _next_start(start: int, labels: bytearray, skip: int, targets: bytes) -> int:
    """Return where to look on after a match, as ``next_start`` in ``search_object.c``."""
    if not labels or skip == 0:
        return start + 1
    if skip == 1:
        return start + len(labels)
    rows = [at for at, label in enumerate(labels) if targets[label]]
    at = (rows[0] if skip == 2 else rows[-1]) if rows else None
    if at is None:
        return _NO_ROW
    return start + at if at else OPEN


class PlainSearch:
    """The machine, on the rows of concatenated partitions."""

    def __init__(
        self,
        program: Program,
        conditions: RowConditions,
        size: int,
        longest: int,
        times: Sequence[int] | None = None,
        within: int = 0,
        watermark: int | None = None,
    ) -> None:
        self._code = program.code
        self._conditions = conditions
        self._times, self._within, self._watermark = times, within, watermark
        # For each row of the last match found: the index of its variable, and whether it is left
        # out of the output.
        self.labels = bytearray(size)
        self.hidden = bytearray(size)
        self._every = (1 << program.loops) - 1
        self._failed = self._failures(program, longest)
        self._answers = [conditions.answers(v) for v in range(len(program.variables))]
        self._part, self._first_row = range(0), 0
        self.partition, self._is_turned = 0, False  # of those that are listed
        self._start = self._limit = 0
        self._stack: list[tuple[bool, Configuration]] = []
        self._steps = {
            Op.TAKE: self._take,
            Op.SPLIT: self._split,
            Op.JUMP: self._jump,
            Op.START: self._at_start,
            Op.END: self._at_end,
            Op.MARK: self._mark,
            Op.CHECK: self._check,
        }

    def _failures(self, program: Program, longest: int) -> _FailedPlaces | _FailedStates:
        conditions = self._conditions
        places = _FailedPlaces(program)
        depends_on_match = (
            self._times is not None or conditions.is_numbered or any(conditions.updates)
        )
        if depends_on_match or not conditions.remembers or places.size(longest) > MOST_BYTES:
            return _FailedStates(conditions.remembers)
        return places

    def turn_to(self, begin: int, end: int, has_first: bool) -> None:
        """Select the rows of a partition, whose first row may be missing."""
        self._part = range(begin, end)
        self._first_row = begin if has_first else OPEN
        self._conditions.turn_to(self._part)
        self._failed.turn_to(self._part)

    def find(self, start: int, number: int) -> tuple[int, int] | None:
        """Return where the next match begins and ends, as the compiled search does."""
        for row in range(start, self._part.stop):
            self._conditions.begin(row, number, self.labels)
            end = self._preferred(row)
            if end is not None:
                return row, end
        return None

    def list(
        self, ends: Any, places: Any, skip: int, targets: bytes, most: int
    ) -> tuple[bytes, bytes, bytes, int]:
        """Find some matches of partitions, as the compiled search does."""
        found, labels, hidden = array("q"), bytearray(), bytearray()
        next_ = 0
        while self.partition < len(ends) and len(labels) + len(found) // 4 < most and next_ >= 0:
            number, place = self.partition, places[self.partition]
            begin, end = (int(ends[number - 1]) if number else 0), int(ends[number])
            if not self._is_turned:
                self.turn_to(begin, end, place[3] == 0)
                self._is_turned = True
            match = self.find(begin + int(place[0]), int(place[1]) + 1)
            if match is None or match[1] == OPEN:
                place[0] = (end if match is None else match[0]) - begin
                self.partition, self._is_turned = number + 1, False
                continue
            start, last = match
            own = slice(last - start)
            place[1] += 1
            found.extend((start, last - start, int(place[1]), number))
            labels += self.labels[own]
            hidden += self.hidden[own]
            next_ = _next_start(start, self.labels[own], skip, targets)
            if next_ >= 0:
                place[0] = next_ - begin
        return found.tobytes(), bytes(labels), bytes(hidden), next_

    def _preferred(self, start: int) -> int | None:
        """Return where the preferred match from a row ends, :data:`OPEN` if that is undecided."""
        self._failed.begin()
        self._stack.clear()
        self._start, self._limit = start, self._first_too_late(start)
        is_open = self._is_open(start)
        place: Configuration | None = Configuration(0, start, 0, self._conditions.initial)
        while place is not None:
            op, first, second = self._code[place.pc]
            if op is Op.ACCEPT:
                return place.row
            if op is Op.TAKE and is_open and place.row == self._part.stop:
                return OPEN
            place = self._steps[op](place, first, second) or self._untried()
        return None

    def _first_too_late(self, start: int) -> int:
        """Return the first row that is too late for a match that begins at a row."""
        if self._times is None:
            return self._part.stop
        late = self._times[start] + self._within
        return bisect_left(self._times, late, start, self._part.stop)

    def _is_open(self, start: int) -> bool:
        """Whether a match that begins at a row may have future rows."""
        if self._watermark is None:
            return False
        return self._times is None or self._watermark < self._times[start] + self._within - 1

    def _untried(self) -> Configuration | None:
        """Return the last untried alternative; what failed above it is remembered."""
        while self._stack:
            is_untried, place = self._stack.pop()
            if is_untried:
                return place
            self._failed.add(place)
        return None

    # --- instructions: each returns where to go on, or None if it fails

    def _take(self, place: Configuration, variable: int, hidden: int) -> Configuration | None:
        row = place.row
        if row >= self._limit:
            return None
        self.labels[row - self._start] = variable
        update = self._conditions.updates[variable]
        known = place.known if update is None else update(place.known, row)
        if not self._holds(variable, row, known):
            return None
        self.hidden[row - self._start] = hidden
        return Configuration(place.pc + 1, row + 1, self._every, known)

    def _holds(self, variable: int, row: int, known: Known) -> int:
        """Whether a condition holds; if it depends on the row alone, it is evaluated once."""
        answers = self._answers[variable]
        if answers is None:
            return self._conditions.holds(variable, row, known)
        if answers[row] == UNKNOWN:
            answers[row] = self._conditions.holds(variable, row, known)
        return answers[row]

    def _split(self, place: Configuration, preferred: int, other: int) -> Configuration | None:
        if place in self._failed:
            return None
        self._stack += [(False, place), (True, place.at(other))]
        return place.at(preferred)

    def _jump(self, place: Configuration, target: int, _: int) -> Configuration:
        return place.at(target)

    def _at_start(self, place: Configuration, *_: int) -> Configuration | None:
        return place.at(place.pc + 1) if place.row == self._first_row else None

    def _at_end(self, place: Configuration, *_: int) -> Configuration | None:
        return place.at(place.pc + 1) if place.row == self._part.stop else None

    def _mark(self, place: Configuration, loop: int, _: int) -> Configuration:
        return Configuration(place.pc + 1, place.row, place.mask & ~(1 << loop), place.known)

    def _check(self, place: Configuration, loop: int, target: int) -> Configuration | None:
        if place.mask >> loop & 1:
            return place.at(place.pc + 1)
        return place.at(target) if target >= 0 else None
