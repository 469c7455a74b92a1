# SPDX-License-Identifier: Apache-2.0
"""After the stateful operator: its results, packed as numbers and events, become rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.functions import opened
from pyflinkcep.matching.event_store import EventStore
from pyflinkcep.matching.layout import Layout
from pyflinkcep.matching.results import Found
from pyflinkcep.spark.arrow.internals import arrow_schema
from pyflinkcep.spark.arrow.rows import RowReader
from pyflinkcep.spark.state.checksums import read_table, write_table
from pyflinkcep.spark.worker.consumers import Consumer, batches_of, to_batches
from pyflinkcep.spark.worker.runtime import running

LATE, AHEAD, NULLS = "late", "ahead", "nulls"
"""The columns of the operator's output with events that came too late, or are too far ahead."""

_PORTION_BYTES = 4 << 20
"""The least bytes of results to turn into rows at a time."""


@attrs.frozen(eq=False)
class UnpackTask:
    """The work after the stateful operator: the user's functions, or columns."""

    layout: Layout  # The events' columns
    stages: Sequence[str]  # The names of stages in matches
    consumer: Consumer  # Turns matches into rows
    sides: Mapping[str, str]  # The outputs for events left out, by the columns that they come in

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Make the output of packed results."""
        reader = RowReader(self.layout.schema)
        with (
            running(self.layout.pattern) as context,
            opened(self.consumer, context, "a function"),
        ):
            for batch in batches:
                rows = batch.to_pylist()
                for results in _portions([row for row in rows if row["numbers"] is not None]):
                    yield from self._consumed(results, reader)
                for side, output in self.sides.items():
                    tables = [row[side] for row in rows if row[side] is not None]
                    yield from self._left_out(tables, output)

    def _consumed(
        self, results: Sequence[dict[str, Any]], reader: RowReader
    ) -> Iterator[pa.RecordBatch]:
        """Make the output of the results of some buckets."""
        parts, tables, base = [], [], 0
        for row in results:
            found, table = unpack_results(row["numbers"], row["events"], self.stages, base)
            parts.append(found)
            tables.append(table)
            base += table.num_rows
        events = pa.concat_tables(tables).combine_chunks()
        store = EventStore(reader, events.schema)
        store.add(events)
        yield from batches_of(self.consumer, Found.concat(parts), store)

    def _left_out(self, tables: Sequence[bytes], output: str) -> Iterator[pa.RecordBatch]:
        """Make the output of events that were left out."""
        schema = arrow_schema(self.consumer.schemas[output])
        for data in tables:
            yield from to_batches(self.consumer, {output: read_table(data).cast(schema)})


def _portions(rows: Sequence[dict[str, Any]]) -> Iterator[Sequence[dict[str, Any]]]:
    """Yield the results of buckets, small ones combined since each portion has a fixed cost."""
    portion: list[dict[str, Any]] = []
    size = 0
    for row in rows:
        portion.append(row)
        size += len(row["numbers"]) + len(row["events"])
        if size >= _PORTION_BYTES:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion


@attrs.frozen(eq=False)
class RowsTask:
    """The work after a stateful operator that makes rows itself: they are only unpacked."""

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        for batch in batches:
            for events in batch.column("events").to_pylist():
                if events is not None:
                    yield from read_table(events).to_batches()


def pack_results(found: Found, events: EventStore) -> tuple[bytes, bytes]:
    """Return results and their events as bytes."""
    unique, positions = np.unique(found.handles, return_inverse=True)
    parts = [[len(found)], found.kinds, found.times, found.ends, found.stage_of, positions]
    numbers = np.concatenate([np.asarray(part, "<i8") for part in parts])
    return numbers.tobytes(), write_table(events.take(unique, events.shown))


def unpack_results(
    numbers: bytes, events: bytes, stages: Sequence[str], base: int
) -> tuple[Found, pa.Table]:
    """Read the output of :func:`pack_results`."""
    values = np.frombuffer(numbers, "<i8").astype(np.int64, copy=False)
    size = int(values[0])
    kinds, times, ends = values[1 : 1 + 3 * size].reshape(3, size)
    stage_of, positions = values[1 + 3 * size :].reshape(2, -1)
    found = Found(
        stages,
        kinds.astype(np.uint8),
        times,
        ends,
        stage_of.astype(np.int32),
        positions + base,
    )
    return found, read_table(events)
