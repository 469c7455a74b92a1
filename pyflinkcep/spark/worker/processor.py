# SPDX-License-Identifier: Apache-2.0
"""The stateful operator that Spark calls: a bucket's state in Spark's state store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, IntegerType, LongType, StructField, StructType

from pyflinkcep.errors import CepRuntimeError
from pyflinkcep.runtime import RuntimeContext
from pyflinkcep.spark.arrow.ipc import read_table, write_table
from pyflinkcep.spark.state.index import PageId
from pyflinkcep.spark.worker.bucket import BucketOutput, BucketWork
from pyflinkcep.spark.worker.pack import count_late
from pyflinkcep.spark.worker.runtime import fewer_collections, prepare_worker
from pyflinkcep.spark.worker.stream_worker import StreamPlan, StreamTask
from pyflinkcep.spark.worker.unpack import pack_results
from pyflinkcep.time import MIN_WATERMARK

__all__ = ["INDEX", "PAGES", "RESULTS", "SEGMENTS", "CepProcessor", "result_row"]

INDEX, PAGES, SEGMENTS = "index", "pages", "segments"
"""The names of the state variables."""

_DATA = StructType([StructField("data", BinaryType(), False)])
_PAGE_KEY = StructType(
    [StructField("group", IntegerType(), False), StructField("page", IntegerType(), False)]
)
_SEGMENT_KEY = StructType([StructField("number", LongType(), False)])

RESULTS = StructType(
    [
        StructField("numbers", BinaryType()),
        StructField("events", BinaryType()),
        StructField("late", BinaryType()),
        StructField("lateRecords", LongType(), False),
        StructField("droppedMatches", LongType(), False),
        StructField("stateBytesRead", LongType(), False),
        StructField("stateBytesWritten", LongType(), False),
    ]
)
"""The schema of what the operator gives for a bucket: results, late events, counters."""


class _SparkStorage:
    """A bucket's state in the state variables of the group that Spark calls for."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._index = handle.getValueState(INDEX, _DATA)
        self._pages = handle.getMapState(PAGES, _PAGE_KEY, _DATA)
        self._segments = handle.getMapState(SEGMENTS, _SEGMENT_KEY, _DATA)
        self.read = 0
        self.written = 0

    def read_index(self) -> bytes | None:
        value = self._index.get()
        return None if value is None else self._count_read(value)

    def write_index(self, data: bytes | None) -> None:
        if data is None:
            self._index.clear()
        else:
            self._index.update((self._count_written(data),))

    def read_page(self, page: PageId) -> bytes:
        return self._count_read(self._pages.getValue(page))

    def write_page(self, page: PageId, data: bytes | None) -> None:
        if data is None:
            self._pages.removeKey(page)
        else:
            self._pages.updateValue(page, (self._count_written(data),))

    def read_segment(self, number: int) -> bytes:
        return self._count_read(self._segments.getValue((number,)))

    def write_segment(self, number: int, data: bytes | None) -> None:
        if data is None:
            self._segments.removeKey((number,))
        else:
            self._segments.updateValue((number,), (self._count_written(data),))

    def _count_read(self, value: tuple[Any, ...] | None) -> bytes:
        assert value is not None, "the index names state that is not there"
        data = bytes(value[0])
        self.read += len(data)
        return data

    def _count_written(self, data: bytes) -> bytes:
        self.written += len(data)
        return data


class CepProcessor(StatefulProcessor):
    """
    Hands each bucket's events and timers to :class:`~pyflinkcep.spark.worker.bucket.BucketWork`.

    Parameters
    ----------
    plan : StreamPlan
        What is to be done.
    keeps_late : bool
        Whether late events are wanted, or only counted.
    """

    def __init__(self, plan: StreamPlan, keeps_late: bool) -> None:
        self._plan = plan
        self._keeps_late = keeps_late

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Prepare for a task: open the state, compile the pattern."""
        self._handle = handle
        self._storage = _SparkStorage(handle)
        partition = TaskContext.get()
        number = partition.partitionId() if partition else 0
        context = RuntimeContext(f"CEP: {self._plan.layout.pattern}", number)
        self._task = StreamTask(self._plan, context)
        prepare_worker()

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        """Take in a bucket's new events."""
        packed = [
            row
            for frame in rows
            for row in zip(
                frame["partition"],
                frame["position"],
                frame["data"],
                frame["dropped"],
                strict=True,
            )
        ]
        packed.sort(key=lambda row: row[:2])
        tables = [read_table(data) for _, _, data, _ in packed if data is not None]
        now = self._now(timerValues)
        late = sum(count_late(times, now) for *_, times in packed if times is not None)
        yield self._run(tables, late, now, False)

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[pd.DataFrame]:
        """Let time pass for a bucket."""
        yield self._run([], 0, self._now(timerValues), True)

    def close(self) -> None:
        """End a task."""
        self._task.close()

    def _run(self, tables: list[pa.Table], late: int, now: int, expired: bool) -> pd.DataFrame:
        self._storage.read = self._storage.written = 0
        work = BucketWork(self._task, self._storage)
        try:
            with fewer_collections():
                output = work.run(tables, now)
        except CepRuntimeError as error:
            raise error.in_pattern(self._plan.layout.pattern) from error.__cause__
        before = None if expired else work.index.timer
        wanted = work.deadline
        if wanted is not None:
            wanted = max(wanted, now + 1, 1)
        if before != wanted:
            if before is not None:
                self._handle.deleteTimer(before)
            if wanted is not None:
                self._handle.registerTimer(wanted)
        work.close(wanted)
        row = result_row(self._task, output, self._keeps_late, self._storage)
        row["lateRecords"] += late
        return pd.DataFrame([row])

    def _now(self, timer_values: Any) -> int:
        if self._plan.processing_time:
            return int(timer_values.getCurrentProcessingTimeInMs())
        watermark = int(timer_values.getCurrentWatermarkInMs())
        return watermark if watermark > 0 else MIN_WATERMARK


def result_row(
    task: StreamTask, output: BucketOutput, keeps_late: bool, storage: Any
) -> dict[str, Any]:
    """Give what the work on a bucket gave as a row of :data:`RESULTS`."""
    numbers = events = late = None
    if len(output.found):
        numbers, events = pack_results(output.found, output.events)
    if output.late is not None and keeps_late:
        late = write_table(output.late.select(task.layout.schema.fieldNames()))
    return {
        "numbers": numbers,
        "events": events,
        "late": late,
        "lateRecords": 0 if output.late is None else output.late.num_rows,
        "droppedMatches": output.found.dropped,
        "stateBytesRead": storage.read,
        "stateBytesWritten": storage.written,
    }
