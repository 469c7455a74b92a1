# SPDX-License-Identifier: Apache-2.0
"""The settings that the workers of a query's stream need."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.engines.flink.operator.state_format import damaged_state
from pyflinkcep.engines.queries import last_event
from pyflinkcep.engines.sequences.limit import RunLimit
from pyflinkcep.engines.streamed_queries import Kept, Portion, StreamedQuery
from pyflinkcep.errors import PatternChangedError
from pyflinkcep.functions import RuntimeContext
from pyflinkcep.matching.columns import WINDOW, Ints
from pyflinkcep.matching.event_store import EventStore
from pyflinkcep.matching.matcher import NO_DEADLINE, Items, States, Written
from pyflinkcep.matching.queries import QueryColumns
from pyflinkcep.matching.results import Found, Results
from pyflinkcep.matching.stretches import Events
from pyflinkcep.sase.model import Query
from pyflinkcep.spark.worker.bucket_task import BucketPlan, BucketTask, Matching
from pyflinkcep.spark.worker.endings import EndingRows, WindowRows
from pyflinkcep.time import MAX_WATERMARK

QUERY_STATE_FORMAT = 1
"""The version of a key's numbers: itself, and how many of its events are kept as context only."""


class QueryPages(ABC):
    """
    Processes the events of pages' keys with a query; subclasses define the results.

    A key's state is events, and two numbers: the version of this format, and how many of the
    events, at the front, are decided and kept only because others refer to them.
    """

    def __init__(self, streamed: StreamedQuery, columns: QueryColumns) -> None:
        self._streamed = streamed
        self._columns = columns

    def set_events(self, store: EventStore) -> None:
        """Use another store: the events that handles refer to from now on."""
        self._store = store

    def run_page(
        self, events: Events, items: Items, page: States, first_held: int, watermark: int
    ) -> Written:
        """Match events of a page's keys, and advance their time to the watermark."""
        assert events.handles is None  # queries have no comparator
        ends = np.r_[0, np.cumsum(page.counts)]
        known = np.maximum(items.positions, 0)
        begins = ends[known]
        counts = np.where(items.positions < 0, 0, np.diff(ends, append=ends[-1])[known])
        sizes = np.stack([counts, items.ends - items.starts], axis=1).reshape(-1)
        firsts = np.stack([first_held + begins, events.base + items.starts], axis=1).reshape(-1)
        handles = _ranges(firsts, sizes)
        bounds = np.r_[0, np.cumsum(sizes)][::2]
        portion = Portion(
            self._columns.table(
                self._store.take(handles, self._columns.names),
                np.repeat(np.arange(len(counts)), np.diff(bounds)),
            ),
            bounds.tolist(),
            (bounds[:-1] + counts).tolist(),
            (bounds[:-1] + _context_sizes(items.positions, page)).tolist(),
            watermark,
        )
        return _written(self.find(portion, handles), portion, handles)

    def count(self, page: States) -> None:  # noqa: B027
        """Return nothing: it keeps events, no partial matches."""

    @abstractmethod
    def find(self, portion: Portion, handles: Ints) -> Kept:
        """Collect what a portion adds; return what to keep."""

    @abstractmethod
    def take(self) -> Found:
        """Return the results of the pages so far, and clear them."""


class QueryMatcher(QueryPages):
    """Finds the matches of a query; see :class:`QueryPages`."""

    def __init__(self, streamed: StreamedQuery, columns: QueryColumns) -> None:
        super().__init__(streamed, columns)
        self._results = Results(streamed.query.variables, wants_timeouts=False)

    def find(self, portion: Portion, handles: Ints) -> Kept:
        """Collect the matches that a portion adds."""
        matches, kept = self._streamed.matches(portion)
        taken = handles.tolist()
        for match in matches:
            events = {name: [taken[at] for at in own] for name, own in match.items()}
            self._results.match(None, portion.table.times[last_event(match)], events)
        return kept

    def take(self) -> Found:
        """Return the matches so far, and clear them."""
        return self._results.take()


class QueryEndingPages(QueryPages):
    """Makes a row for each event that completes matches; see :class:`QueryPages`."""

    def __init__(self, streamed: StreamedQuery, columns: QueryColumns, rows: EndingRows) -> None:
        super().__init__(streamed, columns)
        self._rows = rows
        self._made: list[pa.Table] = []

    def find(self, portion: Portion, handles: Ints) -> Kept:
        """Collect the rows that a portion adds."""
        events = self._store.take(handles, self._store.shown)
        endings, kept = self._streamed.endings(portion, self._rows.asked(events))
        times = portion.table.times
        if endings:
            listed = [(at, times[at], ending) for at, *ending in endings]
            self._made.append(self._rows.table(events, listed))
        return kept

    def take(self) -> Found:
        """Return the rows so far, and clear them."""
        made, self._made = self._made, []
        return Found.of_rows(pa.concat_tables(made) if made else None)


