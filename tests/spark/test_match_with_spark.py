# SPDX-License-Identifier: Apache-2.0
"""Conditions that only Spark can evaluate, in ``match`` while a session runs."""

from __future__ import annotations

import attrs
import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from pyflinkcep import Pattern
from pyflinkcep.errors import InvalidArgumentError
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
