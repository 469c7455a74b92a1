# SPDX-License-Identifier: Apache-2.0
"""The watermark within a micro-batch, and patterns among other stateful operators."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pyflinkcep import CEP, Pattern, keyBy
from pyflinkcep.spark.plan.watermark import StreamWatermark
from tests.spark.streams import FileSource, failure, run
from tests.spark.support import configured

pytestmark = pytest.mark.usefixtures("one_task")

WINDOW = timedelta(milliseconds=40)


def a_to_b(table: DataFrame) -> Any:
    """Return the matches of: a, some time after it b, of one user."""
    pattern = Pattern.begin("a").where("name = 'a'").followedBy("b").where("name = 'b'")
    return CEP.pattern(keyBy(table, "user"), pattern.within(WINDOW), keyGroups=16)


def test_an_alert_comes_with_the_event_that_moves_the_watermark(
    spark: SparkSession, source: FileSource, tmp_path: Path
) -> None:
    """A micro-batch gives what its own latest event releases, windows of other keys among it."""
    source.add(
        [("u", 10, "a", 1), ("v", 11, "a", 2), ("u", 12, "b", 3)],
        [("w", 30, "c", 4), ("u", 20, "b", 5)],
        [("w", 70, "c", 6), ("x", 24, "c", 7), ("x", 26, "b", 8)],
        [("w", 71, "c", 9)],
    )
    table = source.stream(spark, delay_ms=5)
    pattern = Pattern.begin("a").where("name = 'a'").notFollowedBy("b").where("name = 'b'")
    result = CEP.pattern(keyBy(table, "user"), pattern.within(WINDOW), keyGroups=16).select(
        lambda m: (m["a"][0].id,), "id int"
    )
    absent = run(result, tmp_path / "absent")
    pairs = run(
        a_to_b(table).select(lambda m: (m["a"][0].id, m["b"][0].id), "a int, b int"),
        tmp_path / "pairs",
    )

    given = {n: [tuple(r) for r in rows] for n, rows in pairs.batches.items() if rows}
    assert given == {1: [(1, 3)]}
    assert {n: [r.id for r in rows] for n, rows in absent.batches.items() if rows} == {2: [2]}
    assert pairs.metrics("numLateRecordsDropped") == [0, 0, 1, 0, 0]
    assert pairs.state_rows == absent.state_rows == 0


def streams(spark: SparkSession, source: FileSource) -> dict[str, DataFrame]:
    """Return streams by the watermark that a pattern on them follows."""
    table = source.stream(spark, delay_ms=5)
    users = spark.createDataFrame([("u", 1)], "user string, n int")
    other = source.stream(spark, delay_ms=9)
    return {
        "5 ms behind": table,
        "5 ms behind, filtered": table.where("id > 1").withColumnRenamed("time", "at"),
        "5 ms behind, joined": table.join(users, "user"),
        "5 ms behind, no duplicates": table.dropDuplicatesWithinWatermark(["id"]),
        "several": table.union(other),
        "another column": table.withColumn("time2", F.col("time") + F.expr("interval 1 hour")),
        "another stateful operator": table.groupBy(F.window("time", "1 second").alias("w"))
        .count()
        .select(F.col("w.end").alias("time"), "count"),
        "another stateful operator, pattern": a_to_b(table).toDF().toDF("user", "time", "a", "b"),
    }


def test_which_watermark_a_pattern_follows(spark: SparkSession, source: FileSource) -> None:
    """It is that of the pattern's own events wherever they are the only ones that move it."""
    for said, table in streams(spark, source).items():
        column = {"another column": "time2"}.get(said, "at" if "at" in table.columns else "time")
        decided = StreamWatermark.of(table, column)

        assert said.split(",")[0] in str(decided)
        assert (decided.delay_ms == 5) is said.startswith("5 ms")
        assert decided.is_downstream is said.startswith("another stateful")


