# SPDX-License-Identifier: Apache-2.0
"""A task of a query on a bounded DataFrame: sorts its events and matches key by key."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.engines.by_data import resolved
from pyflinkcep.engines.choice import EVENT_LISTS
from pyflinkcep.engines.compressed.arrays import MatchArrays
from pyflinkcep.engines.queries import last_event, list_frames, match_arrays, query_matches
from pyflinkcep.engines.sequences.limit import RunLimit
from pyflinkcep.engines.table import EventTable
from pyflinkcep.matching.columns import OWN
from pyflinkcep.matching.event_store import EventStore
from pyflinkcep.matching.matcher import MOST_RESULTS
from pyflinkcep.matching.query_table import QueryColumns, found_of_arrays, found_of_columns
from pyflinkcep.matching.results import Found, Results
from pyflinkcep.runtime import opened
from pyflinkcep.sase.model import Query
from pyflinkcep.spark.arrow.rows import RowReader
from pyflinkcep.spark.worker.consumers import Consumer, to_batches
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
                for found in self._found(table):
                    yield from to_batches(self.consumer, self.consumer.consume(found, store))

    def _found(self, table: EventTable) -> Iterator[Found]:
        """Yield the matches, many at a time; a handle is a position in the table."""
        how = resolved(self.query, table, self.evaluation, self.output)
        arrays = match_arrays(self.query, table, how, self.output, self.runs)
        if arrays is not None:
            yield from self._listed(arrays, table)
            return
        variables = self.query.variables
        is_plain = how == EVENT_LISTS and self.limit is None
        is_plain = is_plain and not self.query.is_composed
        if is_plain and not any(part.repeats for part in self.query.positive):
            for frame in list_frames(self.query, table, self.output):
                columns = [frame.singles[name] for name in variables]
                yield from found_of_columns(variables, columns, table.times).parts(MOST_RESULTS)
            return
        results = Results(variables, wants_timeouts=False)
        matches = query_matches(self.query, table, how, self.output, self.runs)
        for match in islice(matches, self.limit):
            results.match(None, table.times[last_event(match)], match)
            if len(results) >= MOST_RESULTS:
                yield results.take()
        if len(results):
            yield results.take()

    def _listed(self, arrays: Iterator[MatchArrays], table: EventTable) -> Iterator[Found]:
        """Yield matches that are arrays already."""
        variables = self.query.variables
        left = self.limit
        for part in arrays:
            matches = part if left is None else part.first(left)
            yield from found_of_arrays(variables, matches, table.times).parts(MOST_RESULTS)
            if left is not None:
                left -= len(matches)
                if not left:
                    return
