# SPDX-License-Identifier: Apache-2.0
"""The end of a finished stream: what its checkpoint still holds, under the final watermark."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import attrs
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pyflinkcep.errors import CepRuntimeError, InputError
from pyflinkcep.runtime import RuntimeContext
from pyflinkcep.spark.arrow.rows import arrow_schema
from pyflinkcep.spark.state.index import PageId
from pyflinkcep.spark.worker.bucket import BucketWork
from pyflinkcep.spark.worker.pack import BUCKET
from pyflinkcep.spark.worker.processor import INDEX, PAGES, RESULTS, SEGMENTS, result_row
from pyflinkcep.spark.worker.stream_worker import StreamPlan, StreamTask
from pyflinkcep.time import MAX_WATERMARK

__all__ = ["flush_plan"]

_KINDS = {INDEX: 0, PAGES: 1, SEGMENTS: 2}


def flush_plan(
    spark: SparkSession, plan: StreamPlan, checkpoint: str, operator_id: int
) -> DataFrame:
    """
    Plan the job that gives what a final watermark would give.

    Parameters
    ----------
    spark : SparkSession
        The session.
    plan : StreamPlan
        The settings that the stream ran with.
    checkpoint : str
        The stream's checkpoint; it is read, not changed.
    operator_id : int
        Which of the query's stateful operators the pattern is, in Spark's numbering.

    Returns
    -------
    DataFrame
        Rows as the stateful operator gives them.
    """
    try:
        state = (
            _rows(spark, checkpoint, operator_id, INDEX, F.lit(0), F.lit(0), "value")
            .unionAll(
                _rows(
                    spark,
                    checkpoint,
                    operator_id,
                    PAGES,
                    F.col("user_map_key.group"),
                    F.col("user_map_key.page"),
                    "user_map_value",
                )
            )
            .unionAll(
                _rows(
                    spark,
                    checkpoint,
                    operator_id,
                    SEGMENTS,
                    F.col("user_map_key.number"),
                    F.lit(0),
                    "user_map_value",
                )
            )
        )
    except Exception as cause:
        raise InputError(
            f"pattern {plan.layout.pattern}: no state of it in the checkpoint {checkpoint!r}: "
            f"{str(cause).splitlines()[0]}",
            "give the checkpointLocation of a query with this pattern that has stopped; "
            "operatorId says which of several stateful operators the pattern is",
        ) from cause
    task = FlushTask(plan)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return task.run(batches)

    run.__name__ = run.__qualname__ = f"CEP: {plan.layout.pattern} (flush)"
    return state.repartition(BUCKET).sortWithinPartitions(BUCKET).mapInArrow(run, RESULTS)


def _rows(
    spark: SparkSession,
    checkpoint: str,
    operator_id: int,
    variable: str,
    first: Any,
    second: Any,
    value: str,
) -> DataFrame:
    """Read a state variable as rows of (bucket, kind, first, second, data)."""
    reader = spark.read.format("statestore").option("path", checkpoint)
    state = reader.option("operatorId", operator_id).option("stateVarName", variable).load()
    return state.select(
        F.col(f"key.{BUCKET}").alias(BUCKET),
        F.lit(_KINDS[variable]).alias("kind"),
        first.cast("bigint").alias("first"),
        second.cast("bigint").alias("second"),
        F.col(f"{value}.data").alias("data"),
    )


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
        if kind == _KINDS[INDEX]:
            self._index = data
        elif kind == _KINDS[PAGES]:
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
