# SPDX-License-Identifier: Apache-2.0
"""SQL about one event, evaluated in Python by Spark's rules."""

from __future__ import annotations

from collections import namedtuple
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from pyflinkcep import ConditionError, NotSupportedError, Pattern, match
from pyflinkcep.errors import InputError
from pyflinkcep.expressions.evaluator import (
    RowTypes,
    event_condition,
    event_function,
    event_value,
    local_expressions,
)
from pyflinkcep.expressions.numbers import Digits
from pyflinkcep.expressions.parser import sql_condition
from pyflinkcep.expressions.program import Kind
from pyflinkcep.expressions.sql_types import (
    BIGINT,
    DOUBLE,
    INT,
    INTERVAL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    SqlType,
    array_of,
    decimal_of,
)
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
        ("price[0] > 1", "expected an array or a map, of which [0] is a part, got 1", "substring"),
        ("name[0] = 'a'", "of which [0] is a part, got 'ann'", "substring"),
        ("price.x > 1", "the event 1 has no column 'x'", "lambda value: value > 1"),
    ],
)
def test_what_is_wrong_with_an_event_is_said(text: str, said: str, hint: str) -> None:
    """The error names the condition, what was found, and what to do."""
    with pytest.raises(ConditionError) as caught:
        event_condition(text)({"price": 1, "xs": [1, 2], "name": "ann"})

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


def test_decimals_beside_doubles_are_doubles() -> None:
    """Of events one by one as of a table: a literal in place of a double that is NULL is one."""
    pattern = Pattern.begin("a").where("x < 1").followedBy("b").where("max(a.x) < coalesce(x, 0.5)")
    numbers: list[float | None] = [0.25, None, 0.0, 2.0]
    found = match(pattern, [{"x": x} for x in numbers])
    assert found == match(pattern, {"x": numbers}) == [
        {"a": [{"x": 0.25}], "b": [{"x": None}]}, {"a": [{"x": 0.0}], "b": [{"x": 2.0}]}
    ]  # fmt: skip


def test_values_of_several_types_are_refused() -> None:
    """A column that is a string here and a number there cannot be compared."""
    expression: Any = sql_condition("x > max(a.x)")

    for one, other, what in ((1, "a", "bigint and string"), (0.5, Decimal("0.5"), "double and")):
        with pytest.raises(InputError, match=f"'x': expected values of one type, got {what}"):
            local_expressions([("here", expression)], [{"x": one}, {"x": other}])


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


# --- values that random SQL found to be others in memory: Spark's, in a zone with summer time


ZONE = ZoneInfo("America/New_York")
TYPES: dict[str, SqlType | None] = {
    "z": TIMESTAMP, "v": TIMESTAMP_NTZ, "w": STRING, "t": STRING, "l": INTERVAL, "x": DOUBLE,
    "n": BIGINT, "i": INT,
}  # fmt: skip


def value(sql: str, **event: Any) -> Any:
    """Return the value of a text about one event, whose other columns are NULL."""
    types = RowTypes(TYPES, ZONE)
    return event_function(sql, types)(dict.fromkeys(TYPES) | event)


