# SPDX-License-Identifier: Apache-2.0
"""Unbounded jobs: events per second in large micro-batches."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
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
    sink: str = "noop",
) -> Measurement:
    """
    Replay a stream in large micro-batches into a sink, flush, and add up what came out.

    Its seconds are those of all micro-batches, the flush not among them. The details have
    the flush, the steady rate (of micro-batches with new events, without the first) and
    means per micro-batch: bytes of state, and the parts of its duration.
    """
    per_file = max(1, micro_batch // _FILES_PER_BATCH)
    events = read_stream(spark, write_events(source, cache, per_file), _FILES_PER_BATCH)
    result = stream_matches(events, workload, variant, parallelTasks=_tasks(spark))
    observed = result.toDF().observe(_ANSWER, *answer_columns(result.toDF()))
    with tempfile.TemporaryDirectory() as folder:
        with PeakMemory() as memory:
            writer = observed.writeStream.format(sink).option("path", f"{folder}/matches")
            query = start_query(writer, f"{folder}/query")
            query.awaitTermination()
        begin = time.perf_counter()
        rest = (
            result.flush(f"{folder}/query").toDF().agg(*answer_columns(result.toDF())).collect()[0]
        )
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
        seconds=sum(map(trigger_seconds, progress)),
        matches=rest["matches"] + sum(a["matches"] for a in answers),
        checksum=rest["checksum"] + sum(a["checksum"] for a in answers),
        details={
            "micro_batch": micro_batch,
            "sink": sink,
            "flush_seconds": flush_seconds,
            **steady_details(progress),
            "peak_mib": memory.peaks,
        },
    )


def read_stream(spark: SparkSession, folder: Path, files: int) -> DataFrame:
    """Return a stream of `files` files per micro-batch."""
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", files)
    return reader.parquet(str(folder)).withWatermark("ts", _DELAY)


def stream_matches(events: DataFrame, workload: Workload, variant: str, **settings: Any) -> Any:
    """Return the matches, as a result that can be flushed; no event is late here."""
    return CEP.pattern(keyBy(events, "key"), workload.pattern(variant), **settings).toDF()


def _tasks(spark: SparkSession) -> int:
    """Return the power of two of tasks that is enough for all cores."""
    return 1 << (spark.sparkContext.defaultParallelism - 1).bit_length()


def start_query(writer: Any, checkpoint: str) -> StreamingQuery:
    """Start a query that ends when its source is read."""
    return writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()


def trigger_seconds(progress: dict[str, Any]) -> float:
    """Return how long a micro-batch took."""
    return progress["durationMs"]["triggerExecution"] / 1000


def steady_details(progress: Sequence[dict[str, Any]]) -> dict[str, Any]:
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
        "steady_rate": sum(p["numInputRows"] for p in steady) / sum(map(trigger_seconds, steady)),
        "state_bytes_read": _mean([m["stateBytesRead"] for m in state]),
        "state_bytes_written": _mean([m["stateBytesWritten"] for m in state]),
        "parts_s": {name: round(sum(d) / len(steady), 3) for name, d in parts.items()},
    }


def _mean(values: Sequence[float]) -> int:
    return round(sum(values) / len(values)) if values else 0
