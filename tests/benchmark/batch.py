# SPDX-License-Identifier: Apache-2.0
"""Bounded jobs of this library."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from pyflinkcep import CEP, keyBy
from tests.benchmark.events import SCHEMA, EventSource, write_events
from tests.benchmark.measurement import Measurement
from tests.benchmark.memory import PeakMemory
from tests.benchmark.session import answer_columns
from tests.benchmark.workloads import Workload

PER_FILE = 250_000


def read(spark: SparkSession, source: EventSource, cache: Path) -> DataFrame:
    """Return a stream's events as a bounded DataFrame."""
    return spark.read.schema(SCHEMA).parquet(str(write_events(source, cache, PER_FILE)))


def measure_batch(
    events: DataFrame, source: EventSource, keys: int, workload: Workload, variant: str
) -> Measurement:
    """Run a workload in this library."""
    with PeakMemory() as memory:
        begin = time.perf_counter()
        pattern = workload.pattern(variant)
        matches = CEP.pattern(keyBy(events, "key"), pattern).inEventTime("ts").toDF()
        row = matches.agg(*answer_columns(matches)).collect()[0]
        seconds = time.perf_counter() - begin
    return Measurement(
        engine="sail" if "pysail" in sys.modules else "batch",
        workload=workload.name,
        variant=variant,
        source=source.name,
        events=source.events,
        keys=keys,
        seconds=seconds,
        matches=row["matches"],
        checksum=row["checksum"],
        details={"peak_mib": memory.peaks},
    )
