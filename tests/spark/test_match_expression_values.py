# SPDX-License-Identifier: Apache-2.0
"""The values of SQL over earlier stages follow Spark's own rules: null, NaN, overflow, types."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from functools import reduce

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pyflinkcep import CEP, Pattern, matchRecognize
from pyflinkcep.sase import parse
from tests.spark.support import QUICK_FOR_MANY_PLANS, configured, failure, ids, in_one_job, on

A, B = "kind = 'a'", "kind = 'b'"
NAN, BIG = math.nan, 2**62
TAKEN: Mapping[str, tuple[list[tuple[float | None, int | None]], tuple[float | None, int | None]]] = {
    "nothing": ([], (1.0, 1)),
    "plain": ([(1.0, 1), (2.0, 2)], (1.5, 3)),
    "nan": ([(NAN, 1), (1.0, None)], (NAN, None)),
    "nan later": ([(1.0, 4), (NAN, 1)], (2.0, 2)),
    "nulls": ([(None, None)], (0.0, 0)),
    "some nulls": ([(None, 5), (-0.0, 7), (math.inf, -7)], (0.0, -3)),
    "large": ([(0.1, BIG), (0.2, BIG)], (0.3, 2**63 - 1)),
    "small": ([(1e308, -(2**63)), (1e308, 0)], (-math.inf, -1)),
}  # fmt: skip
RULES = (
    "w > max(a.v)", "w >= max(a.v)", "w < min(a.v)", "w <= min(a.v)", "w = max(a.v)",
    "w <=> max(a.v)", "w <> min(a.v)", "m > avg(a.n)", "sum(a.n) > m", "sum(a.v) <=> w",
    "count(a.v) = 1", "count(a.n) + 1 > m", "w > avg(a.v)", "avg(a.n) / m > 0",
    "sum(a.n) % m = 1", "max(a.n) % 3 = 1", "-3 % max(a.n) = -3", "w % max(a.v) = 0",
    "min(a.n) / m < 0 or count(a.v) = 0", "max(a.n) is null", "coalesce(max(a.n), m) > 2",
    "coalesce(avg(a.n), m, 0.5) < 2", "not (w > max(a.v))", "w > max(a.v) or m > 0",
    "(w > max(a.v) and m > 0) is null", "(w > max(a.v) or m > 0) is not null",
    "w between min(a.v) and max(a.v)", "m not between min(a.n) and 3", "-sum(a.n) < m",
    "-min(a.n) < 0", "sum(a.n) + m > 0", "sum(a.n) - m > 0", "sum(a.n) * 2 > 0",
    "max(a.n) * max(a.n) = 0", "0.1 + avg(a.v) > w", "sum(a.v) > 1e308", "max(a.v) / 0 is null",
    "min(a.n) <=> null", "max(a.n) > w", "m / count(a.v) > 0", "max(a.v) = max(a.v)",
    "abs(min(a.n)) > 6", "abs(w - max(a.v)) < 1", "max(a.n) div 2 = 1", "-7 div m < min(a.n)",
    "mod(sum(a.n), 3) = 0", "max(a.n) in (2, 7, m)", "m not in (max(a.n), 1, null)",
    "case when max(a.n) > 2 then m when w > 1 then 1 end = 1",
    "case count(a.v) when 1 then 'one' when 2 then 'two' else 'more' end like '%o%'",
    "if(w > avg(a.v), min(a.n), m) > 0", "nullif(max(a.n), m) is null", "nvl(max(a.n), 4) = 4",
    "greatest(max(a.n), m) = m", "least(min(a.v), w, 0) < 0", "isnull(max(a.v)) is false",
    "(w > max(a.v)) is not true", "(w > max(a.v)) is unknown", "w is distinct from max(a.v)",
    "count(a.n) * 0.1 = 0.2", "sum(a.n) + 0.25 > 3", "m * 0.1 < avg(a.n)", "avg(a.v) = 1.5",
    "cast(m % 100 as decimal(4,1)) >= min(cast(a.n % 100 as decimal(5,2)))",
    "concat('x', if(max(a.n) > 3, 'y', 'z')) = 'xy'", "if(count(a.n) > 1, 'a_c', 'abc') like 'a\\\\_c'",
)  # fmt: skip


@pytest.fixture(scope="module")
def taken(spark: SparkSession) -> DataFrame:
    """Return a start, what is taken and the event that is tested, for each case."""
    rows = []
    for key, (before, tested) in TAKEN.items():
        whole = [("s", None, None, None, None), *(("a", v, n, None, None) for v, n in before)]
        whole.append(("b", None, None, *tested))
        rows += [(key, ts, *row) for ts, row in enumerate(whole, 1)]
    schema = "key string, ts bigint, kind string, v double, n bigint, w double, m bigint"
    return spark.createDataFrame(rows, schema)


def after_all(condition: str) -> Pattern:
    """Return the pattern: a start, everything that is taken, and the event that is tested."""
    a = Pattern.begin("s").where("kind = 's'").next("a").where(A).oneOrMore().consecutive()
    return a.optional().next("b").where(B).where(condition)


def test_values_follow_sparks_rules(spark: SparkSession, taken: DataFrame) -> None:
    """Nulls, NaN, overflow and division by zero: as Spark SQL's own aggregates, without ANSI."""
    with configured(spark, {"spark.sql.ansi.enabled": "false"}):
        a = taken.where(A).select("key", "v", "n").alias("a")
        tested = taken.where(B).select("key", "w", "m").alias("tested")
        joined = tested.join(a, F.col("a.key") == F.col("tested.key"), "left")
        answers = [F.expr(rule).alias(rule) for rule in RULES]
        rows = joined.groupBy("tested.key", "w", "m").agg(*answers).collect()
        expected = {rule: sorted(row["key"] for row in rows if row[rule]) for rule in RULES}
        found = in_one_job(
            {
                rule: on(taken, after_all(rule), "key").select(lambda m: m["s"][0].key, "k string")
                for rule in RULES
            }
        )

    assert {rule: sorted(keys) for rule, keys in found.items()} == expected
    assert sum(map(len, expected.values())) > 2 * len(RULES)


