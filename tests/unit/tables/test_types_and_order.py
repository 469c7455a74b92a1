# SPDX-License-Identifier: Apache-2.0
"""Columns without a value, and the order of events of one millisecond, in every form of events."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from pyflinkcep import Pattern, match, matchSase
from pyflinkcep.testing import funnel, trace


def _answer(pattern: Pattern, events: Any) -> Any:
    try:
        found = match(pattern, events)
    except Exception as error:
        return type(error).__name__, str(error)
    return repr([*found]), repr(found.timeouts)


_UNKNOWN = [
    "flag and n > last(a.n)", "flag or n > last(a.n)", "s || last(a.s) = 'x'", "not last(a.flag)",
    "coalesce(flag, n > last(a.n))", "case when flag then true else n > last(a.n) end",
    "s like 'a%' or n > last(a.n)", "datediff(ts, last(a.ts)) is null", "stddev(a.x) is null",
    "x - last(a.x) > 1 or n > first(a.n)", "count(a.flag) = 0 and n > last(a.n)",
    "last(a.n) in (x, 0)", "upper(s) = last(a.s) or n > last(a.n)", "last(a.n) + x is null",
]  # fmt: skip


@pytest.mark.parametrize("text", _UNKNOWN)
def test_columns_that_are_always_null(text: str) -> None:
    """A column without a value has no type that a condition over stages could be wrong about."""
    columns: dict[str, Any] = {"n": [0, 1, 2]}
    columns |= {name: [None] * 3 for name in ("flag", "s", "ts", "x")}
    pattern = Pattern.begin("a").next("b").where(text)
    rows = pa.table(columns).to_pylist()
    found = [
        _answer(pattern, events)
        for events in (rows, columns, pa.table(columns), pd.DataFrame(rows), pl.DataFrame(rows))
    ]

    assert len(set(found)) == 1
    assert "Error" not in found[0][0]
    for name, value in (("flag", True), ("s", "u")):  # first unknown, then not
        table = pa.table({**columns, name: [None, None, value]})
        assert _answer(pattern, table) == _answer(pattern, table.to_pylist())


def test_order_to_the_microsecond() -> None:
    """Events of one millisecond are in the order of their microseconds, as in all jobs of Spark."""
    start = datetime(2024, 1, 1, tzinfo=UTC)
    us = [(0, 3), (0, 1), (5, 999), (0, 2), (5, 1)]
    times = [start + timedelta(milliseconds=ms, microseconds=own) for ms, own in us]
    rows = [{"at": at, "n": n, "k": n % 2, "type": "e"} for n, at in enumerate(times)]
    table = pa.Table.from_pylist(rows)
    in_ns = table.set_column(0, "at", table["at"].cast(pa.timestamp("ns", "UTC")))
    pattern = Pattern.begin("a").next("b")
    query = "PATTERN SEQ(e a, e b) WHERE strict_contiguity"

    for events in (rows, table, in_ns, pd.DataFrame(rows), pl.DataFrame(rows)):
        for timestamp in ("at", lambda event: event["at"]):
            found = match(pattern, events, timestamp=timestamp)
            by_key = match(pattern, events, timestamp=timestamp, key="k")

            assert [(m["a"][0]["n"], m["b"][0]["n"]) for m in found] == [
                (1, 3), (3, 0), (0, 4), (4, 2)
            ]  # fmt: skip
            assert [(m["a"][0]["n"], m["b"][0]["n"]) for m in by_key] == [(0, 4), (4, 2), (1, 3)]
        later = Pattern.begin("a").where("n = 3").followedByAny("b")
        lists = match(later, events, timestamp="at", evaluation="eventLists")
        assert sorted(m["b"][0]["n"] for m in lists) == [0, 2, 4]
        found = matchSase(query, events, timestamp="at")
        assert [(m["a"][0]["n"], m["b"][0]["n"]) for m in found] == [(1, 3), (3, 0), (0, 4), (4, 2)]
        grows = Pattern.begin("a").next("b").where("n > last(a.n)")
        reached = {row["stage"]: row["partialMatches"] for row in funnel(grows, events, "at").rows}
        assert reached == {"a": 5, "b": 2}
        traced = trace(pattern, events, timestamp="at").matches
        assert [(m["a"][0]["n"], m["b"][0]["n"]) for m in traced] == [
            (1, 3), (3, 0), (0, 4), (4, 2)
        ]  # fmt: skip
    arriving = {"timestamp": "at", "delayThreshold": timedelta(seconds=1)}
    for found in (match(pattern, rows, **arriving), trace(pattern, rows, **arriving).matches):
        assert [(m["a"][0]["n"], m["b"][0]["n"]) for m in found] == [(1, 3), (3, 0), (0, 4), (4, 2)]


def test_long_decimals_are_compared_exactly() -> None:
    """Decimals of more than 15 digits too, in every form of events; no warning is needed."""
    pattern = Pattern.begin("a").next("b").where("d > last(a.d)")
    for whole in ("1234567890123456789", "12345"):
        values = [Decimal(f"{whole}.{n}") for n in range(2)]
        columns = {"n": [0, 1], "d": values}
        for events in (pa.table(columns).to_pylist(), columns, pa.table(columns)):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                assert len(match(pattern, events)) == 1


def test_decimals_of_an_event_have_the_digits_of_those_of_stages() -> None:
    """Equal numbers are equal after the same calculation, on lists and on tables."""
    rows = [{"p": Decimal(text)} for text in ("4.0000000001", "14.0000000000", "4.0000000001")]
    for made in ("p / 3", "p * p / 7", "p % 3 - 1", "round(p / 3, 1)", "p div 2"):
        pattern = Pattern.begin("a").followedByAny("b")
        pattern = pattern.where(f"{made} = {made.replace('p', 'last(a.p)')}")
        for events in (rows, pa.Table.from_pylist(rows)):
            assert len(match(pattern, events)) == 1
