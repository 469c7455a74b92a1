# SPDX-License-Identifier: Apache-2.0
"""The final watermark on the state of a stream that has stopped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import groupby

import attrs
import pyarrow as pa

from pyflinkcep.spark.arrow.internals import arrow_schema
from pyflinkcep.spark.arrow.ipc import read_table
from pyflinkcep.spark.state.storage import MemoryStorage
from pyflinkcep.spark.worker.bucket import Arrivals, BucketWork
from pyflinkcep.spark.worker.bucket_task import BucketPlan
from pyflinkcep.spark.worker.bucket_worker import RESULTS, result_row
from pyflinkcep.spark.worker.pack import BUCKET
from pyflinkcep.spark.worker.runtime import running
from pyflinkcep.time import MAX_WATERMARK

__all__ = ["ARRIVED", "FlushTask"]

ARRIVED = 3
"""The kind of rows that are not state: packed events before the final watermark."""


@attrs.frozen(eq=False)
class FlushTask:
    """
    The work on some buckets' state, and on the last events.

    Attributes
    ----------
    plan : BucketPlan
        The settings that the stream ran with.
    """

    plan: BucketPlan

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Process the final watermark for each bucket."""
        rows = (row for batch in batches for row in batch.to_pylist())
        with (
            running(self.plan.layout.pattern) as context,
            closing(self.plan.task(context)) as task,
        ):
            for bucket_id, bucket in groupby(rows, key=lambda row: row[BUCKET]):
                storage, arrived = MemoryStorage(), []
                for row in bucket:
                    if row["kind"] == ARRIVED:
                        arrived.append(read_table(row["data"]))
                    else:
                        storage.add(row["kind"], row["first"], row["second"], row["data"])
                groups = self.plan.key_groups.of_bucket(bucket_id)
                outputs = BucketWork(task, storage, groups).run(Arrivals(arrived), MAX_WATERMARK)
                results = [result_row(task, output, storage) for output in outputs]
                yield pa.RecordBatch.from_pylist(results, schema=arrow_schema(RESULTS))