@pytest.mark.parametrize(
    ("condition", "key", "said"),
    [
        ("m / max(a.n) > 0", "zero", "division by zero"),
        ("m % max(a.n) > 0", "zero", "division by zero"),
        ("sum(a.n) > m", "large", "overflow: the result does not fit bigint"),
        ("max(a.n) + m > 0", "large", "overflow: the result does not fit bigint"),
    ],
)
def test_with_ansi_there_are_errors(
    spark: SparkSession, taken: DataFrame, condition: str, key: str, said: str
) -> None:
    """As in Spark's default mode, in which the query itself would fail: stage and time are named."""
    of_key = taken.where(F.col("key") == key)
    if key == "zero":
        row = spark.createDataFrame([("zero", 2, "a", 0.0, 0, None, None)], taken.schema)
        of_key = taken.where("key = 'plain' and kind <> 'a'").unionAll(row)
        of_key = of_key.withColumn("key", F.lit("zero"))
    text = failure(on(of_key, after_all(condition), "key").select(ids, "text string"))

    assert text.startswith(f"ConditionError: the condition {condition!r} failed. {said}")
    assert f"stage 'b', key {{'key': '{key}'}}, event time" in text


def test_other_types(spark: SparkSession) -> None:
    """Strings, times, dates and booleans are compared and kept; narrow numbers are widened."""
    rows = [(1, "x", True, 1.5), (2, "é", None, 2.5), (3, "z", False, 2.5)]
    frame = spark.createDataFrame(rows, "ts bigint, s string, b boolean, f double").selectExpr(
        "ts", "s", "b", "cast(f as float) f", "cast(ts as decimal(10,2)) p", "cast(ts as smallint) i", "timestamp_seconds(ts) t",
        "to_timestamp_ntz(cast(timestamp_seconds(ts) as string)) z", "date_add(date'1969-12-31', cast(ts as int)) d",
    )  # fmt: skip
    holds = [
        "s > max(a.s) or s = 'é'", "s < 'é' or last(a.s) < s", "t > last(a.t) and first(a.t) < t",
        "z > max(a.z)", "d > last(a.d) and min(a.d) = date'1970-01-01'", "first(a.b)",
        "last(a.b) is null or last(a.b)", "b <=> last(a.b) or not b or b is null",
        "f >= max(a.f)", "i > sum(a.i) - 2 and i > last(a.i)", "count(a.s) = i - 1",
        "t - interval 1 second <= last(a.t)", "last(a.t) < timestamp'2000-01-01'",
        "t - last(a.t) = interval '1' second", "z - last(a.z) < interval '00:01' hour to minute",
        "timestampdiff(SECOND, last(a.t), t) = 1", "d - last(a.d) = interval 1 day",
        "timestampdiff(HOUR, t, last(a.t) + interval '25' hour) = 24", "datediff(d, last(a.d)) = 1",
        "last(a.t) + interval '1' second = t", "last(a.t) + interval '1' month > t",
        "timestampadd(SECOND, 1, first(a.t)) = t", "cast(last(a.i) as string) = '1'",
        "s || last(a.s) = 'éx'", "last(a.s) in ('x', s)", "last(a.s) like '_' and s not like 'e'",
        "upper(first(a.s)) = 'X'", "second(last(a.t)) = 1", "last(a.p) < p and max(a.p) < 2.5",
        "case when last(a.b) then f else 0 end = 2.5", "last(a.i)::double / 2 = 0.5D",
        "f - last(a.f) > 0.5 and i - last(a.i) < 1.5", "(t - last(a.t)) * 60 = interval 1 minute",
    ]  # fmt: skip

    def all_hold(texts: list[str]) -> Pattern:
        return reduce(Pattern.where, texts, Pattern.begin("a").where("ts = 1").next("a2"))

    some = {"; ".join(holds[at : at + 6]): holds[at : at + 6] for at in range(0, len(holds), 6)}
    found = in_one_job(
        {
            name: on(frame, all_hold(texts)).select(ids, "text string")
            for name, texts in some.items()
        }
    )

    assert found == {name: ["a=1 a2=2"] for name in some}


