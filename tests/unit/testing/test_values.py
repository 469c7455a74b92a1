# SPDX-License-Identifier: Apache-2.0
"""Times, keys and fields of events in memory."""

from __future__ import annotations

import math
import pickle
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pyflinkcep import Pattern, TimeUnitWarning
from pyflinkcep.errors import ConditionError, InputError, InvalidArgumentError, NotSupportedError
from pyflinkcep.expressions.tokens import slip
from pyflinkcep.tables.values import epoch_milliseconds, grouping_key, watermark
from pyflinkcep.testing import NFATestHarness, OperatorTestHarness, match, matchSase

NEW_YEAR = 1_704_067_200_000
PATTERN = Pattern.begin("a").where(lambda e: e.x == 1).next("b").where(lambda e: e.x == 2)
QUERY = "PATTERN SEQ(A a, B b) WHERE [k]"


@pytest.mark.parametrize(
    "time",
    [
        NEW_YEAR,
        np.int64(NEW_YEAR),
        datetime(2024, 1, 1),
        datetime(2024, 1, 1, tzinfo=UTC),
        pd.Timestamp("2024-01-01"),
        pd.Timestamp("2024-01-01 09:00", tz="Asia/Tokyo"),
        np.datetime64("2024-01-01"),
        np.datetime64("2024-01-01T00:00:00.000999999"),
    ],
)
def test_times(time: Any) -> None:
    """Whole numbers and datetimes are times, naive ones in UTC, rounded down to milliseconds."""
    assert epoch_milliseconds(time, "e") == NEW_YEAR
    assert watermark(time) == NEW_YEAR


MISSING = [None, math.nan, pd.NaT, pd.NA, np.datetime64("NaT"), "2024-01-01", 5.0, Decimal(5), True, date(2024, 1, 1)]  # fmt: skip


@pytest.mark.parametrize("time", MISSING)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_missing_time_loses_no_events(time: Any, place: int) -> None:
    """A missing time, or what is not a time, is an error that shows the event, wherever it is."""
    moment = datetime(2024, 1, 1)
    given = [{"t": moment, "x": 1, "k": 1, "type": "A"}, {"t": moment, "x": 2, "k": 1, "type": "B"}]
    given.insert(place, {"t": time, "x": 7, "k": 1, "type": "A"})
    for run in (
        lambda: match(PATTERN, given, timestamp="t"),
        lambda: match(PATTERN, given, timestamp="t", delayThreshold=timedelta(0)),
        lambda: matchSase(QUERY, given, timestamp="t"),
    ):
        with pytest.raises(InputError, match=r"the time of event \{.*'x': 7.*got"):
            run()


@pytest.mark.parametrize("time", [2**63, 2**70, -(2**63), -(2**63) - 1, np.uint64(2**63)])
def test_times_out_of_range(time: Any) -> None:
    """A time that no 64-bit integer after the first watermark holds is refused, not lost."""
    for run in (
        lambda: match(PATTERN, [{"t": time, "x": 1}], timestamp="t"),
        lambda: matchSase(QUERY, [{"t": time, "type": "A", "k": 1}], timestamp="t"),
        lambda: OperatorTestHarness(PATTERN).processElement({"x": 1}, time),
        lambda: NFATestHarness(PATTERN).process({"x": 1}, time),
    ):
        with pytest.raises(InputError, match="expected epoch milliseconds of 64 bits"):
            run()


def test_the_ends_of_time() -> None:
    """The first and last times that can be told are matched; watermarks beyond stay at the end."""
    given = [{"t": -(2**63) + 1, "x": 1}, {"t": 2**63 - 1, "x": 2}]

    assert len(match(PATTERN, given, timestamp="t")) == 1
    assert [watermark(2**70), watermark(-(2**70))] == [2**63 - 1, -(2**63)]


NOTHING: list[Callable[[], Any]] = [lambda: None, lambda: pd.NaT, lambda: pd.NA]
KEYS: dict[str, list[Callable[[], Any]]] = {
    "NaN": [lambda: float("nan"), lambda: np.float64("nan"), lambda: Decimal("nan")],
    "null": [*NOTHING, lambda: np.datetime64("NaT")],
    "zero": [lambda: 0.0, lambda: -0.0],
    "a list": [lambda: [1, float("nan")], lambda: (1, float("nan")), lambda: np.array([1, np.nan])],
    "numpy": [lambda: 3, lambda: np.int64(3)],
}


@pytest.mark.parametrize("kind", KEYS)
def test_keys_that_are_one_on_spark(kind: str) -> None:
    """NaN is one key, and so is null, however they are written; a list is compared by elements."""
    for first in KEYS[kind]:
        for second in KEYS[kind]:
            given = [{"k": first(), "x": 1}, {"k": second(), "x": 2}]

            assert len(match(PATTERN, given, key="k")) == 1
            assert len(match(PATTERN, given, key=["k"])) == 1
            assert grouping_key(first()) == pickle.loads(pickle.dumps(grouping_key(second())))


