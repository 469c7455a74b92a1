# SPDX-License-Identifier: Apache-2.0
"""SQL about one event has on Sail the values that Spark gives it, or is refused by name."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from pyflinkcep import CEP, NotSupportedError, Pattern
from pyflinkcep.spark.plan.portable.sql import sql_column
from tests.expression_rules import CASES, OVERFLOWS
from tests.expression_rules import VALUES as RULE_VALUES
from tests.sail.test_recorded import pytestmark  # noqa: F401 - the same
from tests.spark_sql_cases import EVENT, SCHEMA, VALUES
from tests.unit.expressions.test_rules import same

REFUSED = 20
"""The most cases that may be refused."""
FAILING = frozenset({
    "cast('5d' as double)", "un / zn", "un % zn", "power(zx, m)", "low div m",
})  # fmt: skip
"""What Sail fails on though Spark has a value."""


def check(events: Any, cases: dict[str, Any]) -> int:
    """Compare values with Spark's; return how many were refused."""
    refused, differing = 0, {}
    for text, expected in cases.items():
        try:
            column = sql_column(text, events).alias("v")
            found = events.select(column).collect()[0].v
        except NotSupportedError:
            refused += 1
        except Exception as error:
            if text not in FAILING:
                differing[text] = (str(error)[:80], expected)
        else:
            is_same = same(found, expected) if isinstance(expected, float) else found == expected
            if not is_same and not (found == expected == 0):
                differing[text] = (found, expected)
    assert differing == {}
    return refused


def test_values_are_sparks(spark: SparkSession) -> None:
    """NULL, NaN, zero, decimals, times, texts: as recorded of Spark, with ANSI and without."""
    events = spark.createDataFrame([tuple(EVENT.values())], SCHEMA)
    kinds = ", ".join(f"{name} {kind.value}" for name, (kind, _) in RULE_VALUES.items())
    row = tuple(value for _, value in RULE_VALUES.values())
    rules = spark.createDataFrame([row], kinds)

    refused = check(events, dict(VALUES))
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        refused += check(rules, CASES | OVERFLOWS)
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "true")

    assert refused <= REFUSED


def test_overflow_fails(spark: SparkSession) -> None:
    """Whole numbers out of their range are an error, in a value and beside a comparison."""
    most = {"n": pa.array([2**63 - 1]), "i": pa.array([2**31 - 1], pa.int32())}
    events = spark.createDataFrame(pa.table({"ts": pa.array([1]), **most}))

    for text in ("n + 1", "n * n", "-2 - n", "i + i", "i * 3", "cast(n AS int)"):
        for sql in (text, f"{text} > 0", f"{text} = 5", f"{text} IN (1, 2)"):
            with pytest.raises(Exception, match=r"[Cc]ast error|out of range|overflow"):
                events.select(sql_column(sql, events)).collect()
    pattern = Pattern.begin("a").where("n + i > 0")
    with pytest.raises(Exception, match="out of range"):
        CEP.pattern(events, pattern).inEventTime("ts").toDF().collect()


def test_one_nan(spark: SparkSession) -> None:
    """NaN equals itself and is the greatest number, whichever sign its bits have."""
    numbers = pa.array([math.copysign(math.nan, sign) for sign in (1, -1)])
    events = spark.createDataFrame(pa.table({"v": numbers}))
    asked = ("v = -v", "v > 1", "v IN (1, v)", "greatest(v, 1D) = v", "least(v, 1D) = 1D")

    rows = events.select(*(sql_column(text, events) for text in asked)).collect()

    assert [tuple(row) for row in rows] == [(True,) * len(asked)] * 2


def test_what_differs_is_refused(spark: SparkSession) -> None:
    """A condition or measure that Sail would compute otherwise is named before the job."""
    events = spark.createDataFrame([(1, "a", 0.5)], "ts bigint, s string, x double")
    texts = ("s rlike 'a.c'", "cast(x AS string) = '0.5'", "initcap(s) = 'A'")

    for text in texts:
        stream = CEP.pattern(events, Pattern.begin("a").where(text)).inEventTime("ts")
        with pytest.raises(NotSupportedError, match=r"Sail .* does not compute .* as Spark does"):
            stream.toDF()
    clause = "ORDER BY ts MEASURES initcap(A.s) AS m PATTERN (A) DEFINE A AS x > 0"
    events = events.selectExpr("timestamp_millis(ts) AS ts", "s", "x")
    events.createOrReplaceTempView("values_events")
    with pytest.raises(NotSupportedError, match=r"does not compute initcap"):
        CEP.sql(spark, f"SELECT * FROM values_events MATCH_RECOGNIZE ({clause})")
