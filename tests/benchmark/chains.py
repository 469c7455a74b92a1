# SPDX-License-Identifier: Apache-2.0
"""
Chains of followedByAny on Spark, from Parquet: ordered lists beside the automaton.

usage: python -m tests.benchmark.chains [--events N]
"""

from __future__ import annotations

import argparse
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from pyflinkcep import CEP, Pattern, keyBy
from tests.benchmark.optiseq_spark import best
from tests.benchmark.session import benchmark_session

KEYS = 1_000
RUNS = ((KEYS, 20), (KEYS, 200), (KEYS, 2_000), (1, 2))
"""The number of keys, and the window in seconds."""


def write(path: Path, events: int, keys: int) -> None:
    """Write events of ten types, 20 ms apart, in order of time."""
    chance = np.random.default_rng(1)
    table = pa.table(
        {
            "ts": np.sort(chance.integers(0, events * 20, events)),
            "key": chance.integers(0, keys, events),
            "type": chance.integers(0, 10, events),
            "price": chance.integers(1, 100, events).astype(float),
        }
    )
    pq.write_table(table, path)


def chain(seconds: int, joined: bool) -> Pattern:
    """Return a ⇢ b ⇢ c, with conditions that join their events if wanted."""
    b = "type = 1" + (" AND price > last(a.price)" if joined else "")
    c = "type = 2" + (" AND price > 1.2D * last(b.price)" if joined else "")
    pattern = Pattern.begin("a").where("type = 0").followedByAny("b").where(b)
    return pattern.followedByAny("c").where(c).within(timedelta(seconds=seconds))


def answer(matches: DataFrame) -> Row:
    """Return how many matches there are, and a checksum of their events."""
    times = sum(F.col(stage)[0]["ts"] for stage in "abc")
    return matches.agg(F.count(F.lit(1)).alias("matches"), F.sum(times)).collect()[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, benchmark_session("spark", 2, "2g") as spark:
        for keys, seconds in RUNS:
            path = Path(folder) / str(keys)
            write(path, options.events, keys)
            events = spark.read.parquet(str(path))
            for joined in (False, True):
                given: Any = keyBy(events, "key") if keys > 1 else events
                found = {}
                for how in ("nfa", "eventLists"):
                    stream = CEP.pattern(given, chain(seconds, joined), evaluation=how)
                    matches = stream.inEventTime("ts").toDF()
                    found[how] = best(lambda matches=matches: answer(matches), 3)
                (nfa, one), (lists, other) = found.values()
                assert one == other
                print(
                    f"{keys} keys {seconds} s joined={joined} {one.matches} matches: "
                    f"nfa {nfa:.2f} s, eventLists {lists:.2f} s, {nfa / lists:.1f} ×",
                    flush=True,
                )


if __name__ == "__main__":
    main()
