# SPDX-License-Identifier: Apache-2.0
"""Counts and totals of the matches that lists find, without holding the matches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from functools import partial
from typing import Any

import attrs
import numpy as np

from pyflinkcep.engines.compressed.counting import NOTHING, Total, combined
from pyflinkcep.engines.compressed.payloads import Ended, MeasuredValues
from pyflinkcep.engines.compressed.sums import RequestedTotal, exact_totals
from pyflinkcep.engines.lists.frame import Frame
from pyflinkcep.engines.lists.matching import EventLists
from pyflinkcep.engines.lists.ranges import Ints, expanded

__all__ = ["ended_frames"]

_SMALL = 1 << 30
"""The bound of values whose sums over the events of a frame fit 64 bits."""


def ended_frames(
    lists: EventLists, frames: Iterable[Frame], measures: Sequence[MeasuredValues]
) -> Iterator[Ended]:
    """
    Yield where matches end, their number, and the requested totals.

    Parameters
    ----------
    lists : EventLists
        The lists.
    frames : iterable of Frame
        All matches.
    measures : sequence of MeasuredValues
        What is requested.
    """
    variables = lists.query.variables
    asked = [(variables.index(name), values, function) for name, values, function in measures]
    return exact_totals(asked, lambda _: None, partial(_ended, lists, frames))


def _ended(
    lists: EventLists, frames: Iterable[Frame], measures: Sequence[RequestedTotal]
) -> Iterator[Ended]:
    variables = lists.query.variables
    last = variables[-1]
    columns = [_Column.of(values) for _, values, _ in measures]
    counts: dict[int, int] = {}
    totals: list[dict[int, Total]] = [{} for _ in measures]
    for frame in frames:
        ends = lists.spans(frame)[last][1]
        found = zip(*(own.tolist() for own in np.unique(ends, return_counts=True)), strict=True)
        for at, number in found:
            counts[at] = counts.get(at, 0) + number
        for (number, _, _), column, by_event in zip(measures, columns, totals, strict=True):
            for at, total in column.totals(ends, *_events(lists, frame, variables[number])):
                by_event[at] = combined(by_event.get(at, NOTHING), total)
    for at in sorted(counts):
        yield at, counts[at], tuple(by_event.get(at, NOTHING) for by_event in totals)


def _events(lists: EventLists, frame: Frame, variable: str) -> tuple[Ints, Ints]:
    """Return the events of a variable in all rows: (row, position)."""
    if variable in frame.singles:
        return np.arange(frame.size), frame.singles[variable]
    rows, numbers = expanded(*frame.closures[variable])
    return rows, lists.lists[variable].positions[numbers]


@attrs.frozen(eq=False)
class _Column:
    """
    The values of events.

    Attributes
    ----------
    data : array
        The values; 1 to count events.
    known : array of bool or None
        Which are not NULL; None for all.
    adds : bool
        Whether they have a sum.
    """

    data: Any
    known: Any
    adds: bool

    @classmethod
    def of(cls, values: Sequence[Any] | None) -> _Column:
        """Return a column; None counts events."""
        if values is None:
            return cls(None, None, True)
        known = [value for value in values if value is not None]
        adds = not any(isinstance(value, str | date) for value in known)
        flags = np.fromiter((value is not None for value in values), bool, len(values))
        is_small = all(type(value) is int and abs(value) < _SMALL for value in known)
        some = known[0] if known else 0
        data = np.empty(len(values), np.int64 if is_small else object)
        data[:] = [some if value is None else value for value in values]
        return cls(data, flags, adds)

    def totals(self, ends: Ints, rows: Ints, events: Ints) -> Iterator[tuple[int, Total]]:
        """Yield the totals of events by where their rows end."""
        if self.known is not None:
            is_known = self.known[events]
            rows, events = rows[is_known], events[is_known]
        at = ends[rows]
        order = np.argsort(at, kind="stable")
        at = at[order]
        begins = np.flatnonzero(np.r_[True, at[1:] != at[:-1]][: len(at)])
        numbers = np.diff(begins, append=len(at)).tolist()
        places = at[begins].tolist()
        if self.data is None:
            yield from zip(places, ((n, n, 1, 1) for n in numbers), strict=True)
        elif places:
            own = self.data[events[order]]
            sums = np.add.reduceat(own, begins).tolist() if self.adds else [0] * len(places)
            low, high = (f.reduceat(own, begins).tolist() for f in (np.minimum, np.maximum))
            yield from zip(places, zip(numbers, sums, low, high, strict=True), strict=True)
