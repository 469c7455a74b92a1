# SPDX-License-Identifier: Apache-2.0
"""Events and results of any schema, and conditions of every kind on them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession, Window
from pyspark.sql import functions as F

from pyflinkcep import IterativeCondition, OutputTag, Pattern, SimpleCondition
from tests.spark.support import a_then_b, configured, events, ids, in_one_job, on

WIDE = """
    ts bigint, user string, name string,
    b boolean, i8 tinyint, i16 smallint, i32 int, i64 bigint, f float, d double,
    dec decimal(38, 18), s string, bin binary, dt date, t timestamp, ntz timestamp_ntz,
    gap interval day to second, arr array<string>, map map<string, array<int>>,
    st struct<x: int, deep: struct<list: array<struct<y: double, z: decimal(5, 2)>>>>
"""
NOON = datetime(2024, 7, 1, 12, 30, 15, 123456)
FULL = (
    True, -128, 32767, -(2**31), 2**63 - 1, 1.5, 1e-300, Decimal("-1234567890.000000000000000001"),
    "naïve 字", b"\x00\xff", date(1969, 12, 31), NOON, NOON, timedelta(days=-1, microseconds=1),
    ["", None, "x"], {"k": [1, None], "empty": [], "null": None},
    Row(x=None, deep=Row(list=[Row(y=0.5, z=Decimal("1.25")), None])),
)  # fmt: skip
NULLS = (None,) * len(FULL)


def wide(spark: SparkSession) -> Any:
    """Return an event with a value of every type, and one with nulls."""
    rows = [(1, "u", "a", *FULL), (2, "u", "b", *NULLS), (3, "u", "a", *FULL), (4, "u", "b", *FULL)]
    return spark.createDataFrame(rows, WIDE)


@pytest.mark.parametrize(
    "settings",
    [
        {"spark.sql.execution.arrow.maxRecordsPerBatch": "1"},
        {"spark.sql.session.timeZone": "America/St_Johns"},
        {"spark.sql.execution.arrow.useLargeVarTypes": "true"},
    ],
    ids=lambda settings: next(iter(settings)).rsplit(".", 1)[-1],
)
def test_events_of_every_type(spark: SparkSession, settings: dict[str, str]) -> None:
    """Nested values, nulls, times of both kinds come out of toDF() as they went in."""
    with configured(spark, settings):
        frame = wide(spark)
        found = on(frame, a_then_b(), "user").toDF()
        given, rows = frame.collect(), found.collect()

        assert found.schema["a"].dataType.elementType == frame.schema
        assert [(row.matchTimestamp, row.a, row.b) for row in rows] == [
            (2, [given[0]], [given[1]]),
            (4, [given[2]], [given[3]]),
        ]


@pytest.mark.parametrize("zone", ["UTC", "America/St_Johns"])
def test_functions_see_what_collect_gives(spark: SparkSession, zone: str) -> None:
    """The Rows of conditions and functions hold the same Python values as collect(), both ways."""
    with configured(spark, {"spark.sql.session.timeZone": zone}):
        frame = wide(spark)
        full, empty = frame.collect()[:2]

        def same(event: Any) -> bool:
            return event == (full if event.ts == 1 else empty)

        pattern = Pattern.begin("a").where(same).next("b").where(same)
        found = on(frame.where("ts < 3"), pattern, "user").flatSelect(
            lambda match, out: [out.collect(rows[0]) for rows in match.values()], frame.schema
        )

        assert found.schema == frame.schema
        assert found.collect() == [full, empty]


def test_rows_are_rows(spark: SparkSession) -> None:
    """An event is a Row: by name, by position, as a dict; nested too."""
    seen = on(wide(spark).where("ts < 3"), a_then_b(), "user").select(
        lambda m: (
            isinstance(m["a"][0], Row),
            m["a"][0]["st"]["deep"].list[0].y,
            m["a"][0].asDict(recursive=True)["st"]["deep"]["list"][0]["z"],
            "dt" in m["a"][0],
            list(m),
        ),
        "row boolean, y double, z decimal(5,2), has boolean, stages array<string>",
    )

    assert seen.collect() == [Row(row=True, y=0.5, z=Decimal("1.25"), has=True, stages=["a", "b"])]


def test_any_column_name(spark: SparkSession) -> None:
    """Dots, backticks, spaces, capitals, reserved words and Row's own methods are but names."""
    names = ["ts", "User Name", "a.b", "back`tick", "SELECT", "count", "class", "ümlaut", "*", "1"]
    frame = spark.createDataFrame(
        [(1, "u", "x", 1, "y", 7, True, "é", "s", 2), (2, "u", "x", 1, "n", 8, True, "é", "s", 3)],
        "a bigint, b string, c string, d int, e string, f int, g boolean, h string, i string, j int",
    ).toDF(*names)
    pattern = (
        Pattern.begin("a")
        .where("`a.b` = 'x' AND `SELECT` = 'y' AND `back``tick` = 1 AND `1` = 2")
        .where(lambda e: e["count"] == 7 and e.SELECT == "y" and e["User Name"] == "u")
        .next("b")
        .where(F.col("`User Name`") == "u")
        .where(lambda e: e["a.b"] == "x" and getattr(e, "back`tick") == 1 and e["class"])
    )
    stream = on(frame, pattern, "User Name", "a.b", "back`tick", "*")
    selected = stream.select(lambda m: m["b"][0], frame.schema)

    assert stream.toDF().drop("a", "b").columns == [
        "User Name", "a.b", "back`tick", "*", "matchTimestamp",
    ]  # fmt: skip
    assert [row.a for row in stream.toDF().collect()] == [frame.collect()[:1]]
    assert selected.collect() == frame.collect()[1:]


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz"])
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_time_columns(spark: SparkSession, kind: str, zone: str) -> None:
    """Times with and without zone count alike before and after 1970, through DST changes."""
    times = ["1969-12-31 23:59:59.999999", "2024-03-10 03:30:00", "2024-11-03 01:30:00.000001"]
    with configured(spark, {"spark.sql.session.timeZone": zone}):
        frame = spark.createDataFrame([(at,) for at in reversed(times)], "text string")
        frame = frame.withColumn("at", F.col("text").cast(kind))
        pattern = Pattern.begin("x").next("y").next("z")
        stream = on(frame, pattern, time="at")
        found = stream.toDF().selectExpr(
            "x[0].text AS x", "z[0].text AS z", "matchTimestamp",
            "matchTimestamp = date_trunc('MILLISECOND', z[0].at) AS same",
        )  # fmt: skip
        told = stream.process(lambda m, ctx, out: out.collect((ctx.timestamp(),)), "ms bigint")
        micros = frame.selectExpr("unix_micros(cast(max(at) AS timestamp)) DIV 1000 AS ms").first()

        assert found.schema["matchTimestamp"].dataType.simpleString() == kind
        assert [(row.x, row.z, row.same) for row in found.collect()] == [(times[0], times[2], True)]
        if kind == "timestamp":
            assert told.collect() == [micros]


