# SPDX-License-Identifier: Apache-2.0
"""The search for matches in Python, the specification of the compiled one."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from pyflinkcep.engines.rows.program import Op, Program
from pyflinkcep.engines.rows.values import UNKNOWN, RowConditions

__all__ = ["MOST_BYTES", "MOST_REMEMBERED", "OPEN", "PlainSearch"]

MOST_REMEMBERED = 500_000
"""The most failed places, with what is known there, remembered in one search."""

MOST_BYTES = 1 << 28
"""The most places of a partition marked as failed."""

OPEN = -1
"""Stands for the end of a match: future rows decide."""


class PlainSearch:
    """
    The machine; see :class:`~pyflinkcep.engines.rows.bridge.Search`.

    A place in a search encodes an instruction, the open rounds that have taken a row (a bit each)
    and the row. The stack has the places of untried alternatives, and below each the place of its
    SPLIT, made negative, which is remembered as failed when it is popped.

    Parameters
    ----------
    program : Program
        PATTERN.
    conditions : RowConditions
        DEFINE.
    size, longest : int
        The number of all rows, and of those of the largest partition.
    times : sequence of int, optional
        The rows' times, if there is a window.
    within : int
        Its length.
    watermark : int, optional
        All future rows are after this time; by default there are none.
    """

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
        self._code = [(int(op), first, second) for op, first, second in program.code]
        self._conditions = conditions
        self._times, self._within, self._watermark = times, within, watermark
        self.labels = bytearray(size)
        self.hidden = bytearray(size)
        splits = [at for at, (op, _, _) in enumerate(program.code) if op is Op.SPLIT]
        self._numbers = {at: number for number, at in enumerate(splits)}
        self._loops = program.loops
        self._split_places = len(splits) << program.loops
        is_positional = times is None and not conditions.is_numbered
        is_positional = is_positional and not any(conditions.updates) and conditions.remembers
        self._has_flags = is_positional and self._split_places * (longest + 1) <= MOST_BYTES
        self._flags = bytearray()
        self._failed: set[tuple[int, tuple[Any, ...]]] = set()
        self._answers = [conditions.answers(v) for v in range(len(program.variables))]
        self._part, self._first_row = range(0), 0

    def turn_to(self, begin: int, end: int, has_first: bool) -> None:
        """Select the rows of a partition, whose first row may be missing."""
        self._part = range(begin, end)
        self._first_row = begin if has_first else OPEN
        self._conditions.turn_to(self._part)
        if self._has_flags:
            self._flags = bytearray(self._split_places * (len(self._part) + 1))

    def find(self, start: int, number: int) -> tuple[int, int] | None:
        """Return where the next match begins and ends, as the compiled search does."""
        for row in range(start, self._part.stop):
            self._conditions.begin(row, number, self.labels)
            end = self._run(row)
            if end is not None:
                return row, end
        return None

    def _limit(self, start: int) -> int:
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

    def _run(self, start: int) -> int | None:
        """Return where the preferred match from a row ends."""
        self._failed.clear()
        limit, is_open = self._limit(start), self._is_open(start)
        begin, end = self._part.start, self._part.stop
        code, width, loops = self._code, end - begin + 1, self._loops
        every = (1 << loops) - 1
        conditions, updates = self._conditions, self._conditions.updates
        labels, hidden, all_answers = self.labels, self.hidden, self._answers
        numbers, failed, flags = self._numbers, self._failed, self._flags
        has_flags, remembers = self._has_flags, conditions.remembers
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
                elif is_open and row == end:
                    return OPEN
            elif op == 1:  # SPLIT
                place = ((numbers[pc] << loops) | mask) * width + row - begin
                if not (flags[place] if has_flags else (place, state) in failed):
                    stack.append(~place)
                    stack.append(((second << loops) | mask) * width + row - begin)
                    if not has_flags:
                        states.append(state)
                    pc = first
                    continue
            elif op == 2:  # JUMP
                pc = first
                continue
            elif op == 3 or op == 4:  # START, END
                if row == (self._first_row if op == 3 else end):
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
                    row += begin
                    pc, mask = rest >> loops, rest & every
                    if not has_flags:
                        state = states[-1]
                    break
                if has_flags:
                    flags[~place] = 1
                elif remembers and len(failed) < MOST_REMEMBERED:
                    failed.add((~place, states.pop()))
                else:
                    states.pop()
            else:
                return None
