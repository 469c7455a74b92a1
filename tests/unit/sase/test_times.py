# SPDX-License-Identifier: Apache-2.0
"""Dates and times in conditions of queries on lists."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pyflinkcep.errors import InputError, InvalidArgumentError
from pyflinkcep.sase import parse
from pyflinkcep.testing import matchSase

_BEGIN = datetime(2024, 2, 28, 23, tzinfo=UTC)


@pytest.mark.parametrize(
    "moment",
    [
        lambda n: _BEGIN + timedelta(minutes=n),
        lambda n: (_BEGIN + timedelta(days=n)).replace(tzinfo=None),
        lambda n: (_BEGIN + timedelta(days=n)).date(),
    ],
)
def test_every_evaluation_compares_times(moment: Callable[[int], Any]) -> None:
    """Times compare as they pass, NULL with nothing, whoever finds or counts the matches."""
    places = [0, 2, 4, None, 3, 0, 2, 4]
    events = [
        {"type": "AB"[n % 2], "t": None if place is None else moment(place)}
        for n, place in enumerate(places)
    ]
    expected = sum(
        a % 2 == 0 and b % 2 == 1 and None not in (places[a], places[b]) and places[b] > places[a]
        for b in range(8)
        for a in range(b)
    )
    query = "PATTERN SEQ(A a, B b) WHERE b.t > a.t"
    for evaluation in ("nfa", "backtracking", "eventLists"):
        assert len(matchSase(query, events, evaluation=evaluation)) == expected == 4
    assert matchSase(query, events, compressed=True).count() == expected
    rising = "PATTERN SEQ(A a, B+ b[]) WHERE b[i].t > b[i-1].t"
    assert matchSase(rising, events, compressed=True).count() == len(matchSase(rising, events))


_RULES: dict[str, Callable[[datetime, datetime], bool]] = {
    "b.t - a.t < INTERVAL '5' MINUTE": lambda a, b: b - a < timedelta(minutes=5),
    "b.t > a.t + INTERVAL 90 SECONDS": lambda a, b: b > a + timedelta(seconds=90),
    "abs(b.t - a.t) >= INTERVAL '0 00:03:00' DAY TO SECOND": lambda a, b: (
        abs(b - a) >= timedelta(minutes=3)
    ),
    "b.t >= TIMESTAMP '2024-02-29 00:00:00' AND a.t IS NOT NULL": lambda a, b: (
        b >= datetime(2024, 2, 29, tzinfo=UTC)
    ),
    "NOT b.t BETWEEN TIMESTAMP '2024-02-28 23:59' AND TIMESTAMP '2024-02-29 00:01:00Z' AND "
    "a.t < TIMESTAMP '2030-01-01'": lambda a, b: (
        abs(b - datetime(2024, 2, 29, tzinfo=UTC)) > timedelta(minutes=1)
    ),
    "b.t >= TIMESTAMP '2024-02-29 00:59:00 Europe/Berlin' AND a.t IS NOT NULL": lambda a, b: (
        b >= datetime(2024, 2, 28, 23, 59, tzinfo=UTC)
    ),
    "b.t < TIMESTAMP '2024-02-28 19:02:00 America/New_York' AND a.t > TIMESTAMP '2024-02-28 23:58:30 "
    "UTC'": lambda a, b: (
        b < datetime(2024, 2, 29, 0, 2, tzinfo=UTC) and a > datetime(2024, 2, 28, 23, 58, 30, tzinfo=UTC)
    ),
    "datediff(b.d, a.d) = 1 AND a.t IS NOT NULL AND b.t IS NOT NULL": lambda a, b: (
        b.day - a.day == 1
    ),
    "b.t < DATE '2024-02-29' AND a.t IS NOT NULL": lambda a, b: (
        b < datetime(2024, 2, 29, tzinfo=UTC)
    ),
    "TIMESTAMP '2024-02-29 00:00:00' - a.t > INTERVAL '1' MINUTE AND b.t > a.t": lambda a, b: (
        datetime(2024, 2, 29, tzinfo=UTC) - a > timedelta(minutes=1) and b > a
    ),
    "b.d = DATE '2024-02-29' AND b.d - a.d = INTERVAL '1' DAY AND a.t IS NOT NULL": lambda a, b: (
        (a.day, b.day) == (28, 29)
    ),
}  # fmt: skip


def _moments() -> list[dict[str, Any]]:
    minutes = [55, 57, None, 59, 62, 60, 61, 58, 66, 64]
    times = [None if m is None else _BEGIN + timedelta(minutes=m) for m in minutes]
    return [
        {"id": n, "type": "AB"[n % 2], "t": time, "d": None if time is None else time.date()}
        for n, time in enumerate(times)
    ]


@pytest.mark.parametrize("switch", ["1", "0"])
@pytest.mark.parametrize("has_zone", [True, False])
def test_literal_times_and_intervals(
    has_zone: bool, switch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TIMESTAMP, DATE and INTERVAL stand beside times in every evaluation, and in HAVING."""
    monkeypatch.setenv("PYFLINKCEP_KERNEL", switch)
    events = _moments()
    for text, rule in _RULES.items():
        expected = {
            (a["id"], b["id"])
            for b in events[1::2]
            for a in events[::2]
            if a["id"] < b["id"] and None not in (a["t"], b["t"]) and rule(a["t"], b["t"])
        }
        assert 0 < len(expected) < 14, text
        query = parse(f"PATTERN SEQ(A a, B b) WHERE {text} WITHIN 99")
        assert parse(repr(query)) == query
        rows = (
            events
            if has_zone
            else [{**e, "t": e["t"] and e["t"].replace(tzinfo=None)} for e in events]
        )
        for evaluation in ("nfa", "backtracking", "eventLists"):
            found = matchSase(query, rows, evaluation=evaluation)
            got = {(m["a"][0]["id"], m["b"][0]["id"]) for m in found}
            assert (text, evaluation, got) == (text, evaluation, expected)
        assert matchSase(query, rows, compressed=True).count() == len(expected)
        if has_zone and "abs" not in text:
            having = matchSase(f"PATTERN SEQ(A a, B b) HAVING {text}", rows)
            assert {(m["a"][0]["id"], m["b"][0]["id"]) for m in having} == expected


