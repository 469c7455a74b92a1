# SPDX-License-Identifier: Apache-2.0
"""
OptiSeq's queries on Spark, from Parquet, without a key: one core beside two.

The events are those of ``tests.benchmark.optiseq``. Without a key, time is cut into slices, so that
all cores work. The floor is to read the events, drop those of other types, and shuffle the rest.
Flink's jars have no reader of Parquet: its events are in memory, which is in its favour.

usage: python -m tests.benchmark.optiseq_spark [--events N] [--cores N ...] [--flink-jars FOLDER]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.benchmark.optiseq import EXPERIMENTS, TYPES, by_peer, jars_in, stream, text

CHOSEN = (0, 1, 2, 8)
"""The paper's query, about 10 %, about 1 %, and the window of 120 s of the third experiment."""


def write(folder: Path, events: int) -> None:
    """Write the events as four files."""
    types, prices = stream(events)
    table = pa.table(
        {
            "ts": np.arange(events, dtype=np.int64) * 1000,
            "type": pa.DictionaryArray.from_arrays(types.astype(np.int32), list(TYPES)).cast(
                "string"
            ),
            "price": prices,
        }
    )
    for number in range(4):
        begin = events * number // 4
        part = table.slice(begin, events * (number + 1) // 4 - begin)
        pq.write_table(part, folder / f"{number}.parquet")


def best(run: Any, times: int = 2) -> tuple[float, int]:
    """The shortest of some runs, after one that warms up, and what it gave."""
    found, shortest = run(), float("inf")
    for _ in range(times):
        begin = time.perf_counter()
        found = run()
        shortest = min(shortest, time.perf_counter() - begin)
    return shortest, found


def measure(folder: str, cores: str) -> None:
    """Print for each query the floor, the time and the number of matches, with some cores."""
    from pyspark.sql import SparkSession

    from pyflinkcep import CEP
    from pyflinkcep.sase import parse

    spark = (
        SparkSession.builder.master(f"local[{cores}]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.shuffle.partitions", "8")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    events = spark.read.parquet(folder)
    for number in CHOSEN:
        name, length, where, seconds = EXPERIMENTS[number]
        query = parse(text(length, where, seconds))
        found = CEP.pattern(events, query).inEventTime("ts").toDF()
        used = events.where(events.type.isin(list(TYPES[:length]))).repartition(8, "ts")
        floor, _ = best(lambda used=used: len(used.selectExpr("sum(price)").collect()))
        seconds_taken, matches = best(found.count)
        print(f"{cores}|{name}|{floor:.2f}|{seconds_taken:.2f}|{matches}", flush=True)
    spark.stop()


def flink(jars: list[Path], events: int) -> None:
    """Print for each query the seconds of Flink CEP, warm, and its number of matches."""
    for number in CHOSEN:
        name, length, where, seconds = EXPERIMENTS[number]
        taken, matches = by_peer(jars, "FlinkPeer", (where, length, seconds), events)
        print(f"Flink|{name}||{taken:.2f}|{matches}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--cores", nargs="+", default=["1", "2"])
    parser.add_argument("--flink-jars", type=Path, help="of Flink 2.3.0")
    parser.add_argument("--measure", nargs=2, metavar=("FOLDER", "CORES"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(*options.measure)
        return
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), options.events)
        print("cores | query | floor s | query s | matches", flush=True)
        for cores in options.cores:
            command = [sys.executable, "-m", __spec__.name, "--measure", folder, cores]
            subprocess.run(command, check=True, env=os.environ)
    if options.flink_jars is not None:
        flink(jars_in(options.flink_jars), options.events)


if __name__ == "__main__":
    main()