def test_windows_count_real_time(spark: SparkSession) -> None:
    """A window of an hour ends an hour later, whatever the clocks of the session's zone do."""
    with configured(spark, {"spark.sql.session.timeZone": "America/New_York"}):
        first = datetime(2024, 11, 3, 5, 30, tzinfo=UTC)  # 01:30, an hour later it is 01:30 again
        rows = [
            (first, "a"),
            (first + timedelta(minutes=59), "b"),
            (first + timedelta(hours=2), "c"),
        ]
        frame = spark.createDataFrame(rows, "at timestamp, name string")
        stages = Pattern.begin("a").where("name = 'a'").followedBy("end")
        jobs = {
            name: on(frame, stages.where(f"name = '{name}'").within(timedelta(hours=1)), time="at")
            .select(lambda m: m["end"][0].name, "name string")
            .toDF()
            for name in ("b",)
        }

        assert in_one_job(jobs) == {"b": ["b"]}


# --- conditions


class Dear(SimpleCondition):
    """The price is at least 5."""

    def filter(self, value: Any, ctx: Any = None) -> bool:
        """Compare."""
        return bool(value.price >= 5)


class Dearer(IterativeCondition):
    """The price is above that of every a."""

    def filter(self, value: Any, ctx: Any) -> bool:
        """Compare with the events taken so far."""
        return all(value.price > e.price for e in ctx.getEventsForPattern("a"))


