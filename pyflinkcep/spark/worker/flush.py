# SPDX-License-Identifier: Apache-2.0
"""The final watermark on the state of a stream that has stopped."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import attrs
import pyarrow as pa
from pyspark import TaskContext

from pyflinkcep.errors import CepRuntimeError
from pyflinkcep.runtime import RuntimeContext
from pyflinkcep.spark.arrow.internals import arrow_schema
from pyflinkcep.spark.state.index import PageId
from pyflinkcep.spark.worker.bucket import BucketWork
from pyflinkcep.spark.worker.pack import BUCKET
from pyflinkcep.spark.worker.processor import INDEX, PAGES, RESULTS, SEGMENTS, result_row
from pyflinkcep.spark.worker.stream_worker import StreamPlan, StreamTask
from pyflinkcep.time import MAX_WATERMARK

__all__ = ["KINDS", "FlushTask", "MemoryStorage"]

KINDS = {INDEX: 0, PAGES: 1, SEGMENTS: 2}
"""The state variables, as the rows of a flush name them."""


@attrs.frozen(eq=False)
class FlushTask:
    """
    The work on some buckets' state.

    Attributes
    ----------
    plan : StreamPlan
        The settings that the stream ran with.
    """

    plan: StreamPlan

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Give each bucket the final watermark."""
        partition = TaskContext.get()
        number = partition.partitionId() if partition else 0
        task = StreamTask(self.plan, RuntimeContext(f"CEP: {self.plan.layout.pattern}", number))
        rows = (row for batch in batches for row in batch.to_pylist())
        try:
            for _, bucket in groupby(rows, key=lambda row: row[BUCKET]):
                storage = MemoryStorage()
                for row in bucket:
                    storage.add(row["kind"], row["first"], row["second"], row["data"])
                output = BucketWork(task, storage).run([], MAX_WATERMARK)
                row = result_row(task, output, False, storage)
                yield pa.RecordBatch.from_pylist([row], schema=arrow_schema(RESULTS))
        except CepRuntimeError as error:
            raise error.in_pattern(self.plan.layout.pattern) from error.__cause__
        finally:
            task.close()


class MemoryStorage:
    """A bucket's state in memory."""

    def __init__(self) -> None:
        self._index: bytes | None = None
        self._pages: dict[PageId, bytes] = {}
        self._segments: dict[int, bytes] = {}
        self.read = 0
        self.written = 0

    def add(self, kind: int, first: int, second: int, data: bytes) -> None:
        """Add a row of state as :func:`flush_plan` reads it."""
        if kind == KINDS[INDEX]:
            self._index = data
        elif kind == KINDS[PAGES]:
            self._pages[first, second] = data
        else:
            self._segments[first] = data

    def read_index(self) -> bytes | None:
        """Give the index."""
        return self._index

    def write_index(self, data: bytes | None) -> None:
        """Replace the index."""
        self._index = data

    def read_page(self, page: PageId) -> bytes:
        """Give a page."""
        return self._pages[page]

    def write_page(self, page: PageId, data: bytes | None) -> None:
        """Replace or delete a page."""
        self._pages.pop(page, None)
        if data is not None:
            self._pages[page] = data

    def read_segment(self, number: int) -> bytes:
        """Give a segment."""
        return self._segments[number]

    def write_segment(self, number: int, data: bytes | None) -> None:
        """Replace or delete a segment."""
        self._segments.pop(number, None)
        if data is not None:
            self._segments[number] = data
