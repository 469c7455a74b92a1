# SPDX-License-Identifier: Apache-2.0
"""
The first minute of a process: its first micro-batches and jobs, beside ones that do nothing.

``python -m tests.benchmark.first --rounds 3`` starts processes by turns, each with a JVM of its own.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tests.benchmark.batch import job, read
from tests.benchmark.events import RandomEvents, write_events
from tests.benchmark.layers import FILES_PER_BATCH, LAYERS, layer_plan
from tests.benchmark.session import benchmark_session
from tests.benchmark.stream import read_stream, start_query, trigger_seconds
from tests.benchmark.workloads import WORKLOADS

_NOTHING = LAYERS[-1]
_BOUNDED_NOTHING = "bounded: shuffle, count rows in Python"
_MICRO_BATCH = 500_000
_BATCHES = 4
_CACHE = Path(tempfile.gettempdir()) / "pyflinkcep-benchmark"


def main() -> None:
    """Print medians over rounds, for each plan in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--plan", help="run this plan in this process; used by the command itself")
    args = parser.parse_args()
    if args.plan is not None:
        print(json.dumps(_measured(args.plan)))
        return
    plans = [_NOTHING, "strict", _BOUNDED_NOTHING, "bounded strict"]
    found: dict[str, list[dict[str, float]]] = {plan: [] for plan in plans}
    for _ in range(args.rounds):
        for plan in plans:
            found[plan].append(_in_a_process(plan))
    for plan, runs in found.items():
        shown = {name: round(statistics.median(run[name] for run in runs), 2) for name in runs[0]}
        print(f"{plan}: {shown}")


def _in_a_process(plan: str) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.benchmark.first", "--plan", plan]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    measured: dict[str, float] = json.loads(output.splitlines()[-1])
    return measured


def _measured(plan: str) -> dict[str, float]:
    """Return seconds from the start of the session, and of what comes first and next in it."""
    source = RandomEvents(_MICRO_BATCH * _BATCHES, 1_000, 10, 7)
    write_events(source, _CACHE, _MICRO_BATCH // FILES_PER_BATCH)
    begin = time.perf_counter()
    with benchmark_session("spark", 2, "4g") as spark:
        session = time.perf_counter() - begin
        is_bounded = plan.startswith("bounded")
        measured = (_bounded if is_bounded else _stream)(spark, source, plan)
    return {"session": session, **measured}


def _bounded(spark: Any, source: RandomEvents, plan: str) -> dict[str, float]:
    run = _counted if plan == _BOUNDED_NOTHING else job(WORKLOADS["strict"], "columns")
    seconds = []
    for _ in range(3):
        begin = time.perf_counter()
        run(read(spark, source, _CACHE)).collect()
        seconds.append(time.perf_counter() - begin)
    return dict(zip(("first", "second", "third"), seconds, strict=True))


def _counted(events: DataFrame) -> DataFrame:
    rows = events.repartition("key").mapInArrow(_count, "n bigint")
    return rows.agg(F.sum("n"))


def _count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_pydict({"n": [sum(batch.num_rows for batch in batches)]})


def _stream(spark: Any, source: RandomEvents, plan: str) -> dict[str, float]:
    folder = write_events(source, _CACHE, _MICRO_BATCH // FILES_PER_BATCH)
    begin = time.perf_counter()
    frame = layer_plan(read_stream(spark, folder, FILES_PER_BATCH), plan)
    with tempfile.TemporaryDirectory() as checkpoint:
        planned = time.perf_counter() - begin
        query = start_query(frame.writeStream.format("noop"), checkpoint)
        query.awaitTermination()
    progress = [dict(p) for p in query.recentProgress]
    parts = progress[0]["durationMs"]
    return {
        "until the query starts": planned,
        "first": trigger_seconds(progress[0]),
        "its planning": parts["queryPlanning"] / 1000,
        "its addBatch": parts["addBatch"] / 1000,
        "second": trigger_seconds(progress[1]),
        "fourth": trigger_seconds(progress[3]),
    }


if __name__ == "__main__":
    main()
