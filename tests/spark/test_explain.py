# SPDX-License-Identifier: Apache-2.0
"""explain() tells how a pattern runs, what is dropped before the shuffle, and what may grow."""

from __future__ import annotations

import os
import re
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pyflinkcep import (
    CEP,
    IterativeCondition,
    MalformedPatternException,
    OutputTag,
    Pattern,
    PatternStream,
    keyBy,
)
from pyflinkcep.pattern.aftermatch import SkipToNextStrategy
from tests.shorthand import ms
from tests.spark.support import SCHEMA

WINDOW = ms(60_000)


class Rising(IterativeCondition):
    """The price is above the last one."""

    def filter(self, value: Any, ctx: Any) -> bool:
        """Compare."""
        return all(value.price > e.price for e in ctx.getEventsForPattern("up"))


def cheap(event: Any) -> bool:
    """Whether an event is cheap."""
    return event.price < 1


class Own(SkipToNextStrategy):
    """A strategy of a user's own."""


@pytest.fixture(autouse=True)
def with_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let explain() see a kernel, also where the package was built without a compiler."""
    monkeypatch.setattr("pyflinkcep.engines.flink.bridge.compiled_module", lambda: not_zero())


def not_zero() -> object:
    """Return what stands for the compiled module unless that is switched off."""
    return None if os.environ.get("PYFLINKCEP_KERNEL") == "0" else object()


@pytest.fixture
def explained(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> Any:
    """Return what explain() prints for a pattern, as sections of lines."""
    frame = spark.createDataFrame([], SCHEMA)

    def explain(pattern: Pattern, *keys: Any) -> dict[str, list[str]]:
        stream = CEP.pattern(keyBy(frame, *keys) if keys else frame, pattern)
        assert stream.explain() is None
        sections: dict[str, list[str]] = {}
        for line in capsys.readouterr().out.splitlines():
            if not line.startswith(" "):
                body = sections.setdefault(line.split(" (")[0], [])
            else:
                body.append(line.strip())
        return sections

    return explain


def test_where_conditions_run(explained: Any) -> None:
    """Each condition is said to run in Spark, once per event, or per partial match."""
    pattern = Pattern.begin("a").where("name = 'a'").where(cheap).next("up").where(Rising())

    found = [re.sub("  +", "  ", line) for line in explained(pattern)["Conditions"]]
    found = [re.sub(r" at test_explain.py:\d+", " at …", line) for line in found]
    assert found == [
        "a  name = 'a'  in Spark, before Python sees the event",
        "a  cheap at …  in Python, at most once per event",
        "up  Rising at …  in Python, for each partial match waiting there",
    ]


def test_a_pattern_without_conditions(explained: Any) -> None:
    """Where no stage has a condition it is said that every event is taken."""
    assert explained(Pattern.begin("a").next("b"))["Conditions"] == ["(none)  every event is taken"]


def test_input_and_windows(spark: SparkSession, explained: Any) -> None:
    """Keys and windows are named; a time column is not needed yet."""
    pattern = Pattern.begin("a").where(cheap).followedBy("b").where(cheap).times(2, ms(500))
    lines = explained(pattern.within(WINDOW), F.col("user"), "name")

    assert lines["CEP: a → b{2}"] == [
        "input: bounded, key user, name, ordered by nothing yet: call inEventTime(...)",
        "window: 1 min from the first event to the last, 500 ms since the previous event at b:0",
        "after a match: NoSkipStrategy()",
        "evaluation: nfa (its window is a gap between one event and the next)",
        "matched by the compiled kernel",
    ]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (Pattern.begin("a"), "by the compiled kernel"),
        (Pattern.begin("a").next("b").where("type = last(a.type)"), "by the compiled kernel"),
        (Pattern.begin("a").next("b").where("name = last(a.name)"), "by the compiled kernel"),
        (Pattern.begin("a", Own()).next("b"), "in Python: the skip strategy Own is in Python"),
    ],
    ids=["any", "numbers", "texts", "own strategy"],
)
def test_what_matches(pattern: Pattern, expected: str, spark: SparkSession, capsys: Any) -> None:
    """The kernel matches where it can; else the reason is named."""
    frame = spark.createDataFrame([], "name string, ts bigint, type int")
    CEP.pattern(frame, pattern).explain()

    assert f"  matched {expected}\n" in capsys.readouterr().out


def test_a_kernel_that_is_switched_off(explained: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable that switches it off is named."""
    monkeypatch.setenv("PYFLINKCEP_KERNEL", "0")

    assert "matched in Python: PYFLINKCEP_KERNEL is 0" in explained(Pattern.begin("a"))["CEP: a"]


