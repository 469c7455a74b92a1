# SPDX-License-Identifier: Apache-2.0
"""Values that random SQL found to be others in memory: Spark's, in a zone with summer time."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from pyflinkcep.errors import InputError
from pyflinkcep.expressions.evaluator import RowTypes, event_function, event_value
from pyflinkcep.expressions.numbers import Digits
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