def events() -> list[list[tuple[str, int, str, int]]]:
    """Return micro-batches of two users' events, up to 5 ms late, and one that ends everything."""
    rows = [("uv"[n % 2], 10 * n - 4 * (n % 3 == 0), "abab"[n // 2 % 4], n) for n in range(1, 60)]
    return [rows[at : at + 15] for at in range(0, len(rows), 15)] + [[("w", 5000, "c", 0)]]


def above(matches: Any, depth: int) -> Any:
    """Return the matches of patterns over patterns: each is two matches of the one below."""
    for _ in range(depth):
        below = matches.toDF()
        rows = below.select("user", F.col("matchTimestamp").alias("time"))
        pair = Pattern.begin("a").followedBy("b").within(timedelta(milliseconds=200))
        matches = CEP.pattern(keyBy(rows, "user"), pair, keyGroups=16).inEventTime("time")
    return matches.toDF()


def test_a_pattern_over_a_pattern(spark: SparkSession, source: FileSource, tmp_path: Path) -> None:
    """At any depth a stream gives what the bounded job gives; no match is late for the next."""
    depth = 2
    source.add(*events())
    shown = [
        "user",
        F.unix_millis("matchTimestamp").alias("at"),
        F.unix_millis(F.col("a")[0]["time"]),
    ]
    stream = above(a_to_b(source.stream(spark, delay_ms=5)), depth).select(*shown)
    finished = run(stream, tmp_path / "checkpoint")
    bounded = above(a_to_b(source.bounded(spark)).inEventTime("time"), depth).select(*shown)

    assert sorted(finished.rows) == sorted(bounded.collect())
    assert len(finished.rows) > 10
    late = [
        m["numLateRecordsDropped"] for p in finished.progress for m in p.observedMetrics.values()
    ]
    assert len(late) == (depth + 1) * len(finished.progress)
    assert not any(late)
    assert finished.state_rows == 0


def test_a_second_watermark_on_plain_matches(
    spark: SparkSession, source: FileSource, tmp_path: Path
) -> None:
    """A watermark that only matches move holds Spark's back, and not the pattern."""
    source.add(*events())
    shown = ["user", F.unix_millis("matchTimestamp").alias("at"), F.col("b")[0]["id"]]
    matches = a_to_b(source.stream(spark, delay_ms=5)).toDF().select("*")
    finished = run(matches.withWatermark("matchTimestamp", "1 hour").select(*shown), tmp_path / "c")
    bounded = a_to_b(source.bounded(spark)).inEventTime("time").toDF().select(*shown)

    assert sorted(finished.rows) == sorted(bounded.collect())
    assert len(finished.rows) > 10
    assert max(finished.watermarks) < 0


@pytest.mark.parametrize(
    ("zone", "start", "is_early"),
    [
        (
            "America/New_York",
            "2024-03-10 06:57:00",
            True,
        ),  # clocks are set forward in three minutes
        ("America/New_York", "2024-11-03 05:57:00", False),  # and here set back
        ("Asia/Tokyo", "2024-03-10 06:57:00", True),
    ],
)
def test_times_without_a_zone(
    zone: str, start: str, is_early: bool, spark: SparkSession, source: FileSource, tmp_path: Path
) -> None:
    """With timestamp_ntz, Spark's watermark is read by the session's clock: nothing is late."""
    first = int(datetime.fromisoformat(f"{start}+00:00").timestamp() * 1000)
    rows = [("uv"[n % 2], first + n * 10_000, "abab"[n // 2 % 4], n) for n in range(40)]
    later = [("w", rows[-1][1] + 4 * 3_600_000, "c", 99)]
    source.add(rows[:20], rows[20:30], rows[30:], later)

    def pairs(table: DataFrame) -> Any:
        pattern = Pattern.begin("a").where("name = 'a'").followedBy("b").where("name = 'b'")
        pattern = pattern.within(timedelta(minutes=1))
        return CEP.pattern(keyBy(table, "user"), pattern, keyGroups=16).inEventTime("local").toDF()

    with configured(spark, {"spark.sql.session.timeZone": zone}):
        local = F.col("time").cast("timestamp_ntz")
        shown = ["user", F.col("matchTimestamp").cast("string"), F.col("a")[0]["id"]]
        stream = pairs(source.stream(spark, delay_ms=5000).withColumn("local", local))
        finished = run(stream.select(*shown), tmp_path / "checkpoint")
        rest = stream.flush(str(tmp_path / "checkpoint")).select(*shown).collect()
        bounded = pairs(source.bounded(spark).withColumn("local", local)).select(*shown).collect()

    assert sorted(finished.rows) == sorted(bounded)
    assert len(finished.rows) >= 10
    assert rest == []
    assert not any(finished.metrics("numLateRecordsDropped"))
    assert any(list(finished.batches.values())[:2]) is is_early


def test_times_before_1970(spark: SparkSession, source: FileSource, tmp_path: Path) -> None:
    """A pattern with its own watermark matches them; one with Spark's, which begins then, refuses."""
    day = 24 * 3600 * 1000
    source.add([("u", 10 - day, "a", 1), ("u", 20 - day, "b", 2), ("u", 99 - day, "c", 3)])
    table = source.stream(spark, delay_ms=5)
    shown = [F.col("b")[0]["id"]]

    found = run(a_to_b(table).toDF().select(*shown), tmp_path / "own")
    text = failure(a_to_b(table.union(source.stream(spark))).toDF(), tmp_path / "sparks")

    assert [row[0] for row in found.rows] == [2]
    assert "all events are before 1970" in text