def test_what_is_dropped_and_why_not(explained: Any) -> None:
    """The events that are dropped are described, and else the stage that needs them."""
    begin = Pattern.begin("a").where("name = 'a'").where("price > 1")
    relaxed = explained(begin.followedBy("b").where("name = 'b'"))
    strict = explained(Pattern.begin("a").where("name = 'a'").next("b").where("name = 'b'"))

    assert relaxed["Dropped before the shuffle"] == [
        "events for which no condition in Spark holds, "
        "events for which only name = 'a' holds, events for which only price > 1 holds"
    ]
    assert strict["Dropped before the shuffle"] == [
        "no event: stage 'b' must follow directly: any event in between ends the partial match"
    ]


def test_what_is_dropped_depends_on_the_output(explained: Any) -> None:
    """Where timeouts or shown times need events, each way to use matches has its line."""
    loop = Pattern.begin("a").where("name = 'a'").oneOrMore().within(WINDOW)
    absence = Pattern.begin("a").where("name = 'a'").notFollowedBy("b").where("name = 'b'")

    assert [
        line.split(":")[0]
        for line in explained(absence.within(WINDOW))["Dropped before the shuffle"]
    ] == [
        "for process(), process() with timeouts",
        "for toDF(), select(), flatSelect(), funnel() and reached(), toDF(), select() and flatSelect() with timeouts",
    ]
    assert explained(loop)["Dropped before the shuffle"] == [
        "events for which no condition in Spark holds"
    ]


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        (Pattern.begin("a").followedBy("b").where(cheap), "stage 'b' waits for its event"),
        (Pattern.begin("a").followedByAny("b").where(cheap), "stage 'b' leaves a partial match"),
        (Pattern.begin("a").where(cheap).oneOrMore().consecutive(), "stage 'a' loops"),
        (
            Pattern.begin("x").followedBy(Pattern.begin("a").next("b").where(cheap)).oneOrMore(),
            "each of the stages 'a', 'b' loops",
        ),
    ],
)
def test_patterns_that_grow(explained: Any, pattern: Pattern, said: str) -> None:
    """Without a window over all events, whatever waits, branches or loops is warned of."""
    first, *_, last = explained(pattern)["Warnings"]

    assert first.startswith(said)
    assert "write .within(" in last
    assert "Warnings" not in explained(pattern.within(WINDOW))


def test_combinations_are_warned_of_within_a_window(explained: Any) -> None:
    """A loop that allows combinations doubles what is held, whatever the window."""
    loop = Pattern.begin("a").where("price < 1").oneOrMore().allowCombinations()
    first, bound = explained(loop.within(WINDOW))["Warnings"]

    assert (first[:9], "within 1 min make up to 2ⁿ" in first) == ("stage 'a'", True)
    assert ".compressed() counts" in bound


def test_strict_patterns_end_by_themselves(explained: Any) -> None:
    """A pattern whose partial matches end with the next events is not warned of."""
    assert "Warnings" not in explained(Pattern.begin("a").where(cheap).next("b").where(cheap))


def test_streams(spark: SparkSession, capsys: Any) -> None:
    """A stream is explained by its watermark's column, before it is started."""
    stream = spark.readStream.format("rate").load().withWatermark("timestamp", "1 second")
    CEP.pattern(stream, Pattern.begin("a").where("value = 1")).explain()
    lines = capsys.readouterr().out.splitlines()

    assert lines[1:3] == [
        "  input: unbounded, no key, ordered by timestamp",
        "  watermark: 1000 ms behind the latest event, in the micro-batch that brings it",
    ]
    CEP.pattern(stream, Pattern.begin("a")).inProcessingTime().explain()
    assert "ordered by processing time" in capsys.readouterr().out


def test_what_streams_drop_and_why_not(spark: SparkSession, capsys: Any) -> None:
    """A stream drops what a bounded job does, unless late events, a bound or the clock need all."""
    frame = spark.readStream.format("rate").load().withWatermark("timestamp", "1 second")
    pattern = Pattern.begin("a").where("value = 1").followedBy("b").where("value = 2")
    stream = CEP.pattern(frame, pattern.within(WINDOW))

    def dropped(stream: PatternStream) -> list[str]:
        stream.explain()
        text = capsys.readouterr().out.split("Dropped before the shuffle\n")[1]
        return [line.strip() for line in text.split("Warnings")[0].splitlines()]

    assert dropped(stream) == [
        "events for which no condition in Spark holds",
        "in Python, once the watermark has seen them; late ones are counted",
    ]
    assert dropped(stream.sideOutputLateData(OutputTag("late"))) == [
        "no event: sideOutputLateData() returns every late event in full"
    ]
    assert dropped(stream.inProcessingTime()) == [
        "no event: in processing time the arrival of any event may end a window"
    ]
    assert dropped(CEP.pattern(frame, pattern, maxPartialMatches=9)) == [
        "no event: maxPartialMatches counts partial matches that any event may split"
    ]


def test_a_pattern_that_cannot_run(explained: Any) -> None:
    """What a run would refuse is refused."""
    with pytest.raises(MalformedPatternException):
        explained(Pattern.begin("a").notFollowedBy("b"))