def instant(text: str) -> datetime:
    """Return a time of UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


FIRST, SECOND = instant("2024-11-03 05:30"), instant("2024-11-03 06:30")
"""The two times at which a clock in New York shows 01:30 on that day."""


@pytest.mark.parametrize(
    ("sql", "time", "expected"),
    [
        ("dateadd(day, 0, z)", FIRST, FIRST),
        ("dateadd(day, 0, z)", SECOND, SECOND),
        ("z + interval '0' day", SECOND, SECOND),
        ("dateadd(week, 1, z)", instant("2024-10-27 05:30"), FIRST),
        ("dateadd(week, -1, z)", instant("2024-11-10 06:30"), SECOND),
        ("z - interval '7' day", instant("2024-11-10 06:30"), SECOND),
        ("dateadd(day, -10, z)", instant("2024-03-20 06:30"), instant("2024-03-10 07:30")),
    ],
)
def test_days_keep_the_distance_from_utc(sql: str, time: datetime, expected: datetime) -> None:
    """Of a time that the clock shows twice, days lead to the one as far from UTC as before."""
    assert value(sql, z=time).astimezone(UTC) == expected


def test_a_clock_is_subtracted_as_it_shows() -> None:
    """A time without a zone that no clock there shows is not moved before it is subtracted."""
    found = value("z - v", z=instant("2024-03-10 07:30"), v=datetime(2024, 3, 10, 2, 30))
    assert found == timedelta(hours=1)
    assert value("v - z", z=SECOND, v=datetime(2024, 11, 3, 1, 30)) == timedelta(0)


@pytest.mark.parametrize("x", [float("nan"), float("inf"), float("-inf")])
def test_what_is_not_finite_is_no_decimal(x: float) -> None:
    """NaN and infinities as decimals are NULL, with ANSI too."""
    assert value("cast(x as decimal(10,2))", x=x) is None
    assert value("cast(cast(x as decimal(10,2)) as boolean) IS NULL", x=x) is True
    assert value("cast(x as decimal(10,2))", x=1.5) == Decimal("1.50")


@pytest.mark.parametrize("name", ["hour", "minute", "day", "x"])
def test_an_unknown_unit_is_asked_first(name: str) -> None:
    """What trunc() does not know gives NULL before the text is read as a date."""
    assert value(f"trunc(t, '{name}')", t="x") is None
    assert value("date_trunc('x', t)", t="x") is None
    with pytest.raises(InputError, match="expected"):
        value("trunc(t, 'year')", t="x")
    assert value("trunc(t, 'YEAR')", t="2024-05-06") == date(2024, 1, 1)


@pytest.mark.parametrize("operator", ["/", "%", "div"])
def test_a_divisor_comes_first(operator: str) -> None:
    """By NULL nothing is divided, so what is divided is not computed; by what fails, it fails."""
    assert value(f"t {operator} i", t="x") is None
    with pytest.raises(InputError, match="expected"):
        value(f"i {operator} t", t="x")
    assert value(f"i {operator} 0") is None


@pytest.mark.parametrize("sql", ["try_multiply(-1, 'a')", "try_divide(nvl(x, 'a'), nullif(n, n))"])
def test_trying_catches_the_cast_of_a_text(sql: str) -> None:
    """A text that is no number makes what is tried NULL, also if it is a literal."""
    assert value(sql, n=1) is None


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("w + interval '90' minute", "2024-03-10 05:00:00.5"),
        ("interval '90' minute + w", "2024-03-10 05:00:00.5"),
        ("w - interval '90' minute", "2024-03-10 01:00:00.5"),
        ("w + l", "2024-03-11 04:30:00.5"),
    ],
)
def test_a_text_that_is_a_time_is_moved(sql: str, expected: str) -> None:
    """Beside an interval a text is read as a time, and the result is a text."""
    found = value(sql, w="2024-03-10 02:30:00.5", l=timedelta(hours=25))
    assert found == expected


def test_arrays_have_spark_types() -> None:
    """Beside a decimal an array is one of decimals, and what NULL alone gives is an array."""
    types = RowTypes({"q": decimal_of(Digits(38, 10)), "an": array_of(BIGINT)}, ZONE)
    removed = event_value("array_remove(an, q)", types)
    assert removed.type == array_of(decimal_of(Digits(38, 10)))
    assert removed.function({"an": [1, 2, None], "q": Decimal(1)}) == [Decimal(2), None]
    for sql in ("array_compact(null)", "map_values(null)", "slice(null, 1, 1)"):
        assert event_value(sql, types).type == array_of(VOID)


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("a foo b", r"\bfoo\b", True), ("foo–bar", r"\bfoo\b", True), ("afoo", r"\bfoo", False),
        ("naïve foo", r"\bfoo", True), ("éfoo", r"\bfoo", None), ("fooé", r"foo\B", None),
        ("日foo", r"\bfoo", None), ("e\u0301foo", r"\bfoo", None), ("éfoo", r"foo\b", True),
    ],
)  # fmt: skip
def test_words_of_other_letters_are_those_of_no_one_java(
    text: str, pattern: str, expected: bool | None
) -> None:
    """Where Java 17 and later ones differ about the ends of words, a regular expression is refused."""
    quoted = pattern.replace("\\", "\\\\")
    for sql in (f"name rlike '{quoted}'", f"regexp_extract(name, '({quoted})') <> ''"):
        asked = Pattern.begin("a").where(sql)
        if expected is None:
            with pytest.raises(NotSupportedError, match="Java 17 and later ones read otherwise"):
                match(asked, [{"name": text}])
        else:
            assert len(match(asked, [{"name": text}])) == expected
