# SPDX-License-Identifier: Apache-2.0
"""Runs that count what becomes of them, for those who ask."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np

from pyflinkcep.engines.compressed.nodes import NodePayloads
from pyflinkcep.engines.sequences.merged import MergedRuns
from pyflinkcep.engines.sequences.runs import Run
from pyflinkcep.engines.sequences.track import Step, Track

__all__ = ["RunCounts", "WatchedRuns", "WatchedTrack"]


@attrs.define
class RunCounts:
    """
    What became of runs, by the component of their last event.

    Attributes
    ----------
    met : list of int
        How often an event was tried on a run.
    merged : list of int
        How many runs became part of an equal one.
    most, sum : list of int
        How many runs were alive at most, and the sum of those alive after each event.
    events : int
        How many events were processed.
    """

    met: list[int]
    merged: list[int]
    most: list[int]
    sum: list[int]
    events: int = 0

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


class WatchedTrack(Track):
    """A track that counts how often an event is tried on a run."""

    met: list[int]

    @classmethod
    def watching(cls, track: Track, met: list[int]) -> WatchedTrack:
        """Return a track that counts."""
        parts = (getattr(track, field.name) for field in attrs.fields(Track))
        own = cls(*parts)
        own.met = met
        return own

    def step(self, component: int, mode: int, slots: Any, at: int) -> Step:
        """Count and return what a track returns."""
        self.met[component] += 1
        return super().step(component, mode, slots, at)


class WatchedRuns(MergedRuns):
    """
    Merged runs that count what becomes of them.

    Parameters
    ----------
    track : Track
        The events.
    counts : RunCounts
        Receives the counts.
    """

    def __init__(self, track: Track, counts: RunCounts) -> None:
        super().__init__(WatchedTrack.watching(track, counts.met), NodePayloads(), gives_up=True)
        self._counts = counts

    def _event(self, at: int) -> Iterator[Any]:
        yield from super()._event(at)
        counts = self._counts
        counts.events += 1
        for component, alive in enumerate(self._alive):
            counts.sum[component] += len(alive)
            counts.most[component] = max(counts.most[component], len(alive))

    def _put(self, run: Run) -> None:
        hits = self._hits
        super()._put(run)
        self._counts.merged[run.component] += self._hits - hits
