# SPDX-License-Identifier: Apache-2.0
"""Results that begin as the ones before them, kept without what they share."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

import attrs
import numpy as np

from pyflinkcep.matching.columns import Ints
from pyflinkcep.matching.results import Found

_LEAST_EVENTS = 1 << 16
_LEAST_LENGTH = 8  # of results, on average, so that it can pay


@attrs.frozen(eq=False)
class _Part:
    """Some results, of which the first shares nothing."""

    own: Found  # The results with the events of their own
    shared: Ints  # How many events each has before these, those of the one before it

    @classmethod
    def of(cls, found: Found) -> _Part:
        """Leave out what results share."""
        result, place = _places(found.ends)
        before = np.maximum(result - 1, 0)
        lengths = found.ends - found.firsts
        has_before = (result > 0) & (place < lengths[before])
        twin = np.where(has_before, found.firsts[before] + place, 0)
        is_same = has_before & (found.handles == found.handles[twin])
        is_same &= found.stage_of == found.stage_of[twin]
        first = np.where(is_same, len(place), place)  # where a result begins to differ
        shared = np.minimum(np.minimum.reduceat(first, found.firsts), lengths)
        is_own = place >= shared[result]
        own = Found(
            found.stages,
            found.kinds,
            found.times,
            np.cumsum(lengths - shared),
            found.stage_of[is_own],
            found.handles[is_own],
        )
        return cls(own, shared.astype(np.int32))

    def found(self) -> Found:
        """Return the results with all of their events."""
        own = self.own
        ends = np.cumsum(own.ends - own.firsts + self.shared)
        result, place = _places(ends)
        is_shared = place < self.shared[result]
        firsts = np.r_[0, ends[:-1]]
        source = np.arange(len(place))
        source[is_shared] = (firsts[result - 1] + place)[is_shared]
        while not np.array_equal(further := source[source], source):
            source = further
        number = (np.cumsum(~is_shared) - 1)[source]
        stage_of, handles = own.stage_of[number], own.handles[number]
        return Found(own.stages, own.kinds, own.times, ends, stage_of, handles)


def _places(ends: Ints) -> tuple[Ints, Ints]:
    """Return for each event which result it is in, and which of its events it is."""
    firsts = np.r_[0, ends[:-1]]
    result = np.repeat(np.arange(len(ends)), ends - firsts)
    return result, np.arange(len(result)) - firsts[result]


@attrs.frozen(eq=False)
class SharedPrefixes:
    """Results without what they share; see :class:`Found`."""

    _parts: list[_Part]
    _begins: list[int]  # How many results there are before each part, and in all

    @classmethod
    def of(cls, found: Found) -> Found | SharedPrefixes:
        """Return results in the form that needs less memory."""
        events = len(found.handles)
        if events < max(_LEAST_EVENTS, _LEAST_LENGTH * len(found)):
            return found
        parts = list(map(_Part.of, found.parts(_LEAST_EVENTS)))
        if 2 * sum(len(part.own.handles) for part in parts) > events:
            return found
        return cls(parts, [0, *accumulate(len(part.own) for part in parts)])

    def __len__(self) -> int:
        """Return the number of results."""
        return self._begins[-1]

    def between(self, begin: int, end: int) -> Found:
        """Return the results from one number to another."""
        found = []
        for part, first, last in zip(self._parts, self._begins, self._begins[1:], strict=False):
            if first < end and begin < last:
                own = part.found()
                found.append(own.between(max(begin - first, 0), min(end, last) - first))
        return Found.concat(found) if found else self._parts[0].found().between(0, 0)

    def parts(self, most_events: int) -> Iterator[Found]:
        """Yield the results in parts of at most so many events, or of one result."""
        for part in self._parts:
            yield from part.found().parts(most_events)
