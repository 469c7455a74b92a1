# SPDX-License-Identifier: Apache-2.0
"""A large micro-batch taken apart: plans that each do a little more, the whole, a bounded job."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from pyflinkcep import CEP, keyBy
from tests.benchmark.events import SCHEMA, EventSource, write_events
from tests.benchmark.measurement import Measurement
from tests.benchmark.stream import read_stream, start_query, stream_matches, trigger_seconds
from tests.benchmark.workloads import WORKLOADS

LAYERS = (
    "read",
    "+ Arrow, pack",
    "+ shuffle, count rows in a stateful operator",
    "+ one state value",
)
"""The plans below the workloads; a workload's own plan is named after it."""

_BUCKETS = 16
FILES_PER_BATCH = 4


class CountRows(StatefulProcessor):
    """Counts the rows of a bucket, and keeps nothing."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare no state."""

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        """Count the rows."""
        yield pd.DataFrame({"n": [sum(map(len, rows))]})

    def close(self) -> None:
        """End a task."""


class SumRows(CountRows):
    """Counts the rows of a bucket over all micro-batches."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the sum."""
        self._sum = handle.getValueState("sum", "n bigint")

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        """Add the rows."""
        before = self._sum.get()
        total = sum(map(len, rows)) + (before[0] if before else 0)
        self._sum.update((total,))
        yield pd.DataFrame({"n": [total]})


def measure_layer(
    spark: SparkSession, source: EventSource, keys: int, layer: str, cache: Path, micro_batch: int
) -> Measurement:
    """
    Run one of :data:`LAYERS`, or a workload, over a stream in large micro-batches.

    Returns
    -------
    Measurement
        The details have the time of the first micro-batch, and medians of the others. For a
        workload they also have the median of bounded jobs, each over the events of one of these.
    """
    folder = write_events(source, cache, micro_batch // FILES_PER_BATCH)
    events = read_stream(spark, folder, FILES_PER_BATCH)
    with tempfile.TemporaryDirectory() as checkpoint:
        query = start_query(layer_plan(events, layer).writeStream.format("noop"), checkpoint)
        query.awaitTermination()
    progress = [dict(p) for p in query.recentProgress]
    full = [p for p in progress if p["numInputRows"]]
    return Measurement(
        engine="layers",
        workload=layer,
        variant="",
        source=source.name,
        events=source.events,
        keys=keys,
        seconds=sum(map(trigger_seconds, progress)),
        matches=0,
        checksum=0,
        details={
            "first_s": trigger_seconds(full[0]),
            "trigger_s": statistics.median(map(trigger_seconds, full[1:])),
            "add_batch_s": statistics.median(p["durationMs"]["addBatch"] for p in full[1:]) / 1000,
            **({"bounded_s": _bounded_seconds(spark, folder, layer)} if layer in WORKLOADS else {}),
        },
    )


def _bounded_seconds(spark: SparkSession, folder: Path, workload: str) -> float:
    """Return the median time of bounded jobs over as many events as a micro-batch, but the first."""
    files = sorted(map(str, folder.glob("*.parquet")))
    seconds = []
    for first in range(0, len(files), FILES_PER_BATCH):
        begin = time.perf_counter()
        events = spark.read.schema(SCHEMA).parquet(*files[first : first + FILES_PER_BATCH])
        pattern = WORKLOADS[workload].pattern("columns")
        matches = CEP.pattern(keyBy(events, "key"), pattern).inEventTime("ts").toDF()
        matches.write.format("noop").mode("overwrite").save()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds[1:])


def layer_plan(events: DataFrame, layer: str) -> DataFrame:
    """Return the plan of a layer or a workload."""
    if layer in WORKLOADS:
        matches: DataFrame = stream_matches(events, WORKLOADS[layer], "columns").toDF()
        return matches
    number = LAYERS.index(layer)
    if number == 0:
        return events
    packed = events.mapInArrow(_packed, "bucket int, data binary")
    if number == 1:
        return packed
    processor = CountRows() if number == 2 else SumRows()
    buckets = packed.groupBy("bucket")
    return buckets.transformWithStateInPandas(processor, "n bigint", "Append", "EventTime")


def _packed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return a row for each bucket, with all of its events."""
    table = pa.Table.from_batches(list(batches))
    buckets = table.column("key").to_numpy() % _BUCKETS
    order = np.argsort(buckets, kind="stable")
    ordered = table.take(pa.array(order)).combine_chunks()
    bounds = np.searchsorted(buckets[order], np.arange(_BUCKETS + 1)).tolist()
    data = []
    for start, end in pairwise(bounds):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, ordered.schema) as writer:
            writer.write_table(ordered.slice(start, end - start))
        data.append(sink.getvalue().to_pybytes())
    columns = [pa.array(np.arange(_BUCKETS, dtype=np.int32)), pa.array(data, pa.binary())]
    yield pa.RecordBatch.from_arrays(columns, names=["bucket", "data"])