class QueryWindowPages(QueryEndingPages):
    """
    Makes a row for each window that is over; see :class:`QueryPages`. Keys are those of
    windows.
    """

    def __init__(self, streamed: StreamedQuery, columns: QueryColumns, rows: WindowRows) -> None:
        super().__init__(streamed, columns, rows)
        self._window_ms = rows.window_ms

    def find(self, portion: Portion, handles: Ints) -> Kept:
        """Collect the rows of the windows that the watermark has passed; keep the others whole."""
        bounds = np.asarray(portion.bounds, np.int64)
        starts = self._store.take(handles[bounds[:-1]], [WINDOW]).column(WINDOW).to_pylist()
        last = [min(start + self._window_ms, MAX_WATERMARK) - 1 for start in starts]
        over = np.array([at <= portion.watermark for at in last], np.bool_)
        if over.any():
            sizes = np.diff(bounds)
            own = handles[np.repeat(over, sizes)]
            keys = np.repeat(np.arange(over.sum()), sizes[over])
            table = self._columns.table(self._store.take(own, self._columns.names), keys)
            events = self._store.take(own, self._store.shown)
            found = self._rows.asked(events, keys.tolist())(self._streamed.whole(table))
            listed = [(at, None, ending) for at, *ending in found]
            if listed:
                self._made.append(self._rows.table(events, listed))
        since = np.where(over, bounds[1:], bounds[:-1]).tolist()
        ends = [None if is_over else at for at, is_over in zip(last, over, strict=True)]
        return Kept(since, list(since), ends)


def _ranges(firsts: Ints, sizes: Ints) -> Ints:
    """Return the numbers of all ranges in a row."""
    offsets: Ints = np.repeat(firsts - (np.cumsum(sizes) - sizes), sizes)
    return offsets + np.arange(len(offsets))


def _context_sizes(positions: Ints, page: States) -> Ints:
    """Return how many events of each item's key are decided."""
    sizes = np.zeros(len(positions), np.int64)
    known = positions >= 0
    if not known.any():
        return sizes
    decided = page.fields("a query", QUERY_STATE_FORMAT, 1)[:, 0]
    if ((decided < 0) | (decided > page.counts)).any():
        raise damaged_state("a key has fewer events than decided ones")
    sizes[known] = decided[positions[known]]
    return sizes


def _written(kept: Kept, portion: Portion, handles: Ints) -> Written:
    since, free = np.asarray(kept.since, np.int64), np.asarray(kept.free, np.int64)
    ends = np.asarray(portion.bounds[1:], np.int64)
    items = np.flatnonzero(since < ends)
    counts = (ends - since)[items]
    numbers = np.full((len(items), 2), QUERY_STATE_FORMAT, np.int64)
    numbers[:, 1] = np.minimum(free, ends)[items] - since[items]
    return Written(
        items,
        _deadlines([kept.deadlines[item] for item in items.tolist()]),
        np.full(len(items), 2, np.int64),
        counts,
        numbers.reshape(-1),
        handles[_ranges(since[items], counts)],
    )


def _deadlines(deadlines: Sequence[int | None]) -> Ints:
    return np.asarray([NO_DEADLINE if at is None else at for at in deadlines], np.int64)


QUERY, USABLE = "query", "usable events"
"""The entries of the fingerprint of a query's state: its text, and which events it receives."""

UNUSABLE = frozenset({0})
"""The bits of events that a query cannot use: its only condition fails."""


@attrs.frozen(eq=False, kw_only=True)
class QueryMatching(Matching):
    """A query on a stream; see :class:`BucketPlan`."""

    query: Query  # The query; compiled on each worker
    columns: QueryColumns  # What it reads from events
    evaluation: str  # How matches are found
    output: str  # Which of them are requested
    # Summarizes the matches that an event completes; None if they are listed.
    rows: EndingRows | None = None
    runs: RunLimit | None = None  # A bound on the runs of a key

    def task(self, plan: BucketPlan, context: RuntimeContext) -> QueryStreamTask:
        """Return the plan ready to run."""
        return QueryStreamTask(plan, self)


class QueryStreamTask(BucketTask):
    """A plan of :class:`QueryMatching` ready to run on a worker."""

    def __init__(self, plan: BucketPlan, matching: QueryMatching) -> None:
        super().__init__(plan)
        streamed = StreamedQuery(
            matching.query, matching.evaluation, matching.output, matching.runs
        )
        self.matcher = _pages(streamed, matching)

    def requeued(self, table: pa.Table, fingerprint: Mapping[str, str]) -> pa.Table:
        """Return queued events without the answers for another pattern."""
        return table.select(self.schema.names)

    def still_droppable(self, dropped: Iterable[int], fingerprint: Mapping[str, str]) -> list[int]:
        """Return the bits of dropped events; refuse it if this query can use others."""
        if fingerprint.get(USABLE) != self.fingerprint[USABLE]:
            raise PatternChangedError(
                "events that the new query needs were dropped while others were buffered",
                "run the old query with sideOutputLateData(), which keeps every event, until the "
                "watermark has passed the buffered ones; or start from a new checkpoint",
            )
        return sorted(dropped)

    def close(self) -> None:
        """End the task; a query has no rich conditions."""


def _pages(streamed: StreamedQuery, matching: QueryMatching) -> QueryPages:
    """Return what makes the requested results."""
    rows = matching.rows
    if rows is None:
        return QueryMatcher(streamed, matching.columns)
    if isinstance(rows, WindowRows):
        return QueryWindowPages(streamed, matching.columns, rows)
    return QueryEndingPages(streamed, matching.columns, rows)
