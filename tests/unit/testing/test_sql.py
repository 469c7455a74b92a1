# SPDX-License-Identifier: Apache-2.0
"""SQL conditions in ``match`` and in harnesses, without Spark."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

import pytest

from pyflinkcep import Pattern
from pyflinkcep.errors import ConditionError, InvalidArgumentError, NotSupportedError
from pyflinkcep.expressions.tokens import slip
from pyflinkcep.testing import NFATestHarness, OperatorTestHarness, match

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


@pytest.fixture
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide a session that other tests of the process may have started."""
    monkeypatch.setattr("pyflinkcep.tables.sql._running_session", lambda: None)


@pytest.mark.usefixtures("no_session")
@pytest.mark.parametrize("text", ["soundex(kind) = 'A000'", "price IN (SELECT 3)"])
def test_what_only_spark_can_evaluate(text: str) -> None:
    """Without a session what needs Spark is refused, and the error says what to do."""
    with pytest.raises(NotSupportedError) as caught:
        match(Pattern.begin("x").where(text), EVENTS)

    assert "SparkSession" in str(caught.value.hint)


@pytest.mark.usefixtures("no_session")
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
