# SPDX-License-Identifier: Apache-2.0
"""
Matches concatenated partitions, with the compiled search if available.

:class:`PlainSearch` is the specification of the compiled search.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
import numpy as np

from pyflinkcep.engines.rows.plan import Compiled, StandardPlan
from pyflinkcep.engines.rows.program import Op, Program
from pyflinkcep.engines.rows.values import UNKNOWN, Known, RowColumns, RowConditions, SearchTables
from pyflinkcep.errors import OutOfMemoryError, SkipError
from pyflinkcep.expressions.program import BY_ZERO, OVERFLOW, Type
from pyflinkcep.kernel.module import compiled_module, instruction
from pyflinkcep.match_recognize.tree import Rows, SkipTo

if TYPE_CHECKING:
    from pyflinkcep.kernel import _kernel


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
        # The places from which no match follows; for matches that begin at later rows too, unless
        # conditions depend on more than positions.
        self._failed: set[Configuration] = set()
        self._most_failed = MOST_REMEMBERED if conditions.remembers else 0
        self._lasts = conditions.remembers and not (
            times is not None or conditions.is_numbered or any(conditions.updates)
        )
        self._answers = [conditions.answers(v) for v in range(len(program.variables))]
        self._part, self._first_row = range(0), 0
        self.partition, self._is_turned = 0, False  # of those that are listed
        self._start = self._limit = 0
        self._stack: list[tuple[bool, Configuration]] = []

    def turn_to(self, begin: int, end: int, has_first: bool) -> None:
        """Select the rows of a partition, whose first row may be missing."""
        self._part = range(begin, end)
        self._first_row = begin if has_first else OPEN
        self._conditions.turn_to(self._part)
        self._failed.clear()

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
        if not self._lasts or len(self._failed) > MOST_REMEMBERED:
            self._failed.clear()
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
            place = self._next(place, op, first, second) or self._untried()
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
            if self._lasts or len(self._failed) < self._most_failed:
                self._failed.add(place)
        return None

    def _next(self, place: Configuration, op: Op, first: int, second: int) -> Configuration | None:
        """Return where to go on after an instruction; None if it fails."""
        match op:
            case Op.TAKE:
                return self._take(place, first, second)
            case Op.SPLIT:
                if place in self._failed:
                    return None
                self._stack += [(False, place), (True, place.at(second))]
                return place.at(first)
            case Op.JUMP:
                return place.at(first)
            case Op.MARK:
                mask = place.mask & ~(1 << first)
                return Configuration(place.pc + 1, place.row, mask, place.known)
            case Op.CHECK:
                if not place.mask >> first & 1:
                    return place.at(second) if second >= 0 else None
            case _:
                if place.row != (self._first_row if op is Op.START else self._part.stop):
                    return None
        return place.at(place.pc + 1)

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


# --- the matches of partitions, and the rows of output that show them


_MOST_PLACES = 1 << 62
Ints = np.ndarray[Any, np.dtype[np.int64]]


PLACE = 4
"""
How many numbers the place of the search in a partition has: the first row at which the next match
may begin; how many matches are found; the row before which every row is in a found match, or in
none; and how many rows of the partition came before the first one present, from which rows count.
"""


def forget(places: Ints, rows: Ints) -> None:
    """Let the rows of each partition count from a later one."""
    places[:, [0, 2]] -= rows[:, None]
    places[:, 3] += rows


def out_of_memory() -> OutOfMemoryError:
    """Return the error for a search that runs out of memory."""
    return OutOfMemoryError(
        "out of memory while searching for a match",
        "give the workers more memory, PARTITION BY more columns, or write WITHIN",
    )


_MOST_ROWS = 1 << 16
_SKIPS = (SkipTo.NEXT_ROW, SkipTo.PAST_LAST_ROW, SkipTo.FIRST, SkipTo.LAST)
"""In the order of ``search_object.c``."""


@attrs.frozen(eq=False)
class OutputRows:
    """Matches of concatenated partitions, and the rows of output that show them."""

    # For each match its first row, how many rows it has, its number in its partition, and where
    # that partition begins and ends.
    starts: Ints
    sizes: Ints
    numbers: Ints
    begins: Ints
    stops: Ints
    labels: Ints  # The variable number of each of their rows
    # For each row of output the row that it shows; its match, -1 for none; and how many of the
    # match's rows it sees.
    rows: Ints
    matches: Ints
    seen: Ints

    @classmethod
    def concat(cls, parts: Sequence[OutputRows]) -> OutputRows:
        """Join the matches of several."""
        before = np.cumsum([0, *(len(part.starts) for part in parts)])
        columns = {
            name: [np.zeros(0, np.int64), *(getattr(part, name) for part in parts)]
            for name in ("starts", "sizes", "numbers", "begins", "stops", "labels", "rows", "seen")
        }
        matches = [
            np.where(part.matches < 0, -1, part.matches + count)
            for part, count in zip(parts, before.tolist(), strict=False)
        ]
        joined = {name: np.concatenate(own) for name, own in columns.items()}
        return cls(**joined, matches=np.concatenate([np.zeros(0, np.int64), *matches]))

    def after(self, rows: int) -> OutputRows:
        """Return the same of rows that come after some number of rows."""
        own = {n: getattr(self, n) + rows for n in ("starts", "begins", "stops", "rows")}
        return attrs.evolve(self, **own)


@attrs.frozen(eq=False)
class Partitions:
    """The rows of concatenated partitions."""

    ends: np.ndarray[Any, Any]  # Where each partition ends
    columns: RowColumns  # The columns that conditions read
    # Returns an argument of a condition without a program, row by row.
    evaluated: Callable[[str], Sequence[Any]]
    times: np.ndarray[Any, Any] | None = None  # The rows' times; None without a window
    watermark: int | None = None  # All future rows are after this time; by default there are none

    @property
    def size(self) -> int:
        """The number of rows."""
        return int(self.ends[-1]) if len(self.ends) else 0

    @property
    def longest(self) -> int:
        """The number of rows of the largest partition."""
        return int(np.diff(self.ends, prepend=0).max()) if len(self.ends) else 0


class Matching:
    """
    The matching of concatenated partitions by a clause.

    Alternatives are tried in order of preference. So a match found before an alternative needs a
    future row is the preferred match in any case; once a future row is needed, nothing is decided.

    Cost: if conditions depend on positions only, an instruction that failed at a row is never tried
    there again: rows times program length. Otherwise it is not tried again in one search with the
    same knowledge of the match.
    """

    def __init__(self, plan: StandardPlan, compiled: Compiled, partitions: Partitions) -> None:
        self._ends = np.ascontiguousarray(partitions.ends, np.int64)
        self._skip, self._rows = plan.skip, plan.rows
        names = plan.subsets.get(plan.skip.variable or "", (plan.skip.variable,))
        self._targets = bytes(name in names for name in plan.program.variables)
        self._search: CompiledSearch | PlainSearch | None = None
        try:
            if compiled.tables is not None:
                self._search = _compiled_search(plan, compiled, compiled.tables, partitions)
            self._search = self._search or _plain_search(plan, compiled, partitions)
        except MemoryError as cause:
            raise out_of_memory() from cause

    @property
    def number(self) -> int:
        """The number of the partition that is searched."""
        return 0 if self._search is None else self._search.partition

    def run(self, places: Ints) -> Iterator[OutputRows]:
        """Match all partitions, up to where future rows decide; change the places in them."""
        search, done, skip = self._search, 0, _SKIPS.index(self._skip.to)
        assert search is not None
        while done < len(self._ends):
            try:
                *found, next_ = search.list(self._ends, places, skip, self._targets, _MOST_ROWS)
            except MemoryError as cause:
                raise out_of_memory() from cause
            if next_ < 0:
                raise self._skip_error(is_first=next_ == OPEN)
            matches, labels, hidden = map(np.frombuffer, found, (np.int64, np.uint8, np.uint8))
            output = self._output(matches.reshape(-1, 4).T, labels, hidden, places, done)
            done = search.partition
            if len(output.rows):
                yield output

    def _skip_error(self, is_first: bool) -> SkipError:
        if is_first:
            message = "cannot skip to first row of match"
            hint = "skip TO NEXT ROW: this would find the same match again"
        else:
            message = "pattern variable is not present in match"
            hint = "skip to a variable that every match has, or TO NEXT ROW"
        return SkipError(f"AFTER MATCH SKIP failed: {message}", hint, stage=self._skip.variable)

    def _output(
        self, matches: Ints, labels: Ints, hidden: Ints, places: Ints, done: int
    ) -> OutputRows:
        """Return the output of some matches; partitions from `done` on are new, or go on."""
        starts, sizes, numbers, parts = matches
        match_of, at = self._shown(sizes, hidden)
        is_shown = np.bincount(match_of, minlength=len(starts)) > 0
        rows, seen = starts[match_of] + np.maximum(at, 0), at + 1
        shown_as = (np.cumsum(is_shown) - 1)[match_of]
        unmatched, before = self._unmatched(starts, sizes, parts, places, done)
        if len(unmatched):
            order = np.argsort(np.r_[before, 2 * match_of + 1], kind="stable")
            nothing = np.zeros(len(unmatched), np.int64)
            rows, seen = np.r_[unmatched, rows][order], np.r_[nothing, seen][order]
            shown_as = np.r_[nothing - 1, shown_as][order]
        ends = self._ends
        return OutputRows(
            starts[is_shown],
            sizes[is_shown],
            numbers[is_shown],
            np.r_[0, ends][parts[is_shown]],
            ends[parts[is_shown]],
            labels[np.repeat(is_shown, sizes)],
            rows,
            shown_as,
            seen,
        )

    def _shown(self, sizes: Ints, hidden: Ints) -> tuple[Ints, Ints]:
        """Return the rows to show: their matches, and their places in these; -1 for empty ones."""
        if self._rows is Rows.ONE:
            return np.arange(len(sizes)), sizes - 1
        begins = np.cumsum(sizes) - sizes
        shown = np.flatnonzero(hidden == 0)
        match_of = np.repeat(np.arange(len(sizes)), sizes)[shown]
        at = shown - begins[match_of]
        if self._rows is Rows.OMIT_EMPTY:
            return match_of, at
        empty = np.flatnonzero(sizes == 0)
        match_of = np.r_[match_of, empty]
        order = np.argsort(match_of, kind="stable")
        return match_of[order], np.r_[at, np.full(len(empty), -1)][order]

    def _unmatched(
        self, starts: Ints, sizes: Ints, parts: Ints, places: Ints, done: int
    ) -> tuple[Ints, Ints]:
        """
        Return rows without a match, and where they are shown: before a match if even.

        What is settled then is noted in the places.
        """
        begins = np.r_[0, self._ends][:-1]
        settled = places[:, 2] + begins
        ends = np.maximum.accumulate(starts + np.maximum(sizes, 1))
        since = np.maximum(np.r_[-1, ends[:-1]][: len(ends)], settled[parts])
        np.maximum.at(settled, parts, ends)
        own = np.arange(done, self.number)  # the partitions that are finished
        tails = np.maximum(places[own, 0] + begins[own], settled[own])
        before = settled[own]
        settled[own] = tails
        places[:, 2] = settled - begins
        nothing = np.zeros(0, np.int64)
        if self._rows is not Rows.WITH_UNMATCHED:
            return nothing, nothing
        rows = [*_ranges(before, tails), *_ranges(since, starts)]
        where = [*(2 * np.searchsorted(parts, own, "right")), *(2 * np.arange(len(starts)))]
        counts = [len(some) for some in rows]
        return np.concatenate([nothing, *rows]), np.repeat(np.asarray(where, np.int64), counts)


def _ranges(begins: Ints, ends: Ints) -> Iterator[Ints]:
    """Yield the numbers from one to another."""
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        yield np.arange(begin, end)


@attrs.frozen(eq=False)
class CompiledSearch:
    """The compiled search with the buffers that it writes; see ``search.c``."""

    _search: _kernel.RowSearch
    labels: bytearray
    hidden: bytearray
    _failed: Callable[[int, str], Exception]

    def turn_to(self, begin: int, end: int, has_first: bool) -> None:
        """Select the rows of a partition, whose first row may be missing."""
        self._search.turn_to(begin, end, has_first)

    def find(self, start: int, number: int) -> tuple[int, int] | None:
        """Find the first match of the partition that begins at a row or later."""
        with self._naming_failures():
            found: tuple[int, int] | None = self._search.find(start, number)
        return found

    @contextmanager
    def _naming_failures(self) -> Iterator[None]:
        try:
            yield
        except ArithmeticError as cause:
            message = OVERFLOW if isinstance(cause, OverflowError) else BY_ZERO
            raise self._failed(self._search.asked, message) from cause

    @property
    def partition(self) -> int:
        """The number of the partition that is searched by :meth:`list`."""
        return self._search.partition

    def list(self, *asked: Any) -> tuple[bytes, bytes, bytes, int]:
        """Find some matches of partitions, from the places in them; see ``search_object.c``."""
        with self._naming_failures():
            return self._search.list(*asked)


def _compiled_search(
    plan: StandardPlan, compiled: Compiled, tables: SearchTables, partitions: Partitions
) -> CompiledSearch | None:
    """Return a search by the compiled kernel; None if it was not built or is switched off."""
    size, program, module = partitions.size, plan.program, compiled_module()
    if module is None or (len(program.code) << program.loops) * (size + 1) >= _MOST_PLACES:
        return None
    splits = sum(op is Op.SPLIT for op, _, _ in program.code)
    places = (splits << program.loops) * (partitions.longest + 1)
    answers = []
    for argument in tables.answers:
        answer = None
        if argument:
            values, valid, _ = partitions.columns.array(argument)
            holds = np.asarray(values) != 0
            answer = bytearray(holds if valid is None else holds & valid)
        elif argument is not None:
            answer = bytearray([UNKNOWN]) * size
        answers.append(answer)
    labels, hidden = bytearray(size), bytearray(size)
    search = module.RowSearch(
        tuple((int(op), first, second) for op, first, second in program.code),
        program.loops,
        size,
        not tables.slots and partitions.times is None and places <= MOST_BYTES,
        tuple((int(s[0]), *s[1:4], s[4] is Type.FLOAT) for s in tables.slots),
        tuple(
            tuple(instruction(op, operand, plan.ansi) for op, operand in code or ())
            for code in tables.programs
        ),
        tables.has_number,
        plan.ansi,
        MOST_REMEMBERED,
        tables.field_arrays(partitions.columns, partitions.ends),
        tuple(answers),
        labels,
        hidden,
        partitions.times,
        plan.within,
        partitions.watermark,
    )
    conditions, variables = compiled.conditions, program.variables
    return CompiledSearch(
        search, labels, hidden, lambda number, what: conditions[variables[number]].failed(what)
    )


def _plain_search(plan: StandardPlan, compiled: Compiled, partitions: Partitions) -> PlainSearch:
    times = None if partitions.times is None else partitions.times.tolist()
    conditions = RowConditions(
        plan.program.variables, compiled.conditions, plan.subsets, partitions.size,
        partitions.columns, plan.ansi, partitions.evaluated,
    )  # fmt: skip
    return PlainSearch(
        plan.program, conditions, partitions.size, times, plan.within, partitions.watermark
    )
