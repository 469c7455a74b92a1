# SPDX-License-Identifier: Apache-2.0
"""Unbounded jobs: events a second in large micro-batches, time to an alert in small ones."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from pyflinkcep import CEP, keyBy
from tests.benchmark.events import SCHEMA, EventSource, write_events
from tests.benchmark.measurement import Measurement
from tests.benchmark.memory import PeakMemory
from tests.benchmark.session import answer_columns
from tests.benchmark.workloads import Workload

_DELAY = "100 milliseconds"
_FILES_PER_BATCH = 4
_ANSWER = "answer"


def measure_stream(
    spark: SparkSession,
    source: EventSource,
    keys: int,
    workload: Workload,
    variant: str,
    cache: Path,
    micro_batch: int,
) -> Measurement:
    """
    Replay a stream in large micro-batches, flush, and add up what came out.

    Parameters
    ----------
    micro_batch : int
        The number of events in a micro-batch.

    Returns
    -------
    Measurement
        Its seconds are those of all micro-batches, the flush not among them. The details have
        the flush, the steady rate (of micro-batches with new events, without the first) and
        means per micro-batch: bytes of state, and the parts of its duration.
    """
    per_file = max(1, micro_batch // _FILES_PER_BATCH)
    events = _read(spark, write_events(source, cache, per_file), _FILES_PER_BATCH)
    result = _matches(events, workload, variant)
    observed = result.toDF().observe(_ANSWER, *answer_columns(result.toDF()))
    with tempfile.TemporaryDirectory() as checkpoint:
        with PeakMemory() as memory:
            query = _start(observed.writeStream.format("noop"), checkpoint)
            query.awaitTermination()
        begin = time.perf_counter()
        rest = result.flush(checkpoint).toDF().agg(*answer_columns(result.toDF())).collect()[0]
        flush_seconds = time.perf_counter() - begin
    progress = [dict(p) for p in query.recentProgress]
    answers = [p["observedMetrics"][_ANSWER] for p in progress if _ANSWER in p["observedMetrics"]]
    return Measurement(
        engine="stream",
        workload=workload.name,
        variant=variant,
        source=source.name,
        events=source.events,
        keys=keys,
        seconds=sum(map(_seconds, progress)),
        matches=rest["matches"] + sum(a["matches"] for a in answers),
        checksum=rest["checksum"] + sum(a["checksum"] for a in answers),
        details={
            "micro_batch": micro_batch,
            "flush_seconds": flush_seconds,
            **_steady(progress),
            "peak_mib": memory.peaks,
        },
    )


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
    events = _read(spark, write_events(source, cache, micro_batch), 1)
    result = _matches(events, workload, variant)
    received: dict[int, tuple[float, Any]] = {}

    def sink(alerts: DataFrame, batch: int) -> None:
        rows = alerts.agg(*answer_columns(alerts)).collect()
        received[batch] = (time.time(), rows[0])

    with tempfile.TemporaryDirectory() as checkpoint:
        query = _start(result.toDF().writeStream.foreachBatch(sink), checkpoint)
        query.awaitTermination()
        rest = result.flush(checkpoint).toDF().agg(*answer_columns(result.toDF())).collect()[0]
    progress = [dict(p) for p in query.recentProgress]
    began = {p["batchId"]: datetime.fromisoformat(p["timestamp"]).timestamp() for p in progress}
    latencies = [
        at - began[batch]
        for batch, (at, row) in sorted(received.items())
        if batch in began and row["matches"]
    ]
    steady = sorted(latencies[len(latencies) // 5 :])
    return Measurement(
        engine="latency",
        workload=workload.name,
        variant=variant,
        source=source.name,
        events=source.events,
        keys=keys,
        seconds=sum(map(_seconds, progress)),
        matches=rest["matches"] + sum(row["matches"] for _, row in received.values()),
        checksum=rest["checksum"] + sum(row["checksum"] for _, row in received.values()),
        details={
            "micro_batch": micro_batch,
            "micro_batches": len(steady),
            "median_s": statistics.median(steady),
            "p95_s": steady[int(len(steady) * 0.95)],
            "max_s": steady[-1],
            **_steady(progress),
        },
    )


def _read(spark: SparkSession, folder: Path, files: int) -> DataFrame:
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", files)
    return reader.parquet(str(folder)).withWatermark("ts", _DELAY)


def _matches(events: DataFrame, workload: Workload, variant: str) -> Any:
    """Return the matches, as a result that can be flushed; no event is late here."""
    return CEP.pattern(keyBy(events, "key"), workload.pattern(variant)).toDF()


def _start(writer: Any, checkpoint: str) -> StreamingQuery:
    return writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()


def _seconds(progress: dict[str, Any]) -> float:
    return progress["durationMs"]["triggerExecution"] / 1000


def _steady(progress: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return means over the micro-batches that match events and bring new ones."""
    steady = [p for p in progress[1:] if p["numInputRows"]]
    if not steady:
        return {}
    state = [
        metrics for p in steady for name, metrics in p["observedMetrics"].items() if name != _ANSWER
    ]
    parts: dict[str, list[float]] = {}
    for p in steady:
        for name, duration in p["durationMs"].items():
            parts.setdefault(name, []).append(duration / 1000)
    return {
        "steady_rate": sum(p["numInputRows"] for p in steady) / sum(map(_seconds, steady)),
        "state_bytes_read": _mean([m["stateBytesRead"] for m in state]),
        "state_bytes_written": _mean([m["stateBytesWritten"] for m in state]),
        "parts_s": {name: round(sum(d) / len(steady), 3) for name, d in parts.items()},
    }


def _mean(values: Sequence[float]) -> int:
    return round(sum(values) / len(values)) if values else 0
