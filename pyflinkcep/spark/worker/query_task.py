# SPDX-License-Identifier: Apache-2.0
"""A task of a query on a bounded DataFrame: sorts its events and matches key by key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.engines.estimates import estimate, resolved
from pyflinkcep.engines.queries import compressed_matches, observed
from pyflinkcep.engines.sequences.limit import RunLimit
from pyflinkcep.engines.table import EventTable, listed
from pyflinkcep.functions import opened
from pyflinkcep.matching.columns import OWN
from pyflinkcep.matching.event_store import EventStore
from pyflinkcep.matching.queries import QueryColumns, query_found
from pyflinkcep.matching.sorting import whole_keys
from pyflinkcep.sase.model import Query
from pyflinkcep.spark.arrow.rows import RowReader
from pyflinkcep.spark.worker.consumers import Consumer, batches_of
from pyflinkcep.spark.worker.endings import EndingRows
from pyflinkcep.spark.worker.runtime import running


def keyed_tables(
    batches: Iterator[pa.RecordBatch], columns: QueryColumns
) -> Iterator[tuple[pa.Table, EventTable]]:
    """Yield the events of a partition as a query sees them, in tables of whole keys."""
    for events, ends in whole_keys(batches, columns.layout):
        keys = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
        starts = None
        if OWN in events.column_names:
            starts = events.column(OWN).to_numpy(zero_copy_only=False)
        yield events, columns.table(events, keys, starts)


@attrs.frozen(eq=False)
class QueryTask:
    """The work on one partition."""

    query: Query  # The query
    columns: QueryColumns  # What it reads from events
    evaluation: str  # How matches are found
    output: str  # Which of them are requested
    consumer: Consumer  # Turns matches into rows
    # The most matches of a partition; further ones are not even enumerated.
    limit: int | None = None
    runs: RunLimit | None = None  # A bound on the runs of a key

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Match the events of a partition; yield its output."""
        layout = self.columns.layout
        reader = RowReader(layout.schema)
        with running(layout.pattern) as context, opened(self.consumer, context, "a function"):
            for events, table in keyed_tables(batches, self.columns):
                store = EventStore.of(events, layout, reader)
                found_so_far = query_found(
                    self.query, table, self.evaluation, self.output, self.limit, self.runs
                )
                for found in found_so_far:
                    yield from batches_of(self.consumer, found, store)


@attrs.frozen(eq=False)
class AnalysisTask:
    """The work on one partition: a row of JSON for each table of whole keys."""

    query: Query  # The query
    columns: QueryColumns  # What it reads from events
    # As of :class:`~pyflinkcep.spark.worker.query_task.QueryTask`.
    evaluation: str
    output: str
    runs: bool = True  # Whether to evaluate it, or only to estimate what that would cost

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield what became of the tables of a partition."""
        with running(self.columns.layout.pattern):
            for _, table in keyed_tables(batches, self.columns):
                if len(table.times):
                    yield pa.RecordBatch.from_pydict({"analysis": [json.dumps(self._of(table))]})

    def _of(self, table: EventTable) -> dict[str, Any]:
        how = resolved(self.query, table, self.evaluation, self.output)
        own = estimate(self.query, table, self.output)
        told: dict[str, Any] = {"events": len(table.times), "evaluation": how}
        if self.runs:
            told |= attrs.asdict(observed(self.query, table, how, self.output))
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
                asked = self.rows.asked(events, listed(table.keys or ()))
                found = asked(compressed_matches(self.query, table))
                endings = ((at, table.times[at], ending) for at, *ending in found)
                while part := list(islice(endings, _MOST_ROWS)):
                    yield from self.rows.table(events, part).to_batches()
