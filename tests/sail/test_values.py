# SPDX-License-Identifier: Apache-2.0
"""SQL about one event has on Sail the values that Spark gives it, or is refused by name."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from pyflinkcep import CEP, NotSupportedError, Pattern
from pyflinkcep.expressions.grammar import parsed
from pyflinkcep.expressions.parser import EventReader
from pyflinkcep.spark.plan.conditions import names_of, setting_of, sql_column
from pyflinkcep.spark.plan.portable import portable
from tests.expression_rules import CASES, OVERFLOWS
from tests.expression_rules import VALUES as RULE_VALUES
from tests.sail.spark_values import ERROR, ROWS, frame, recorded, shown, values
from tests.sail.test_recorded import pytestmark  # noqa: F401 - the same
from tests.spark_sql_cases import EVENT, SCHEMA, VALUES
from tests.unit.expressions.test_rules import same

REFUSED = 30
"""The most cases that may be refused; trunc() of a number is no SQL about one event."""
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


def test_recorded_values(spark: SparkSession) -> None:
    """Of values of 29 types, at their ends and NULL: Spark's value and type, or an error."""
    answers = recorded()
    asked, names, setting = {}, names_of(frame(spark).schema), setting_of(spark)
    for text, (type_, _) in answers.items():
        with contextlib.suppress(NotSupportedError):
            value = portable(EventReader(text).part(parsed(text)), names, setting)
            assert (text, value.type.sql) == (text, type_)
            asked[text] = value.sql
    differing: dict[str, Any] = {}

    def failing(text: str) -> list[int]:
        return [row for row, value in enumerate(answers[text][1]) if value == ERROR]

    def compare(texts: Sequence[str], rows: Sequence[int]) -> None:
        try:
            columns = [f"{asked[text]} AS v{number}" for number, text in enumerate(texts)]
            found = frame(spark, *rows).selectExpr(*columns).toArrow().columns
        except Exception as error:
            for half in (texts[: len(texts) // 2], texts[len(texts) // 2 :]):
                if len(texts) > 1:
                    compare(half, rows)
            if len(texts) == 1:
                differing[texts[0]] = str(error)[:80]
            return
        for text, column in zip(texts, found, strict=True):
            own = [shown(value) for value in column.to_pylist()]
            expected = [answers[text][1][row] for row in rows]
            if own != expected:
                differing[text] = (own, expected)

    for errors, group in groupby(sorted(asked, key=failing), failing):
        texts = list(group)
        if len(errors) < ROWS:
            compare(texts, [row for row in range(ROWS) if row not in errors])
        for text in texts if errors else ():
            with contextlib.suppress(Exception):
                differing[text] = (values(frame(spark, errors[0]), asked[text]), ERROR)

    assert differing == {}
    assert len(asked) > 3_500


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
    for written in ("initcap(A.s)", "initcap(FIRST(A.s))", "round(AVG(A.x), 1)"):
        asked = clause.replace("initcap(A.s)", written)
        with pytest.raises(NotSupportedError) as refused:
            CEP.sql(spark, f"SELECT * FROM values_events MATCH_RECOGNIZE ({asked})")
        assert f"measure m: Sail 0.7.2 does not compute {written} as Spark" in str(refused.value)
        assert "(at line 1, column" in str(refused.value)
    condition = "B AS concat_ws(A.s, B.s) RLIKE 'a'"
    clause = f"ORDER BY ts MEASURES A.s AS m PATTERN (A B) DEFINE A AS x > 0, {condition}"
    with pytest.raises(NotSupportedError, match=r"DEFINE B: .* compute concat_ws\(A\.s, B\.s\)"):
        CEP.sql(
            spark, f"SELECT * FROM values_events MATCH_RECOGNIZE ({clause})", dialect="standard"
        )
