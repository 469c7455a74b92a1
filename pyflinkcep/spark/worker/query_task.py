# SPDX-License-Identifier: Apache-2.0
"""Tasks of queries: on a partition of a bounded job, sorted here, and on a stream's buckets."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.engines.choice import estimate, resolved
from pyflinkcep.engines.queries import QueryPlan, compressed_matches, observed
from pyflinkcep.engines.streamed_queries import Kept, Portion, StreamedQuery
from pyflinkcep.engines.table import EventTable, listed
from pyflinkcep.errors import PatternChangedError
from pyflinkcep.functions import RuntimeContext, opened
from pyflinkcep.matching.columns import WINDOW, Ints, owned
from pyflinkcep.matching.event_store import EventStore
from pyflinkcep.matching.queries import QueryColumns, query_found
from pyflinkcep.matching.query_pages import QueryMatcher, QueryPages
from pyflinkcep.matching.sorting import whole_keys
from pyflinkcep.sase.model import Query
from pyflinkcep.spark.arrow.rows import RowReader
from pyflinkcep.spark.worker.bucket_task import BucketPlan, BucketTask, Matching
from pyflinkcep.spark.worker.consumers import Consumer, batches_of
from pyflinkcep.spark.worker.endings import EndingRows, WindowRows
from pyflinkcep.spark.worker.runtime import running
from pyflinkcep.time import MAX_WATERMARK


def keyed_tables(
    batches: Iterator[pa.RecordBatch], columns: QueryColumns
) -> Iterator[tuple[pa.Table, EventTable]]:
    """Yield the events of a partition as a query sees them, in tables of whole keys."""
    for events, ends in whole_keys(batches, columns.layout):
        keys = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
        yield events, columns.table(events, keys, owned(events))


@attrs.frozen(eq=False)
class QueryTask:
    """The work on one partition."""

    plan: QueryPlan  # The query, and how it is answered
    columns: QueryColumns  # What it reads from events
    consumer: Consumer  # Turns matches into rows
    limit: int | None = None  # The most matches of a partition

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Match the events of a partition; yield its output."""
        layout = self.columns.layout
        reader = RowReader(layout.schema)
        with running(layout.pattern) as context, opened(self.consumer, context, "a function"):
            for events, table in keyed_tables(batches, self.columns):
                store = EventStore.of(events, layout, reader)
                for found in query_found(self.plan, table, self.limit):
                    yield from batches_of(self.consumer, found, store)


@attrs.frozen(eq=False)
class AnalysisTask:
    """The work on one partition: a row of JSON for each table of whole keys."""

    plan: QueryPlan  # The query, and how it is answered
    columns: QueryColumns  # What it reads from events
    runs: bool = True  # Whether to evaluate it, or only to estimate what that would cost

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield what became of the tables of a partition."""
        with running(self.columns.layout.pattern):
            for _, table in keyed_tables(batches, self.columns):
                if len(table.times):
                    yield pa.RecordBatch.from_pydict({"analysis": [json.dumps(self._of(table))]})

    def _of(self, table: EventTable) -> dict[str, Any]:
        query, output = self.plan.query, self.plan.output
        how = resolved(query, table, self.plan.evaluation, output)
        own = estimate(query, table, output)
        told: dict[str, Any] = {"events": len(table.times), "evaluation": how}
        if self.runs:
            told |= attrs.asdict(observed(query, table, how, output))
        return told | ({} if own is None else {"estimate": attrs.asdict(own)})


_MOST_ROWS = 1024


@attrs.frozen(eq=False)
class EndingsTask:
    """The work on one partition of a bounded DataFrame."""

    query: Query  # The query
    columns: QueryColumns  # What it reads from events
    rows: EndingRows  # Summarizes the matches that an event completes

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a row for each event that completes matches."""
        with running(self.columns.layout.pattern):
            for events, sliced in keyed_tables(batches, self.columns):
                # A slice owns the matches that end in it, so that each event has one row.
                table = attrs.evolve(sliced, starts=None, ends=sliced.starts)
                matches, keys = compressed_matches(self.query, table), listed(table.keys or ())
                found = self.rows.endings(matches, events, keys)
                endings = ((at, table.times[at], ending) for at, *ending in found)
                while part := list(islice(endings, _MOST_ROWS)):
                    yield from self.rows.table(events, part).to_batches()


