# SPDX-License-Identifier: Apache-2.0
"""More conditions than one number has bits."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from pyflinkcep import InputError, Pattern
from tests.spark.support import ids, on

STAGES = 100


def chain(condition: Any) -> Pattern:
    """Return a pattern of stages that follow each other, each with a condition of its own."""
    pattern: Any = Pattern.begin("s0").where(condition(0))
    for number in range(1, STAGES):
        pattern = pattern.followedBy(f"s{number}").where(condition(number))
    result: Pattern = pattern
    return result


def test_sql(spark: SparkSession) -> None:
    """Each condition is evaluated by Spark, however many there are."""
    events = spark.range(2 * STAGES).selectExpr("id ts", "id div 2 n")
    rows = on(events, chain(lambda number: f"n = {number}")).select(ids, "text string").collect()

    # the first of two events is passed by or taken for each stage; the second is too late
    wanted = {
        " ".join(f"s{n}={2 * n + (n == 0 and late)}" for n in range(STAGES)) for late in (0, 1)
    }
    assert {row.text for row in rows} == wanted


def test_mistakes_are_named(spark: SparkSession) -> None:
    """A wrong condition is refused as any other is, wherever it stands."""
    events = spark.range(3).selectExpr("id ts", "id n")
    pattern = chain(lambda number: f"n = {number}" if number < STAGES - 1 else "m = 1")

    with pytest.raises(InputError, match="'m = 1' cannot be evaluated"):
        on(events, pattern).toDF()