def test_days_are_those_of_the_session(spark: SparkSession) -> None:
    """Where clocks change, Spark counts local days and hours; so do conditions over stages."""
    rules = [
        "t - {a} = interval '1' day", "timestampdiff(HOUR, {a}, t) = 24", "{a} + interval 1 day = t",
        "{a} + interval 23 hours = t", "timestampadd(DAY, 1, {a}) = t", "datediff(t, {a}) = 1",
        "coalesce({a}, t) + interval '82800' second = t",
    ]  # fmt: skip
    with configured(spark, {"spark.sql.session.timeZone": "Europe/Berlin"}):
        times = spark.sql("select timestamp'2026-03-28 12:00' a, timestamp'2026-03-29 12:00' t")
        (row,) = times.selectExpr(*(rule.format(a="a") for rule in rules)).collect()
        frame = times.selectExpr("stack(2, 1L, a, 2L, t) as (ts, t)")
        found = in_one_job(
            {
                rule: on(
                    frame,
                    Pattern.begin("a").where("ts = 1").next("b").where(rule.format(a="last(a.t)")),
                ).select(ids, "text string")
                for rule in rules
            }
        )

    expected = {rule: ["a=1 b=2"] * bool(holds) for rule, holds in zip(rules, row, strict=True)}
    assert (found, sum(map(bool, row))) == (expected, 7)


