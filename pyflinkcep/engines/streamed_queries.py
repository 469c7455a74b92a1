# SPDX-License-Identifier: Apache-2.0
"""A query on events that arrive in portions: the matches each adds, and what to keep."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs

from pyflinkcep.engines.choice import AUTOMATON, BACKTRACKING, EVENT_LISTS, resolved
from pyflinkcep.engines.composed_queries import ComposedSequences
from pyflinkcep.engines.compressed.counting import Compressed
from pyflinkcep.engines.queries import (
    LAST_NUMBER,
    QueryPlan,
    compressed_matches,
    last_event,
    limit_of,
    numbered,
    query_matches,
    timed,
)
from pyflinkcep.engines.sequences.evaluation import MatchPositions, Sequences
from pyflinkcep.engines.table import EventTable
from pyflinkcep.sase.model import Form
from pyflinkcep.time import MAX_WATERMARK

_LAST = MAX_WATERMARK - 1
"""A time that only the final watermark reaches."""


@attrs.frozen(eq=False)
class Portion:
    """Events of some keys: those kept, followed by new ones."""

    table: EventTable  # The events, grouped by key and in their final order
    bounds: Sequence[int]  # Where the events of each key begin and, last, where they end
    fresh: Sequence[int]  # For each key where its new events begin
    # Where the undecided events of each key begin: those before are kept only because others refer
    # to them.
    free: Sequence[int]
    watermark: int  # The time up to which all events have arrived; MAX_WATERMARK after the last

    def key_of(self, at: int) -> int:
        """Return the index of the key that an event belongs to."""
        return bisect_right(self.bounds, at) - 1

    def passed(self, key: int, milliseconds: int) -> int:
        """Return the first event of a key that lies less than a time before the watermark."""
        low, high = self.bounds[key], self.bounds[key + 1]
        return bisect_right(self.table.times, self.watermark - milliseconds, low, high)

    def from_on(self, positions: Sequence[int]) -> list[bool]:
        """Return a flag for each event: whether it is at its key's position or after it."""
        flags = [False] * len(self.table.times)
        for key, position in enumerate(positions):
            end = self.bounds[key + 1]
            flags[position:end] = [True] * (end - position)
        return flags


@attrs.define(eq=False)
class Kept:
    """What to keep for later portions."""

    since: list[int]  # The position from which each key's events are kept
    free: list[int]  # The position from which they are undecided
    # The watermark at which each key must be examined even if no event arrives.
    deadlines: list[int | None]


