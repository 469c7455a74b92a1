# SPDX-License-Identifier: Apache-2.0
"""Bounded jobs: ours, and the one that a Spark user writes by hand."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pyflinkcep import CEP, keyBy
from tests.benchmark.events import SCHEMA, EventSource, write_events
from tests.benchmark.measurement import Measurement
from tests.benchmark.memory import PeakMemory
from tests.benchmark.naive import NAIVE
from tests.benchmark.session import answer_columns
from tests.benchmark.workloads import Workload

PER_FILE = 250_000

Job = Callable[[DataFrame], DataFrame]
"""From events to one row with the number of matches and the checksum."""


def job(workload: Workload, variant: str) -> Job:
    """Return the job of a workload in this library."""

    def run(events: DataFrame) -> DataFrame:
        pattern = workload.pattern(variant)
        matches = CEP.pattern(keyBy(events, "key"), pattern).inEventTime("ts").toDF()
        return matches.agg(*answer_columns(matches))

    return run


def naive_job(workload: str) -> Job:
    """Return the job of a workload with a function per key."""

    def run(events: DataFrame) -> DataFrame:
        matches = events.groupBy("key").applyInPandas(NAIVE[workload], "times bigint")
        checksum = F.coalesce(F.sum("times"), F.lit(0)).alias("checksum")
        return matches.agg(F.count(F.lit(1)).alias("matches"), checksum)

    return run


def read(spark: SparkSession, source: EventSource, cache: Path) -> DataFrame:
    """Return a stream's events as a bounded DataFrame."""
    return spark.read.schema(SCHEMA).parquet(str(write_events(source, cache, PER_FILE)))


def measure_batch(
    events: DataFrame, source: EventSource, keys: int, workload: Workload, variant: str
) -> Measurement:
    """Run a workload in this library."""
    engine = "sail" if "pysail" in sys.modules else "batch"
    return _measure(job(workload, variant), events, engine, workload.name, variant, source, keys)


def measure_naive(events: DataFrame, source: EventSource, keys: int, workload: str) -> Measurement:
    """Run a workload with a function per key."""
    return _measure(naive_job(workload), events, "naive", workload, "", source, keys)


def _measure(
    job: Job,
    events: DataFrame,
    engine: str,
    workload: str,
    variant: str,
    source: EventSource,
    keys: int,
) -> Measurement:
    with PeakMemory() as memory:
        begin = time.perf_counter()
        row = job(events).collect()[0]
        seconds = time.perf_counter() - begin
    return Measurement(
        engine=engine,
        workload=workload,
        variant=variant,
        source=source.name,
        events=source.events,
        keys=keys,
        seconds=seconds,
        matches=row["matches"],
        checksum=row["checksum"],
        details={"peak_mib": memory.peaks},
    )
