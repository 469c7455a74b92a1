# SPDX-License-Identifier: Apache-2.0
"""SEQ queries by their automaton, on a table of events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from itertools import chain
from typing import Any

import attrs
import numpy as np

from pyflinkcep.engines.compressed.counting import (
    Compressed,
    Ended,
    MeasuredValues,
    Payloads,
    RequestedTotal,
    Total,
    Weighed,
    weighed_totals,
)
from pyflinkcep.engines.compressed.nodes import MatchArrays, NodePayloads, paths
from pyflinkcep.engines.lists.matching import RARER, spans
from pyflinkcep.engines.lists.ranges import TypeCodes
from pyflinkcep.engines.sequences.bridge import MOST_EVENTS, KernelCounter, KernelQuery
from pyflinkcep.engines.sequences.compiler import SaseAutomaton, compile_query
from pyflinkcep.engines.sequences.runs import (
    DepthFirstSearch,
    MergedRuns,
    RunCounts,
    RunLimit,
    Track,
)
from pyflinkcep.engines.table import EventTable, listed
from pyflinkcep.sase.model import Query

_MANY = 1024
"""Partitions of fewer events are not taken apart."""


def near_the_rarest(
    query: Query, table: EventTable, partitions: Iterable[Sequence[int]]
) -> Iterator[Sequence[int]]:
    """
    Yield the stretches of partitions that hold all matches, each a partition of its own.

    All events of a match, those that a negated component must not have, and those between them,
    are within the window of each of its events, so also of one of the rarest component.
    """
    codes = TypeCodes.of(table.types, [part.type for part in query.positive])
    sample = codes.sampled()
    rarest = min(codes.names, key=sample.__getitem__)
    if len(table.times) < _MANY or sample[rarest] * RARER > max(sample.values()):
        yield from partitions
        return
    times, is_rare = np.asarray(table.times, np.int64), np.zeros(len(table.times), bool)
    is_rare[codes.positions_of(rarest)] = True
    for positions in partitions:
        at: Any = positions
        at = slice(at.start, at.stop) if isinstance(at, range) else np.asarray(at, np.int64)
        rare = np.flatnonzero(is_rare[at])
        if query.window is None or len(positions) < _MANY:
            if len(rare):
                yield positions
            continue
        begins, ends = spans(query.window, times[at], rare)
        if 2 * int((ends - begins).sum()) > len(positions):
            yield positions
        else:
            for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
                yield positions[begin:end]


MatchPositions = dict[str, list[int]]
"""Variable to the positions of its events, oldest first."""


@attrs.frozen(eq=False, slots=False)
class Sequences(Compressed):
    """A SEQ query on a table of events."""

    _query: Query
    _table: EventTable
    # Returns the positions of a partition's events in another order.
    _order: Callable[[Sequence[int]], Sequence[int]] | None = None
    _limit: RunLimit | None = None
    _narrows: bool = False  # Whether events that are in no match are left out
    _automaton: SaseAutomaton = attrs.field(init=False)

    @_automaton.default
    def _compiled(self) -> SaseAutomaton:
        return compile_query(self._query, self._table.kinds)

    @property
    def variables(self) -> list[str]:
        """The variables that take events."""
        return self._query.variables

    @cached_property
    def _counter(self) -> KernelCounter | None:
        return KernelCounter.of(self._automaton, self._table)

    @cached_property
    def _summing(self) -> KernelCounter | None:
        return KernelCounter.of(self._automaton, self._table, rises=False)

    @cached_property
    def _kernel(self) -> KernelQuery | None:
        return KernelQuery.of(self._automaton, self._table)

    def matches(self, begun: list[int] | None = None) -> Iterator[MatchPositions]:
        """Return all matches, found lazily by the automaton."""
        arrays = self.arrays(begun)
        return self._unpacked(begun) if arrays is None else self._of_arrays(arrays)

    def arrays(self, begun: list[int] | None = None) -> Iterator[MatchArrays] | None:
        """Return all matches from the kernel, lazily and many at a time."""
        if self._kernel is None:
            return None
        return self._kernel.listed(self._positions(), begun, self._limit)

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
        self,
        output: str,
        watermark: int | None = None,
        undecided: list[int] | None = None,
        met: Callable[[int], None] | None = None,
    ) -> Iterator[MatchArrays] | None:
        """Return the same from the kernel, lazily and many at a time."""
        if self._kernel is None or len(self._table.times) > MOST_EVENTS:
            return None
        return self._kernel.searched(self._positions(), output, watermark, undecided, met)

    def watched_runs(self) -> tuple[int, RunCounts]:
        """Return how many matches the automaton finds, and what became of its runs."""
        if self._kernel is not None:
            told: list[bytes] = []
            arrays = self._kernel.listed(self._positions(), watched=told.append)
            return sum(map(len, arrays)), RunCounts.of_kernel(told[0])
        counts = RunCounts.none(self._automaton.size)
        return sum(1 for _ in self._unpacked(counts=counts)), counts

    def watched_search(self, output: str) -> tuple[int, int]:
        """Return how many matches a search finds, and how often it tried an event on a run."""
        met: list[int] = []
        arrays = self.searched_arrays(output, met=met.append)
        if arrays is not None:
            return sum(map(len, arrays)), sum(met)
        return sum(1 for _ in self._searched(output, met=met.append)), sum(met)

    def _searched(
        self,
        output: str,
        watermark: int | None = None,
        undecided: list[int] | None = None,
        met: Callable[[int], None] | None = None,
    ) -> Iterator[MatchPositions]:
        """Yield the matches that the plain search finds."""
        for track in self._tracks():
            search = DepthFirstSearch(track, watermark)
            for way in search.ways(output):
                if self._may_end(way[-1][1]):
                    yield self._match(way)
            if undecided is not None and search.undecided is not None:
                undecided.append(search.undecided)
            if met is not None:
                met(search.met)

    # --- compressed

    def _unpacked(
        self, begun: list[int] | None = None, counts: RunCounts | None = None
    ) -> Iterator[MatchPositions]:
        """Yield all matches, found by merged runs."""
        for _, root in self.ended(NodePayloads(), begun, counts):
            yield from map(self._match, paths(root))

    def ended(
        self,
        payloads: Payloads,
        begun: list[int] | None = None,
        counts: RunCounts | None = None,
    ) -> Iterator[tuple[int, Any]]:
        """Yield the position of each event that completes matches, and what runs carry."""
        for track in self._tracks():
            runs = MergedRuns(track, payloads, self._limit, counts)
            yield from (ended for ended in runs.matches() if self._may_end(ended[0]))
            first = runs.earliest_start()
            if begun is not None and first is not None:
                begun.append(first)

    def _may_end(self, at: int) -> bool:
        """Whether an event may be the last of a match."""
        return self._table.ends is None or self._table.ends[at]

    def totals(self, measures: Sequence[MeasuredValues]) -> tuple[int, tuple[Total, ...]]:
        """Return the number of matches, and the requested totals of the measures."""
        counter = None if measures else self._counter
        if counter is not None:
            return sum(map(counter.count, self._positions())), ()
        return super().totals(measures)

    def weighed(self, measures: Sequence[RequestedTotal]) -> Iterator[Ended] | None:
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

    # --- partitions

    def _positions(self) -> Iterator[Sequence[int]]:
        """Yield the positions of each partition's events that can matter."""
        every = self._all_positions()
        narrows = self._narrows and self._limit is None
        return near_the_rarest(self._query, self._table, every) if narrows else every

    def _all_positions(self) -> Iterator[Sequence[int]]:
        for positions, is_null in self._table.partitions(self._query):
            if not is_null:
                yield positions if self._order is None else self._order(positions)
            elif self._automaton.size == 1:  # nothing equals NULL, so a match has one event
                yield from ([at] for at in positions)

    def _tracks(self) -> Iterator[Track]:
        """Yield the events of each partition."""
        table, automaton = self._table, self._automaton
        columns = list(map(listed, automaton.columns(table)))
        all_types, all_times = listed(table.types), listed(table.times)
        for own in self._positions():
            fields = [tuple([column[at] for column in columns]) for at in own]
            types = [all_types[at] for at in own]
            times = [all_times[at] for at in own]
            starts = None if table.starts is None else [table.starts[at] for at in own]
            yield Track.of(automaton, types, times, fields, starts, own)

    def _match(self, way: Iterable[tuple[int, int]]) -> MatchPositions:
        match: MatchPositions = {variable: [] for variable in self.variables}
        for component, at in way:
            match[self.variables[component]].append(at)
        return match