def test_tests_of_literal_times() -> None:
    """[attr = literal] takes them too."""
    events = _moments()
    for test in ("d = DATE '2024-02-29'", "t = TIMESTAMP '2024-02-29 00:00:00'"):
        for evaluation in ("nfa", "backtracking", "eventLists"):
            found = matchSase(
                f"PATTERN SEQ(B b) WHERE [{test}] WITHIN 9", events, evaluation=evaluation
            )
            assert [m["b"][0]["id"] for m in found] == ([5, 9] if "d =" in test else [5])


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("a.t > TIMESTAMP '2024-02-01 10:00 Berlin'", "expected a timestamp"),
        ("a.t > TIMESTAMP '2024-02-01 10:00 ../UTC'", "expected a timestamp"),
        ("a.t > TIMESTAMP 'noon'", "column 45: expected a timestamp, got 'noon'"),
        ("a.t > DATE '2024-02-30'", "expected a date, got '2024-02-30'"),
        ("a.t > DATE '2024-02-01 10:00'", "expected a date"),
        ("b.t - a.t < INTERVAL '1' MONTH", "INTERVAL '1' MONTH has no length"),
        ("b.t - a.t < INTERVAL - b.t", "expected the length of an interval, got 'b'"),
        ("a.d > TIMESTAMP '2024-02-01'", "puts date and timestamp together"),
        ("a.id > DATE '2024-02-01'", "puts bigint and date together"),
    ],
)
def test_literal_times_that_are_none(condition: str, message: str) -> None:
    """Refused with their place, or by their types."""
    with pytest.raises((InputError, InvalidArgumentError)) as error:
        matchSase(f"PATTERN SEQ(A a, B b) WHERE {condition}", _moments())
    assert message in str(error.value)


def test_literal_times_are_returned_as_times() -> None:
    """As on Spark, alone and as a result of a function; of a clock in UTC."""
    noon = datetime(2024, 2, 29, 12, tzinfo=UTC)
    returned = (
        "TIMESTAMP '2024-02-29 12:00:00' AS t, DATE '2024-02-29' AS d, "
        "greatest(a.t, TIMESTAMP '2024-02-29 13:00:00 Europe/Berlin') AS g, "
        "CASE WHEN a.t < TIMESTAMP '2024-02-29 12:00:00' THEN DATE '2024-03-01' END AS c"
    )
    (row,) = matchSase(f"PATTERN SEQ(A a) RETURN {returned}", [{"type": "A", "t": _BEGIN}])
    assert row == {"t": noon, "d": noon.date(), "g": noon, "c": datetime(2024, 3, 1).date()}
