# SPDX-License-Identifier: Apache-2.0
"""The end of a finished stream whose patterns follow each other."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pyflinkcep import CEP, Pattern, keyBy
from pyflinkcep.errors import NotSupportedError
from tests.spark.streams import FileSource, run

pytestmark = pytest.mark.usefixtures("one_task")


@pytest.fixture
def source(tmp_path: Path) -> FileSource:
    """Return events of three users, up to 300 ms late; when they end, much is still open."""
    rows = [("uvw"[n % 3], 100 * n - n * 7 % 300, "aabac"[n % 5], n) for n in range(1, 160)]
    source = FileSource(tmp_path / "source")
    source.add(rows[:80], rows[80:])
    return source


def matches(table: DataFrame, pattern: Pattern, time: str = "time") -> Any:
    """Return a pattern over the events of users, within four seconds."""
    within = pattern.within(timedelta(seconds=4))
    return CEP.pattern(keyBy(table, "user"), within, keyGroups=16).inEventTime(time)


def alone(table: DataFrame) -> Any:
    """Return the matches: an a that none of the events 7, 57, … follows."""
    pattern = Pattern.begin("a").where("name = 'a'").notFollowedBy("x").where("id % 50 = 7")
    return matches(table, pattern)


def over_times(table: DataFrame) -> Any:
    """Return threes of matches of a user, ordered by the end of their windows."""
    first = alone(table).toDF().select("user", F.col("matchTimestamp").alias("at"), "a")
    pairs = matches(first, Pattern.begin("p").next("q"), "at").toDF().where("user != 'w'")
    third = Pattern.begin("x").next("y")
    return matches(pairs, third, "matchTimestamp").select(
        lambda m: (m["x"][0].user, m["x"][0].p[0].a[0].id, m["y"][0].q[0].a[0].id),
        "user string, first int, last int",
    )


def over_events(table: DataFrame) -> Any:
    """Return pairs of matches of a user, begun within the window, and other events."""
    rows = alone(table).select(
        lambda m: (m["a"][0].user, m["a"][0].time, m["a"][0].id),
        "user string, at timestamp, id int",
    )
    first = rows.withEventTime("at")
    others = table.where("name = 'c'").select("user", F.col("time").alias("at"), "id")
    pattern = Pattern.begin("p").next("q")
    return matches(first.union(others), pattern, "at").select(
        lambda m: (m["p"][0].user, m["p"][0].id, m["q"][0].id), "user string, p int, q int"
    )


@pytest.mark.parametrize("job", [over_times, over_events])
def test_what_the_first_patterns_hold_passes_through_the_others(
    job: Callable[[DataFrame], Any], spark: SparkSession, source: FileSource, tmp_path: Path
) -> None:
    """A stream and its flush return what the bounded job returns, whichever pattern holds it."""
    result = job(source.stream(spark, delay_ms=300))
    rows = run(result, tmp_path / "checkpoint").rows
    rest = result.flush(str(tmp_path / "checkpoint")).collect()
    bounded = job(source.bounded(spark)).collect()

    assert sorted([*rows, *rest]) == sorted(bounded)
    assert len(rows) > 10
    assert len(rest) > 5


def test_flush_after_an_operator_that_holds_rows_is_refused(
    spark: SparkSession, source: FileSource
) -> None:
    """An aggregation, or an operator between two patterns, is named, with the way out."""
    table = source.stream(spark)
    window = F.window("time", "1 second").alias("w")
    counts = table.groupBy("user", window).count().select("user", F.col("w.end").alias("at"))
    distinct = alone(table).toDF().dropDuplicates(["user", "matchTimestamp"])
    pair = Pattern.begin("p").next("q")

    with pytest.raises(NotSupportedError, match="rows that the operator Aggregate of Spark"):
        matches(counts, pair, "at").toDF().flush("nowhere")
    with pytest.raises(NotSupportedError, match="rows that the operator Deduplicate of Spark"):
        matches(distinct, pair, "matchTimestamp").toDF().flush("nowhere")
