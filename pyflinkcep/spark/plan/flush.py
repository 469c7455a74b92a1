# SPDX-License-Identifier: Apache-2.0
"""The end of a finished stream: what its checkpoint still holds, under the final watermark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pyflinkcep.errors import InputError
from pyflinkcep.spark.worker.flush import KINDS, FlushTask
from pyflinkcep.spark.worker.pack import BUCKET
from pyflinkcep.spark.worker.processor import INDEX, PAGES, RESULTS, SEGMENTS
from pyflinkcep.spark.worker.stream_worker import StreamPlan

__all__ = ["flush_plan"]


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
        F.lit(KINDS[variable]).alias("kind"),
        first.cast("bigint").alias("first"),
        second.cast("bigint").alias("second"),
        F.col(f"{value}.data").alias("data"),
    )
