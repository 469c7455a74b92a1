# SPDX-License-Identifier: Apache-2.0
"""The first match of each start, without holding the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from pyflinkcep.engines.lists.frame import Frame
from pyflinkcep.engines.lists.matching import EventLists
from pyflinkcep.engines.lists.ranges import Ints

__all__ = ["selected"]

_ROWS = 1 << 18
"""How many rows to collect, at least, before all but the first of each start are dropped."""


def selected(lists: EventLists, frames: Iterable[Frame], output: str) -> Iterator[Frame]:
    """
    Yield one match of each start, or matches that do not overlap in their partition.

    Parameters
    ----------
    lists : EventLists
        The lists.
    frames : iterable of Frame
        All matches. The first of several has the least positions.
    output : {"onePerStart", "nonOverlapping"}
        Which matches to yield.
    """
    first = _first_of_starts(lists, frames)
    if first is None:
        return
    spans = lists.spans(first)
    names = lists.query.variables
    begins, ends = spans[names[0]][0], spans[names[-1]][1]
    order = np.lexsort((begins, lists.ranks.group[begins]))
    if output == "nonOverlapping":
        order = order[_apart(lists.ranks.group[begins][order], begins[order], ends[order])]
    yield first.rows(order)


def _first_of_starts(lists: EventLists, frames: Iterable[Frame]) -> Frame | None:
    best: Frame | None = None
    rest = iter(frames)
    while some := list(_some(rest, max(_ROWS, best.size if best else 0))):
        best = _first(lists, Frame.joined([best, *some] if best else some))
    return best


def _some(frames: Iterator[Frame], least: int) -> Iterator[Frame]:
    """Yield frames of so many rows together."""
    rows = 0
    while rows < least and (frame := next(frames, None)) is not None:
        rows += frame.size
        yield frame


def _first(lists: EventLists, frame: Frame) -> Frame:
    """Return the first row of each start; closures follow from the single events."""
    begins = lists.spans(frame)[lists.query.variables[0]][0]
    singles = [frame.singles[n] for n in lists.query.variables if n in frame.singles]
    order = np.lexsort((*reversed(singles), begins))
    ordered = begins[order]
    is_first = np.ones(frame.size, bool)
    is_first[1:] = ordered[1:] != ordered[:-1]
    return frame.rows(order[is_first])


def _apart(groups: Ints, begins: Ints, ends: Ints) -> list[int]:
    """Return the rows that begin after the row chosen before them ends, in each partition."""
    chosen: list[int] = []
    group = free = -1
    rows = zip(groups.tolist(), begins.tolist(), ends.tolist(), strict=True)
    for row, (own, begin, end) in enumerate(rows):
        if own != group or begin > free:
            chosen.append(row)
            group, free = own, end
    return chosen