def test_keys_that_differ() -> None:
    """NaN is neither null nor a number, and the text is not a number."""
    keys = [float("nan"), None, 0.0, "nan", (float("nan"),)]

    assert len({grouping_key(key) for key in keys}) == len(keys)


def test_several_key_fields() -> None:
    """``key=["user", "shop"]`` is a key of two fields, as ``keyBy(frame, "user", "shop")`` is."""
    given = [{"u": 1, "s": 1, "x": 1}, {"u": 1, "s": 2, "x": 2}, {"u": 1, "s": 1, "x": 2}]

    assert match(PATTERN, given, key=["u", "s"]) == [{"a": [given[0]], "b": [given[2]]}]
    assert match(PATTERN, given, key="u") == [{"a": [given[0]], "b": [given[1]]}]


@pytest.mark.parametrize("evaluation", ["nfa", "backtracking"])
def test_nan_in_the_partition_of_a_query(evaluation: str) -> None:
    """Under ``[k]`` NaN equals NaN, as on Spark, and null equals nothing."""
    given = [
        {"type": kind, "k": value, "n": n}
        for n, (kind, value) in enumerate(
            [("A", math.nan), ("A", None), ("B", None), ("B", math.nan)]
        )
    ]
    given[3]["k"] = float("nan")
    found = matchSase(QUERY, given, evaluation=evaluation)

    assert [[m["a"][0]["n"], m["b"][0]["n"]] for m in found] == [[0, 3]]


@pytest.mark.parametrize(
    "value", [np.int64(3), np.float32(3), np.bool_(1), pd.Timestamp("2024-01-01")]
)
def test_attributes_of_pandas_and_numpy(value: Any) -> None:
    """A query reads scalars of other libraries as Python's own, and returns the user's events."""
    given = [{"type": "A", "k": value}, {"type": "A", "k": pd.NaT}, {"type": "B", "k": value}]
    found = matchSase(QUERY, given)

    assert found == [{"a": [given[0]], "b": [given[2]]}]


