# SPDX-License-Identifier: Apache-2.0
"""The end of a finished stream: the matches that its checkpoint still holds."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache, partial

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from pyflinkcep.errors import InputError, InvalidArgumentError, NotSupportedError
from pyflinkcep.spark.arrow.internals import hadoop_path, is_local, spark_context
from pyflinkcep.spark.state.storage import INDEX, KINDS, PAGES, SEGMENTS
from pyflinkcep.spark.worker.bucket_task import BucketPlan
from pyflinkcep.spark.worker.flush import ARRIVED
from pyflinkcep.spark.worker.pack import BUCKET

__all__ = ["by_bucket", "stored_state"]


def stored_state(
    spark: SparkSession, plan: BucketPlan, checkpoint: str, operator_id: int
) -> DataFrame:
    """
    Read the state of a stream that has stopped.

    Parameters
    ----------
    spark : SparkSession
        The session.
    plan : BucketPlan
        The settings that the stream ran with.
    checkpoint : str
        The stream's checkpoint; it is read, not changed.
    operator_id : int
        Which of the query's stateful operators the pattern is, counted from the sink.

    Returns
    -------
    DataFrame
        Rows of (bucket, kind, first, second, data).

    Raises
    ------
    InputError
        If the checkpoint has no state of the pattern.
    NotSupportedError
        If Spark cannot read state at the checkpoint's path.
    """
    if not isinstance(checkpoint, str) or not isinstance(operator_id, int):
        raise InvalidArgumentError(
            f"expected the path of a checkpoint, and a number, got {checkpoint!r} and "
            f"{operator_id!r}",
            "pass '/path/of/checkpointLocation'",
        )
    group, page = F.col("user_map_key.group"), F.col("user_map_key.page")
    number, none = F.col("user_map_key.number"), F.lit(0)
    rows = partial(_rows, spark, _readable(spark, checkpoint), operator_id)
    try:
        state = (
            rows(INDEX, none, none, "value")
            .unionAll(rows(PAGES, group, page, "user_map_value"))
            .unionAll(rows(SEGMENTS, number, none, "user_map_value"))
        )
    except Exception as cause:
        raise InputError(
            f"pattern {plan.layout.pattern}: no state of it in the checkpoint {checkpoint!r}: "
            f"{str(cause).splitlines()[0]}",
            "pass the checkpointLocation of a stopped query with this pattern; "
            "operatorId says which of several stateful operators the pattern is, counted from the "
            "sink",
        ) from cause
    return state


def by_bucket(state: DataFrame, packed: DataFrame | None) -> DataFrame:
    """Return rows of state and any packed events, grouped by bucket."""
    if packed is not None:
        events = packed.where("data IS NOT NULL").select(
            F.col(BUCKET),
            F.lit(ARRIVED).alias("kind"),
            F.col("partition").cast("bigint").alias("first"),
            F.col("position").cast("bigint").alias("second"),
            F.col("data"),
        )
        state = state.unionAll(events)
    return state.repartition(BUCKET).sortWithinPartitions(BUCKET, "kind", "first", "second")


def _readable(spark: SparkSession, checkpoint: str) -> str:
    """
    Return a path at which Spark finds the state of a checkpoint.

    Spark's reader of state looks for ``a%20b`` where the folder is ``a b``; it is shown a link.
    """
    path = hadoop_path(spark, checkpoint)
    if path.getRawPath() == path.getPath():
        return checkpoint
    if path.getScheme() == "file" and is_local(spark_context(spark)):
        return _link(path.getPath())
    raise NotSupportedError(
        f"flush() cannot read the checkpoint {checkpoint!r}: Spark's reader of state looks for "
        f"{path.getRawPath()!r}",
        "pass a symbolic link to it that all workers can see, at a path without spaces, '%' and "
        "such characters",
    )


@cache
def _link(folder: str) -> str:
    """Return a link to a folder, at a path of letters and digits; it goes when Python ends."""
    parent = tempfile.mkdtemp(prefix="pyflinkcep-")
    atexit.register(shutil.rmtree, parent, ignore_errors=True)
    link = os.path.join(parent, "checkpoint")
    os.symlink(folder, link)
    return link


def _rows(
    spark: SparkSession,
    checkpoint: str,
    operator_id: int,
    variable: str,
    first: Column,
    second: Column,
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
