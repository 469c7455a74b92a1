# SPDX-License-Identifier: Apache-2.0
"""The Spark session of a benchmark, and what a job's matches are reduced to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType

from pyflinkcep import local
from tests.checkpoints import LOCAL_CHECKPOINTS

# What docs/speed.md recommends for streams in a new session: else half is the compiler's time.
_JVM = (
    "-XX:+UseParallelGC -XX:Tier4InvocationThreshold=30000 "
    "-XX:Tier4MinInvocationThreshold=6000 -XX:Tier4CompileThreshold=100000"
)
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


@contextmanager
def benchmark_session(engine: str, cores: int, memory: str) -> Iterator[SparkSession]:
    """Return a local session of so many cores, and stop it at the end."""
    spark = _spark(cores, memory) if engine == "spark" else _sail(cores)
    try:
        yield spark
    finally:
        spark.stop()


def _sail(cores: int) -> SparkSession:
    return local.session("sail", cores, {"spark.sql.session.timeZone": "UTC"})


def _spark(cores: int, memory: str) -> SparkSession:
    spark = (
        SparkSession.builder.master(f"local[{cores}]")
        .appName("pyflinkcep benchmark")
        .config("spark.driver.memory", memory)
        .config("spark.driver.extraJavaOptions", _JVM)
        .config("spark.ui.enabled", False)
        .config("spark.ui.showConsoleProgress", False)
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", cores)
        .config("spark.sql.streaming.numRecentProgressUpdates", 100_000)
        .config("spark.sql.streaming.stateStore.providerClass", _ROCKSDB)
        .config("spark.sql.execution.arrow.maxBytesPerBatch", 2**31 - 1)
        .config("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", True)
        .config(*LOCAL_CHECKPOINTS)
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def answer_columns(matches: DataFrame) -> Sequence[Column]:
    """Return the aggregates that matches as of ``toDF()`` are reduced to: matches and checksum."""
    stages = [f.name for f in matches.schema.fields if isinstance(f.dataType, ArrayType)]
    sums = (
        F.aggregate(stage, F.lit(0).cast("bigint"), lambda total, e: total + F.unix_millis(e["ts"]))
        for stage in stages
    )
    of_match = sum(sums, F.lit(0).cast("bigint"))
    return (
        F.count(F.lit(1)).alias("matches"),
        F.coalesce(F.sum(of_match), F.lit(0)).alias("checksum"),
    )
