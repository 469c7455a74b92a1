# SPDX-License-Identifier: Apache-2.0
"""Conditions that only Spark can evaluate, in ``match`` while a session runs."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import attrs
import pyarrow as pa
import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from pyflinkcep import CEP, Pattern, keyBy
from pyflinkcep.errors import ConditionError, InvalidArgumentError
from pyflinkcep.testing import OperatorTestHarness, match


@attrs.frozen
class Event:
    """An event."""

    name: str
    price: int


EVENTS = [("Robert", 3), ("Rupert", 5), ("Anna", 9)]


@pytest.mark.parametrize(
    "kind", [Event, Row("name", "price"), lambda n, p: {"name": n, "price": p}]
)
def test_spark_is_asked(spark: SparkSession, kind: object) -> None:
    """Columns, and SQL that Python cannot evaluate, are answered by the running session."""
    pattern = Pattern.begin("x").where("soundex(name) = 'R163'").next("y").where(F.col("price") > 8)
    events = [kind(*event) for event in EVENTS]  # type: ignore[operator]

    assert match(pattern, events) == [{"x": [events[1]], "y": [events[2]]}]


@pytest.mark.parametrize(
    ("condition", "event"),
    [
        ("no_such_function(n) > 1", {"n": 1}),
        ("hash(no_such_column) > 1", {"n": 1}),
        ("hash(n) > 1", {"n": None}),
        ("hash(n) > 1", {"n": object()}),
        ("assert_true(n > 1) IS NULL", {"n": 1}),
    ],
)
def test_what_spark_cannot_answer_is_an_error_of_the_condition(
    spark: SparkSession, condition: str, event: dict[str, object]
) -> None:
    """It names the condition, has a hint, and is none of PySpark's own."""
    for events in ([event], [event] * 3):
        with pytest.raises(ConditionError, match=re.escape(condition)) as raised:
            match(Pattern.begin("x").where(condition), events)
        assert raised.value.hint


def test_spark_is_asked_event_by_event(spark: SparkSession) -> None:
    """Events that are fed by hand are asked for one by one."""
    harness = OperatorTestHarness(Pattern.begin("x").where(F.col("price") > 4))
    for time, event in enumerate(EVENTS[:2]):
        harness.processElement(Event(*event), time)
    harness.close()

    assert [time for _, time, _ in harness.matches] == [1]


def test_a_dataframe_of_spark_is_not_in_memory(spark: SparkSession) -> None:
    """``match`` of a DataFrame says how to go on."""
    with pytest.raises(InvalidArgumentError, match="got a DataFrame of Spark") as caught:
        match(Pattern.begin("x"), spark.range(3))

    assert "collect()" in str(caught.value.hint)


def test_columns_of_matches_are_those_of_a_job(spark: SparkSession) -> None:
    """The names, types, order and values of ``toArrow()`` are those of ``toDF()``."""
    size = 40
    table = pa.table(
        {
            "key": [None if n % 4 == 3 else f"k{n % 4}" for n in range(size)],
            "ts": pa.array(
                [datetime(1969, 12, 31, 23, 59, tzinfo=UTC) + timedelta(seconds=7 * n % 50)
                 for n in range(size)],
                pa.timestamp("us", "UTC"),
            ),
            "n": pa.array([n % 5 for n in range(size)], pa.int32()),
            "x": [None if n % 7 == 0 else n / 4 for n in range(size)],
            "items": [[n, None] for n in range(size)],
            "inner": [{"y": n} for n in range(size)],
        }
    )  # fmt: skip
    pattern = Pattern.begin("a").where("n = 1").followedBy("b").where("n > last(a.n)").oneOrMore()
    pattern = pattern.notFollowedBy("c").where("x > 8").within(timedelta(seconds=20))
    events = spark.createDataFrame(table).coalesce(1)
    job = CEP.pattern(keyBy(events, "key"), pattern).inEventTime("ts").toDF().toArrow()
    found = match(pattern, table, timestamp="ts", key="key").toArrow()

    assert found.num_rows > 5
    types = [str(field.type).replace("<item: ", "<element: ") for field in found.schema]
    assert types == [str(field.type) for field in job.schema]
    assert found.column_names == job.column_names
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, job.to_pylist()))
