# SPDX-License-Identifier: Apache-2.0
"""Before the shuffle of a stream: many events become a few large rows, one for each bucket."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from pyflinkcep.errors import InputError
from pyflinkcep.spark.key_groups import KeyGroups
from pyflinkcep.spark.layout import HASH, Layout

__all__ = ["BUCKET", "PACKED", "PackTask", "read_table", "write_table"]

BUCKET = "bucket"

PACKED = StructType(
    [
        StructField(BUCKET, IntegerType(), False),
        StructField("partition", IntegerType(), False),
        StructField("position", IntegerType(), False),
        StructField("data", BinaryType(), False),
    ]
)
"""The schema of packed rows: events of a bucket, and where in the source they came from."""


def write_table(table: pa.Table) -> bytes:
    """Give a table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def read_table(data: bytes) -> pa.Table:
    """Read what :func:`write_table` wrote."""
    return pa.ipc.open_stream(data).read_all()


@attrs.frozen(eq=False)
class PackTask:
    """
    The work on one partition of a stream's source.

    Attributes
    ----------
    layout : Layout
        Where things are in the input.
    schema : pyarrow.Schema
        What is kept of the input; times in UTC, whatever the session's time zone.
    key_groups : KeyGroups
        Which bucket a key belongs to.
    """

    layout: Layout
    schema: pa.Schema
    key_groups: KeyGroups

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Pack each Arrow batch into one row for each bucket that it has events of."""
        partition = TaskContext.get()
        number = partition.partitionId() if partition else 0
        ids = np.asarray(self.key_groups.bucket_ids(), np.int32)
        for position, batch in enumerate(batches):
            if batch.num_rows:
                yield self._pack(pa.Table.from_batches([batch]), ids, number, position)

    def _pack(
        self, table: pa.Table, ids: np.ndarray[Any, Any], partition: int, position: int
    ) -> pa.RecordBatch:
        if self.layout.time_column is not None:
            self.layout.times_ms(table)  # refuses null times while the event can be named
        self._refuse_null_keys(table)
        groups = self.key_groups.groups(table.column(HASH).to_numpy())
        buckets = self.key_groups.buckets(groups)
        order = np.argsort(buckets, kind="stable")
        ordered = table.select(self.schema.names).cast(self.schema).take(pa.array(order))
        buckets = buckets[order]
        starts = np.flatnonzero(np.r_[True, buckets[1:] != buckets[:-1]])
        ends = np.r_[starts[1:], len(buckets)]
        data = [
            write_table(ordered.slice(start, end - start))
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        ]
        size = len(data)
        columns = [
            pa.array(ids[buckets[starts]]),
            pa.array(np.full(size, partition, np.int32)),
            pa.array(np.full(size, position, np.int32)),
            pa.array(data, pa.binary()),
        ]
        return pa.RecordBatch.from_arrays(columns, names=PACKED.fieldNames())

    def _refuse_null_keys(self, table: pa.Table) -> None:
        columns = [table.column(name) for name in self.layout.key_columns]
        if not columns or not all(column.null_count for column in columns):
            return
        nulls = np.logical_and.reduce([column.is_null().to_numpy() for column in columns])
        if nulls.any():
            row = int(np.flatnonzero(nulls)[0])
            raise InputError(
                f"pattern {self.layout.pattern}: null key {self.layout.key_text(table, row)}"
                f"{self.layout.time_text(table, row)}",
                "filter such events out, or give them a key with coalesce(), before CEP.pattern",
            )