class StreamedQuery:
    """
    A query whose events arrive in portions.

    Its state is events: those that future matches may use, and those that decide matches found but
    not yet certain. What a portion adds is found from them and the new ones.

    All portions together yield the matches of all events together. A match is emitted when no later
    event can undo it: with its last event or, if a negated component or a closure comes last, when
    its window has passed. The first match of a start is emitted once it is certain to be the first.
    """

    def __init__(self, plan: QueryPlan) -> None:
        self._given = query = plan.query
        self.query = timed(query)
        self._evaluation, self._output = plan.evaluation, plan.output
        self._limit = limit_of(query, plan.runs)
        self._looks_back, self._looks_ahead = query.looks_back, query.looks_ahead

    def matches(self, portion: Portion) -> tuple[list[MatchPositions], Kept]:
        """Return the matches that a portion adds, and what to keep."""
        found, kept = self._matches(self._numbered(portion))
        return found, self._at_times(kept)

    def _matches(self, portion: Portion) -> tuple[list[MatchPositions], Kept]:
        how = resolved(self.query, portion.table, self._evaluation, self._output)
        if self._output != "all":
            if how == EVENT_LISTS:
                return self._first_of_lists(portion)
            return self._first_of_search(portion)
        return self._certain(portion, how) if self._looks_ahead else self._completed(portion, how)

    # --- all matches

    def _completed(self, portion: Portion, how: str) -> tuple[list[MatchPositions], Kept]:
        """Return the matches that new events complete."""
        table = attrs.evolve(portion.table, ends=portion.from_on(portion.fresh))
        begun: list[int] = []
        found = list(self._all(table, how, begun))
        since = self._since(portion, 1)
        if how == AUTOMATON and not self._looks_back:
            since = list(map(max, since, _earliest(portion, begun)))
        return found, self._kept(portion, since)

    def _certain(self, portion: Portion, how: str) -> tuple[list[MatchPositions], Kept]:
        """Return the matches whose window has passed."""
        table = attrs.evolve(portion.table, starts=portion.from_on(portion.free))
        window, times = self._window, portion.table.times
        found = []
        due: dict[int, int] = {}
        for match in self._all(table, how):
            first = _first_event(match)
            end = min(times[first] + window, MAX_WATERMARK)
            if end <= portion.watermark:
                found.append(match)
            else:
                key = portion.key_of(first)
                due[key] = min(end, due.get(key, end))
        kept = self._kept(portion, self._since(portion, 2 if self._looks_back else 1))
        kept.free = self._since(portion, 1)
        for key, end in due.items():
            kept.deadlines[key] = end
        return found, kept

    def _all(
        self, table: EventTable, how: str, begun: list[int] | None = None
    ) -> Iterator[MatchPositions]:
        if how == EVENT_LISTS:
            return query_matches(self.query, table, EVENT_LISTS, "all")
        sequences = self._sequences(table)
        return sequences.searched("all") if how == BACKTRACKING else sequences.matches(begun)

    # --- some matches

    def _first_of_search(self, portion: Portion) -> tuple[list[MatchPositions], Kept]:
        """Return the first matches of starts, searched depth first, up to an undecided start."""
        table = attrs.evolve(portion.table, starts=portion.from_on(portion.free))
        stopped: list[int] = []
        watermark = None if portion.watermark == MAX_WATERMARK else portion.watermark
        found = list(self._sequences(table).searched(self._output, watermark, stopped))
        undecided = _earliest(portion, stopped)
        found = [m for m in found if (at := _first_event(m)) < undecided[portion.key_of(at)]]
        return found, self._kept_from(portion, found, undecided)

    def _kept_from(
        self, portion: Portion, found: Sequence[MatchPositions], undecided: Sequence[int]
    ) -> Kept:
        """Return what to keep for starts that are neither decided nor overlapped, until decided."""
        free = list(undecided)
        if self._output == "nonOverlapping":
            for match in found:
                key = portion.key_of(_first_event(match))
                free[key] = max(free[key], last_event(match) + 1)
        kept = self._kept(portion, self._context(portion, free))
        kept.free = free
        window = self.query.window
        for key, at in enumerate(free):
            if at < portion.bounds[key + 1]:  # the end of its window, or of the input
                kept.deadlines[key] = _LAST if window is None else _end(portion, at, window)
        return kept

    def _first_of_lists(self, portion: Portion) -> tuple[list[MatchPositions], Kept]:
        """Return the first matches of the starts whose window has passed."""
        undecided = list(map(max, portion.free, self._since(portion, 1)))
        starts = [
            may and at < undecided[portion.key_of(at)]
            for at, may in enumerate(portion.from_on(portion.free))
        ]
        table = attrs.evolve(portion.table, starts=starts)
        found = list(query_matches(self.query, table, EVENT_LISTS, self._output))
        return found, self._kept_from(portion, found, undecided)

    def _context(self, portion: Portion, positions: Sequence[int]) -> list[int]:
        """Return from where events are needed by matches that begin at some positions or later."""
        if not self._looks_back:
            return list(positions)
        since = []
        for key, at in enumerate(positions):
            low, high = portion.bounds[key], portion.bounds[key + 1]
            begin = portion.table.times[at] if at < high else portion.watermark + 1
            since.append(bisect_left(portion.table.times, begin - self._window, low, at))
        return since

    # --- all matches, compressed

    def endings(
        self, portion: Portion, ask: Callable[[Compressed], Iterator[tuple[Any, ...]]]
    ) -> tuple[list[tuple[Any, ...]], Kept]:
        """Return a result for each event that completes matches, and what to keep."""
        found, kept = self._endings(self._numbered(portion), ask)
        return found, self._at_times(kept)

    def _endings(
        self, portion: Portion, ask: Callable[[Compressed], Iterator[tuple[Any, ...]]]
    ) -> tuple[list[tuple[Any, ...]], Kept]:
        if not self._looks_ahead:
            table = attrs.evolve(portion.table, ends=portion.from_on(portion.fresh))
            found = list(ask(self._compressed(table)))
            return found, self._kept(portion, self._since(portion, 1))
        table = attrs.evolve(portion.table, ends=portion.from_on(portion.free))
        kept = self._kept(portion, self._since(portion, 2))
        kept.free = self._since(portion, 1)
        certain = []
        for ending in ask(self._compressed(table)):
            key = portion.key_of(ending[0])
            if ending[0] < kept.free[key]:
                certain.append(ending)
            else:
                end = _end(portion, ending[0], self._window)
                due = kept.deadlines[key]
                kept.deadlines[key] = end if due is None else min(due, end)
        return certain, kept

    def whole(self, table: EventTable) -> Compressed:
        """Return the unlisted matches of keys all of whose events have arrived."""
        is_numbered = self._given.most_events is not None
        return self._compressed(numbered(self._given, table) if is_numbered else table)

    def _compressed(self, table: EventTable) -> Compressed:
        if self.query.form is Form.LIST:
            return compressed_matches(self.query, table)
        return self._sequences(table)

    # --- windows of events

    def _numbered(self, portion: Portion) -> Portion:
        """Return a portion with the numbers of events as times if the window counts these."""
        if self._given.most_events is None:
            return portion
        reached = MAX_WATERMARK if portion.watermark == MAX_WATERMARK else LAST_NUMBER
        table = numbered(self._given, portion.table)
        return attrs.evolve(portion, table=table, watermark=reached)

    def _at_times(self, kept: Kept) -> Kept:
        """Return what to keep with deadlines that are times: no time ends a number of events."""
        if self._given.most_events is not None:
            kept.deadlines = [None if at is None else _LAST for at in kept.deadlines]
        return kept

    # --- helpers

    @property
    def _window(self) -> int:
        assert self.query.window is not None
        return self.query.window

    def _sequences(self, table: EventTable) -> Sequences | ComposedSequences:
        evaluated = ComposedSequences if self.query.is_composed else Sequences
        return evaluated(self.query, table, limit=self._limit)

    def _since(self, portion: Portion, windows: int) -> list[int]:
        """Return for each key the first event within the last window."""
        keys = range(len(portion.fresh))
        if portion.watermark == MAX_WATERMARK:
            return list(portion.bounds[1:])
        if self.query.window is None:
            return list(portion.bounds[:-1])
        return [portion.passed(key, windows * self.query.window) for key in keys]

    def _kept(self, portion: Portion, since: list[int]) -> Kept:
        """Return what is kept from some positions on; all of it has passed at the deadlines."""
        if portion.watermark == MAX_WATERMARK:
            since = list(portion.bounds[1:])
        deadlines: list[int | None] = [None] * len(since)
        if self.query.window is not None:
            windows = 1 + (self._looks_back or self._looks_ahead or self._output != "all")
            for key, (at, end) in enumerate(zip(since, portion.bounds[1:], strict=True)):
                if at < end:
                    deadlines[key] = _end(portion, end - 1, windows * self.query.window)
        return Kept(since, list(since), deadlines)


def _end(portion: Portion, at: int, milliseconds: int) -> int:
    """Return the end of a window that begins with an event; the end of input if it is later."""
    return min(portion.table.times[at] + milliseconds, _LAST)


def _first_event(match: MatchPositions) -> int:
    return min(own[0] for own in match.values() if own)


def _earliest(portion: Portion, positions: Sequence[int]) -> list[int]:
    """Return for each key the first of some positions, or the end of its events."""
    first = list(portion.bounds[1:])
    for at in positions:
        key = portion.key_of(at)
        first[key] = min(first[key], at)
    return first
