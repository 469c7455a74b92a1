# SPDX-License-Identifier: Apache-2.0
"""The results of matching on a worker, before the user's functions or Arrow turn them into rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any, TypeAlias

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.engines.flink.nfa import EventMatch
from pyflinkcep.engines.flink.nfa.partial_matches import EndCounts
from pyflinkcep.matching.columns import Ints, integers, structs
from pyflinkcep.matching.memory import give_back
from pyflinkcep.time import MAX_WATERMARK

_VERY_MANY = 1 << 23  # events, whose memory is worth the time that it takes to give it back
REACHED = 2  # The kind of a result that is a partial match which took its first event for a stage
# (whether it is a match or a timeout, its time in epoch milliseconds, stage name to event handles).
Result = tuple[bool, int, EventMatch]
Buffer: TypeAlias = bytes | np.ndarray[Any, Any]
_ARRAYS = (np.uint8, np.int64, np.int64, np.int32, np.int64)
KEPT = (np.uint8, np.int64, np.int64, np.int8, np.int32)
"""The types of results that are kept, of few stages, with rows of a table."""


@attrs.frozen(eq=False)
class Found:
    """Matches, timeouts and stages reached in order of emission, in columns."""

    stages: Sequence[str]  # The stages by number
    # For each result 1 for a match, 0 for a timeout, 2 for a stage that was reached: what the
    # partial match has taken, the event for that stage last.
    kinds: np.ndarray[Any, np.dtype[np.uint8]]
    times: Ints  # The time of each result
    # Where each result's events end; they begin where those of the result before it end.
    ends: Ints
    stage_of: np.ndarray[Any, np.dtype[np.signedinteger[Any]]]  # The stage number of each event
    handles: Ints  # The handle of each event; those of a result from the oldest to the newest
    dropped: int = 0  # The number of partial matches dropped because there were too many
    rows: pa.Table | None = None  # Rows of output, instead of matches
    # How many partial matches ended otherwise; counted on streams.
    ended: EndCounts = attrs.field(factory=EndCounts)

    @classmethod
    def of_rows(cls, rows: pa.Table | None) -> Found:
        """Return results that are only rows."""
        return attrs.evolve(cls.of((), [b""] * len(_ARRAYS)), rows=rows)

    @classmethod
    def of(
        cls,
        stages: Sequence[str],
        arrays: Sequence[Buffer],
        dropped: int = 0,
        ended: EndCounts | None = None,
        types: Sequence[Any] = _ARRAYS,
    ) -> Found:
        """Return results from their five arrays, or the bytes of these."""
        read = [np.frombuffer(data, kind) for data, kind in zip(arrays, types, strict=True)]
        counts = EndCounts() if ended is None else ended
        return cls(stages, read[0], read[1], read[2], read[3], read[4], dropped, ended=counts)

    @classmethod
    def concat(cls, parts: list[Found]) -> Found:
        """Join results that have the same stages; empty the list, so that each is let go early."""
        stages, dropped = parts[0].stages, sum(part.dropped for part in parts)
        ended = EndCounts.sum(part.ended for part in parts)
        events, counts = [len(part.handles) for part in parts], list(map(len, parts))
        names = ("handles", "stage_of", "ends", "times", "kinds")
        columns = {name: [getattr(part, name) for part in parts] for name in names}
        parts.clear()
        joined: dict[str, Any] = {}
        for name in names:
            joined[name] = np.concatenate(columns.pop(name))
            if sum(events) >= _VERY_MANY:
                give_back()
        result = begin = 0
        for count, size in zip(counts, events, strict=True):
            joined["ends"][result : result + count] += begin
            result, begin = result + count, begin + size
        return cls(stages, **joined, dropped=dropped, ended=ended)

    def __len__(self) -> int:
        """Return the number of results."""
        return len(self.kinds)

    @property
    def firsts(self) -> Ints:
        """For each result where its events begin."""
        firsts: Ints = np.r_[0, self.ends[:-1]][: len(self)]
        return firsts

    def parts(self, most_events: int) -> Iterator[Found]:
        """Yield the results in parts of at most so many events, or of one result."""
        begin = first = 0
        while begin < len(self):
            end = int(np.searchsorted(self.ends, first + most_events, "right"))
            end = max(end, begin + 1)
            yield self if end - begin == len(self) else self.between(begin, end)
            begin, first = end, int(self.ends[end - 1])

    def between(self, begin: int, end: int) -> Found:
        """Return the results from one number to another."""
        first, ends = int(self.ends[begin - 1]) if begin else 0, self.ends[begin:end]
        events = slice(first, int(ends[-1]) if len(ends) else first)
        return self._some(slice(begin, end), events, ends - first)

    def taken(self, order: Ints) -> Found:
        """Return results in another order."""
        firsts, ends = self.firsts[order], np.cumsum((self.ends - self.firsts)[order])
        begins = np.r_[0, ends[:-1]][: len(ends)]
        events = np.arange(len(self.handles)) + np.repeat(firsts - begins, ends - begins)
        return self._some(order, events, ends)

    def only(self, chosen: np.ndarray[Any, Any]) -> Found:
        """Return the results that a mask chooses."""
        counts = self.ends - self.firsts
        return self._some(chosen, np.repeat(chosen, counts), np.cumsum(counts[chosen]))

    def _some(self, chosen: Any, events: Any, ends: Ints) -> Found:
        kinds, times, stages = self.kinds[chosen], self.times[chosen], self.stage_of[events]
        return Found(self.stages, kinds, times, ends, stages, self.handles[events])

    def of_stage(self, stage: str) -> tuple[Ints, Ints]:
        """Return the results' events for a stage."""
        if stage not in self.stages:
            return np.zeros(len(self) + 1, np.int64), np.empty(0, np.int64)
        is_of_stage = self.stage_of == self.stages.index(stage)
        before = np.zeros(len(is_of_stage) + 1, np.int64)
        np.cumsum(is_of_stage, out=before[1:])
        return np.r_[0, before.take(self.ends)], self.handles.take(np.flatnonzero(is_of_stage))

    def results(self, events: Sequence[Any] | None = None) -> Iterator[Result]:
        """Yield the results one by one: with handles, or with `events`, one for each handle."""
        names = [self.stages[number] for number in self.stage_of.tolist()]
        taken = self.handles.tolist() if events is None else events
        start = 0
        columns = (self.kinds.tolist(), self.times.tolist(), self.ends.tolist())
        for kind, timestamp, end in zip(*columns, strict=True):
            match: EventMatch = {}
            for position in range(start, end):
                stage = names[position]
                if stage in match:
                    match[stage].append(taken[position])
                else:
                    match[stage] = [taken[position]]
            yield kind == 1, timestamp, match
            start = end


