# SPDX-License-Identifier: Apache-2.0
"""The watermark that a pattern on a stream hands on with its matches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pyflinkcep import CEP, OutputTag, Pattern, keyBy
from pyflinkcep.errors import InputError, NotSupportedError
from pyflinkcep.sase import parse
from tests.spark.streams import FileSource, run

pytestmark = pytest.mark.usefixtures("one_task")

WINDOW_MS = 4000


@pytest.fixture
def source(tmp_path: Path) -> FileSource:
    """Return events of three users, up to 300 ms late, and one that ends everything."""
    rows = [("uvw"[n % 3], 100 * n - n * 7 % 300, "aabac"[n % 5], n) for n in range(1, 240)]
    source = FileSource(tmp_path / "source")
    source.add(rows[:120], rows[120:], [("end", 10_000_000, "c", 0)])
    return source


def alone() -> Pattern:
    """Return: an a that none of the events 7, 57, … follows within the window."""
    pattern = Pattern.begin("a").where("name = 'a'").notFollowedBy("x").where("id % 50 = 7")
    return pattern.within(timedelta(milliseconds=WINDOW_MS))


def begun(table: DataFrame) -> Any:
    """Return the matches with the time of the event that began them."""
    found = CEP.pattern(keyBy(table, "user"), alone(), keyGroups=16).inEventTime("time")
    return found.select(lambda m: (m["a"][0].user, m["a"][0].time), "user string, at timestamp")


def counts(table: DataFrame) -> DataFrame:
    """Return how many matches began in each half second."""
    window = F.window("at", "500 milliseconds").alias("w")
    counted = begun(table).withEventTime("at").groupBy(window).count()
    return counted.select(F.unix_millis("w.start"), "count")


def pairs(table: DataFrame) -> DataFrame:
    """Return pairs of matches of a user, begun soon after each other."""
    pair = Pattern.begin("p").next("q").within(timedelta(milliseconds=700))
    events = begun(table).withEventTime("at").where("user != 'end'")
    found = CEP.pattern(keyBy(events, "user"), pair, keyGroups=16).inEventTime("at")
    return found.select(
        lambda m: (m["p"][0].user, m["p"][0].at, m["q"][0].at),
        "user string, p timestamp, q timestamp",
    )


def alone_in_python(table: DataFrame) -> Counter[int]:
    """Return the counts of half seconds, worked out event by event."""
    events = [(row.user, row.ts, row.name, row.id) for row in table.collect()]
    starts = [
        at
        for user, at, name, _ in events
        if name == "a"
        and not any(
            other == user and at < then < at + WINDOW_MS and number % 50 == 7
            for other, then, _, number in events
        )
    ]
    return Counter(at // 500 * 500 for at in starts)


def one_watermark(spark: SparkSession, source: FileSource) -> DataFrame:
    """Return a stream whose pattern follows the watermark of its own events."""
    return source.stream(spark, delay_ms=300)


def two_watermarks(spark: SparkSession, source: FileSource) -> DataFrame:
    """Return a stream whose pattern follows Spark's watermark, the earlier one of two."""
    even = source.stream(spark, delay_ms=300).where("id % 2 = 0")
    return even.union(source.stream(spark, delay_ms=900).where("id % 2 = 1 OR id = 0"))


@pytest.mark.parametrize(
    ("job", "stream"), [(counts, one_watermark), (counts, two_watermarks), (pairs, one_watermark)]
)
def test_no_match_that_waited_is_late(
    job: Callable[[DataFrame], DataFrame],
    stream: Callable[[SparkSession, FileSource], DataFrame],
    spark: SparkSession,
    source: FileSource,
    tmp_path: Path,
) -> None:
    """
    A stream gives what the bounded job gives, from the time of the event that began a match.

    A windowed count, and a pattern over the matches; with the watermark of the pattern's own
    events, and with Spark's.
    """
    table = stream(spark, source)
    finished = run(job(table), tmp_path / "checkpoint")
    bounded = job(source.bounded(spark)).collect()

    assert sorted(finished.rows) == sorted(bounded)
    assert len(bounded) > 10
    if job is not pairs:
        assert dict(map(tuple, bounded)) == alone_in_python(source.bounded(spark))


def test_what_is_no_event_time_after_a_pattern(spark: SparkSession, source: FileSource) -> None:
    """
    Only a column that the watermark stays behind is an event time; others are refused by name.

    Events inside matches, and late events, have times that the watermark has passed.
    """
    table, late = source.stream(spark), OutputTag("late")
    stream = CEP.pattern(keyBy(table, "user"), alone()).sideOutputLateData(late)
    found = stream.toDF()
    endless = CEP.pattern(table, Pattern.begin("a").followedBy("b"))
    rows = endless.select(lambda m: (m["a"][0].time,), "at timestamp")
    twice = Pattern.begin("p").next("q").within(timedelta(seconds=1))
    held = CEP.pattern(keyBy(found, "user"), twice).inEventTime("matchTimestamp")

    marked = {
        name: "spark.watermarkDelayMs" in frame.schema[name].metadata
        for name, frame in {
            "matchTimestamp": found,
            "inside": found.select(F.col("a")[0]["time"].alias("inside")),
            "time": found.getSideOutput(late),
            "at": rows.withEventTime("at", timedelta(0)),
        }.items()
    }
    copied = stream.select(lambda m: m["a"][0], table.schema)
    assert marked == {"matchTimestamp": True, "inside": False, "time": False, "at": True}
    assert not copied.schema["time"].metadata
    assert copied.withEventTime("time").schema["time"].metadata["spark.watermarkDelayMs"] == 4005
    with pytest.raises(InputError, match="the watermark may be ahead of their 'time'"):
        CEP.pattern(copied, alone()).inEventTime("time").toDF()
    with pytest.raises(NotSupportedError, match="a match may last forever"):
        rows.withEventTime("at")
    with pytest.raises(NotSupportedError, match="another stateful operator"):
        held.select(lambda m: (None,), "at timestamp").withEventTime("at")


def test_the_time_of_matches_of_a_query(spark: SparkSession, source: FileSource) -> None:
    """It is that of the last event in every evaluation; on a stream it may be behind, and says so."""
    query = parse("PATTERN SEQ(A a, ~(B b)) WITHIN 5")
    rows = [("A", 1), ("C", 2), ("B", 3), ("A", 10), ("C", 30), ("A", 40)]
    events = spark.createDataFrame(rows, "type string, ts bigint")
    table = source.stream(spark).withColumn("type", F.upper("name"))

    for evaluation in ("nfa", "backtracking", "eventLists"):
        found = CEP.pattern(events, query, type="type", evaluation=evaluation).inEventTime("ts")
        assert sorted(row.matchTimestamp for row in found.toDF().collect()) == [10, 40]
    for output in ("all", "onePerStart"):
        result = CEP.pattern(table, query, type="type", output=output).toDF()
        assert not result.schema["matchTimestamp"].metadata
        marked = result.withEventTime("matchTimestamp").schema["matchTimestamp"]
        assert marked.metadata["spark.watermarkDelayMs"] in (10, 11)
