# SPDX-License-Identifier: Apache-2.0
"""What users write: both type checkers accept every line. Checked, never run."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple, assert_type

import attrs
import numpy as np
import pandas as pd
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from pyflinkcep import (
    CEP,
    AfterMatchSkipStrategy,
    CepDataFrame,
    CompressedStream,
    Diagram,
    GroupPattern,
    IterativeCondition,
    OutputTag,
    Pattern,
    PatternProcessFunction,
    PatternSelectFunction,
    QueryStream,
    SaseQuery,
    SimpleCondition,
    Time,
    WithinType,
    diagram,
    keyBy,
    parse,
    seq,
    windowFunnel,
)
from pyflinkcep.charts import Chart, durations_chart, funnel_chart, timeline_chart
from pyflinkcep.testing import (
    Funnel,
    Matches,
    Record,
    Trace,
    WhyNot,
    assertMatches,
    funnel,
    match,
    matchSase,
    trace,
    whyNot,
)


class Trade(NamedTuple):
    """An event."""

    symbol: str
    price: float


@attrs.frozen
class Login:
    """An event."""

    user: str


class Above(IterativeCondition):
    """A condition object."""

    def filter(self, value: Any, ctx: Any) -> bool:
        return bool(value.price > 3)


def is_large(trade: Trade) -> bool:
    return trade.price > 3


def rises(trade: Any, ctx: Any) -> bool:
    return all(trade.price > earlier.price for earlier in ctx.getEventsForPattern("up"))


class First(PatternSelectFunction):
    def select(self, pattern: Any) -> tuple[str]:
        return (pattern["a"][0].symbol,)


class Every(PatternProcessFunction):
    def processMatch(self, match: Any, ctx: Any, out: Any) -> None:
        out.collect((1,))


def patterns() -> Pattern:
    single = Pattern.begin("a", AfterMatchSkipStrategy.skipPastLastEvent())
    assert_type(single.where("price > 3"), Pattern)
    assert_type(Pattern.begin(single), GroupPattern)
    assert_type(single.next(single), GroupPattern)
    assert_type(single.next("b").oneOrMore(), Pattern)
    looped = (
        single.where(lambda e: e.price > 3)
        .where(lambda e, ctx: e.price > 3)
        .where(is_large)
        .where(rises)
        .or_(Above())
        .or_(SimpleCondition.of(is_large))
        .or_(F.col("price") > 3)
        .subtype(Trade)
        .oneOrMore(timedelta(seconds=3))
        .until("price < 0")
        .greedy()
    )
    ranged = looped.followedBy("b").times(2, 4, Time.seconds(2)).consecutive()
    counted = ranged.followedByAny("c").times(np.int64(3)).allowCombinations().optional()
    choice = Pattern.oneOf(single, looped).oneOrMore().optional()
    assert_type(choice, GroupPattern)
    every = Pattern.allOf(single, choice, joinedBy="next").followedBy("y")
    counted = counted.followedBy(choice).next(every)
    end = counted.next("d").timesOrMore(2).followedBy(single.next("x")).times(0, 2)
    return end.notFollowedBy("e").within(timedelta(hours=1), WithinType.FIRST_AND_LAST)


def jobs(frame: DataFrame, late: OutputTag, schema: StructType) -> DataFrame:
    stream = CEP.pattern(keyBy(frame, "user", F.col("place")), patterns())
    stream = stream.inEventTime("ts").sideOutputLateData(late)
    select: Callable[[Any], tuple[int]] = lambda m: (1,)  # noqa: E731
    assert_type(stream.select(select, "n int"), CepDataFrame)
    stream.select(lambda m: Row(n=1), schema)
    stream.select(First(), "symbol string")
    stream.select(late, lambda m, at: {"n": at}, lambda m: (1,), "n int")
    stream.flatSelect(lambda m, out: out.collect((1,)), "n int")
    stream.process(Every(), "n int")
    stream.process(lambda m, ctx, out: out.collect((1,)), "n int")
    result = stream.select(function=First(), schema="symbol string")
    both: DataFrame = frame.union(result).transform(lambda df: df.where("true"))
    assert_type(result.getSideOutput(late), DataFrame)
    assert_type(result.withEventTime("ts"), CepDataFrame)
    result.persist().write.mode("overwrite").parquet("there")
    return both if result.isStreaming else result


def queries(frame: DataFrame, late: OutputTag) -> None:
    query = seq("A a", "B+ b[]").where("b[i].x > a.x").within(timedelta(minutes=1))
    assert_type(parse("PATTERN A;B"), SaseQuery)
    stream = CEP.pattern(
        keyBy(frame, "user"), query, type="kind", evaluation="backtracking", output="onePerStart",
        keyGroups=8, onPatternChange="restart",
    )  # fmt: skip
    assert_type(stream, QueryStream)
    stream = stream.inEventTime("ts").sideOutputLateData(late)
    assert_type(stream.toDF(), CepDataFrame)
    stream.select(lambda m: (len(m["a"]),), "n int")
    stream.flatSelect(lambda m, out: [(1,), (2,)], "n int")
    stream.process(lambda m, ctx, out: out.collect((1,)), "n int")
    assert_type(stream.compressed(), CompressedStream)
    assert_type(stream.compressed().count(), int)
    CEP.sase(frame.sparkSession, "FROM t PATTERN A;B", keyGroups=8, onPatternChange="fail")
    assert_type(matchSase(query, [{"type": "A"}]), list[dict[str, Any]])
    matchSase(query, [{"type": "A"}], compressed=True).count()
    CEP.sql(frame.sparkSession, "SELECT 1", dialect="standard")
    CEP.pattern(frame, patterns(), onTooManyPartialMatches="dropOldest", maxPartialMatches=5)
    match(patterns(), [{"user": "anna", "at": 3}], key=["user", "at"], evaluation="eventLists")


def lists(frame: pd.DataFrame) -> None:
    trades = match(patterns(), [Trade("x", 1.0)], timestamp=lambda t: int(t.price), key="symbol")
    assert_type(trades, Matches[Trade])
    assert_type(trades[0]["a"][0].price, float)
    assert_type(trades.timeouts[0].match["a"][0].symbol, str)
    assert_type(trades.late, list[Trade])
    assert_type(match(patterns(), [Login("anna")]), Matches[Login])
    assert_type(match(patterns(), [{"user": "anna", "at": 3}]), Matches[Record])
    match(patterns(), frame).timeouts.clear()
    columns: dict[str, list[Any]] = {"user": ["anna"], "at": [3]}
    match(patterns(), columns, "at").late.clear()
    assert_type(match(patterns(), "events.parquet", "at"), Matches[Record])
    assert_type(match(patterns(), Path("events"), "at")[0]["a"][0], Record)
    matchSase("PATTERN A;B WITHIN 5", frame)[0].keys()
    assertMatches(trades, [{"a": ["x"]}], by="symbol", ignoreOrder=True)


def shown(frame: DataFrame) -> None:
    assert_type(patterns().diagram(automaton=True), Diagram)
    assert_type(diagram("PATTERN (A B+)"), Diagram)
    diagram(parse("PATTERN A;B")).save("query.svg")
    found = trace(patterns(), [Trade("x", 1.0)], key="symbol", maxPartialMatches=5)
    assert_type(found, Trace)
    assert_type(found.partials[0].ending.event, int | None)
    found.diagram().save("trace.html")
    why = whyNot(patterns(), [{"user": "anna", "at": 3}], timestamp="at")
    assert_type(why, WhyNot)
    assert_type(why.advice, tuple[str, ...])
    stream = CEP.pattern(keyBy(frame, "user"), patterns())
    assert_type(stream.whyNot(key="anna", maxEvents=10), WhyNot)
    assert_type(stream.funnel(by=["user"], quantiles=(0.5, 1)), DataFrame)
    assert_type(stream.reached("user"), CepDataFrame)
    steps = windowFunnel(timedelta(1), {"a": "n = 1", "b": lambda e: e.n > 1}, "strict_once")
    counted = funnel(steps, [{"user": "anna", "at": 3}], "at", "user", by="user", quantiles=0.5)
    assert_type(counted, Funnel)
    assert_type(counted.diagram(), Chart)
    assert_type(funnel_chart(stream.funnel(), by="user").svg, str)
    timeline_chart(stream.toDF(), time="at", key="user").save("matches.svg")
    durations_chart(match(patterns(), [{"at": 3}]), time=lambda event: event.at, bins=9)
    stream.waiting("checkpoint", operatorId=1).show()
