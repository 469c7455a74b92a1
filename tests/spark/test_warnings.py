# SPDX-License-Identifier: Apache-2.0
"""Warnings about events: times that look like another unit, micro-batches taken for the whole."""

from __future__ import annotations

import warnings
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pyflinkcep import CEP, MicroBatchWarning, Pattern, TimeUnitWarning, keyBy, matchRecognize
from pyflinkcep.sase import parse

pytestmark = pytest.mark.spark

NOW = 1_700_000_000
PATTERN = (
    Pattern.begin("a").where("name = 'a'").next("b").where("name = 'b'").within(timedelta(hours=1))
)
CLAUSE = "ORDER BY ts MEASURES A.ts AS at PATTERN (A B) DEFINE B AS B.ts > A.ts"
QUERY = parse("PATTERN SEQ(a x, b y) WITHIN 1 hour")


def frame(spark: SparkSession, *times: int) -> DataFrame:
    """Return events of two users at these times."""
    rows = [("uv"[n // 2 % 2], time, "ab"[n % 2]) for n, time in enumerate(times)]
    return spark.createDataFrame(rows, "user string, ts bigint, name string")


def shown(caught: list[warnings.WarningMessage]) -> list[tuple[Any, bool]]:
    """Return the classes of warnings of this package, and whether they name this file."""
    own = [w for w in caught if w.category in (TimeUnitWarning, MicroBatchWarning)]
    return [(w.category, w.filename == __file__) for w in own]


def test_epoch_seconds(spark: SparkSession) -> None:
    """Whole numbers that look like epoch seconds are told once, at the user's line; others not."""
    seconds = frame(spark, NOW, NOW + 1, NOW + 2, NOW + 3)
    cases = {
        "seconds": (seconds, 1),
        "milliseconds": (seconds.withColumn("ts", F.col("ts") * 1000), 0),
        "timestamps": (seconds.withColumn("ts", F.timestamp_seconds("ts")), 0),
        "a day of numbers": (frame(spark, 1, 2, 3, 4), 0),
        "one key of both": (frame(spark, NOW, NOW * 1000), 0),
    }
    found = {}
    for case, (events, _) in cases.items():
        stream = CEP.pattern(keyBy(events, "user"), PATTERN).inEventTime("ts")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            matches = stream.toDF().select("user")
            matches.count()
            matches.count()
        found[case] = shown(caught)

    assert found == {case: [(TimeUnitWarning, True)] * count for case, (_, count) in cases.items()}


def test_a_pattern_on_micro_batches(spark: SparkSession, tmp_path: Path) -> None:
    """Patterns and queries inside foreachBatch are warned of, but not over tables read there."""
    events = frame(spark, NOW, NOW + 1)
    events.write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema(events.schema).parquet(str(tmp_path / "in"))
    caught: dict[str, list[tuple[Any, bool]]] = {}

    def check(batch: DataFrame, _: int) -> None:
        table = batch.sparkSession.read.parquet(str(tmp_path / "in"))
        for case, make in {
            "pattern": lambda: CEP.pattern(keyBy(batch, "user"), PATTERN),
            "query": lambda: CEP.pattern(batch.where("ts > 0"), QUERY, type="name"),
            "table": lambda: CEP.pattern(keyBy(table, "user"), PATTERN),
        }.items():
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                make().inEventTime("ts").toDF()
            caught[case] = sorted(set(shown(told)))
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            matchRecognize(batch, CLAUSE, dialect="standard")
        caught["clause"] = shown(told)

    query = (
        stream.writeStream.foreachBatch(check)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()

    assert caught == {
        "pattern": [(MicroBatchWarning, True)], "query": [(MicroBatchWarning, True)], "table": [],
        "clause": [(MicroBatchWarning, True)],
    }  # fmt: skip


def test_epoch_seconds_on_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    """The first micro-batch whose times look like epoch seconds is warned of, once."""
    frame(spark, NOW, NOW + 1).write.parquet(str(tmp_path / "in"))
    frame(spark, NOW + 5, NOW + 6).write.mode("append").parquet(str(tmp_path / "in"))
    read = spark.readStream.schema("user string, ts bigint, name string").option(
        "maxFilesPerTrigger", 1
    )
    stream = read.parquet(str(tmp_path / "in"))
    stream = stream.withColumn("at", F.timestamp_seconds("ts")).withWatermark("at", "1 second")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        matches = CEP.pattern(keyBy(stream, "user"), PATTERN, keyGroups=1).inEventTime("ts").toDF()
        writer = matches.writeStream.format("noop").trigger(availableNow=True)
        writer.option("checkpointLocation", str(tmp_path / "c")).start().awaitTermination()

    assert shown(caught) == [(TimeUnitWarning, True)]
