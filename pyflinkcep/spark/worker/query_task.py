# SPDX-License-Identifier: Apache-2.0
"""A task of a query on a bounded DataFrame: sorts its events and matches key by key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.evaluation import list_frames, query_matches
from pyflinkcep.expressions.program import Kind, Type
from pyflinkcep.runtime import opened
from pyflinkcep.sase.evaluation import EVENT_LISTS
from pyflinkcep.sase.model import Query
from pyflinkcep.sase.table import EventTable
from pyflinkcep.spark.arrow.columns import PREFIX, Ints
from pyflinkcep.spark.arrow.layout import Layout
from pyflinkcep.spark.arrow.rows import RowReader
from pyflinkcep.spark.matching.event_store import EventStore
from pyflinkcep.spark.matching.matcher import MOST_RESULTS
from pyflinkcep.spark.matching.results import Found, Results
from pyflinkcep.spark.worker.consumers import Consumer, to_batches
from pyflinkcep.spark.worker.runtime import running
from pyflinkcep.spark.worker.sorting import BUDGET_BYTES, sorted_chunks

__all__ = ["OWN", "SLICE", "KeyedTables", "QueryTask", "whole_keys"]

SLICE = f"{PREFIX}slice"
"""The column with the number of the slice of time that an event is in."""

OWN = f"{PREFIX}own"
"""The column that says whether a match of the slice may begin with the event."""


def whole_keys(
    batches: Iterator[pa.RecordBatch], layout: Layout, sort_bytes: int = BUDGET_BYTES
) -> Iterator[pa.Table]:
    """Yield the events of a partition in tables of whole keys, sorted by key, time and place."""
    rest: list[pa.Table] = []
    with closing(sorted_chunks(batches, layout, sort_bytes)) as chunks:
        for chunk in chunks:
            rest.append(chunk)
            both = pa.concat_tables(rest[-2:])
            changes = layout.key_changes(both)
            if len(changes):
                cut = int(changes[-1])
                yield pa.concat_tables([*rest[:-2], both.slice(0, cut)])
                rest = [both.slice(cut)]
    if sum(table.num_rows for table in rest):
        yield pa.concat_tables(rest)


@attrs.frozen(eq=False)
class KeyedTables:
    """
    Cuts a partition into tables of whole keys.

    Attributes
    ----------
    layout : Layout
        Where things are in the input.
    type_column : str
        The column that holds an event's type.
    kinds : dict of str to Kind
        What the attributes hold that conditions look at.
    sort_bytes : int
        How many bytes of events to sort in memory.
    """

    layout: Layout
    type_column: str
    kinds: Mapping[str, Kind]
    sort_bytes: int = BUDGET_BYTES

    def of(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[pa.Table, EventTable]]:
        """Yield tables of whole keys, sorted by key, time and place in the source."""
        for events in whole_keys(batches, self.layout, self.sort_bytes):
            yield self._table(events)

    def _table(self, events: pa.Table) -> tuple[pa.Table, EventTable]:
        events = events.combine_chunks()
        begins = np.zeros(events.num_rows, np.int64)
        begins[self.layout.key_changes(events)] = 1
        starts = None
        if OWN in events.column_names:
            starts = events.column(OWN).to_numpy(zero_copy_only=False)
        return events, EventTable(
            self.layout.times_ms(events).tolist(),
            events.column(self.type_column).to_numpy(zero_copy_only=False),
            {name: _column(events.column(name), kind) for name, kind in self.kinds.items()},
            self.kinds,
            np.cumsum(begins).tolist(),
            starts,
        )


def _column(column: pa.ChunkedArray, kind: Kind) -> Any:
    """Return a column as an array, masked where it is null; texts as a list."""
    if kind.type == Type.TEXT:
        return column.to_pylist()
    wanted = pa.float64() if kind.type == Type.FLOAT else pa.int64()
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    column = column.cast(wanted, safe=False)
    nulls = column.is_null().to_numpy(zero_copy_only=False)
    data = column.fill_null(0).to_numpy(zero_copy_only=False)
    return np.ma.MaskedArray(data, nulls) if nulls.any() else data


@attrs.frozen(eq=False)
class QueryTask:
    """
    The work on one partition.

    Attributes
    ----------
    query : Query
        The query.
    layout : Layout
        Where things are in the input.
    type_column : str
        The column that holds an event's type.
    evaluation : str
        How matches are found.
    output : str
        Which of them are wanted.
    kinds : dict of str to Kind
        What the attributes hold that conditions look at.
    consumer : Consumer
        What becomes of the matches.
    limit : int or None
        How many matches a partition gives at most; more are not even enumerated.
    """

    query: Query
    layout: Layout
    type_column: str
    evaluation: str
    output: str
    kinds: Mapping[str, Kind]
    consumer: Consumer
    limit: int | None = None

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Match the events of a partition; yield its output."""
        tables = KeyedTables(self.layout, self.type_column, self.kinds)
        reader = RowReader(self.layout.schema)
        with running(self.layout.pattern) as context, opened(self.consumer, context, "a function"):
            for events, table in tables.of(batches):
                shown = events.select(list(self.layout.payload))
                store = EventStore(reader, shown.schema)
                store.add(shown)
                for found in self._found(table):
                    yield from to_batches(self.consumer, self.consumer.consume(found, store))

    def _found(self, table: EventTable) -> Iterator[Found]:
        """Yield the matches, many at a time; a handle is a position in the table."""
        variables = [part.variable for part in self.query.positive]
        is_plain = self.evaluation == EVENT_LISTS and self.output == "all" and self.limit is None
        if is_plain and not any(part.repeats for part in self.query.positive):
            for frame in list_frames(self.query, table):
                columns = [frame.singles[name] for name in variables]
                yield from _of_columns(variables, columns, table.times).parts(MOST_RESULTS)
            return
        results = Results(variables, False)
        matches = query_matches(self.query, table, self.evaluation, self.output)
        for match in islice(matches, self.limit):
            last = match[variables[-1]][-1]
            results.match(None, table.times[last], match)
            if len(results) >= MOST_RESULTS:
                yield results.take()
        if len(results):
            yield results.take()


def _of_columns(variables: Sequence[str], columns: Sequence[Ints], times: Iterable[int]) -> Found:
    """Return matches of single events, given as a column of positions for each variable."""
    size, width = len(columns[0]), len(columns)
    return Found(
        variables,
        np.ones(size, np.uint8),
        np.asarray(times, np.int64)[columns[-1]],
        np.arange(1, size + 1, dtype=np.int64) * width,
        np.tile(np.arange(width, dtype=np.int32), size),
        np.stack(columns, axis=1).reshape(-1),
    )
