# SPDX-License-Identifier: Apache-2.0
"""What queries on bounded DataFrames refuse, bound and fold, in the words of lists."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pyflinkcep import CEP, Pattern
from pyflinkcep.errors import InputError, InvalidArgumentError, NotSupportedError
from pyflinkcep.sase import parse
from pyflinkcep.testing import matchSase
from tests.spark.test_queries import found, trades


@pytest.mark.spark
def test_types_and_constants_are_those_of_lists(spark: SparkSession) -> None:
    """Types are refused in the words of matchSase, in every evaluation; constants are folded."""
    rows = [(1, 1, "A", "x", 1), (2, 2, "B", "y", 2)]
    frame = spark.createDataFrame(rows, "id int, ts bigint, kind string, s string, x bigint")
    frame = frame.selectExpr("*", "x > 1 AS flag", "DATE'2024-01-01' + id AS day")
    events = [row.asDict() for row in frame.collect()]
    for text in ("WHERE a.s > 3", "WHERE b.flag = 1 WITHIN 5", "HAVING a.s < b.x", "RETURN -a.s"):
        query = parse(f"PATTERN SEQ(A a, B b) {text}")
        with pytest.raises(InputError) as wanted:
            matchSase(query, events, type="kind")
        for evaluation in ("auto", "nfa", "backtracking", "eventLists"):
            stream = CEP.pattern(frame, query, type="kind", evaluation=evaluation)
            with pytest.raises(InputError) as raised:
                stream.inEventTime("ts").toDF()
            assert str(raised.value) == str(wanted.value)
    query = parse("PATTERN SEQ(A a, B b) WHERE (1 = 1 AND b.x > 1) AND (NULL = 1 OR a.x < 2)")
    for evaluation in ("nfa", "backtracking", "eventLists", "auto"):
        stream = CEP.pattern(frame, query, type="kind", evaluation=evaluation).inEventTime("ts")
        assert stream.toDF().count() == 1
        never = CEP.pattern(frame, query.where("(1 = 2 AND a.x = 1)"), type="kind")
        assert never.inEventTime("ts").toDF().count() == 0
    compressed = stream.compressed()
    for text in ("sum(a.s)", "avg(b.flag)", "sum(b.day)", "min(a.matchTimestamp)"):
        with pytest.raises(InputError, match=r"expected numbers|is not a column"):
            compressed.aggregate(text)
    row = compressed.aggregate("min(a.s)", "max(b.day)", "min(b.flag)", "max(a.id)").collect()[0]
    assert list(row)[-4:] == ["x", events[1]["day"], True, 1]


@pytest.mark.spark
def test_columns_that_cannot_be_what_they_are_asked_for(spark: SparkSession) -> None:
    """Texts with a collation, of which Spark calls others equal, and columns that are not there."""
    frame = spark.range(1).selectExpr("id AS ts", "'A' AS type", "'x' COLLATE UTF8_LCASE AS s")

    def stream(text: str, type: str = "type") -> Any:
        return CEP.pattern(frame, parse(f"PATTERN {text}"), type=type).inEventTime("ts")

    for text in (
        "SEQ(A a, A b) WHERE a.s = 'X'",
        "A a;A b WHERE [s = 'X']",
        "SEQ(A a, A b) WHERE [s]",
    ):
        with pytest.raises(InputError, match=r"COLLATE|collate"):
            stream(text).toDF()
    with pytest.raises(InputError, match="expected the type column 's' to be string, got string c"):
        stream("SEQ(A a)", type="s").toDF()
    with pytest.raises(InputError, match="expected numbers, texts"):
        stream("SEQ(A a)").compressed().aggregate("max(a.s)")
    for text in ("RETURN a.z", "RETURN upper(a.z)", "WITHIN 5 SLIDE 5 GROUP BY z RETURN count(*)"):
        with pytest.raises(InputError, match="z"):
            stream(f"SEQ(A a) {text}").toDF()
    for name in ("ts", "COUNT", "count_log10"):
        with pytest.raises(InvalidArgumentError, match="two columns"):
            stream(f"SEQ(A a) WHERE [ts] WITHIN 5 SLIDE 5 RETURN min(a.ts) AS {name}").toDF()


@pytest.mark.spark
def test_slices_at_the_ends_of_time(spark: SparkSession) -> None:
    """Time slices end with the first and the last time that there are."""
    rows = [
        (n, at, "AB"[n % 2]) for n, at in enumerate([-(2**63), 1 - 2**63, 2**63 - 3, 2**63 - 1])
    ]
    frame = spark.createDataFrame(rows, "id bigint, ts bigint, kind string")
    for text in ("SEQ(A a, B b)", "A a;B b", "SEQ(~N n, A a, B b)"):
        query = parse(f"PATTERN {text} WITHIN 5")
        stream = CEP.pattern(frame, query, type="kind", evaluation="eventLists").inEventTime("ts")
        assert found(stream.toDF().collect(), "ab") == Counter(
            ['{"a": [0], "b": [1]}', '{"a": [2], "b": [3]}']
        )


@pytest.mark.spark
def test_an_evaluation_is_not_replaced_in_silence(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    """explain() names what runs instead; matches that are not listed refuse what lists them."""
    query = parse("PATTERN SEQ(Stock a, Stock b)")
    frame = trades(spark)
    stream = CEP.pattern(frame, query, type="kind", evaluation="nfa", output="onePerStart")
    stream.inEventTime("ts").explain()
    assert "backtracking (nfa was asked for, and searches for" in capsys.readouterr().out
    pattern = Pattern.begin("a").followedByAny("b").within(timedelta(seconds=1))
    for what, more in ((query, {"type": "kind"}), (pattern, {})):
        asked = CEP.pattern(frame, what, evaluation="eventLists", **more).inEventTime("ts")
        with pytest.raises(NotSupportedError, match='evaluation="eventLists" lists matches'):
            asked.compressed()


@pytest.mark.spark
def test_a_bound_on_runs(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """maxPartialMatches bounds queries under nfa, as patterns or not; elsewhere it is refused."""
    frame = spark.createDataFrame(
        [(n, n, "A", n * n) for n in range(20)], "id int, ts bigint, kind string, x int"
    )
    rising = parse("PATTERN SEQ(A+ a[], A b) WHERE a[i].x > avg(a[..i-1].x)")
    pair = parse("PATTERN SEQ(A a, A b) WITHIN 9")

    def stream(query: Any, most: int | None = 50, **more: Any) -> Any:
        found = CEP.pattern(frame, query, type="kind", maxPartialMatches=most, **more)
        return found.inEventTime("ts")

    with pytest.raises(Exception, match="partial matches, maxPartialMatches is 50"):
        stream(rising, evaluation="nfa").toDF().collect()
    with pytest.raises(Exception, match="11 partial matches, maxPartialMatches is 10"):
        stream(parse("PATTERN SEQ(A a, A b)"), 10).toDF().collect()
    assert stream(pair, 100).toDF().count() == stream(pair, None).toDF().count() > 50
    stream(pair).explain()
    assert "evaluation: nfa" in capsys.readouterr().out
    for query, more in (
        (pair, {"evaluation": "eventLists"}),
        (pair, {"evaluation": "backtracking"}),
        (pair, {"output": "onePerStart"}),
        (parse("PATTERN A;B"), {}),
    ):
        with pytest.raises(NotSupportedError, match="which keeps no partial matches"):
            stream(query, **more).toDF()
    with pytest.raises(
        NotSupportedError, match="compressed matches do not support maxPartialMatches"
    ):
        stream(pair).compressed()
    with pytest.raises(InvalidArgumentError, match="maxPartialMatches=0"):
        stream(pair, 0)
    for setting in ({"orderBy": ["id"]}, {"onTooManyPartialMatches": "dropOldest"}):
        with pytest.raises(
            NotSupportedError, match=f"a query does not support .*{next(iter(setting))}"
        ):
            stream(pair, **setting)
