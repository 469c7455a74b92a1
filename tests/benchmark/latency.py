# SPDX-License-Identifier: Apache-2.0
"""Small micro-batches: the time to an alert, beside a stateful query that does nothing."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from tests.benchmark.events import EventSource, write_events
from tests.benchmark.measurement import Measurement
from tests.benchmark.session import answer_columns
from tests.benchmark.stream import (
    read_stream,
    start_query,
    steady_details,
    stream_matches,
    trigger_seconds,
)
from tests.benchmark.workloads import Workload

_GROUPS = 16


class Nothing(StatefulProcessor):
    """Declares a state variable and gives one row for each group; otherwise does nothing."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state variable."""
        handle.getValueState("value", "n bigint")

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        """Count the rows, so that they are read."""
        yield pd.DataFrame({"n": [sum(map(len, rows))]})

    def close(self) -> None:
        """End a task."""


def measure_latency(
    spark: SparkSession,
    source: EventSource,
    keys: int,
    workload: Workload,
    variant: str,
    cache: Path,
    micro_batch: int,
) -> Measurement:
    """
    Measure, in small micro-batches, from the trigger to the alert in the sink.

    A micro-batch gives what its own latest event releases. So the time is from the start of the
    trigger of the micro-batch that brings that event until its alerts are in the driver's hands.
    """
    events = read_stream(spark, write_events(source, cache, micro_batch), 1)
    result = stream_matches(events, workload, variant)
    columns = answer_columns(result.toDF())
    with tempfile.TemporaryDirectory() as checkpoint:
        received, progress = _run(result.toDF(), columns, checkpoint)
        rest = result.flush(checkpoint).toDF().agg(*columns).collect()[0]
    answers = [row for _, row in received.values()]
    alerts = {batch: at for batch, (at, row) in received.items() if row["matches"]}
    return Measurement(
        engine="latency",
        workload=workload.name,
        variant=variant,
        source=source.name,
        events=source.events,
        keys=keys,
        seconds=sum(map(trigger_seconds, progress)),
        matches=rest["matches"] + sum(row["matches"] for row in answers),
        checksum=rest["checksum"] + sum(row["checksum"] for row in answers),
        details={"micro_batch": micro_batch, **latencies_of(alerts, progress)},
    )


def measure_nothing(
    spark: SparkSession, source: EventSource, keys: int, cache: Path, micro_batch: int
) -> Measurement:
    """Measure the same for a stateful operator of Spark that does nothing."""
    events = read_stream(spark, write_events(source, cache, micro_batch), 1)
    rows = events.withColumn("group", F.pmod("key", F.lit(_GROUPS))).groupBy("group")
    counts = rows.transformWithStateInPandas(Nothing(), "n bigint", "Append", "EventTime")
    with tempfile.TemporaryDirectory() as checkpoint:
        received, progress = _run(counts, [F.sum("n").alias("n")], checkpoint)
    arrived = {batch: at for batch, (at, row) in received.items() if row["n"]}
    return Measurement(
        engine="latency",
        workload="nothing",
        variant="",
        source=source.name,
        events=source.events,
        keys=keys,
        seconds=sum(map(trigger_seconds, progress)),
        matches=sum(row["n"] or 0 for _, row in received.values()),
        checksum=0,
        details={"micro_batch": micro_batch, **latencies_of(arrived, progress)},
    )


def _run(
    frame: DataFrame, columns: Any, checkpoint: str
) -> tuple[dict[int, tuple[float, Any]], list[dict[str, Any]]]:
    """Return when each micro-batch arrived and what it was, and Spark's progress."""
    received: dict[int, tuple[float, Any]] = {}

    def sink(rows: DataFrame, batch: int) -> None:
        answer = rows.agg(*columns).collect()[0]
        received[batch] = (time.time(), answer)

    query = start_query(frame.writeStream.foreachBatch(sink), checkpoint)
    query.awaitTermination()
    return received, [dict(p) for p in query.recentProgress]


def latencies_of(arrived: dict[int, float], progress: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the latencies after the first fifth of the alerting micro-batches, and their parts."""
    began = {p["batchId"]: datetime.fromisoformat(p["timestamp"]).timestamp() for p in progress}
    latencies = [at - began[batch] for batch, at in sorted(arrived.items()) if batch in began]
    steady = sorted(latencies[len(latencies) // 5 :])
    if not steady:
        return {"micro_batches": 0}  # no alert before the input ends, as when nothing is absent
    return {
        "micro_batches": len(steady),
        "median_s": statistics.median(steady),
        "p95_s": steady[int(len(steady) * 0.95)],
        "max_s": steady[-1],
        **steady_details(progress[len(progress) // 5 :]),
    }
