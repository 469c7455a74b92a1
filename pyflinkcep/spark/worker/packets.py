# SPDX-License-Identifier: Apache-2.0
"""Events in packets: a shuffle moves a row of bytes for many events, instead of their values."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs
import numpy as np
import pyarrow as pa
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from pyflinkcep.matching.columns import Ints, table_of
from pyflinkcep.matching.hashing import mixed
from pyflinkcep.spark.state.key_groups import KeyGroups

BUCKET = "bucket"
PACKETS = StructType(
    [StructField(BUCKET, IntegerType(), False), StructField("data", BinaryType(), False)]
)
"""A row for many events of one bucket."""

# Spark hands a worker up to 10,000 rows at once, and releases before 4.1 however large they are.
_PACKET_BYTES = 128 << 10
_READ_BYTES = 4 << 20
_FEWEST, _MOST = 64, 1024


@attrs.frozen(eq=False)
class Packets:
    """How events travel; travels to the workers itself."""

    schema: pa.Schema  # Of events
    buckets: KeyGroups

    @classmethod
    def of(cls, schema: pa.Schema, partitions: int) -> Packets:
        """Return packets for a shuffle into some partitions."""
        count = min(max(1 << (partitions - 1).bit_length(), _FEWEST), _MOST)
        return cls(schema, KeyGroups(count, count))

    def bucket_of(self, places: Ints) -> Ints:
        """Return the buckets of events by numbers that are equal for those of one place."""
        groups = self.buckets.groups(mixed(places.view(np.uint64)))
        return self.buckets.buckets(groups)

    def written(self, events: pa.Table, buckets: Ints) -> pa.RecordBatch:
        """Return events, given in the order of their buckets, as rows."""
        (whole,) = table_of(events.columns, self.schema).combine_chunks().to_batches()
        most = max(_PACKET_BYTES * whole.num_rows // max(whole.nbytes, 1), 1)
        ends = np.cumsum(np.bincount(buckets, minlength=self.buckets.bucket_count))
        ids = self.buckets.bucket_ids()
        own: list[int] = []
        data: list[bytes] = []
        begin = 0
        for bucket, end in zip(ids, ends.tolist(), strict=True):
            for first in range(begin, end, most):
                own.append(bucket)
                data.append(whole.slice(first, min(most, end - first)).serialize().to_pybytes())
            begin = end
        columns = [pa.array(own, pa.int32()), pa.array(data, pa.binary())]
        return pa.RecordBatch.from_arrays(columns, names=PACKETS.fieldNames())

    def read(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the events of rows."""
        held: list[pa.RecordBatch] = []
        size = 0
        for batch in rows:
            for data in batch.column("data").to_pylist():
                held.append(pa.ipc.read_record_batch(pa.py_buffer(data), self.schema))
                size += len(data)
                if size >= _READ_BYTES:
                    yield from _joined(held)
                    held, size = [], 0
        if held:
            yield from _joined(held)

    def reading(
        self, task: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
    ) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        """Return a task on the events of rows."""
        return lambda rows: task(self.read(rows))


def _joined(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    found: list[pa.RecordBatch] = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return found
