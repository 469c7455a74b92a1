# SPDX-License-Identifier: Apache-2.0
"""Runs of a SEQ query; those that no condition can tell apart are merged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np

from pyflinkcep.engines.compressed.counting import Payloads
from pyflinkcep.engines.sequences.runs import Run, RunLimit, Runs, Track
from pyflinkcep.sase.model import CONTIGUOUS


@attrs.define
class RunCounts:
    """What became of runs, by the component of their last event."""

    met: list[int]  # How often an event was tried on a run
    merged: list[int]  # How many runs became part of an equal one
    # How many runs were alive at most, and the sum of those alive after each event.
    most: list[int]
    sum: list[int]
    events: int = 0  # How many events were processed

    @classmethod
    def none(cls, size: int) -> RunCounts:
        """Return the counts before the first event."""
        return cls([0] * size, [0] * size, [0] * size, [0] * size)

    @classmethod
    def of_kernel(cls, numbers: bytes) -> RunCounts:
        """Return the counts of the kernel's lister."""
        met, merged, most, total, events = (
            np.frombuffer(numbers, np.int64).reshape(-1, 5).T.tolist()
        )
        return cls(met, merged, most, total, max(events, default=0))

    @property
    def mean(self) -> list[float]:
        """How many runs were alive on average."""
        return [total / max(1, self.events) for total in self.sum]


class MergedRuns:
    """
    The runs over the events of one partition.

    Runs are merged if they are in the same state and agree in V[t…]: the slots that a later
    condition reads, and their start if a window or a negation depends on it.

    Agrawal and others, SIGMOD 2008, section 5.2: merging equivalent runs.
    """

    def __init__(
        self,
        track: Track,
        payloads: Payloads,
        limit: RunLimit | None = None,
        counts: RunCounts | None = None,
    ) -> None:
        self._track = track
        self._automaton = track.automaton
        self._runs = Runs(track, payloads)
        self._merged = payloads.merged
        self._alive: list[dict[Any, Run]] = [{} for _ in range(self._automaton.size)]
        self._closing = self._runs.closing_positions()
        self._limit = limit
        self._counts = counts or RunCounts.none(self._automaton.size)

    def matches(self) -> Iterator[tuple[int, Any]]:
        """Yield the place of each event that completes matches, and what their runs carry."""
        for at, place in enumerate(self._track.positions):
            for payload in self._event(at):
                yield place, payload

    def earliest_start(self) -> int | None:
        """Return the place at which the first live run began."""
        starts = [run.start for alive in self._alive for run in alive.values()]
        return self._track.positions[min(starts)] if starts else None

    def _event(self, at: int) -> Iterator[Any]:
        runs = self._runs
        taking: list[Run] = []
        staying: list[Run] = []
        for component in self._affected(at):
            self._advance(component, at, taking, staying)
        if self._track.begins[at] & 1:
            taking.append(runs.begin(at))
        for run in taking:
            if runs.completes(run, at):
                yield run.payload
            if runs.goes_on(run):
                self._put(run)
        for run in staying:
            self._put(run)
        for component, alive in enumerate(self._alive):
            self._counts.sum[component] += len(alive)
            self._counts.most[component] = max(self._counts.most[component], len(alive))
        self._counts.events += 1
        if self._limit is not None and (taking or staying):
            self._enforce(self._limit, at)

    def _enforce(self, limit: RunLimit, at: int) -> None:
        """Refuse too many runs in the window of an event, dropping those out of it."""
        if sum(map(len, self._alive)) <= limit.most:
            return
        times, window = self._track.times, self._automaton.query.window
        if window is not None:
            for alive in self._alive:
                for key, run in list(alive.items()):
                    if times[run.start] < times[at] - window:
                        del alive[key]
        distinct = {self._runs.state(run) for alive in self._alive for run in alive.values()}
        if len(distinct) > limit.most:
            limit.exceeded(len(distinct), times[at])

    def _affected(self, at: int) -> Iterator[int]:
        """Yield the components whose runs the event may change."""
        begins, takes = self._track.begins[at], self._track.takes[at]
        closing = self._closing.get(at, ())
        strategies, last = self._automaton.strategies, self._automaton.size - 1
        for component, runs in enumerate(self._alive):
            if runs and (
                begins >> (component + 1) & 1
                or takes >> component & 1
                or component in closing
                or strategies[component] in CONTIGUOUS
                or (component < last and strategies[component + 1] in CONTIGUOUS)
            ):
                yield component

    def _advance(self, component: int, at: int, taking: list[Run], staying: list[Run]) -> None:
        """Process an event for the runs whose last event is of a component."""
        track, alive, runs = self._track, self._alive[component], self._runs
        window = self._automaton.query.window
        closes = component in self._closing.get(at, ())
        oldest = None if window is None else track.times[at] - window
        for key, run in list(alive.items()):
            if oldest is not None and track.times[run.start] < oldest:
                del alive[key]
                continue
            self._counts.met[component] += 1
            begins, takes, mode = track.step(component, run.mode, run.slots, at)
            if begins:
                begun = runs.enter(run, at)
                if begun is not None:
                    taking.append(begun)
            if takes:
                taking.append(runs.take(run, at))
            if closes or mode != run.mode:
                del alive[key]
                stays = runs.closed(run, mode) if closes else runs.moved(run, mode)
                if stays is not None:
                    staying.append(stays)

    def _put(self, run: Run) -> None:
        """Add a run to the live ones, or merge it into its equal."""
        alive = self._alive[run.component]
        key = self._runs.key(run)
        other = alive.get(key)
        if other is None:
            alive[key] = run
        else:
            self._counts.merged[run.component] += 1
            other.payload = self._merged(other.payload, run.payload)
            other.start = min(other.start, run.start)
