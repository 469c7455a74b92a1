# SPDX-License-Identifier: Apache-2.0
"""Streams with events too far ahead of the others."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pyflinkcep import CEP, NotSupportedError, OutputTag, Pattern, keyBy
from pyflinkcep.errors import InvalidArgumentError
from pyflinkcep.spark import matchRecognize
from tests.spark.streams import FileSource, run

pytestmark = pytest.mark.usefixtures("one_task")

AHEAD = OutputTag("ahead")
FAR = 4_000_000_000_000
BATCHES = [
    [("u", 10, "a", 1), ("u", FAR, "b", 2), ("u", 12, "b", 3)],
    [("u", 20, "a", 4), ("v", 30, "c", 5)],
    [("u", 28, "b", 6), ("v", FAR + 9, "c", 7)],
    [("v", 60, "c", 8), ("u", 62, "a", 9), ("u", 63, "b", 10), ("v", 90, "c", 11)],
]
WITHIN = timedelta(milliseconds=20)


@pytest.fixture
def source(tmp_path: Path) -> FileSource:
    """Return a source with two events in the far future."""
    source = FileSource(tmp_path / "source")
    source.add(*BATCHES)
    return source


def a_to_b(table: DataFrame, **settings: Any) -> Any:
    """Return the matches of: a, some time after it b, of one user."""
    pattern = Pattern.begin("a").where("name = 'a'").followedBy("b").where("name = 'b'")
    return CEP.pattern(keyBy(table, "user"), pattern.within(WITHIN), keyGroups=8, **settings)


def test_events_too_far_ahead_go_aside(
    spark: SparkSession, source: FileSource, tmp_path: Path
) -> None:
    """Without maxAhead one event makes all others late; with it, it alone is left out."""
    table = source.stream(spark)
    guarded = a_to_b(table, maxAhead="40 milliseconds", parallelTasks=2).sideOutputAheadData(AHEAD)
    rows = guarded.select(lambda m: (m["a"][0].id, m["b"][0].id), "a int, b int").tagged()
    finished = run(rows, tmp_path / "guarded")
    plain = run(a_to_b(table).toDF().select(F.col("b")[0]["id"]), tmp_path / "plain")

    assert sorted(tuple(row.main) for row in finished.rows if row.main) == [(1, 3), (4, 6), (9, 10)]
    assert sorted((row.ahead.id, row.ahead.ts) for row in finished.rows if row.ahead) == [
        (2, FAR),
        (7, FAR + 9),
    ]
    assert not any(finished.metrics("numLateRecordsDropped"))
    assert len(plain.rows) < 3
    assert sum(plain.metrics("numLateRecordsDropped")) > 2


def test_what_follows_a_guarded_pattern(spark: SparkSession, source: FileSource) -> None:
    """Whatever would follow Spark's watermark, which such events move, is refused by name."""
    matches = a_to_b(source.stream(spark), maxAhead=timedelta(milliseconds=40)).toDF()
    pair = Pattern.begin("x").followedBy("y")
    with pytest.raises(NotSupportedError, match=r"withEventTime.* after a pattern with maxAhead"):
        matches.withEventTime("matchTimestamp")
    with pytest.raises(
        NotSupportedError, match="matches of a pattern with maxAhead cannot be matched again"
    ):
        CEP.pattern(keyBy(matches, "user"), pair).inEventTime("matchTimestamp").toDF()
    above = a_to_b(source.stream(spark)).toDF()
    with pytest.raises(NotSupportedError, match="maxAhead does not work with Spark's watermark"):
        CEP.pattern(above, pair, maxAhead="1 hour").inEventTime("matchTimestamp").toDF()


def test_where_it_is_taken(spark: SparkSession, source: FileSource, tmp_path: Path) -> None:
    """Clauses count such events; a bounded DataFrame has none; other uses are refused by name."""
    clause = """PARTITION BY user ORDER BY time MEASURES B.id AS b, MATCH_ROWTIME() AS time AFTER MATCH SKIP PAST LAST ROW
        PATTERN (A B) DEFINE A AS name = 'a', B AS name = 'b'"""
    table = source.stream(spark)
    result = matchRecognize(table, clause, keyGroups=8, maxAhead="40 milliseconds")
    with pytest.raises(NotSupportedError, match=r"withEventTime.* after a pattern with maxAhead"):
        result.withEventTime("time")
    finished = run(result, tmp_path / "clause")
    bounded = a_to_b(source.bounded(spark), maxAhead="1 hour").inEventTime("time")
    bounded = bounded.sideOutputAheadData(AHEAD).select(lambda m: (1,), "n int")

    assert sorted(row.b for row in finished.rows) == [3, 6, 10]
    assert sum(finished.metrics("numAheadRecordsDropped")) == 2
    assert (bounded.count(), bounded.getSideOutput(AHEAD).count()) == (3, 0)
    with pytest.raises(InvalidArgumentError, match=r"sideOutputAheadData.. without maxAhead"):
        a_to_b(table).sideOutputAheadData(AHEAD)
    with pytest.raises(InvalidArgumentError, match=r"maxAhead: expected .*'soon'"):
        a_to_b(table, maxAhead="soon")
    with pytest.raises(NotSupportedError, match="maxAhead needs event time"):
        a_to_b(table, maxAhead="1 hour").inProcessingTime().toDF()
