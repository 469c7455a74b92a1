# SPDX-License-Identifier: Apache-2.0
"""What becomes of matches: functions of every kind, side outputs, the result as a DataFrame."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from pyflinkcep import (
    OutputTag,
    Pattern,
    PatternFlatSelectFunction,
    PatternFlatTimeoutFunction,
    PatternProcessFunction,
    PatternSelectFunction,
    PatternTimeoutFunction,
    RichIterativeCondition,
    RichPatternFlatSelectFunction,
    RichPatternSelectFunction,
    TimedOutPartialMatchHandler,
)
from tests.spark.support import a_then_b, events, ids, on

INPUT = "u:a u:b v:a u:a v:c u:b u:a@50"
TIMEOUTS = OutputTag("timeouts", "text string, at bigint")


@pytest.fixture
def frame(spark: SparkSession) -> DataFrame:
    """Return the events of most tests here."""
    return events(spark, INPUT)


def windowed() -> Pattern:
    """Return a then b within 10 ms; two matches of u, and timeouts of v and of the last a."""
    return a_then_b().within(timedelta(milliseconds=10))


class Select(PatternSelectFunction):
    """Gives the ids."""

    def select(self, pattern: Any) -> Any:
        return ids(pattern)


class RichSelect(RichPatternSelectFunction):
    """Gives what it learned when it was opened."""

    def open(self, context: Any = None) -> None:
        self.opened = context.getTaskName()

    def select(self, pattern: Any) -> Any:
        assert self.getRuntimeContext().getIndexOfThisSubtask() >= 0
        return f"{ids(pattern)} in {self.opened}"


class FlatSelect(PatternFlatSelectFunction):
    """Gives each match twice."""

    def flatSelect(self, pattern: Any, out: Any) -> None:
        out.collect((ids(pattern),))
        out.collect({"text": "again"})


class RichFlatSelect(RichPatternFlatSelectFunction):
    """Gives nothing for matches that begin at 1."""

    def open(self, context: Any = None) -> None:
        self.unwanted = 1

    def flatSelect(self, pattern: Any, out: Any) -> None:
        if pattern["a"][0].ts != self.unwanted:
            out.collect((ids(pattern),))


class Process(PatternProcessFunction):
    """Tells the time."""

    def processMatch(self, match: Any, ctx: Any, out: Any) -> None:
        now = ctx.currentProcessingTime()
        assert now >= 1_700_000_000_000
        out.collect(Row(text=f"{ids(match)} at {ctx.timestamp()}"))


def yielding(match: Any, out: Any) -> Any:
    """Collect a row and yield another."""
    out.collect("first")
    yield (ids(match),)


class Timeout(PatternTimeoutFunction):
    """Gives a row of a timeout."""

    def timeout(self, pattern: Any, timeoutTimestamp: int) -> Any:
        return ids(pattern), timeoutTimestamp


class FlatTimeout(PatternFlatTimeoutFunction):
    """Gives the rows of a timeout."""

    def timeout(self, pattern: Any, timeoutTimestamp: int, out: Any) -> None:
        out.collect((ids(pattern), timeoutTimestamp))


class Everything(PatternProcessFunction, TimedOutPartialMatchHandler):
    """Writes to two side outputs."""

    matches = OutputTag("matches", "match map<string, array<bigint>>")
    outputTags = (matches, TIMEOUTS)

    def processMatch(self, match: Any, ctx: Any, out: Any) -> None:
        out.collect(ids(match))
        found = {stage: [event.ts for event in taken] for stage, taken in match.items()}
        ctx.output(self.matches, (found,))

    def processTimedOutMatch(self, match: Any, ctx: Any) -> None:
        ctx.output(TIMEOUTS, (ids(match), ctx.timestamp()))


def test_functions_of_every_kind(spark: SparkSession, frame: DataFrame) -> None:
    """Callables and Flink's function objects give rows as tuples, lists, dicts, Rows or values."""
    stream, schema = on(frame, a_then_b(), "user"), "text string"
    results = [
        stream.select(ids, schema),
        stream.select(Select(), schema),
        stream.select(function=RichSelect(), schema=schema),
        stream.flatSelect(lambda match, out: out.collect(ids(match)), schema),
        stream.flatSelect(FlatSelect(), schema),
        stream.flatSelect(RichFlatSelect(), schema),
        stream.process(lambda match, ctx, out: out.collect(str(ctx.timestamp())), schema),
        stream.process(Process(), schema),
        stream.flatSelect(lambda match, out: [(ids(match),), ("listed",)], schema),
        stream.flatSelect(yielding, schema),
    ]
    union = results[0].union(results[1])
    for result in results[2:]:
        union = union.union(result)

    assert [row.text for row in union.collect()] == [
        *["a=1 b=2", "a=4 b=6"],
        *["a=1 b=2", "a=4 b=6"],
        *["a=1 b=2 in CEP: a ⇒ b", "a=4 b=6 in CEP: a ⇒ b"],
        *["a=1 b=2", "a=4 b=6"],
        *["a=1 b=2", "again", "a=4 b=6", "again"],
        "a=4 b=6",
        *["2", "6"],
        *["a=1 b=2 at 2", "a=4 b=6 at 6"],
        *["a=1 b=2", "listed", "a=4 b=6", "listed"],
        *["first", "a=1 b=2", "first", "a=4 b=6"],
    ]


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("plain", [False, True])
def test_timeouts_have_a_side_output(frame: DataFrame, flat: bool, plain: bool) -> None:
    """select and flatSelect give timeouts, with the end of the window, to the tag's output."""
    stream = on(frame, windowed(), "user")
    if flat:
        timeout = (lambda m, at, out: out.collect((ids(m), at))) if plain else FlatTimeout()
        select = (lambda m, out: out.collect(ids(m))) if plain else RichFlatSelect()
        result = stream.flatSelect(TIMEOUTS, timeout, select, "text string")
    else:
        timeout = (lambda m, at: (ids(m), at)) if plain else Timeout()
        select = ids if plain else Select()
        result = stream.select(
            outputTag=TIMEOUTS, timeoutFunction=timeout, function=select, schema="text string"
        )

    assert result.count() == (1 if flat and not plain else 2)
    assert sorted(map(tuple, result.getSideOutput(TIMEOUTS).collect())) == [("a=50", 60)]


