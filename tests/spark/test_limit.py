# SPDX-License-Identifier: Apache-2.0
"""A bound on a key's partial matches, in real jobs."""

from __future__ import annotations

from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from pyflinkcep import CEP, OutputTag, Pattern, keyBy, matchRecognize, parse
from pyflinkcep.errors import NotSupportedError
from tests.spark.streams import FileSource, run
from tests.spark.support import configured

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


# --- events without a key: what queries and clauses make of them, bounded and on streams


def test_null_keys_of_queries_and_clauses(spark: SparkSession, tmp_path: Path) -> None:
    """NULL is a key of a query and of a clause, and equals nothing in [user], on streams too."""
    source = FileSource(tmp_path / "source")
    source.add(
        [("u", 10, "a", 10), (None, 11, "a", 11), ("u", 20, "b", 20), (None, 21, "b", 21), ("u", 90, "x", 90)]
    )  # fmt: skip
    text = "PATTERN SEQ(a x, b y) WHERE skip_till_next_match{} WITHIN 20 milliseconds"
    clause = """PARTITION BY user ORDER BY time MEASURES X.id AS a, Y.id AS b
        AFTER MATCH SKIP PAST LAST ROW PATTERN (X Y) WITHIN INTERVAL '0.02' SECOND
        DEFINE X AS X.name = 'a', Y AS Y.name = 'b'"""

    def result(frame: DataFrame) -> DataFrame:
        def query(input: Any, more: str, evaluation: Any) -> DataFrame:
            how = {"type": "name", "evaluation": evaluation, "keyGroups": 1}
            found = CEP.pattern(input, parse(text.format(more)), **how).inEventTime("time")
            return found.toDF().selectExpr("user", "x[0].id AS a", "y[0].id AS b")

        found = {
            "as query": query(keyBy(frame, "user"), "", "backtracking"),
            "[user]": query(frame, " AND [user]", "auto"),
            "flink": matchRecognize(frame, clause, keyGroups=1),
            "standard": matchRecognize(frame, clause, "standard", keyGroups=1),
        }
        named = [rows.selectExpr(f"'{name}' AS how", "*") for name, rows in found.items()]
        return reduce(DataFrame.unionAll, named)

    with configured(spark, {"spark.sql.shuffle.partitions": 1}):
        stream = run(result(source.stream(spark)), tmp_path / "checkpoint").rows
    bounded = result(source.bounded(spark)).collect()

    both, one = [("u", 10, 20), (None, 11, 21)], [("u", 10, 20)]
    wanted = {"as query": both, "[user]": one, "flink": both, "standard": both}
    rows = [(how, *row) for how, own in wanted.items() for row in own]
    found = [sorted(map(tuple, own), key=str) for own in (bounded, stream, rows)]
    assert found[0] == found[1] == found[2]


def test_events_of_a_query_without_time_may_be_dropped(spark: SparkSession, tmp_path: Path) -> None:
    """With onNullKey="drop" they are in a side output; an event without a key is still a key's."""
    source = FileSource(tmp_path / "source")
    source.add(
        [(None, 11, "a", 11), ("u", None, "b", 31)], [(None, 21, "b", 21), ("u", 90, "x", 90)]
    )
    tag = OutputTag("bad")

    def result(frame: DataFrame, evaluation: Any) -> Any:
        query = parse("PATTERN SEQ(a x, b y) WHERE skip_till_next_match WITHIN 20 ms")
        how = {"type": "name", "evaluation": evaluation, "keyGroups": 1, "onNullKey": "drop"}
        return CEP.pattern(keyBy(frame, "user"), query, **how).inEventTime("time")

    def ids(query: Any) -> Any:
        return query.sideOutputNullData(tag).select(lambda m: (m["y"][0].id,), "id int")

    with configured(spark, {"spark.sql.shuffle.partitions": 1}):
        stream = run(ids(result(source.stream(spark), "auto")).tagged(), tmp_path / "checkpoint")
        for evaluation in ("nfa", "backtracking"):
            bounded = ids(result(source.bounded(spark), evaluation))
            assert [row.id for row in bounded.collect()] == [21]
            assert [row.id for row in bounded.getSideOutput(tag).collect()] == [31]
    assert {row.tag: row[row.tag].id for row in stream.rows} == {"main": 21, "bad": 31}
    with pytest.raises(NotSupportedError, match="sideOutputNullData"):
        result(source.bounded(spark), "auto").sideOutputNullData(tag).compressed()
