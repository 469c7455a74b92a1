# SPDX-License-Identifier: Apache-2.0
"""What users mistype: both type checkers refuse every marked line. Checked, never run."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from pyflinkcep import CEP, OutputTag, Pattern, keyBy, parse
from pyflinkcep.testing import match


def one(m: Any) -> tuple[int]:
    return (1,)


def conditions(a: Pattern) -> None:
    a.where(42)  # type: ignore[arg-type]
    a.where(None)  # type: ignore[arg-type]
    a.where(["price > 3"])  # type: ignore[arg-type]
    a.or_(3.5)  # type: ignore[arg-type]
    a.oneOrMore().until(True)  # type: ignore[arg-type]
    a.subtype("Trade")  # type: ignore[arg-type]


def stages(a: Pattern) -> None:
    a.next(3)  # type: ignore[call-overload]
    a.notNext(a)  # type: ignore[arg-type]
    Pattern.begin("a", "SKIP")  # type: ignore[call-overload]
    a.within(10)  # type: ignore[arg-type]
    a.within(None, "FIRST_AND_LAST")  # type: ignore[arg-type]
    a.times("2")  # type: ignore[call-overload]
    a.times(1.5)  # type: ignore[call-overload]
    a.timesOrMore(None)  # type: ignore[arg-type]
    a.oneOrMore(5)  # type: ignore[arg-type]


def jobs(frame: DataFrame, a: Pattern, tag: OutputTag) -> None:
    OutputTag("x", 42)  # type: ignore[arg-type]
    stream = CEP.pattern(keyBy(frame, "user"), a)
    CEP.pattern(frame, "a")  # type: ignore[call-overload]
    stream.inEventTime(3)  # type: ignore[arg-type]
    stream.sideOutputLateData("late")  # type: ignore[arg-type]
    stream.select(42)  # type: ignore[call-overload]
    stream.select(42, "n int")  # type: ignore[call-overload]
    stream.select(one)  # type: ignore[call-overload]
    stream.select(one, 3)  # type: ignore[call-overload]
    stream.select(one, one, "n int")  # type: ignore[call-overload]
    stream.select(tag, one, "n int")  # type: ignore[call-overload]
    stream.flatSelect(42, "n int")  # type: ignore[call-overload]
    stream.flatSelect(one, "n int")  # type: ignore[arg-type]
    stream.process(42, "n int")  # type: ignore[arg-type]
    stream.process(one, "n int")  # type: ignore[arg-type]
    stream.select(one, "n int").getSideOutput("late")  # type: ignore[arg-type]
    stream.select(one, "n int").flush()  # type: ignore[call-arg]


def queries(frame: DataFrame, a: Pattern) -> None:
    query = parse("PATTERN A;B")
    CEP.pattern(frame, query, orderBy=["ts"])  # type: ignore[call-overload]
    CEP.pattern(frame, query, onTooManyPartialMatches="fail")  # type: ignore[call-overload]
    CEP.pattern(frame, query, output="first")  # type: ignore[call-overload]
    CEP.pattern(frame, query, evaluation="nfab")  # type: ignore[call-overload]
    CEP.pattern(frame, a, type="kind")  # type: ignore[call-overload]
    CEP.pattern(frame, a, output="all")  # type: ignore[call-overload]
    CEP.pattern(frame, a, evaluation="backtracking")  # type: ignore[call-overload]
    CEP.pattern(frame, a, onPatternChange="drop")  # type: ignore[call-overload]
    CEP.sql(frame.sparkSession, "SELECT 1", dialect="oracle")  # type: ignore[arg-type]
    query.within(None)  # type: ignore[arg-type]
    query.where(3)  # type: ignore[arg-type]


def lists(a: Pattern) -> None:
    match(None, [1])  # type: ignore[call-overload]
    match(a, 3)  # type: ignore[call-overload]
    match(a, [1], timestamp=3)  # type: ignore[call-overload]
    match(a, [1], delayThreshold=5)  # type: ignore[call-overload]
