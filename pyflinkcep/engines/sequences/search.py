# SPDX-License-Identifier: Apache-2.0
"""Matches by depth-first search: one active run, its forks on a stack."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyflinkcep.engines.compressed.nodes import NodePayloads, paths
from pyflinkcep.engines.sequences.compiler import LOOPING, WAITING
from pyflinkcep.engines.sequences.runs import Run, Runs, Track

_MOST_SHARED = 1 << 18
"""This many failed configurations, or two for each event and component if that is more, are kept
from one start to the next. Only runs that differ in what conditions read exceed that: up to starts
times events."""

Way = list[tuple[int, int]]
"""A match: (component, place in the table) of each event."""


class DepthFirstSearch:
    """
    The search over the events of one partition.

    Agrawal and others, SIGMOD 2008: the backtracking algorithm. A configuration that failed once
    fails again, so each is tried once per start.
    """

    def __init__(self, track: Track, watermark: int | None = None) -> None:
        self._track = track
        self._watermark = watermark
        self.undecided: int | None = None
        self._runs = Runs(track, NodePayloads())
        self.met = 0
        self._last = track.automaton.size - 1
        self._following = _following_begins(track)
        self._minds_start = self._runs.minds_time or self._runs.minds_position
        self._most_tried = max(_MOST_SHARED, 2 * track.automaton.size * len(track.times))
        self._looks_ahead = track.automaton.query.looks_ahead

    def ways(self, output: str) -> Iterator[Way]:
        """Yield all matches, or the first of each start, or one after another."""
        tried: set[Any] = set()
        start = 0
        while start < len(self._track.times):
            if output == "all":
                if self._track.begins[start] & 1:
                    yield from self._from(start)
                start += 1
                continue
            found = self._first(start, tried)
            if self.undecided is not None:
                return
            start += 1
            if found is not None:
                run, at = found
                yield next(paths(run.payload))
                tried.clear()
                if output == "nonOverlapping":
                    start = at + 1

    # --- searching

    def _from(self, start: int) -> Iterator[Way]:
        runs, track = self._runs, self._track
        waiting: list[tuple[Run, int, bool]] = [(runs.begin(start), start, True)]
        while waiting:
            run, at, is_new = waiting.pop()
            if is_new and runs.completes(run, at):
                yield next(paths(run.payload))
            if not runs.goes_on(run) or not self._may_end(run, at):
                continue
            for next_at in range(at + 1, self._end(run)):
                self.met += 1
                begins, takes, mode = track.step(run.component, run.mode, run.slots, next_at)
                begun = runs.enter(run, next_at) if begins else None
                if begun is not None:
                    waiting.append((begun, next_at, True))
                if takes:
                    waiting.append((runs.take(run, next_at), next_at, True))
                if not mode:
                    break
                if mode != run.mode:
                    stays = runs.moved(run, mode)
                    assert stays is not None
                    run = stays

    def _first(self, start: int, tried: set[Any]) -> tuple[Run, int] | None:
        """Return the first match of a start, its end too; None if there is none or not yet."""
        runs = self._runs
        if not self._track.begins[start] & 1:
            return None
        is_open = self._is_open(start)
        if is_open and self._looks_ahead:
            self.undecided = self._track.positions[start]
            return None
        if self._minds_start or len(tried) > self._most_tried:
            tried.clear()
        waiting: list[tuple[Run, int, bool]] = [(runs.begin(start), start, True)]
        while waiting:
            run, at, is_new = waiting.pop()
            if is_new and runs.completes(run, at):
                return run, at
            if not runs.goes_on(run) or not (is_open or not is_new or self._may_end(run, at)):
                continue
            configuration = at, run.component, runs.key(run)
            if configuration in tried:
                continue
            tried.add(configuration)
            if at + 1 < self._end(run):
                waiting.extend(reversed(list(self._choices(run, at + 1))))
            elif is_open:
                self.undecided = self._track.positions[start]
                return None
        return None

    def _is_open(self, start: int) -> bool:
        """Whether more events may arrive within the window of a start."""
        window = self._track.automaton.query.window
        if self._watermark is None:
            return False
        return window is None or self._track.times[start] + window > self._watermark

    def _choices(self, run: Run, at: int) -> Iterator[tuple[Run, int, bool]]:
        """Yield what a run may do with an event: begin, wait, take or skip it."""
        runs, track = self._runs, self._track
        self.met += 1
        begins, takes, mode = track.step(run.component, run.mode, run.slots, at)
        begun = runs.enter(run, at) if begins else None
        if begun is not None:
            yield begun, at, True
        for state in (WAITING, LOOPING):
            if state == LOOPING and takes:
                yield runs.take(run, at), at, True
            stays = runs.moved(run, mode & state)
            if stays is not None:
                yield stays, at, False

    def _end(self, run: Run) -> int:
        """Return where the window of a run ends."""
        window = self._track.automaton.query.window
        if window is None:
            return len(self._track.times)
        return self._track.end_of(self._track.times[run.start] + window)

    def _may_end(self, run: Run, at: int) -> bool:
        """Whether the window has events that may begin the missing components."""
        end = self._end(run)
        for component in range(run.component + 1, self._last + 1):
            at = self._following[component][at + 1]
            if at >= end:
                return False
        return True


def _following_begins(track: Track) -> list[list[int]]:
    """Return for each component and position the next event that may begin it."""
    size = len(track.times)
    table = []
    for component in range(track.automaton.size):
        following = [size] * (size + 2)
        for at in range(size - 1, -1, -1):
            begins = track.begins[at] >> component & 1
            following[at] = at if begins else following[at + 1]
        table.append(following)
    return table
