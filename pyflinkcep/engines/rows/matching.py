# SPDX-License-Identifier: Apache-2.0
"""Matches concatenated partitions, with the compiled search if available."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from pyflinkcep.engines.rows.plain_search import MOST_BYTES, MOST_REMEMBERED, OPEN, PlainSearch
from pyflinkcep.engines.rows.plan import Compiled, StandardPlan
from pyflinkcep.engines.rows.program import Op
from pyflinkcep.engines.rows.values import UNKNOWN, RowColumns, RowConditions, SearchTables
from pyflinkcep.errors import OutOfMemoryError, SkipError
from pyflinkcep.expressions.program import BY_ZERO, OVERFLOW, Type
from pyflinkcep.kernel.module import compiled_module, instruction
from pyflinkcep.match_recognize.tree import Rows, SkipTo

if TYPE_CHECKING:
    from pyflinkcep.kernel import _kernel

_MOST_PLACES = 1 << 62


@attrs.frozen(eq=False)
class Match:
    """A match."""

    start: int  # Its first row; for an empty match, the row where it was found
    labels: bytes  # The variable number of each of its rows
    hidden: bytes  # 1 for each of its rows that is left out of the output, otherwise 0
    number: int  # Its number in the partition, from 1

    @property
    def end(self) -> int:
        """The row after its last one."""
        return self.start + len(self.labels)


@attrs.define(eq=False)
class Place:
    """The progress of the search in a partition; rows are counted from the first one present."""

    start: int = 0  # The first row at which the next match may begin
    number: int = 0  # The number of matches found
    settled: int = 0  # The row before which every row is in a found match, or in none
    before: int = 0  # How many rows of the partition came before the first one present

    def forget(self, rows: int) -> None:
        """Count rows from a later row on."""
        self.start -= rows
        self.settled -= rows
        self.before += rows


def out_of_memory() -> OutOfMemoryError:
    """Return the error for a search that runs out of memory."""
    return OutOfMemoryError(
        "out of memory while searching for a match",
        "give the workers more memory, PARTITION BY more columns, or write WITHIN",
    )


_MOST_ROWS = 8192


@attrs.frozen(eq=False)
class OutputRows:
    """Matches of concatenated partitions, and the rows of output that show them."""

    # For each match its first row, how many rows it has, its number in its partition, and where
    # that partition begins and ends.
    starts: list[int] = attrs.field(factory=list)
    sizes: list[int] = attrs.field(factory=list)
    numbers: list[int] = attrs.field(factory=list)
    begins: list[int] = attrs.field(factory=list)
    stops: list[int] = attrs.field(factory=list)
    labels: bytearray = attrs.field(factory=bytearray)  # The variable number of each of their rows
    # For each row of output the row that it shows; its match, -1 for none; and how many of the
    # match's rows it sees.
    rows: list[int] = attrs.field(factory=list)
    matches: list[int] = attrs.field(factory=list)
    seen: list[int] = attrs.field(factory=list)

    def extend(self, other: OutputRows, before: int) -> None:
        """Add others, which are of rows that come after some number of rows."""
        count = len(self.starts)
        for name in ("starts", "begins", "stops", "rows"):
            getattr(self, name).extend([row + before for row in getattr(other, name)])
        for name in ("sizes", "numbers", "labels", "seen"):
            getattr(self, name).extend(getattr(other, name))
        self.matches.extend([-1 if match < 0 else match + count for match in other.matches])


def _shown(match: Match, rows: Rows) -> list[int]:
    """Return the rows of a match to show, counted from its first row; -1 for an empty match."""
    if not match.labels:
        return [] if rows is Rows.OMIT_EMPTY else [-1]
    if rows is Rows.ONE:
        return [len(match.labels) - 1]
    return [at for at, hidden in enumerate(match.hidden) if not hidden]


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
        self._ends = [0, *partitions.ends.tolist()]
        self._skip, self._rows = plan.skip, plan.rows
        self._target: frozenset[int] | None = None
        if plan.skip.variable is not None:
            names = plan.subsets.get(plan.skip.variable, (plan.skip.variable,))
            self._target = frozenset(map(plan.program.variables.index, names))
        self._out = OutputRows()
        self._search: CompiledSearch | PlainSearch | None = None
        try:
            if compiled.tables is not None:
                self._search = _compiled_search(plan, compiled, compiled.tables, partitions)
            self._search = self._search or _plain_search(plan, compiled, partitions)
        except MemoryError as cause:
            raise out_of_memory() from cause

    def partition(self, number: int, place: Place) -> Iterator[OutputRows]:
        """Match a partition, up to where future rows decide."""
        part = range(self._ends[number], self._ends[number + 1])
        for match in self._matches(part, place):
            self._add(match, part, place)
            if len(self._out.rows) >= _MOST_ROWS:
                yield self.rest()
        if self._rows is Rows.WITH_UNMATCHED and place.settled < place.start:
            self._add_unmatched(part.start + place.settled, part.start + place.start)
        place.settled = max(place.settled, place.start)

    def rest(self) -> OutputRows:
        """Return the output that was collected."""
        out, self._out = self._out, OutputRows()
        return out

    def _matches(self, part: range, place: Place) -> Iterator[Match]:
        search = self._search
        assert search is not None
        try:
            search.turn_to(part.start, part.stop, place.before == 0)
            while True:
                found = search.find(part.start + place.start, place.number + 1)
                if found is None:
                    place.start = len(part)
                    return
                start, end = found
                place.start = start - part.start
                if end == OPEN:
                    return
                place.number += 1
                taken = slice(end - start)
                labels, hidden = bytes(search.labels[taken]), bytes(search.hidden[taken])
                match = Match(start, labels, hidden, place.number)
                yield match
                place.start = self._next_start(match) - part.start
        except MemoryError as cause:
            raise out_of_memory() from cause

    def _next_start(self, match: Match) -> int:
        if not match.labels or self._skip.to is SkipTo.NEXT_ROW:
            return match.start + 1
        if self._target is None:
            return match.end
        rows = [match.start + at for at, label in enumerate(match.labels) if label in self._target]
        if not rows:
            raise SkipError(
                "AFTER MATCH SKIP failed: pattern variable is not present in match",
                "skip to a variable that every match has, or TO NEXT ROW",
                stage=self._skip.variable,
            )
        row = rows[0] if self._skip.to is SkipTo.FIRST else rows[-1]
        if row == match.start:
            raise SkipError(
                "AFTER MATCH SKIP failed: cannot skip to first row of match",
                "skip TO NEXT ROW: this would find the same match again",
                stage=self._skip.variable,
            )
        return row

    def _add(self, match: Match, part: range, place: Place) -> None:
        """Add the rows of a match, and the unmatched ones before it."""
        settled = part.start + place.settled
        if self._rows is Rows.WITH_UNMATCHED and settled < match.start:
            self._add_unmatched(settled, match.start)
        settled = max(settled, match.end if match.labels else match.start + 1)
        place.settled = settled - part.start
        shown = _shown(match, self._rows)
        if shown:
            out = self._out
            out.rows.extend([match.start + max(at, 0) for at in shown])
            out.matches.extend([len(out.starts)] * len(shown))
            out.seen.extend([at + 1 for at in shown])
            out.starts.append(match.start)
            out.sizes.append(len(match.labels))
            out.numbers.append(match.number)
            out.begins.append(part.start)
            out.stops.append(part.stop)
            out.labels.extend(match.labels)

    def _add_unmatched(self, start: int, end: int) -> None:
        self._out.rows.extend(range(start, end))
        self._out.matches.extend([-1] * (end - start))
        self._out.seen.extend([0] * (end - start))


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
        try:
            found: tuple[int, int] | None = self._search.find(start, number)
        except ArithmeticError as cause:
            message = OVERFLOW if isinstance(cause, OverflowError) else BY_ZERO
            raise self._failed(self._search.asked, message) from cause
        return found


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
        plan.program, conditions, partitions.size, partitions.longest, times, plan.within,
        partitions.watermark,
    )  # fmt: skip
