# SPDX-License-Identifier: Apache-2.0
"""Where the time of a bounded job goes: plans that do a little more each, without matching."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pyflinkcep.matching.columns import BITS, POSITION
from pyflinkcep.matching.layout import Layout
from pyflinkcep.matching.sorting import sorted_chunks
from pyflinkcep.spark.plan.source import EventSource
from tests.benchmark.batch import job
from tests.benchmark.events import EventSource as BenchmarkEvents
from tests.benchmark.measurement import Measurement
from tests.benchmark.workloads import Workload

_COUNT = "n bigint"


def measure_parts(
    events: DataFrame, source: BenchmarkEvents, keys: int, workload: Workload, variant: str
) -> Measurement:
    """
    Time each step on the way to a job's answer.

    Returns
    -------
    Measurement
        The details have seconds by step; each step's plan contains the ones before, and the
        last is the job itself.
    """
    seconds = {}
    for step, plan in _plans(events).items():
        begin = time.perf_counter()
        plan.write.format("noop").mode("overwrite").save()
        seconds[step] = time.perf_counter() - begin
    begin = time.perf_counter()
    row = job(workload, variant)(events).collect()[0]
    seconds["match"] = time.perf_counter() - begin
    return Measurement(
        engine="parts",
        workload=workload.name,
        variant=variant,
        source=source.name,
        events=source.events,
        keys=keys,
        seconds=seconds["match"],
        matches=row["matches"],
        checksum=row["checksum"],
        details={"steps_s": {step: round(s, 3) for step, s in seconds.items()}},
    )


def _plans(events: DataFrame) -> dict[str, DataFrame]:
    source = EventSource.of(events, ["key"], "ts", "parts")
    position = F.monotonically_increasing_id()
    prepared = source.prepare({BITS: F.lit(0).cast("bigint"), POSITION: position})
    shuffled = prepared.repartition("key")
    sort = _Sort(source.layout([BITS]))
    return {
        "read": events,
        "shuffle": shuffled,
        "to Python": shuffled.mapInArrow(_count, _COUNT),
        "sort": shuffled.mapInArrow(sort.count, _COUNT),
    }


def _count(batches: Iterator[pa.RecordBatch | pa.Table]) -> Iterator[pa.RecordBatch]:
    total = sum(batch.num_rows for batch in batches)
    yield pa.RecordBatch.from_pydict({"n": [total]})


class _Sort:
    """Sorts the events of a partition as a job does, and counts them."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def count(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _count(sorted_chunks(batches, self._layout))
