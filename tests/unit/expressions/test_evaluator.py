# SPDX-License-Identifier: Apache-2.0
"""SQL about one event, evaluated in Python by Spark's rules."""

from __future__ import annotations

from collections import namedtuple
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pyflinkcep import ConditionError, NotSupportedError, Pattern, match
from pyflinkcep.errors import InputError
from pyflinkcep.expressions.evaluator import event_condition, event_function, local_expressions
from pyflinkcep.expressions.numbers import Digits
from pyflinkcep.expressions.parser import sql_condition
from pyflinkcep.expressions.program import Kind
from pyflinkcep.expressions.tokens import SqlSyntaxError
from tests.spark_sql_cases import EVENT, VALUES


@pytest.mark.parametrize(("text", "expected"), VALUES.items())
def test_values(text: str, expected: object) -> None:
    """Operators, functions and NULL follow Spark; the same cases are asked of Spark itself."""
    found = event_function(text)(EVENT)

    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    "event",
    [
        {"price": 3, "Kind": "a"},
        SimpleNamespace(price=3, Kind="a"),
        namedtuple("Event", "price Kind")(3, "a"),
        {"price": np.int64(3), "Kind": np.str_("a")},
    ],
    ids=["dict", "object", "named tuple", "numpy"],
)
def test_events_of_many_kinds(event: Any) -> None:
    """Columns are keys or attributes; names are compared without regard to case, as in Spark."""
    assert event_condition("price > 2 AND kind = 'a'")(event)
    assert not event_condition("price > 3 OR KIND <> 'a'")(event)


def test_fields_of_values_have_any_name() -> None:
    """Names in backquotes are read as SQL reads them, also with dots and backquotes inside."""
    event = {"s": {"a.b": 1, "c`d": 2}}

    assert event_function("(s).`a.b` + (s) . `c``d`")(event) == 3


def test_null_counts_as_false() -> None:
    """As in ``DataFrame.where``."""
    assert not event_condition("x > 1")({"x": None})
    assert event_condition("not (x > 1 and 1 > 2)")({"x": None})


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ("prise > 1", "has no column 'prise'", "did you mean 'price'?"),
        ("price + 1", "expected boolean, got bigint", "compare"),
        ("price = 'a'", "expected bigint, got 'a'", "write a value"),
        ("price = date '2026-01-01'", "got bigint compared with date", "cast one of them"),
        ("price and true", "expected boolean, got bigint", "compare"),
        ("cast('x' as int) > 1", "expected int, got 'x'", "write a value"),
        ("xs[3] > 1", "expected an index below 2, got 3", "size()"),
    ],
)
def test_what_is_wrong_with_an_event_is_said(text: str, said: str, hint: str) -> None:
    """The error names the condition, what was found, and what to do."""
    with pytest.raises(ConditionError) as caught:
        event_condition(text)({"price": 1, "xs": [1, 2]})

    assert caught.value.message.startswith(f"the condition {text!r}: ")
    assert said in caught.value.message
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("x like any ('a')", "\"x like any ('a')\""),
        ("sha2(x, 256) = 'a'", "the function sha2()"),
        ("exists(xs, y -> y > 1)", "'y -> y > 1'"),
        ("x in (select 1)", "'x in (select 1)'"),
        ("sum(x) over (order by y) > 1", "sum(x) over"),
        ("cast(x as array<int>) = y", None),
        ("t + interval 1 month > t", "interval 1 month"),
        ("lower(x, y) = 'a'", "lower() with 2 arguments"),
        ("x like y", "'x like y'"),
    ],
)
def test_what_only_spark_can_do_is_refused(text: str, what: str | None) -> None:
    """Mostly when the function is made; a cast when it is first needed."""
    with pytest.raises(NotSupportedError, match="can only be evaluated by Spark") as caught:
        event_condition(text)({"x": 1, "y": 2})

    assert (what or "a cast to array<int>") in caught.value.message


def test_what_is_no_sql_is_refused() -> None:
    """The message names the place."""
    with pytest.raises(SqlSyntaxError, match=r"expected a value at position 5, got the end"):
        event_condition("x > ")


@pytest.mark.parametrize("text", ["x + 9223372036854775807 > 0", "-y > 0", "x / (x - x) > 0"])
def test_overflow_and_division_by_zero_are_errors(text: str) -> None:
    """As in Spark's default mode."""
    with pytest.raises(ArithmeticError):
        event_condition(text)({"x": 1, "y": -(2**63)})


# --- SQL over stages


def test_fields_of_match_expressions() -> None:
    """Their types are seen from the events; times become microseconds, dates days."""
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    row = {"n": 1, "x": None, "s": "a", "t": noon, "d": date(1970, 1, 2), "i": timedelta(0, 1)}
    events = [row, {**row, "n": None, "x": 2}, {**row, "x": 2.5}]
    text = (
        "x > max(a.x) or s = last(a.s) or t - last(a.t) < i or d > last(a.d) or last(a.n) = n "
        "or last(a.n > 0) or last(a.c) > 0.5"
    )
    expression: Any = sql_condition(text)
    expressions, fields = local_expressions(
        [("here", expression)], [{**e, "c": Decimal("0.5")} for e in events]
    )

    kinds = {field.sql: field.kind for field in expressions.fields}
    assert kinds == {
        "x": Kind.DOUBLE, "s": Kind.STRING, "i": Kind.INTERVAL, "d": Kind.DATE, "n": Kind.BIGINT,
        "cast(t as timestamp_ntz)": Kind.TIMESTAMP_NTZ, "n > 0": Kind.BOOLEAN, "c": Kind.decimal(Digits(1, 1)),
    }  # fmt: skip
    found = dict(zip(kinds, fields({**events[0], "c": Decimal("1.5")}), strict=True))
    assert found == {
        "x": None, "s": "a", "i": 1_000_000, "d": 1, "n": 1, "n > 0": 1, "c": 1.5,
        "cast(t as timestamp_ntz)": int(noon.timestamp()) * 1_000_000,
    }  # fmt: skip


def test_values_of_several_types_are_refused() -> None:
    """A column that is a string here and a number there cannot be compared."""
    expression: Any = sql_condition("x > max(a.x)")

    with pytest.raises(InputError, match="'x': expected values of one type, got bigint and string"):
        local_expressions([("here", expression)], [{"x": 1}, {"x": "a"}])


def test_a_value_that_one_event_lacks_fails_only_where_it_is_asked_for() -> None:
    """A division by zero before matching is no raw error; one for all events is refused."""
    pattern = Pattern.begin("a").followedBy("b").where("last(a.n) = 1 / n")
    for events in ([{"n": 1}, {"n": 0}, {"n": 2}], {"n": [1, 0, 2]}):
        with pytest.raises(ConditionError, match=r"'last\(a.n\) = 1 / n' failed. division by zero"):
            match(pattern, events)
    with pytest.raises(InputError, match="'1 / n' has no value for any event: division by zero"):
        match(pattern, [{"n": 0}, {"n": 0}])


def test_an_interval_beyond_64_bits_is_left_to_spark() -> None:
    """Which refuses it."""
    pattern = Pattern.begin("a").where("n > 0 and interval '9999999999999' day > interval '1' day")
    with pytest.raises(NotSupportedError, match="only be evaluated by Spark"):
        match(pattern, [{"n": 1}])
