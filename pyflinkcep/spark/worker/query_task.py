# SPDX-License-Identifier: Apache-2.0
"""A task of a query on a bounded DataFrame: sorts its events and matches key by key."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.engines.sequences.limit import RunLimit
from pyflinkcep.engines.table import EventTable
from pyflinkcep.matching.columns import OWN
from pyflinkcep.matching.event_store import EventStore
from pyflinkcep.matching.query_found import query_found
from pyflinkcep.matching.query_table import QueryColumns
from pyflinkcep.runtime import opened
from pyflinkcep.sase.model import Query
from pyflinkcep.spark.arrow.rows import RowReader
from pyflinkcep.spark.worker.consumers import Consumer, batches_of
from pyflinkcep.spark.worker.runtime import running
from pyflinkcep.spark.worker.sorting import BUDGET_BYTES, whole_keys

__all__ = ["QueryTask", "keyed_tables"]


def keyed_tables(
    batches: Iterator[pa.RecordBatch], columns: QueryColumns, sort_bytes: int = BUDGET_BYTES
) -> Iterator[tuple[pa.Table, EventTable]]:
    """
    Yield the events of a partition as a query sees them, in tables of whole keys.

    Parameters
    ----------
    batches : iterator of pyarrow.RecordBatch
        The events.
    columns : QueryColumns
        What the query reads from them.
    sort_bytes : int
        How many bytes of events to sort in memory.
    """
    for whole in whole_keys(batches, columns.layout, sort_bytes):
        events = whole.combine_chunks()
        begins = np.zeros(events.num_rows, np.int64)
        begins[columns.layout.key_changes(events)] = 1
        starts = None
        if OWN in events.column_names:
            starts = events.column(OWN).to_numpy(zero_copy_only=False)
        yield events, columns.table(events, np.cumsum(begins), starts)


@attrs.frozen(eq=False)
class QueryTask:
    """
    The work on one partition.

    Attributes
    ----------
    query : Query
        The query.
    columns : QueryColumns
        What it reads from events.
    evaluation : str
        How matches are found.
    output : str
        Which of them are requested.
    consumer : Consumer
        Turns matches into rows.
    limit : int or None
        The most matches of a partition; further ones are not even enumerated.
    runs : RunLimit or None
        A bound on the runs of a key.
    """

    query: Query
    columns: QueryColumns
    evaluation: str
    output: str
    consumer: Consumer
    limit: int | None = None
    runs: RunLimit | None = None

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