def test_all_outputs_of_one_run(spark: SparkSession, frame: DataFrame) -> None:
    """tagged() has a row for each result: its tag, and the struct of its output, others null."""
    result = on(frame.where("user = 'u'"), windowed(), "user").process(Everything(), "text string")
    tagged = result.tagged()

    assert tagged.columns == ["tag", "main", "matches", "timeouts"]
    assert sorted(map(tuple, tagged.collect()), key=str) == sorted(
        [
            ("main", Row(text="a=1 b=2"), None, None),
            ("main", Row(text="a=4 b=6"), None, None),
            ("matches", None, Row(match={"a": [1], "b": [2]}), None),
            ("matches", None, Row(match={"a": [4], "b": [6]}), None),
            ("timeouts", None, None, Row(text="a=50", at=60)),
        ],
        key=str,
    )
    assert result.schema.simpleString() == "struct<text:string>"
    assert result.getSideOutput(Everything.matches).schema.simpleString() == (
        "struct<match:map<string,array<bigint>>>"
    )


def test_tagged_without_side_outputs(frame: DataFrame) -> None:
    """A result without side outputs can be tagged too."""
    tagged = on(frame, a_then_b(), "user").select(ids, "text string").tagged()

    assert tagged.collect() == [
        Row(tag="main", main=Row(text="a=1 b=2")),
        Row(tag="main", main=Row(text="a=4 b=6")),
    ]


def test_late_data_has_an_empty_output(frame: DataFrame) -> None:
    """A bounded DataFrame has no late events, but the output exists, with the events' schema."""
    tag = OutputTag("late")
    result = on(frame, a_then_b(), "user").sideOutputLateData(tag).toDF()
    late = result.getSideOutput(tag)

    assert late.schema == frame.schema
    assert (late.collect(), result.count()) == ([], 2)


def test_to_df_with_timeouts(frame: DataFrame) -> None:
    """toDF(tag) has timeouts with their key, end of window, and empty stages as empty arrays."""
    tag = OutputTag("timeouts")
    result = on(frame.where("user = 'u'"), windowed(), "user").toDF(timeoutTag=tag)
    side = result.getSideOutput(tag)

    assert side.columns == ["user", "timeoutTimestamp", "a", "b"]
    assert side.selectExpr(
        "user", "timeoutTimestamp AS at", "a.ts AS a", "b.ts AS b"
    ).collect() == [Row(user="u", at=60, a=[50], b=[])]
    assert result.selectExpr("matchTimestamp AS at", "a.ts AS a", "b.ts AS b").collect() == [
        Row(at=2, a=[1], b=[2]),
        Row(at=6, a=[4], b=[6]),
    ]


def test_stages_of_to_df(spark: SparkSession) -> None:
    """Stages are in pattern order, groups opened; optional ones and other
    alternatives empty, negated ones absent."""
    group = Pattern.begin("g1").where("name = 'a'").followedBy("g2").where("name = 'b'").optional()
    choice = Pattern.oneOf(
        Pattern.begin("c").where("name = 'c'"), Pattern.begin("x").where("name = 'x'")
    )
    pattern = Pattern.begin(group).next(choice).notFollowedBy("n").where(
        "name = 'n'"
    ).followedBy("d")  # fmt: skip
    found = on(events(spark, "u:a u:c u:d"), pattern).toDF()

    assert found.columns == ["matchTimestamp", "g1", "g2", "c", "x", "d"]
    assert [len(column) for column in found.collect()[0][1:]] == [1, 0, 1, 0, 1]


def test_the_time_of_a_match_that_waited(spark: SparkSession) -> None:
    """It is the end of the match's window, whether a later event releases it or the end of input."""
    pattern = Pattern.begin("a").where("name = 'a'").notFollowedBy("b").where("name = 'b'")
    pattern = pattern.within(timedelta(milliseconds=4))
    frame = events(spark, "u:a@1 u:a@3 u:b@4 u:a@10 u:c@20 u:a@30")
    dated = frame.withColumn("at", F.expr("timestamp_millis(ts)"))

    whole = on(frame, pattern).toDF().collect()
    times = on(dated, pattern, time="at").toDF().select(F.unix_millis("matchTimestamp")).collect()
    assert sorted(row.matchTimestamp for row in whole) == [14, 34]
    assert sorted(row[0] for row in times) == [14, 34]


class Counted(RichIterativeCondition):
    """A condition that must be open when it is asked, in a named task."""

    def open(self, context: Any = None) -> None:
        self.task = context.getTaskName()

    def filter(self, value: Any, ctx: Any) -> bool:
        return value.name == "a" and self.task == self.getRuntimeContext().getTaskName() == "CEP: a"


def test_rich_conditions_are_opened(frame: DataFrame) -> None:
    """A Rich condition is opened on the worker, with the pattern as its task."""
    found = on(frame, Pattern.begin("a").where(Counted()), "user").select(ids, "text string")

    assert found.count() == 4


# --- the result as a DataFrame
