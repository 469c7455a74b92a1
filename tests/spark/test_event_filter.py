# SPDX-License-Identifier: Apache-2.0
"""Events that no partial match can use are dropped before the shuffle, and nothing else changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pyflinkcep import AfterMatchSkipStrategy, Pattern
from pyflinkcep.engines.flink.nfa.analysis import Relevance
from pyflinkcep.matching.columns import WHOLE
from pyflinkcep.spark.plan.patterns import prefilter
from tests.shorthand import ms
from tests.spark.support import columns, events, failure, on

A_TO_B = Pattern.begin("a").where("name = 'a'").followedBy("b").where("name = 'b'")
INPUT = "u:x u:a1 v:a2 u:x u:b3 v:y v:b4 v:b5 u:a6 u:a7 u:y u:b8"


def plan(frame: DataFrame) -> list[str]:
    """Return the operators of the physical plan, the last one first."""
    lines = frame._jdf.queryExecution().executedPlan().toString().splitlines()  # type: ignore[operator]
    return [line.strip(" +-:*()0123456789") for line in lines]


def filtered(frame: DataFrame) -> bool:
    """Whether events are filtered before they are shuffled."""
    names = [line.split(" ")[0] for line in plan(frame)]
    exchange = names.index("Exchange")
    return any(name == "Filter" for name in names[exchange:])


def answer(frame: DataFrame, pattern: Pattern) -> list[str]:
    """Return the matches in the order of time."""
    return [str(row) for row in on(frame, pattern, "user").toDF().sort("matchTimestamp").collect()]


@pytest.fixture
def unfiltered(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a switch that turns the filter off."""
    nothing = Relevance(frozenset(), "turned off")
    return lambda: monkeypatch.setattr(prefilter, "relevance_of", lambda nfa, shows: nothing)


@pytest.mark.parametrize(
    "pattern",
    [
        A_TO_B,
        Pattern.begin("a").where("name = 'a'").oneOrMore().followedBy("b").where("name = 'b'"),
        Pattern.begin("a", AfterMatchSkipStrategy.skipPastLastEvent()).where("name < 'b'")
        .followedByAny("b").where("name = 'b'").where("price > 3"),
        Pattern.begin("a").where("name = 'a'").where(lambda e: e.price > 1)
        .followedBy("b").where("not (name != 'b')").within(ms(5)),
    ],
)  # fmt: skip
def test_the_filter_changes_no_match(spark: SparkSession, pattern: Any, unfiltered: Any) -> None:
    """With and without the filter the matches are the same, and there are some."""
    frame = events(spark, INPUT)
    with_filter = answer(frame, pattern)
    assert filtered(on(frame, pattern, "user").toDF())
    unfiltered()

    assert with_filter == answer(frame, pattern) != []
    assert not filtered(on(frame, pattern, "user").toDF())


def test_the_filter_reaches_the_source(spark: SparkSession, tmp_path: Path) -> None:
    """Parquet is told what is wanted, so that it can leave out whole row groups."""
    events(spark, INPUT).write.parquet(str(tmp_path / "events"))
    scan = plan(on(spark.read.parquet(str(tmp_path / "events")), A_TO_B, "user").toDF())[-1]

    assert "EqualTo(name,a)" in scan.split("PushedFilters")[1]
    assert "IsNull(ts)" in scan.split("PushedFilters")[1]


def test_a_random_condition_is_asked_once(spark: SparkSession) -> None:
    """What chance or Python decides is decided once: the filter goes by the answers."""
    chance = Pattern.begin("a").where(F.rand() < 0.5).followedBy("b").where("name = 'b'")
    python = Pattern.begin("a").where(F.udf(lambda n: n == "a", "boolean")("name"))
    for pattern in (chance, python.followedBy("b").where("name = 'b'")):
        text = "\n".join(plan(on(events(spark, INPUT), pattern, "user").toDF()))
        after_exchange = text[text.index("Exchange") :]

        assert "Filter" in after_exchange
        assert after_exchange.count("rand(") + after_exchange.count("EvalPython [") == 1

    assert len(answer(events(spark, INPUT), pattern)) == 4


def test_null_counts_as_false(spark: SparkSession) -> None:
    """An event of which no condition says anything is dropped; under a not it is wanted."""
    unnamed = "CASE WHEN name = 'x' THEN NULL ELSE name END = 'a'"
    pattern = Pattern.begin("a").where(f"({unnamed})").followedBy("b").where(f"not ({unnamed})")

    assert [row.count("Row(ts=") for row in answer(events(spark, "u:a u:x u:b"), pattern)] == [2]


def test_null_times_are_refused(spark: SparkSession) -> None:
    """An event without a time fails the job, whether or not a stage could use it."""
    frame = events(spark, "u:a u:x u:b").withColumn("ts", F.expr("nullif(ts, 2)"))

    assert "null event time in column 'ts'" in failure(on(frame, A_TO_B, "user").toDF())


def test_time_that_is_shown(spark: SparkSession) -> None:
    """process() sees the time that released a match, toDF() the end of its window."""
    absence = Pattern.begin("a").where("name = 'a'").notFollowedBy("b").where("name = 'b'")
    stream = on(events(spark, "u:a u:x@9"), absence.within(ms(5)), "user")
    rows = stream.select(lambda match: (match["a"][0].ts,), "ts bigint")
    processed = stream.process(lambda match, ctx, out: out.collect((ctx.timestamp(),)), "ts bigint")

    assert filtered(rows.toDF())
    assert [row.ts for row in rows.collect()] == [1]
    assert not filtered(processed.toDF())
    assert [row.ts for row in processed.collect()] == [9]
    assert [row.matchTimestamp for row in stream.toDF().collect()] == [6]


def test_events_that_no_stage_takes_travel_bare(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After next they only end partial matches; those that are taken come whole, nulls too."""
    odd = {
        "dotted.name": "concat(name, '!')",
        "empty": "cast(NULL AS string)",
        "at": "timestamp_millis(cast(-1000 * price AS bigint))",
        "day": "date '1969-12-31'",
        "exact": "cast(price AS decimal(20, 3))",
        "flag": "if(name = 'a', NULL, true)",
        "many": "array(price, NULL)",
        "nested": "named_struct('x', price)",
    }
    frame = columns(events(spark, "u:a1 u:b2 v:a3 v:x v:b4 u:a5 u:b6 w:x w:b7"), **odd)
    pattern = Pattern.begin("a").where("name = 'a'").next("b").where("name = 'b'").within(ms(50))
    result = on(frame, pattern, "user").toDF()
    found = sorted(map(str, result.collect()))
    assert any(WHOLE in line for line in plan(result))

    monkeypatch.setattr(prefilter, "_FEWEST", 100)
    whole = on(frame, pattern, "user").toDF()
    assert not any(WHOLE in line for line in plan(whole))
    assert found == sorted(map(str, whole.collect()))
    assert len(found) == 2
