# SPDX-License-Identifier: Apache-2.0
"""A pattern on a stream beside, before and after other stateful operators of the same query."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from pyflinkcep import CEP, InvalidArgumentError, Pattern, keyBy
from pyflinkcep.sase import parse
from pyflinkcep.spark import CepDataFrame, matchRecognize
from pyflinkcep.spark.arrow.internals import analysed_plan
from pyflinkcep.spark.plan.stream import counters_name
from pyflinkcep.spark.plan.watermark import streaming_nodes
from tests.spark.streams import FileSource, run
from tests.spark.support import configured

pytestmark = pytest.mark.usefixtures("one_task")

WINDOW = timedelta(milliseconds=200)
LAST = [("w", 50_000, "c", 0)]


@pytest.fixture
def source(tmp_path: Path) -> FileSource:
    """Return a source with events of two users, up to 4 ms late, and one that ends everything."""
    rows = [("uv"[n % 2], 10 * n - 4 * (n % 3 == 0), "abab"[n // 2 % 4], n) for n in range(1, 60)]
    source = FileSource(tmp_path / "source")
    source.add(rows[:30], rows[30:], LAST, LAST)
    return source


def pairs(table: DataFrame, time: str, first: Any, second: Any) -> DataFrame:
    """Return the matches of: one event, right after it another, of one user."""
    pattern = Pattern.begin("a").where(first).followedBy("b").where(second).within(WINDOW)
    stream = CEP.pattern(keyBy(table, "user"), pattern, keyGroups=16)
    return stream.inEventTime(time).toDF()


def a_to_b(table: DataFrame) -> DataFrame:
    """Return the matches of: a, some time after it b."""
    return pairs(table, "time", "name = 'a'", "name = 'b'")


def window(time: str) -> Column:
    """Return the window of 50 ms that a time is in."""
    return F.window(time, "50 milliseconds")


def count_of_matches(table: DataFrame) -> DataFrame:
    """Return how many matches end in each window."""
    return a_to_b(table).groupBy("user", window("matchTimestamp").alias("w")).count()


def pattern_over_counts(table: DataFrame) -> DataFrame:
    """Return pairs of windows: one with several events, then one with few."""
    counts = table.groupBy("user", window("time").alias("w")).count()
    rows = counts.select("user", F.col("w.end").alias("at"), "count")
    return pairs(rows, "at", "count >= 2", "count <= 3").select("user", "a", "b")


def pattern_over_distinct(table: DataFrame) -> DataFrame:
    """Return pairs among events without their duplicates."""
    distinct = table.union(table).dropDuplicates(["id", "time"])
    return a_to_b(distinct).select("user", "a", "b")


def distinct_matches(table: DataFrame) -> DataFrame:
    """Return the times at which a user has a match."""
    shown = a_to_b(table).select("user", "matchTimestamp")
    return shown.dropDuplicates(["user", "matchTimestamp"])


def events_of_matches(table: DataFrame) -> DataFrame:
    """Return the matches with the events of the same user at their time."""
    found = a_to_b(table).select(F.col("user").alias("who"), "matchTimestamp", "b")
    same = (F.col("who") == F.col("user")) & (F.col("matchTimestamp") == F.col("time"))
    return found.join(table.select("user", "time", "id"), same).select("who", "b", "id")


@pytest.mark.parametrize(
    "job",
    [
        count_of_matches,
        pattern_over_counts,
        pattern_over_distinct,
        distinct_matches,
        events_of_matches,
    ],
)
def test_stateful_operators_before_and_after(
    job: Callable[[DataFrame], DataFrame], spark: SparkSession, source: FileSource, tmp_path: Path
) -> None:
    """A stream gives what the bounded job gives, whatever is before the pattern or after it."""
    finished = run(job(source.stream(spark)), tmp_path / "checkpoint")
    bounded = job(source.bounded(spark)).collect()

    ended = [row for row in bounded if row[0] != "w"]  # the window of the last event is open
    assert sorted(map(str, finished.rows)) == sorted(map(str, ended))
    assert len(finished.rows) > 10


def test_patterns_that_look_alike_side_by_side(
    spark: SparkSession, source: FileSource, tmp_path: Path
) -> None:
    """Two patterns with the same stages work in one query, each with counters of its own."""

    def rules(table: DataFrame) -> DataFrame:
        low = pairs(table, "time", lambda e: e.id < 30, lambda e: e.name == "b")
        high = pairs(table, "time", lambda e: e.id >= 30, lambda e: e.name == "b")
        return low.union(high).select("user", "a", "b")

    finished = run(rules(source.stream(spark)), tmp_path / "checkpoint")

    assert sorted(finished.rows) == sorted(rules(source.bounded(spark)).collect())
    assert len(finished.rows) > 10
    counters = [set(progress.observedMetrics) for progress in finished.progress]
    assert all(len(names) == 2 for names in counters)
    assert all(name.startswith("CEP: a → b") for name in counters[0])


def test_the_same_job_keeps_the_name_of_its_counters(
    spark: SparkSession, source: FileSource
) -> None:
    """A cell that runs twice finds its counters under the name it knows."""
    table = source.stream(spark)
    names = [
        counters_name("CEP: x", table.where(f"id > {least}"), setting)
        for least, setting in [(1, "a"), (1, "a"), (1, "b"), (2, "a"), (1, "a")]
    ]

    assert names == ["CEP: x", "CEP: x", "CEP: x (2)", "CEP: x (3)", "CEP: x"]


def test_a_name_of_ones_own(spark: SparkSession, source: FileSource) -> None:
    """Counters and jobs have the name that the user gave, however often the job is made."""
    clause = """MATCH_RECOGNIZE (PARTITION BY user ORDER BY time
        MEASURES MATCH_ROWTIME() AS time AFTER MATCH SKIP PAST LAST ROW PATTERN (A) DEFINE A AS {})"""
    inner = f"SELECT user, time FROM logins {clause.format('id > 1')}"
    query = parse("PATTERN SEQ(a A, b B) WHERE [user] WITHIN 20")

    def named(table: DataFrame) -> list[CepDataFrame]:
        table.createOrReplaceTempView("logins")
        keyed = CEP.pattern(keyBy(table, "user"), Pattern.begin("a").within(WINDOW), name="x")
        asked = CEP.pattern(table, query, type="name", output="onePerStart", name="x")
        text = inner.removeprefix("SELECT user, time FROM logins MATCH_RECOGNIZE (")[:-1]
        return [
            keyed.inEventTime("time").toDF(),
            asked.inEventTime("time").toDF(),
            asked.inEventTime("time").select(lambda m: (1,), "n int"),
            matchRecognize(table, text, name="x"),
            matchRecognize(
                table, text.replace("MATCH_ROWTIME()", "LAST(time)"), "standard", name="x"
            ),
            CEP.sql(spark, f"SELECT user FROM ({inner}) {clause.format('true')}", name="x"),
        ]

    for _ in range(2):  # with a source built again
        *alone, chained = [_names_of_counters(rows) for rows in named(source.stream(spark))]
        assert alone == [["CEP: x"]] * 5
        assert chained == ["CEP: x (2)", "CEP: x"]
    bounded = named(source.bounded(spark))
    assert all("CEP: x" in repr(rows) for rows in bounded[:5])
    matches = named(source.stream(spark))[0]
    twice = CEP.pattern(matches, Pattern.begin("a").within(WINDOW), name="x")
    with pytest.raises(InvalidArgumentError, match="two patterns of a query are named 'CEP: x'"):
        twice.inEventTime("matchTimestamp").toDF()
    with pytest.raises(InvalidArgumentError, match="name: expected a text, got ''"):
        CEP.pattern(matches, Pattern.begin("a"), name="")


def _names_of_counters(frame: DataFrame) -> list[str]:
    """Return the names of counters in a plan, from the sink on."""
    nodes = streaming_nodes(analysed_plan(frame))
    return [node.name() for node in nodes if node.nodeName() == "CollectMetrics"]


def test_a_hint_at_many_partitions(
    spark: SparkSession, source: FileSource, caplog: pytest.LogCaptureFixture
) -> None:
    """On a local master, many tasks for each core are warned of, once."""
    with configured(spark, {"spark.sql.shuffle.partitions": 200}), caplog.at_level("WARNING"):
        for _ in range(2):
            a_to_b(source.stream(spark))
    said = [record.getMessage() for record in caplog.records if record.name == "pyflinkcep"]

    assert len(said) == 1
    assert "200 tasks" in said[0]
    assert "set spark.sql.shuffle.partitions to 2 before the first start" in said[0]