def test_conditions_of_every_kind_together(spark: SparkSession) -> None:
    """SQL, Columns, functions of one and two arguments and objects mix in one stage and pattern."""
    frame = events(spark, "u:a1 u:a7 u:b6 u:b8 u:a9 u:b9 u:c1 u:a5 u:b9")
    sql = Pattern.begin("a").where("name = 'a'").where(F.col("price") >= 5)
    jobs = {
        "sql": sql.next("b").where("price > 7 OR false").or_(F.col("price") == 6),
        "mixed": sql.followedBy("b").where(F.col("name") == "b").where(Dearer()),
        "objects": Pattern.begin("a").where(Dear()).where("name = 'a'").next("b").where(
            lambda e, ctx: ctx.timestamp() == e.ts and e.name == "b"
        ),
        "until": Pattern.begin("a").where("price > 0").oneOrMore().until("name = 'c'").next(
            "b"
        ).where("name = 'c'"),
        "not": Pattern.begin("a").where("name = 'a'").notNext("n").where("price = 6").followedBy(
            "b"
        ).where("name = 'b'"),
    }  # fmt: skip
    found = in_one_job(
        {name: on(frame, p, "user").select(ids, "text string").toDF() for name, p in jobs.items()}
    )

    assert {name: sorted(texts) for name, texts in found.items()} == {
        "sql": ["a=2 b=3", "a=5 b=6", "a=8 b=9"],
        "mixed": ["a=2 b=4", "a=8 b=9"],
        "objects": ["a=2 b=3", "a=5 b=6", "a=8 b=9"],
        "until": ["a=1,2,3,4,5,6 b=7", "a=2,3,4,5,6 b=7", "a=3,4,5,6 b=7",
                  "a=4,5,6 b=7", "a=5,6 b=7", "a=6 b=7"],
        "not": ["a=1 b=3", "a=5 b=6", "a=8 b=9"],
    }  # fmt: skip


def test_null_counts_as_false(spark: SparkSession) -> None:
    """As in DataFrame.where a condition that gives NULL does not hold, and its NOT does."""
    frame = events(spark, "u:a u:b u:a u:b").withColumn("n", F.expr("nullif(price, 0)"))
    jobs = {
        "null": a_then_b("n > 0", "name = 'b'"),
        "or": a_then_b("n > 0 OR name = 'a'", F.lit(None).cast("boolean") | F.lit(True)),
        "notNext": Pattern.begin("a").where("name = 'a'").notNext("x").where("n = 0").followedBy(
            "b"
        ).where("name = 'b'"),
    }  # fmt: skip
    found = in_one_job(
        {name: on(frame, p, "user").select(ids, "text string").toDF() for name, p in jobs.items()}
    )

    assert found == {"null": [], "or": ["a=1 b=2", "a=3 b=4"], "notNext": ["a=1 b=2", "a=3 b=4"]}


def test_a_column_may_come_from_the_frame_itself(spark: SparkSession) -> None:
    """``df.name == 'a'`` works as it does in ``df.where``."""
    frame = events(spark, "u:a u:b u:a u:b")
    pattern = a_then_b(frame.name == "a", frame["name"] == "b")
    found = on(frame, pattern, frame.user).select(ids, "text string")

    assert [row.text for row in found.collect()] == ["a=1 b=2", "a=3 b=4"]


def test_conditions_may_look_at_other_rows_and_at_python(spark: SparkSession) -> None:
    """Window functions see every event, those of no use to a match too; UDFs and rand() work."""
    frame = events(spark, "u:a u:c u:b u:a u:b")
    start = Pattern.begin("a").where("name = 'a'")
    conditions = {
        "window": F.lag("name").over(Window.partitionBy("user").orderBy("ts")) == "c",
        "SQL window": "lag(name) OVER (PARTITION BY user ORDER BY ts) = 'c'",
        "function": F.udf(lambda name: name == "b", "boolean")("name"),
        "random": "name = 'b' AND rand() < 2",
    }
    found = in_one_job(
        {
            name: on(frame, start.followedBy("b").where(condition), "user")
            .select(ids, "text string")
            .toDF()
            for name, condition in conditions.items()
        }
    )

    assert found == {
        "window": ["a=1 b=3"],
        "SQL window": ["a=1 b=3"],
        "function": ["a=1 b=3", "a=4 b=5"],
        "random": ["a=1 b=3", "a=4 b=5"],
    }


def test_sixty_conditions_in_sql(spark: SparkSession) -> None:
    """A pattern may have as many expressions as a bigint has bits to spare."""
    pattern: Any = Pattern.begin("s0").where("ts = 0")
    for number in range(1, 60):
        pattern = pattern.next(f"s{number}").where(f"ts = {number}")
    frame = spark.range(60).selectExpr("id AS ts")
    found = on(frame, pattern).select(lambda m: len(m), "stages int")

    assert found.collect() == [Row(stages=60)]


def test_a_null_struct_with_a_struct_inside(spark: SparkSession) -> None:
    """A struct that may be null holds a NOT NULL one: null outside is null, and no error."""
    deep = "if(price = 1, named_struct('x', named_struct('y', 1)), null)"
    frame = events(spark, "u:a1 u:b2").selectExpr("*", f"{deep} AS st")
    found = on(frame, a_then_b(), "user").toDF().collect()
    late = on(frame, a_then_b(), "user").toDF(OutputTag("late")).collect()

    assert [(row.a[0].st, row.b[0].st) for row in found] == [(Row(x=Row(y=1)), None)]
    assert late == found