class QueryEndingPages(QueryPages):
    """Makes a row for each event that completes matches; see :class:`QueryPages`."""

    def __init__(self, streamed: StreamedQuery, columns: QueryColumns, rows: EndingRows) -> None:
        super().__init__(streamed, columns)
        self._rows = rows

    def find(self, portion: Portion, handles: Ints) -> Kept:
        """Collect the rows that a portion adds."""
        events = self._store.take(handles, self._store.shown)
        endings, kept = self._streamed.endings(portion, partial(self._rows.endings, events=events))
        times = portion.table.times
        if endings:
            listed = [(at, times[at], ending) for at, *ending in endings]
            self._made.append(self._rows.table(events, listed))
        return kept


class QueryWindowPages(QueryEndingPages):
    """Makes a row for each window that is over; see :class:`QueryPages`."""

    # Keys are those of windows.

    _rows: WindowRows

    def find(self, portion: Portion, handles: Ints) -> Kept:
        """Collect the rows of the windows that the watermark has passed; keep the others whole."""
        bounds = np.asarray(portion.bounds, np.int64)
        starts = self._store.take(handles[bounds[:-1]], [WINDOW]).column(WINDOW).to_pylist()
        last = [min(start + self._rows.window_ms, MAX_WATERMARK) - 1 for start in starts]
        over = np.array([at <= portion.watermark for at in last], np.bool_)
        if over.any():
            sizes = np.diff(bounds)
            own = handles[np.repeat(over, sizes)]
            keys = np.repeat(np.arange(over.sum()), sizes[over])
            table = self._columns.table(self._store.take(own, self._columns.names), keys)
            events = self._store.take(own, self._store.shown)
            found = self._rows.endings(self._streamed.whole(table), events, keys.tolist())
            listed = [(at, None, ending) for at, *ending in found]
            if listed:
                self._made.append(self._rows.table(events, listed))
        since = np.where(over, bounds[1:], bounds[:-1]).tolist()
        ends = [None if is_over else at for at, is_over in zip(last, over, strict=True)]
        return Kept(since, list(since), ends)


# The entries of the fingerprint of a query's state: its text, and which events it receives.
QUERY, USABLE = "query", "usable events"
UNUSABLE = frozenset({0})  # The bits of events that a query cannot use: its only condition fails


@attrs.frozen(eq=False, kw_only=True)
class QueryMatching(Matching):
    """A query on a stream; see :class:`BucketPlan`."""

    plan: QueryPlan  # The query, compiled on each worker, and how it is answered
    columns: QueryColumns  # What it reads from events
    # Summarizes the matches that an event completes; None if they are listed.
    rows: EndingRows | None = None

    def task(self, plan: BucketPlan, context: RuntimeContext) -> BucketTask:
        """Return the plan ready to run."""
        streamed = StreamedQuery(self.plan)
        if self.rows is None:
            return BucketTask(plan, QueryMatcher(streamed, self.columns))
        pages = QueryWindowPages if isinstance(self.rows, WindowRows) else QueryEndingPages
        return BucketTask(plan, pages(streamed, self.columns, self.rows))

    def still_droppable(
        self, task: BucketTask, dropped: Iterable[int], fingerprint: Mapping[str, str]
    ) -> list[int]:
        """Return the bits of dropped events; refuse it if this query can use others."""
        if fingerprint.get(USABLE) != task.plan.fingerprint[USABLE]:
            raise PatternChangedError(
                "events that the new query needs were dropped while others were buffered",
                "run the old query with sideOutputLateData(), which keeps every event, until the "
                "watermark has passed the buffered ones; or start from a new checkpoint",
            )
        return sorted(dropped)
