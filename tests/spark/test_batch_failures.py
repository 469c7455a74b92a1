# SPDX-License-Identifier: Apache-2.0
"""Failures on the workers: their text says what failed, in which pattern, stage, key and time."""

from __future__ import annotations

import traceback
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pyflinkcep import (
    AfterMatchSkipStrategy,
    FunctionError,
    OutputTag,
    Pattern,
    PatternProcessFunction,
    RichIterativeCondition,
    RichPatternSelectFunction,
    cepError,
)
from tests.spark.support import a_then_b, columns, events, failure, ids, on


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    """Return events of one user, a match among them."""
    return events(spark, "u:a u:b")


class Undeclared(PatternProcessFunction):
    """Writes to a tag that it does not list."""

    def processMatch(self, match: Any, ctx: Any, out: Any) -> None:
        ctx.output(OutputTag("other"), (1,))


def test_null_event_times(frame: DataFrame) -> None:
    """A null time is an error that names column and key; no event is dropped silently."""
    nulls = columns(frame, at="timestamp_millis(nullif(ts, 2))")
    message = failure(on(nulls, a_then_b(), "user", "name", time="at").toDF())

    assert message.startswith(
        "InputError: pattern a ⇒ b: null event time in column 'at' at key "
        "{'user': 'u', 'name': 'b'}"
    )


class Unopened(RichIterativeCondition):
    """A condition that cannot be opened."""

    def open(self, context: Any = None) -> None:
        raise OSError("no such file")

    def filter(self, value: Any, ctx: Any) -> bool:
        return True


class Unclosed(RichPatternSelectFunction):
    """A function that cannot be closed."""

    def select(self, pattern: Any) -> Any:
        return 1

    def close(self) -> None:
        raise OSError("lost")


def strict_skip() -> Pattern:
    """Return a pattern that throws where its skip target is missing."""
    skip = AfterMatchSkipStrategy.skipToFirst("b").throwExceptionOnMiss()
    pattern = Pattern.begin("a", skip).where("name = 'a'").next("b").where("price > 9").optional()
    return pattern.next("c").where("name = 'b'")


def never_ending() -> Pattern:
    """Return a pattern whose second stage takes no event."""
    return Pattern.begin("a").where("name = 'a'").followedBy("b").where("false")


def bad_comparator(one: Any, other: Any) -> Any:
    """Compare what cannot be compared."""
    return None + one.price


AT_WORK: dict[str, tuple[Any, str]] = {
    "condition raises": (
        lambda df: on(df, a_then_b(b=lambda e: e.price["x"]), "user").toDF(),
        "ConditionError: Failure happened in filter function. TypeError: "
        "'float' object is not subscriptable "
        "(pattern a ⇒ b, stage 'b', key {'user': 'u'}, event time 2 ms)",
    ),
    "condition returns no bool": (
        lambda df: on(df, a_then_b(b=lambda e: e.price), F.upper("user").alias("who")).toDF(),
        "expected a bool, got 0.0 (float) "
        "(pattern a ⇒ b, stage 'b', key {'who': 'U'}, event time 2 ms)",
    ),
    "condition without a key": (
        lambda df: on(df, a_then_b(lambda e: None)).toDF(),
        "expected a bool, got None (NoneType) (pattern a ⇒ b, stage 'a', event time 1 ms)",
    ),
    "select raises": (
        lambda df: on(df, a_then_b(), "user").select(lambda m: m["c"], "x int"),
        "KeyError: 'c' (pattern a ⇒ b, key {'user': 'u'}, event time 2 ms)",
    ),
    "timeout raises": (
        lambda df: on(df, never_ending().within(timedelta(seconds=1)), "user").select(
            OutputTag("t", "x int"), lambda m, at: 1 // 0, ids, "x string"
        ),
        "ZeroDivisionError: integer division or modulo by zero "
        "(pattern a → b, key {'user': 'u'}, event time 1001 ms)",
    ),
    "undeclared tag": (
        lambda df: on(df, a_then_b(), "user").process(Undeclared(), "x int"),
        "FunctionError: side output 'other' is not declared "
        "(pattern a ⇒ b, key {'user': 'u'}, event time 2 ms)",
    ),
    "condition cannot be opened": (
        lambda df: on(df, Pattern.begin("a").where(Unopened())).toDF(),
        "CepRuntimeError: a condition could not be opened. OSError: no such file (pattern a)",
    ),
    "function cannot be closed": (
        lambda df: on(df, a_then_b(), "user").select(Unclosed(), "x int"),
        "CepRuntimeError: a function could not be closed. OSError: lost (pattern a ⇒ b)",
    ),
    "skip target missing": (
        lambda df: on(df, strict_skip(), "user").toDF(),
        "SkipError: Could not skip to b. No such element in the found match",
    ),
    "comparator fails": (
        lambda df: on(
            columns(df, at="10L"), a_then_b(), "user", time="at", comparator=bad_comparator
        ).toDF(),
        "CepRuntimeError: the comparator failed. TypeError: unsupported operand",
    ),
}


@pytest.mark.parametrize("case", AT_WORK)
def test_failures_at_work(frame: DataFrame, case: str) -> None:
    """Whatever fails on a worker says in its text where: pattern, stage, key, event time."""
    make, message = AT_WORK[case]

    assert message in failure(make(frame))


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_a_function_that_exits(frame: DataFrame, error: type[BaseException]) -> None:
    """Leaving the process from a function is an error like any other: match, key and time named."""

    def leaves(match: Any) -> Any:
        raise error("enough")

    message = failure(on(frame, a_then_b(), "user").select(leaves, "x int"))

    assert message.startswith("FunctionError: ")
    assert (
        f"{error.__name__}: enough (pattern a ⇒ b, key {{'user': 'u'}}, event time 2 ms)" in message
    )


@pytest.mark.parametrize(
    ("error", "key"), [(SystemExit, "key {'user': 'u'}, "), (KeyboardInterrupt, "")]
)
def test_a_condition_that_exits(frame: DataFrame, error: type[BaseException], key: str) -> None:
    """The same of a condition: stage and time are named, of an exit the key too."""

    def leaves(event: Any) -> bool:
        raise error(3)

    message = failure(on(frame, a_then_b(b=leaves), "user").toDF())

    start = f"ConditionError: Failure happened in filter function. {error.__name__}: 3"
    assert message.startswith(start)
    assert f"(pattern a ⇒ b, stage 'b', {key}event time 2 ms)" in message
    assert "leaves at test_batch_failures.py:" in message


def test_what_the_driver_raises(spark: SparkSession, frame: DataFrame, tmp_path: Path) -> None:
    """A result's own actions raise the worker's error; that of others is found by cepError."""

    def broken(match: Any) -> Any:
        return match["c"]

    result = on(frame, a_then_b(), "user").select(broken, "n int")
    said = r"^broken at test_batch_failures.py:\d+ failed on the match .*: KeyError: 'c'"
    with pytest.raises(FunctionError, match=said) as acted:
        result.collect()
    with pytest.raises(FunctionError, match=said):
        result.write.parquet(str(tmp_path / "out"))
    with pytest.raises(PythonException) as derived:
        result.where("n > 1").collect()

    shown = "".join(traceback.format_exception(acted.value))
    assert "PythonException" not in shown
    assert "Traceback" not in str(acted.value)
    found = cepError(derived.value)
    assert isinstance(found, FunctionError)
    assert str(found) == str(acted.value)
    assert cepError(ValueError("not ours")) is None
