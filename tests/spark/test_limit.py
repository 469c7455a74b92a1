# SPDX-License-Identifier: Apache-2.0
"""A bound on a key's partial matches, in real jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pyflinkcep import CEP, NotSupportedError, Pattern, keyBy, matchRecognize
from tests.spark.streams import FileSource, run

_ROWS = [("k", 10, "a"), ("k", 20, "a"), ("k", 30, "a"), ("k", 40, "b")]


def source(folder: Path) -> FileSource:
    """Make three events that begin a match, one that ends all, and one that moves the watermark."""
    files = FileSource(folder / "in", "user string, ts bigint, name string")
    files.add(_ROWS, [("z", 900, "x")])
    return files


def job(events: Any, most: int, policy: str) -> Any:
    """Return the pattern with a bound on the events."""
    pattern = Pattern.begin("a").where("name = 'a'").followedBy("b").where("name = 'b'")
    stream = CEP.pattern(
        keyBy(events, "user"), pattern, maxPartialMatches=most, onTooManyPartialMatches=policy
    )
    return stream.inEventTime("time").select(lambda m: (m["a"][0].ts,), "at bigint")


def test_a_stream_drops_the_oldest_and_counts_them(spark: SparkSession, tmp_path: Path) -> None:
    """What began first is dropped, and the query's progress says how many."""
    files = source(tmp_path)
    finished = run(job(files.stream(spark), 2, "dropOldest"), tmp_path / "checkpoint")

    assert sorted(row.at for row in finished.rows) == [20, 30]
    assert sum(finished.metrics("numPartialMatchesDropped")) == 1


def test_a_bounded_job_stops(spark: SparkSession, tmp_path: Path) -> None:
    """One partial match more than allowed fails the job; as many are fine."""
    events = source(tmp_path).bounded(spark)

    assert len(job(events, 3, "fail").collect()) == 3
    with pytest.raises(Exception, match="maxPartialMatches is 2"):
        job(events, 2, "fail").collect()


def test_nothing_is_dropped_where_nothing_counts(spark: SparkSession, tmp_path: Path) -> None:
    """Dropping is refused on a bounded DataFrame, before the job starts."""
    with pytest.raises(NotSupportedError, match="onTooManyPartialMatches"):
        job(source(tmp_path).bounded(spark), 2, "dropOldest")
    clause = "ORDER BY at MEASURES A.n AS n PATTERN (A B) DEFINE A AS A.n > 0"
    events = spark.sql("SELECT 1 AS n, timestamp_millis(0) AS at")
    with pytest.raises(
        NotSupportedError,
        match="onTooManyPartialMatches='dropOldest' is not available on a bounded",
    ):
        matchRecognize(events, clause, maxPartialMatches=2, onTooManyPartialMatches="dropOldest")


@pytest.mark.parametrize("most", [1, 2, 3])
def test_a_bound_counts_the_same_whoever_evaluates(
    spark: SparkSession, tmp_path: Path, most: int
) -> None:
    """Events that no stage takes split a loop's partial matches too: they are not dropped."""
    rows = [("k", 10, "a"), ("k", 20, "b"), ("k", 30, "x"), ("k", 40, "x"), ("k", 50, "c")]
    files = FileSource(tmp_path / "in", "user string, ts bigint, name string")
    files.add(rows)
    outcomes: list[int | bool] = []
    for is_name in (lambda n: f"name = '{n}'", lambda n: lambda e: e.name == n):
        pattern = (
            Pattern.begin("a").where(is_name("a"))
            .followedBy("b").where(is_name("b")).oneOrMore()
            .followedBy("c").where(is_name("c"))
        )  # fmt: skip
        stream = CEP.pattern(keyBy(files.bounded(spark), "user"), pattern, maxPartialMatches=most)
        try:
            outcomes.append(len(stream.inEventTime("time").toDF().collect()))
        except Exception as error:
            outcomes.append(f"maxPartialMatches is {most}" in str(error))

    assert outcomes[0] == outcomes[1]