ZONED = (
    "{b}.t > {a}.t + interval '30' minute and {b}.t < timestamp'2026-03-29 03:30'",
    "{b}.t - {a}.t > interval '45' minute and {a}.t >= timestamp'2026-03-29 00:20:00Z'",
    "{b}.t > {a}.t and {a}.t < timestamp'2026-03-29 01:45:00+01:00'",
    "{b}.z >= {a}.z + interval '1' hour and {b}.z < timestamp_ntz'2026-03-29 04:00'",
    "{b}.t >= {a}.t and {b}.t < timestamp'2026-03-28 20:50:00 America/New_York'",
    "timestampdiff(MINUTE, {a}.t, {b}.t) between 25 and 45 and {b}.d > date'2026-03-28'",
    "{b}.t > {a}.t + interval '1' hour and {a}.d < date'2026-03-30'",
    "coalesce({a}.t, {b}.t) < timestamp'2026-03-29 03:30' and {a}.z < {b}.z",
)

IN_QUERIES = (0, 1, 2, 6, 7)
"""Those that queries can say: no names of zones, TIMESTAMP_NTZ or TIMESTAMPDIFF."""


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_literal_times_in_three_languages(spark: SparkSession, ansi: str) -> None:
    """With and without a zone, where clocks change: as Spark answers over both events."""

    def condition(a: str, b: str, rules: Collection[int] = range(len(ZONED))) -> str:
        tests = (f"({{b}}.rule = {n} and {ZONED[n]})" for n in rules)
        return re.sub(
            r"\{(.)\}\.(\w+)",
            lambda m: (a if m[1] == "a" else b).format(m[2]),
            f"({' or '.join(tests)})",
        )

    times = "struct({0} AS t, cast({0} AS timestamp_ntz) AS z, cast({0} AS date) AS d, rule)"
    first = "timestamp'2026-03-28 23:30:00Z' + make_dt_interval(0, 0, 12 * (k div 8))"
    later = f"{first} + make_dt_interval(0, 0, k * 7 % 13 * 8)"
    zone = {"spark.sql.session.timeZone": "Europe/Berlin", "spark.sql.ansi.enabled": ansi}
    with configured(spark, {**QUICK_FOR_MANY_PLANS, **zone}):
        numbers = spark.range(160).selectExpr("id AS k", "int(id) AS n", "id % 8 AS rule")
        both = f"{times.format(first)} AS a", f"{times.format(later)} AS b"
        pairs = numbers.selectExpr("k", *(side.replace("k ", "n ") for side in both))
        events = pairs.selectExpr("k", "stack(2, 'A', a, 'B', b) AS (kind, e)")
        events = events.selectExpr("k", "kind", "bigint(ascii(kind)) AS ts", "e.*")
        pattern = Pattern.begin("a").where("kind = 'A'").next("b")
        pattern = pattern.where(condition("last(a.{})", "{}"))
        query = (
            f"PATTERN SEQ(A a, B b) WHERE [k] AND {condition('a.{}', 'b.{}', IN_QUERIES)} WITHIN 5"
        )
        clause = f"""PARTITION BY k ORDER BY ts MEASURES A.ts AS a PATTERN (A B)
            DEFINE A AS kind = 'A', B AS {condition("A.{}", "B.{}")}"""
        rows = pairs.where(condition("a.{}", "b.{}")).select("k", "a.rule").collect()
        queried = CEP.pattern(events, parse(query), type="kind").inEventTime("ts").toDF()
        found = in_one_job(
            {
                "stages": on(events, pattern, "k").toDF().selectExpr("string(a[0].k) AS k"),
                "query": queried.selectExpr("string(a[0].k) AS k"),
                "flink": matchRecognize(events, clause).selectExpr("string(k) AS k"),
                "standard": matchRecognize(events, clause, "standard").selectExpr("string(k) AS k"),
            }
        )
    expected = dict.fromkeys(found, sorted(str(k) for k, _ in rows))
    expected["query"] = sorted(str(k) for k, rule in rows if rule in IN_QUERIES)
    assert {name: sorted(keys) for name, keys in found.items()} == expected
    assert {n for _, n in rows} == set(range(len(ZONED)))
    assert len(rows) < 120