WRONG: dict[str, Callable[[], Any]] = {
    "a map as key": lambda: match(PATTERN, [{"k": {}, "x": 1}], key="k"),
    "a key that names nothing": lambda: match(PATTERN, [{"x": 1}], key=["k"]),
    "no key fields": lambda: match(PATTERN, [{"x": 1}], key=[]),
    "a number as key": lambda: match(PATTERN, [{"x": 1}], key=5),  # type: ignore[call-overload]
    "two times": lambda: match(PATTERN, [{"x": 1}], timestamp=["x"]),  # type: ignore[call-overload]
    "a negative delay": lambda: match(PATTERN, [], delayThreshold=timedelta(seconds=-1)),
    "no such time": lambda: matchSase(QUERY, [{"type": "A", "k": 1}], timestamp="t"),
    "no pattern": lambda: OperatorTestHarness("a"),  # type: ignore[arg-type]
    "no pattern for the automaton": lambda: NFATestHarness(None),  # type: ignore[arg-type]
    "no time": lambda: OperatorTestHarness(PATTERN).processElement({"x": 1}, None),  # type: ignore[arg-type]
    "no watermark": lambda: OperatorTestHarness(PATTERN).processWatermark("1"),  # type: ignore[arg-type]
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments(case: str) -> None:
    """What is neither a time nor a key nor a pattern is refused with a hint."""
    with pytest.raises((InputError, InvalidArgumentError)) as caught:
        WRONG[case]()

    assert caught.value.hint


def test_harnesses_take_datetimes() -> None:
    """Events, watermarks and the clock of harnesses may be datetimes, in UTC without a zone."""
    moment = datetime(2024, 1, 1)
    harness, clock = OperatorTestHarness(PATTERN), OperatorTestHarness(PATTERN, processingTime=True)
    automaton = NFATestHarness(PATTERN)
    clock.setProcessingTime(moment)
    for number in (1, 2):
        harness.processElement({"x": number}, moment)
        clock.processElement({"x": number}, moment)
        automaton.advanceTime(moment)
        last = automaton.process({"x": number}, moment)
    harness.processWatermark(moment)

    assert [time for _, time, _ in harness.matches + clock.matches] == [NEW_YEAR, NEW_YEAR]
    assert len(last) == 1


@pytest.mark.parametrize("processing", [False, True])
def test_a_closed_harness_takes_nothing(processing: bool) -> None:
    """After close() an event or watermark is refused instead of being late; close() may repeat."""
    harness = OperatorTestHarness(PATTERN, processingTime=processing)
    harness.close()
    harness.close()
    for call in (
        lambda: harness.processElement({"x": 1}, 1),
        lambda: harness.processWatermark(1),
        lambda: harness.setProcessingTime(1),
        lambda: harness.snapshotAndRestore().processElement({"x": 1}, 1),
    ):
        with pytest.raises(NotSupportedError, match="the harness is closed"):
            call()


def test_the_clock_of_event_time() -> None:
    """A harness in processing time has no clock to set."""
    with pytest.raises(NotSupportedError, match="harness in processing time"):
        OperatorTestHarness(PATTERN).setProcessingTime(5)


@pytest.mark.parametrize("evaluation", ["auto", "eventLists", "query"])
def test_epoch_seconds(evaluation: str) -> None:
    """Whole numbers that look like epoch seconds are told at the user's line; datetimes are not."""
    chain = Pattern.begin("a").where("x = 1").followedByAny("b").where("x = 2")
    chain = chain.within(timedelta(hours=1))

    def run(*times: Any) -> int:
        given = [{"t": t, "x": n, "type": "AB"[n - 1], "k": 1} for n, t in enumerate(times, 1)]
        if evaluation == "query":
            return len(matchSase(QUERY, given, timestamp="t"))
        return len(match(chain, given, timestamp="t", evaluation=evaluation))

    with pytest.warns(TimeUnitWarning, match="timestamp='t'.*They look like epoch seconds") as told:
        assert run(1_700_000_000, 1_700_000_050) == 1

    assert [warning.filename for warning in told] == [__file__]
    assert [run(1, 50), run(datetime(1970, 1, 20), datetime(1970, 1, 20))] == [1, 1]


# --- SQL conditions in ``match`` and in harnesses, without Spark


EVENTS = [
    {"kind": "a", "price": 3, "at": datetime(2024, 5, 6, 9, 0)},
    {"kind": "b", "price": 5, "at": datetime(2024, 5, 6, 9, 1)},
    {"kind": "b", "price": 4, "at": datetime(2024, 5, 6, 9, 2)},
    {"kind": "b", "price": None, "at": datetime(2024, 5, 6, 9, 3)},
    {"kind": "c", "price": 9, "at": datetime(2024, 5, 6, 9, 4)},
]


def prices(found: Any) -> list[list[int]]:
    """Return the prices of matches, stages joined."""
    return [[e["price"] for events in m.values() for e in events] for m in found]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (Pattern.begin("x").where("kind = 'b' AND price > 4"), [[5]]),
        (Pattern.begin("x").where("kind = 'a'").or_("price > 8"), [[3], [9]]),
        (Pattern.begin("x").where("kind = 'b'").where(lambda e: e.price == 4), [[4]]),
        (
            Pattern.begin(Pattern.begin("x").where("kind = 'a'").next("y").where("kind = 'b'")),
            [[3, 5]],
        ),
        (
            Pattern.begin("x").where("kind = 'b'").oneOrMore().until("price < 5"),
            [[5], [None]],
        ),
        (
            Pattern.begin("x").where("kind = 'a'").followedBy("y").where("price > last(x.price)")
            .oneOrMore().followedBy("z").where("kind = 'c' AND price > sum(y.price) - 1"),
            [[3, 5, 4, 9], [3, 5, 9]],
        ),
        (
            Pattern.begin("x").where("kind = 'a'").followedByAny("y")
            .where("at - last(x.at) > INTERVAL '150' SECOND AND kind = 'c'"),
            [[3, 9]],
        ),
    ],
    ids=["event", "or", "with Python", "group", "until", "over stages", "times"],
)  # fmt: skip
def test_sql_without_spark(pattern: Pattern, expected: list[list[int]]) -> None:
    """SQL about the event, and over stages, is evaluated as on Spark; NULL is not true."""
    assert prices(match(pattern, EVENTS, timestamp="at")) == expected


def test_harnesses_evaluate_sql() -> None:
    """Events that are fed by hand are tested by SQL conditions too, over stages with examples."""
    pattern = Pattern.begin("x").where("kind = 'a'").next("y").where("price > first(x.price)")
    nfa = NFATestHarness(pattern, examples=EVENTS)
    operator = OperatorTestHarness(pattern, examples=EVENTS)
    found = [m for time, event in enumerate(EVENTS) for m in nfa.process(event, time)]
    for time, event in enumerate(EVENTS):
        operator.processElement(event, time)
    operator.close()

    assert found == [{"x": EVENTS[:1], "y": EVENTS[1:2]}]
    assert [m for _, _, m in operator.matches] == found


