# SPDX-License-Identifier: Apache-2.0
"""Events without a key: what queries and clauses make of them, bounded and on streams."""

from __future__ import annotations

from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from pyflinkcep import CEP, OutputTag, keyBy, matchRecognize, parse
from pyflinkcep.errors import NotSupportedError
from tests.spark.streams import FileSource, run
from tests.spark.support import configured


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
