# SPDX-License-Identifier: Apache-2.0
"""
Shapes of public Flink CEP jobs, ported: each with the answer worked out by hand.

The eighth, warnings and alerts of racks, is ``samples/rack_monitoring.py``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from pyflinkcep import (
    CEP,
    AfterMatchSkipStrategy,
    IterativeCondition,
    OutputTag,
    Pattern,
    PatternProcessFunction,
    Time,
    TimedOutPartialMatchHandler,
    keyBy,
)
from tests.spark.streams import FileSource, run
from tests.spark.support import configured

MINUTE = 60_000
PAST_LAST = AfterMatchSkipStrategy.skipPastLastEvent()


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    """Return the rows in a fixed order."""
    return sorted((tuple(row) for row in frame.collect()), key=repr)


def both_ways(
    spark: SparkSession, folder: Path, schema: str, events: list[Any], job: Any
) -> list[list[Any]]:
    """Return all outputs of a job, bounded and as a stream of two micro-batches that is flushed."""
    source, half = FileSource(folder / "source", schema), len(events) // 2
    source.add(events[:half], events[half:])
    bounded = rows(job(source.bounded(spark)).tagged())
    with configured(spark, {"spark.sql.shuffle.partitions": 1}):
        result = job(source.stream(spark, delay_ms=1))
        streamed = run(result.tagged(), folder / "checkpoint").rows
        streamed += result.flush(str(folder / "checkpoint")).tagged().collect()
    return [bounded, sorted(map(tuple, streamed), key=repr)]


# --- a ride that takes too long: the timeouts are the output


LONG = OutputTag("long", "ride bigint, started bigint")
RIDES = [
    (1, True, 0), (2, True, 10), (5, True, 10), (1, False, 60), (3, True, 60), (4, False, 70),
    (5, False, 130), (2, False, 180), (6, True, 200), (6, False, 319),
]  # fmt: skip


def long_rides(rides: DataFrame) -> Any:
    """Return rides whose end does not come within two hours of their start."""
    pattern = (
        Pattern.begin("start").where("is_start").next("end").where("NOT is_start")
        .within(Time.hours(2))
    )  # fmt: skip
    return (
        CEP.pattern(keyBy(rides, "ride"), pattern)
        .inEventTime("time")
        .flatSelect(
            LONG,
            lambda m, over, out: out.collect((m["start"][0].ride, m["start"][0].ts // MINUTE)),
            lambda m, out: None,
            "ride bigint",
        )
    )


def test_long_rides(spark: SparkSession, tmp_path: Path) -> None:
    """Rides 2 and 3 end late or never, 5 after two hours exactly, which is outside the window."""
    events = [(ride, start, minute * MINUTE) for ride, start, minute in RIDES]
    bounded, streamed = both_ways(
        spark, tmp_path, "ride bigint, is_start boolean, ts bigint", events, long_rides
    )

    assert bounded == [("long", None, (2, 10)), ("long", None, (3, 60)), ("long", None, (5, 10))]
    assert streamed == bounded


# --- hot, and still hot later: a difference of times to an earlier stage


class MuchLater(IterativeCondition):
    """The event comes at least ten minutes after the first hot one."""

    def filter(self, value: Any, ctx: Any) -> bool:
        """Whether it does."""
        first = next(iter(ctx.getEventsForPattern("hot")))
        return bool(value.temperature >= 50 and (value.time - first.time).total_seconds() >= 600)


class Report(PatternProcessFunction):
    """A row with the number of hot readings and the time of the last."""

    def processMatch(self, match: Any, ctx: Any, out: Any) -> None:
        """Collect it."""
        last = match["still-hot-later"][0]
        out.collect((last.device, len(match["hot"]), last.ts // MINUTE))


@pytest.mark.parametrize(
    "later",
    [MuchLater(), "temperature >= 50 AND time - first(hot.time) >= INTERVAL '10' MINUTE"],
    ids=["class", "SQL"],
)
def test_still_hot_later(spark: SparkSession, later: Any) -> None:
    """Device a is hot at 5, 8 and 16 minutes; b cools down; c is hot again after nine minutes."""
    pattern = (
        Pattern.begin("cool", PAST_LAST).where("temperature < 50")
        .next("hot").where("temperature >= 50").oneOrMore().consecutive()
        .next("still-hot-later").where(later)
    )  # fmt: skip
    readings = [
        ("a", 40, 0), ("a", 55, 5), ("a", 60, 8), ("a", 58, 16), ("a", 59, 20),
        ("b", 40, 0), ("b", 55, 5), ("b", 45, 10), ("b", 60, 20),
        ("c", 40, 0), ("c", 55, 5), ("c", 56, 14),
    ]  # fmt: skip
    frame = spark.createDataFrame(
        [(device, value, minute * MINUTE) for device, value, minute in readings],
        "device string, temperature int, ts bigint",
    ).selectExpr("*", "timestamp_millis(ts) AS time")
    found = CEP.pattern(keyBy(frame, "device"), pattern).inEventTime("time")

    assert rows(found.process(Report(), "device string, hot int, minute bigint")) == [("a", 2, 16)]


# --- a shop: views, prices, carts


SHOP = "time bigint, type string, product string, price double, user string, session string"
CLICKS = [
    (1, "view", "lamp", 30.0, "ann", "s1"), (2, "view", "lamp", 30.0, "ann", "s1"),
    (3, "view", "desk", 90.0, "ann", "s1"), (4, "leave", None, None, "ann", "s1"),
    (1, "view", "lamp", 30.0, "bob", "s2"), (2, "view", "desk", 90.0, "bob", "s2"),
    (3, "view", "desk", 90.0, "bob", "s2"), (4, "purchase", "desk", 90.0, "bob", "s2"),
    (5, "leave", None, None, "bob", "s2"),
    (6, "view", "lamp", 30.0, "cid", "s3"), (7, "price", "desk", 50.0, "cid", "s3"),
    (8, "price", "lamp", 25.0, "cid", "s3"), (9, "cart", "lamp", 25.0, "cid", "s3"),
    (9 + 30 * MINUTE, "purchase", "lamp", 25.0, "cid", "s3"),
    (10, "cart", "desk", 90.0, "dan", "s4"), (12, "purchase", "desk", 90.0, "dan", "s4"),
]  # fmt: skip


def shop(spark: SparkSession, pattern: Pattern) -> Any:
    """Apply a pattern to the sessions of the shop."""
    return CEP.pattern(keyBy(spark.createDataFrame(CLICKS, SHOP), "session"), pattern).inEventTime(
        "time"
    )


def test_many_views_without_a_purchase(spark: SparkSession) -> None:
    """Ann looks three times and leaves; bob buys directly after his views."""
    pattern = (
        Pattern.begin("views", PAST_LAST).where("type = 'view'").timesOrMore(3).consecutive()
        .notNext("purchase").where("type = 'purchase'")
        .followedBy("leave").where("type = 'leave'")
    )  # fmt: skip
    found = shop(spark, pattern).select(
        lambda m: (m["views"][0].user, [view.product for view in m["views"]]),
        "user string, products array<string>",
    )

    assert rows(found) == [("ann", ["lamp", "lamp", "desk"])]


def test_a_price_drop_then_the_cart(spark: SparkSession) -> None:
    """The price must drop on the product that was viewed, which then goes into the cart."""
    pattern = (
        Pattern.begin("view").where("type = 'view'")
        .followedBy("drop")
        .where("type = 'price' AND product = first(view.product) AND price < first(view.price)")
        .followedBy("cart").where("type = 'cart' AND product = first(view.product)")
    )  # fmt: skip
    found = shop(spark, pattern).select(
        lambda m: (m["cart"][0].user, m["view"][0].price - m["drop"][0].price),
        "user string, saved double",
    )

    assert rows(found) == [("cid", 5.0)]


def test_carts_with_and_without_a_purchase(spark: SparkSession) -> None:
    """Flink's old Either: dan buys, cid's purchase is 30 minutes later and too late; one union."""
    abandoned = OutputTag("abandoned", "user string, outcome string")
    pattern = (
        Pattern.begin("cart").where("type = 'cart'")
        .followedBy("purchase").where("type = 'purchase'")
        .within(Time.minutes(30))
    )  # fmt: skip
    found = shop(spark, pattern).select(
        abandoned,
        lambda m, over: (m["cart"][0].user, f"abandoned at {over}"),
        lambda m: (m["cart"][0].user, "bought"),
        "user string, outcome string",
    )

    assert rows(found.union(found.getSideOutput(abandoned))) == [
        ("cid", f"abandoned at {9 + 30 * MINUTE}"),
        ("dan", "bought"),
    ]


# --- logins: stage names with blanks, a map of attributes


def test_brute_force_login(spark: SparkSession) -> None:
    """Five failures and directly after them a success: eve; mal resets, tom is too slow."""
    failures, success = "5 or more failures", "and a success"
    gave_up = OutputTag("gave up", "user string, failures int")
    pattern = (
        Pattern.begin(failures, PAST_LAST)
        .where(lambda e: e.attributes["result"] == "failure").timesOrMore(5).consecutive()
        .notNext("no reset").where(lambda e: e.attributes["result"] == "reset")
        .next(success).where("attributes['result'] = 'success'")
        .within(Time.milliseconds(20))
    )  # fmt: skip
    told = [
        ("eve", 0, "ffffffs"), ("mal", 0, "fffffrs"), ("tom", 30, "fffff"), ("tom", 60, "s"),
        ("una", 0, "ffffs"),
    ]  # fmt: skip
    words = {"f": "failure", "r": "reset", "s": "success"}
    events = [
        (start + at, user, {"result": words[letter]})
        for user, start, letters in told
        for at, letter in enumerate(letters)
    ]
    frame = spark.createDataFrame(events, "time bigint, user string, attributes map<string,string>")

    def alerts(match: Any, out: Any) -> None:
        out.collect((match[success][0].user, len(match[failures])))

    def give_up(match: Any, over: int, out: Any) -> None:
        if len(match[failures]) == 5:
            out.collect((match[failures][0].user, 5))

    found = (
        CEP.pattern(keyBy(frame, "user"), pattern)
        .inEventTime("time")
        .flatSelect(gave_up, give_up, alerts, "user string, failures int")
    )

    assert rows(found) == [("eve", 6)]
    assert rows(found.getSideOutput(gave_up)) == [("tom", 5)]


# --- vessels: a condition that walks back through the loop, nested results


def test_vessel_stops(spark: SparkSession) -> None:
    """A vessel turns by 90 degrees in all over its last moves, within 240 seconds."""

    def has_turned(event: Any, ctx: Any) -> bool:
        turned, course = 0.0, event.course
        for earlier in reversed(list(ctx.getEventsForPattern("move"))):
            turned += abs(course - earlier.course)
            course = earlier.course
        return turned >= 90

    pattern = (
        Pattern.begin("move", PAST_LAST).oneOrMore()
        .followedBy("stop").where(has_turned)
        .within(Time.seconds(240))
    )  # fmt: skip
    told = {"ark": [0, 10, 40, 95, 100], "bow": [0, 10, 20, 30, 40]}
    events = [
        (vessel, second * 60_000, float(course))
        for vessel, courses in told.items()
        for second, course in enumerate(courses)
    ]
    point = "struct<time: bigint, course: double>"
    found = (
        CEP.pattern(
            keyBy(
                spark.createDataFrame(events, "vessel string, time bigint, course double"), "vessel"
            ),
            pattern,
        )
        .inEventTime("time")
        .select(
            lambda m: (
                m["stop"][0].vessel,
                (m["stop"][0].time, m["stop"][0].course),
                [(move.time, move.course) for move in m["move"]],
            ),
            f"vessel string, stop {point}, path array<{point}>",
        )
    )

    assert rows(found) == [("ark", (180_000, 95.0), [(0, 0.0), (60_000, 10.0), (120_000, 40.0)])]


# --- a group, and no key


def test_a_group_twice(spark: SparkSession) -> None:
    """One, two, three comes twice, directly; the skip strategy inside the group does not count."""
    inside = (
        Pattern.begin("one", AfterMatchSkipStrategy.skipToNext()).where("number = 1")
        .next("two").where("number = 2").next("three").where("number = 3")
    )  # fmt: skip
    pattern = (
        Pattern.begin("start").where("number = 0")
        .followedBy(inside).times(2).consecutive()
        .followedBy("end").where("number = 9")
    )  # fmt: skip
    numbers = [0, 7, 1, 2, 3, 1, 2, 3, 7, 9, 0, 1, 2, 3, 7, 1, 2, 3, 9]
    frame = spark.createDataFrame(list(enumerate(numbers)), "time bigint, number int")
    found = CEP.pattern(frame, pattern).inEventTime("time").toDF()

    assert found.columns == ["matchTimestamp", "start", "one", "two", "three", "end"]
    assert [[[e.time for e in stage] for stage in row[1:]] for row in found.collect()] == [
        [[0], [2, 5], [3, 6], [4, 7], [9]]
    ]


# --- a balance that is not topped up: timeouts from a process function


MISSING = OutputTag("missing", "id bigint, low bigint")


class TopUp(PatternProcessFunction, TimedOutPartialMatchHandler):
    """A row for each rise in time; balances that stay low go to a side output."""

    outputTags = (MISSING,)

    def processMatch(self, match: Any, ctx: Any, out: Any) -> None:
        """Collect the rise, with how often money was spent before."""
        rise = match["top-up"][0]
        out.collect((rise.id, len(match.get("spend", ())), rise.after))

    def processTimedOutMatch(self, match: Any, ctx: Any) -> None:
        """Put out the balance that was low."""
        ctx.output(MISSING, (match["low"][0].id, match["low"][0].after))


def top_ups(balances: DataFrame) -> Any:
    """Return balances that fall below 10 and rise within an hour, and those that do not."""
    pattern = (
        Pattern.begin("low", PAST_LAST).where("before >= 10 AND after < 10")
        .next("spend").where("after < before").oneOrMore().consecutive().optional()
        .next("top-up").where("after > before")
        .within(Time.hours(1))
    )  # fmt: skip
    return (
        CEP.pattern(keyBy(balances, "id"), pattern)
        .inEventTime("time")
        .process(TopUp(), "id bigint, spent int, after bigint")
    )


def test_absence_of_a_top_up(spark: SparkSession, tmp_path: Path) -> None:
    """1 spends twice and rises, 2 rises at once, 3 stays low, 4 rises after the hour."""
    told = [
        (1, 12, 8, 0), (2, 20, 9, 1), (3, 11, 5, 2), (1, 8, 6, 5), (4, 15, 2, 10), (1, 6, 4, 20),
        (2, 9, 30, 25), (1, 4, 50, 30), (3, 5, 4, 40), (4, 2, 80, 70), (5, 90, 80, 300),
    ]  # fmt: skip
    events = [(id_, before, after, minute * MINUTE) for id_, before, after, minute in told]
    bounded, streamed = both_ways(
        spark, tmp_path, "id bigint, before bigint, after bigint, ts bigint", events, top_ups
    )

    assert [row[0] for row in bounded] == ["main", "main", "missing", "missing"]
    assert [row[1] or row[2] for row in bounded] == [(1, 2, 50), (2, 0, 30), (3, 5), (4, 2)]
    assert streamed == bounded