class Results:
    """Collects the results of the plain path."""

    def __init__(self, stages: Sequence[str], wants_timeouts: bool) -> None:
        self._stages = stages
        self._numbers = {stage: number for number, stage in enumerate(stages)}
        self._wants_timeouts = wants_timeouts
        self._begin()

    def _begin(self) -> None:
        self._kinds: list[int] = []
        self._times: list[int] = []
        self._ends: list[int] = []
        self._stage_of: list[int] = []
        self._handles: list[int] = []
        self._dropped = 0
        self._ended = EndCounts()

    def __len__(self) -> int:
        """Return the number of results since the last :meth:`take`."""
        return len(self._kinds)

    @property
    def events(self) -> int:
        """The number of their events."""
        return len(self._handles)

    def match(self, key: Any, timestamp: int, match: EventMatch) -> None:
        """Receive a match."""
        self._add(1, timestamp, match)

    def timeout(self, key: Any, timestamp: int, match: EventMatch) -> None:
        """Receive a timed-out partial match."""
        if self._wants_timeouts:
            self._add(0, timestamp, match)

    def reached(self, timestamp: int, match: EventMatch) -> None:
        """Receive a partial match that took its first event for a stage."""
        self._add(REACHED, timestamp, match)

    def dropped(self, key: Any, count: int) -> None:
        """Receive how many partial matches were dropped because there were too many."""
        self._dropped += count

    def ended(self, counts: EndCounts) -> None:
        """Receive how many partial matches of a key ended otherwise."""
        self._ended.add(counts)

    def _add(self, kind: int, timestamp: int, match: EventMatch) -> None:
        self._kinds.append(kind)
        self._times.append(timestamp)
        for stage, handles in match.items():
            self._stage_of += [self._numbers[stage]] * len(handles)
            self._handles += handles
        self._ends.append(len(self._handles))

    def take(self) -> Found:
        """Return the collected results, and start afresh."""
        lists = (self._kinds, self._times, self._ends, self._stage_of, self._handles)
        arrays = [np.asarray(values, kind) for values, kind in zip(lists, _ARRAYS, strict=True)]
        found = Found.of(self._stages, arrays, self._dropped, self._ended)
        self._begin()
        return found


MATCH_TIME = "matchTimestamp"  # The column of ``toDF()`` with the time of a match


def known_times(times: Ints, unit: int) -> pa.Array:
    """Return times in units of a millisecond; MAX_WATERMARK, which is not a timestamp, as null."""
    at_the_end = times == MAX_WATERMARK
    if not at_the_end.any():
        return integers(times * unit)
    return pa.array(np.where(at_the_end, 0, times) * unit, mask=at_the_end)


def stage_column(found: Found, stage: str, take: Callable[[Ints], pa.Table]) -> pa.ListArray:
    """Return the events of a stage as a list of structs for each match."""
    begins, handles = found.of_stage(stage)
    own = structs(take(handles))
    type_ = pa.list_(pa.field("element", own.type, nullable=False))
    return pa.ListArray.from_arrays(integers(begins.astype(np.int32)), own, type=type_)


# --- results that begin as the ones before them, kept without what they share

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
