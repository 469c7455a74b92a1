# SPDX-License-Identifier: Apache-2.0
"""SEQ queries by their automaton, on a table of events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

import attrs
import numpy as np

from pyflinkcep.engines.compressed.counting import (
    CountPayloads,
    Ended,
    Measure,
    MeasuredValues,
    RequestedTotal,
    Total,
    Weighed,
    added,
    exact_totals,
    weighed_totals,
)
from pyflinkcep.engines.compressed.nodes import MatchArrays, Node, NodePayloads, paths
from pyflinkcep.engines.lists.matching import spans
from pyflinkcep.engines.lists.ranges import Ints, TypeCodes
from pyflinkcep.engines.sequences.bridge import KernelCounter, KernelLister, KernelSearch
from pyflinkcep.engines.sequences.compiler import SaseAutomaton, compiled_once
from pyflinkcep.engines.sequences.limit import RunLimit
from pyflinkcep.engines.sequences.merged import MergedRuns, RunCounts, WatchedRuns, WatchedTrack
from pyflinkcep.engines.sequences.runs import Track
from pyflinkcep.engines.sequences.search import DepthFirstSearch
from pyflinkcep.engines.table import EventTable, listed
from pyflinkcep.sase.model import Query

_RARER = 16
"""How many times rarer than another type one must be for a search to pay off."""

_MANY = 1024
"""Partitions of fewer events are not taken apart."""


@attrs.frozen(eq=False, slots=False)
class Nearness:
    """
    Finds what of the partitions of a query can have matches.

    All events of a match, those that a negated component must not have, and those between them,
    are within the window of each of its events, so also of one of the rarest component.
    """

    _query: Query
    _table: EventTable

    def of(self, partitions: Iterable[Sequence[int]]) -> Iterator[Sequence[int]]:
        """Yield the stretches of partitions that hold all matches, each a partition of its own."""
        if self._rarest is None:
            yield from partitions
            return
        if not len(self._rarest):
            return
        for positions in partitions:
            yield from self._near(positions, self._rarest)

    @cached_property
    def _rarest(self) -> Ints | None:
        """The events of the rarest component; None if all are about as frequent."""
        types = [part.type for part in self._query.positive]
        codes = TypeCodes.of(self._table.types, types)
        sample = codes.sampled()
        rarest = min(types, key=sample.__getitem__)
        if len(self._table.times) < _MANY or sample[rarest] * _RARER > max(sample.values()):
            return None
        return codes.positions_of(rarest)

    @cached_property
    def _is_rare(self) -> Any:
        flags = np.zeros(len(self._table.times), bool)
        flags[self._rarest] = True
        return flags

    @cached_property
    def _times(self) -> Ints:
        return np.asarray(self._table.times, np.int64)

    def _near(self, positions: Sequence[int], rarest: Ints) -> Iterator[Sequence[int]]:
        if isinstance(positions, range):
            low, high = np.searchsorted(rarest, (positions.start, positions.stop))
            own, times = rarest[low:high] - positions.start, None
        else:
            at = np.asarray(positions, np.int64)
            own, times = np.flatnonzero(self._is_rare[at]), self._times[at]
        if not len(own):
            return
        if self._query.window is None or len(positions) < _MANY:
            yield positions
            return
        if times is None:
            times = self._times[positions.start : positions.stop]  # type: ignore[attr-defined]
        begins, ends = spans(self._query.window, times, own)
        if 2 * int((ends - begins).sum()) > len(positions):
            yield positions
            return
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
            yield positions[begin:end]


MatchPositions = dict[str, list[int]]
"""Variable to the positions of its events, oldest first."""


@attrs.frozen(eq=False)
class _Partition:
    """A partition's events and their positions in the table."""

    track: Track
    positions: Sequence[int]