def test_sql_over_stages_needs_examples() -> None:
    """By hand the types of SQL over stages are not known, and the error says what to give."""
    pattern = Pattern.begin("x").next("y").where("price > last(x.price)")
    with pytest.raises(NotSupportedError, match="needs the types of its columns") as caught:
        OperatorTestHarness(pattern)

    assert "examples=" in str(caught.value.hint)


@pytest.mark.parametrize("text", ["soundex(kind) = 'A000'", "price IN (SELECT 3)"])
def test_what_only_spark_can_evaluate(text: str) -> None:
    """Without a session what needs Spark is refused, and the error says what to do."""
    with pytest.raises(NotSupportedError) as caught:
        match(Pattern.begin("x").where(text), EVENTS)

    assert "SparkSession" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("price < 3;", "leave out the semicolon"),
        ("price in [1, 5]", r"IN \(1, 5\)"),
        ("price is None", "IS NULL"),
        ("price is not None", "IS NOT NULL"),
        ("price < 3 && kind = 'a'", "AND"),
        ("price === 3", "write ="),
        ("price =! 3", "<>"),
        ("price => 3", ">="),
        ("price ?? 1 > 0", "coalesce"),
        ("kind = ‘a’", "straight quotes"),
        ("kind = “a”", "straight quotes"),
        ("kind ~ 'a'", "RLIKE"),
        ("price between 1, 5", "BETWEEN 1 AND 5"),
        ("where price > 3", "the condition alone"),
        ("kind = 'a", "close strings"),
        ("price in ()", "at least one value"),
        ("price <> 1 and", "complete the condition"),
        ("price >", "complete the condition"),
        ("and price > 1", "complete the condition"),
        ("price > 1 or or price < 2", "leave out one"),
        ("(price > 1", "each parenthesis once"),
        ("price > 1)", "each parenthesis once"),
        ("price between 1", "BETWEEN 1 AND 5"),
        ("case when price > 1 then true", "END after CASE"),
        ("select price from t", "the condition alone"),
        ("", "write a condition"),
    ],
)
def test_slips_are_said(text: str, instead: str) -> None:
    """A text that is no SQL anywhere is refused with what to write, and never sent to Spark."""
    with pytest.raises(InvalidArgumentError, match="the condition") as caught:
        match(Pattern.begin("x").where(text), EVENTS)
    assert re.search(instead, str(caught.value.hint))
    assert "SparkSession" not in str(caught.value.hint)


@pytest.mark.parametrize(
    "text",
    [
        "price between 1\n and 5",
        "case when price > 1\n then true\n end",
        "price > 1 -- more, less,",
        "kind = 'a or and ('",
    ],
)
def test_what_is_no_slip(text: str) -> None:
    """Lines, comments and strings are not taken for slips."""
    assert slip(text) is None
    match(Pattern.begin("x").where(text), EVENTS)


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("price = None", "IS NULL"),
        ("price = 3 || price = 4", "OR for ||"),
        ("1 < price < 5", "AND"),
    ],
)
def test_sql_that_means_something_else(text: str, instead: str) -> None:
    """What is SQL, but not what was meant, is refused by its types and names."""
    with pytest.raises(ConditionError) as caught:
        match(Pattern.begin("x").where(text), {"price": [3, 5]})
    assert instead in str(caught.value.hint)


@pytest.mark.parametrize(
    "text",
    ["kind == 'a'", "!(kind = 'b') AND price = 3", 'kind = "a"', "kind = 'a' AND price != 4"],
)
def test_other_ways_to_write_sql(text: str) -> None:
    """Operators of other languages that Spark has too are understood."""
    assert prices(match(Pattern.begin("x").where(text), EVENTS)) == [[3]]


def test_a_column_needs_spark() -> None:
    """A Column is Spark's own, and refused without a session."""
    column = type("Column", (), {"__module__": "pyspark.sql.x", "__str__": lambda _: "(a > 1)"})()
    with pytest.raises(NotSupportedError, match=r"the Column \(a > 1\) can only be evaluated"):
        match(Pattern.begin("x").where(column), EVENTS)


def test_an_unknown_column_names_the_nearest() -> None:
    """A misspelt column fails as a condition of its stage, with the nearest name."""
    with pytest.raises(ConditionError, match="prise") as caught:
        match(Pattern.begin("x").where("prise > 3"), EVENTS)

    assert "price" in str(caught.value)


def test_the_pattern_stays_for_spark() -> None:
    """To try a pattern does not change it: on Spark its conditions are SQL still."""
    pattern = Pattern.begin("x").where("kind = 'a'").within(timedelta(seconds=1))
    match(pattern, EVENTS, timestamp="at")

    assert (type(pattern.getCondition()).__name__, repr(pattern.getCondition())) == (
        "ExpressionCondition",
        "kind = 'a'",
    )