class Sequences:
    """A SEQ query on a table of events."""

    def __init__(
        self,
        query: Query,
        table: EventTable,
        automaton: SaseAutomaton | None = None,
        order: Callable[[Sequence[int]], Sequence[int]] | None = None,
        limit: RunLimit | None = None,
        narrows: bool = False,
    ) -> None:
        self._query = query
        self._table = table
        self._order = order
        self._limit = limit
        self._watched: list[int] | None = None
        self._narrows = narrows and limit is None
        self._automaton = automaton or compiled_once(query, table.kinds)
        self.variables = query.variables

    @cached_property
    def _counter(self) -> KernelCounter | None:
        return KernelCounter.of(self._automaton, self._table)

    @cached_property
    def _summing(self) -> KernelCounter | None:
        return KernelCounter.of(self._automaton, self._table, rises=False)

    def run(self, merges: bool = True, begun: list[int] | None = None) -> Iterator[MatchPositions]:
        """Return all matches, found by the automaton."""
        arrays = self.arrays(begun) if merges else None
        if arrays is not None:
            return self._of_arrays(arrays)
        return self._unpacked(merges=merges, gives_up=True, begun=begun)

    def arrays(self, begun: list[int] | None = None) -> Iterator[MatchArrays] | None:
        """Return all matches from the kernel, lazily and many at a time."""
        lister = KernelLister.of(self._automaton, self._table)
        return None if lister is None else lister.matches(self._positions(), begun, self._limit)

    def _of_arrays(self, arrays: Iterator[MatchArrays]) -> Iterator[MatchPositions]:
        return chain.from_iterable(found.matches(self.variables) for found in arrays)

    def searched(
        self, output: str, watermark: int | None = None, undecided: list[int] | None = None
    ) -> Iterator[MatchPositions]:
        """Return matches found by depth-first search."""
        arrays = self.searched_arrays(output, watermark, undecided)
        if arrays is not None:
            return self._of_arrays(arrays)
        return self._searched(output, watermark, undecided)

    def searched_arrays(
        self, output: str, watermark: int | None = None, undecided: list[int] | None = None
    ) -> Iterator[MatchArrays] | None:
        """Return the same from the kernel, lazily and many at a time."""
        search = KernelSearch.of(self._automaton, self._table)
        if search is None:
            return None
        return search.matches(self._positions(), output, watermark, undecided)

    def watched_runs(self) -> tuple[int, RunCounts]:
        """Return how many matches the automaton finds, and what became of its runs."""
        lister = KernelLister.of(self._automaton, self._table)
        if lister is not None:
            told: list[bytes] = []
            arrays = lister.matches(self._positions(), watched=told.append)
            return sum(map(len, arrays)), RunCounts.of_kernel(told[0])
        counts, number = RunCounts.none(self._automaton.size), 0
        for part in self._partitions():
            for at, root in WatchedRuns(part.track, counts).matches():
                if self._may_end(part.positions[at]):
                    number += sum(1 for _ in paths(root))
        return number, counts

    def watched_search(self, output: str) -> tuple[int, int]:
        """Return how many matches a search finds, and how often it tried an event on a run."""
        search = KernelSearch.of(self._automaton, self._table)
        if search is not None:
            told: list[int] = []
            arrays = search.matches(self._positions(), output, met=told.append)
            return sum(map(len, arrays)), told[0]
        met = [0] * self._automaton.size
        self._watched = met
        number = sum(1 for _ in self._searched(output, None, None))
        self._watched = None
        return number, sum(met)

    def _searched(
        self, output: str, watermark: int | None, undecided: list[int] | None
    ) -> Iterator[MatchPositions]:
        """Yield the matches that the plain search finds."""
        for part in self._partitions():
            track = part.track
            if self._watched is not None:
                track = WatchedTrack.watching(track, self._watched)
            search = DepthFirstSearch(track, watermark)
            searches: dict[str, Callable[[], Iterable[list[tuple[int, int]]]]] = {
                "all": search.all,
                "onePerStart": search.first_of_each_start,
                "nonOverlapping": search.not_overlapping,
            }
            for way in searches[output]():
                if self._may_end(part.positions[way[-1][1]]):
                    yield self._match(way, part.positions)
            if undecided is not None and search.undecided is not None:
                undecided.append(part.positions[search.undecided])

    # --- compressed

    def matches(self) -> Iterator[MatchPositions]:
        """Return all matches, found lazily."""
        arrays = self.arrays()
        return self._unpacked() if arrays is None else self._of_arrays(arrays)

    def _unpacked(
        self, merges: bool = True, gives_up: bool = False, begun: list[int] | None = None
    ) -> Iterator[MatchPositions]:
        """Yield all matches, found by merged runs."""
        for part in self._partitions():
            runs = MergedRuns(part.track, NodePayloads(), merges, gives_up, self._limit)
            for at, root in runs.matches():
                if self._may_end(part.positions[at]):
                    for way in paths(root):
                        yield self._match(way, part.positions)
            first = runs.earliest_start()
            if begun is not None and first is not None:
                begun.append(part.positions[first])

    def _may_end(self, at: int) -> bool:
        """Whether an event may be the last of a match."""
        return self._table.ends is None or self._table.ends[at]

    def totals(self, measures: Sequence[MeasuredValues]) -> tuple[int, tuple[Total, ...]]:
        """Return the number of matches, and the requested totals of the measures."""
        counter = None if measures else self._counter
        if counter is not None:
            return sum(map(counter.count, self._positions())), ()
        return added(self.totals_by_event(measures), len(measures))

    def totals_by_event(
        self, measures: Sequence[MeasuredValues]
    ) -> Iterator[tuple[int, int, tuple[Total, ...]]]:
        """Yield the position of each event that completes matches, and the totals of these."""
        asked = [(self.variables.index(v), values, function) for v, values, function in measures]
        return exact_totals(asked, self._weighed, self._counted)

    def _weighed(self, measures: Sequence[RequestedTotal]) -> Iterator[Ended] | None:
        """Return the numbers and totals of each event from the kernel; None if it cannot."""
        counter = self._summing if measures else self._counter
        if counter is None:
            return None
        size, loops = len(self._table.times), self._automaton.loops
        weighed = Weighed.all_of(measures, loops, size)
        return None if weighed is None else self._summed(counter, weighed)

    def _summed(self, counter: KernelCounter, measures: Sequence[Weighed]) -> Iterator[Ended]:
        for positions in self._positions():
            ended = weighed_totals(partial(counter.by_event, positions), measures)
            yield from (event for event in ended if self._may_end(event[0]))

    def _counted(self, measures: Sequence[RequestedTotal]) -> Iterator[Ended]:
        """Yield the totals of each event, computed by merged runs."""
        for part in self._partitions():
            measured = [
                Measure(place, None if v is None else [v[at] for at in part.positions])
                for place, v, _ in measures
            ]
            runs = MergedRuns(part.track, CountPayloads(measured)).matches()
            for at, ended in groupby(runs, itemgetter(0)):
                if not self._may_end(part.positions[at]):
                    continue
                counted = ((at, *payload) for _, payload in ended)
                yield part.positions[at], *added(counted, len(measures))

    def roots_by_event(
        self, numbers: Sequence[int] | None = None
    ) -> Iterator[tuple[int, list[Node]]]:
        """Yield the position of each event that completes matches, and the nodes of these."""
        own = numbers or range(self._automaton.size)
        for part in self._partitions():
            found = MergedRuns(part.track, NodePayloads(own, part.positions)).matches()
            for at, ended in groupby(found, itemgetter(0)):
                if self._may_end(part.positions[at]):
                    yield part.positions[at], [node for _, node in ended]

    # --- partitions

    def _positions(self) -> Iterator[Sequence[int]]:
        """Yield the positions of each partition's events that can matter."""
        every = self._all_positions()
        return Nearness(self._query, self._table).of(every) if self._narrows else every

    def _all_positions(self) -> Iterator[Sequence[int]]:
        for positions, is_null in self._table.partitions(self._query):
            if not is_null:
                yield positions if self._order is None else self._order(positions)
            elif self._automaton.size == 1:  # nothing equals NULL, so a match has one event
                yield from ([at] for at in positions)

    def _partitions(self) -> Iterator[_Partition]:
        table, automaton = self._table, self._automaton
        columns = list(map(listed, automaton.columns(table)))
        all_types, all_times = listed(table.types), listed(table.times)
        for own in self._positions():
            fields = [tuple([column[at] for column in columns]) for at in own]
            types = [all_types[at] for at in own]
            times = [all_times[at] for at in own]
            starts = None if table.starts is None else [table.starts[at] for at in own]
            track = Track.of(automaton, types, times, fields, starts)
            yield _Partition(track, own)

    def _match(self, way: Iterable[tuple[int, int]], positions: Sequence[int]) -> MatchPositions:
        match: MatchPositions = {variable: [] for variable in self.variables}
        for component, at in way:
            match[self.variables[component]].append(positions[at])
        return match
