# SPDX-License-Identifier: Apache-2.0
"""The pattern of ClickHouse's windowFunnel, held to ClickHouse where it is installed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import pytest

from pyflinkcep import InvalidArgumentError, NotSupportedError, Pattern, windowFunnel
from pyflinkcep.testing import funnel, match

ONE = ("e = 1", "e = 2", "e = 3")
SEVERAL = ("e <= 2", "e > 1 and e <= 3", "e >= 3")

Event = tuple[int, int, int]
"""The user, the time and the kind of an event."""


def test_the_pattern() -> None:
    """Steps follow each other within the window, whose end counts."""
    pattern = windowFunnel(timedelta(seconds=1), {"a": "e = 1", "b": lambda event: event.e == 2})

    expected = Pattern.begin("a").where("e = 1").followedBy("b").where("e = 2")
    events = [{"e": 1, "t": 0}, {"e": 0, "t": 7}, {"e": 2, "t": 1000}]
    found = match(pattern, events, timestamp="t")
    assert found == match(expected.within(timedelta(milliseconds=1001)), events, timestamp="t")
    assert len(found) == 1


def test_times_that_increase() -> None:
    """A step of the same time as the one before does not count, whatever names there are."""
    pattern = windowFunnel(
        timedelta(seconds=1), {"a b": "e = 1", "c`d": "e = 2"}, "strict_increase", "t"
    )

    assert match(pattern, [{"e": 1, "t": 5}, {"e": 2, "t": 5}], timestamp="t") == []
    assert len(match(pattern, [{"e": 1, "t": 5}, {"e": 2, "t": 6}], timestamp="t")) == 1


@pytest.mark.parametrize(
    ("modes", "error", "words"),
    [
        (["strict_order"], NotSupportedError, "stages joined with next() try each start"),
        (["strict_deduplication"], NotSupportedError, "the first step that repeats"),
        (["strict_order", "allow_reentry"], NotSupportedError, "strict_order"),
        (["strict_onse"], InvalidArgumentError, "did you mean 'strict_once'?"),
        (["strict_increase"], InvalidArgumentError, "got timestamp=None"),
    ],
)
def test_modes_that_no_pattern_has(modes: list[str], error: type[Exception], words: str) -> None:
    """Modes of another meaning are refused by name, and the message says what differs."""
    with pytest.raises(error) as raised:
        windowFunnel(timedelta(seconds=1), {"a": "e = 1"}, modes)
    assert words in str(raised.value)


def test_without_conditions() -> None:
    """A funnel needs a step."""
    with pytest.raises(InvalidArgumentError, match="expected conditions by the names of steps"):
        windowFunnel(timedelta(seconds=1), {})


@pytest.mark.parametrize(
    ("conditions", "ties", "modes"),
    [
        (ONE, False, []),
        (ONE, False, ["strict_increase"]),
        (SEVERAL, False, ["strict_once"]),
        (ONE, True, ["strict_once", "strict_increase"]),
        (SEVERAL, True, ["strict_once", "strict_increase"]),
    ],
)
def test_levels_are_clickhouses(conditions: Sequence[str], ties: bool, modes: list[str]) -> None:
    """Each key gets as far as in ClickHouse, on random events."""
    chdb = pytest.importorskip("chdb")
    source = random.Random(repr((conditions, ties, modes)))

    for window in (1, 3, 8):
        events = list(_events(source, ties))
        values = ", ".join(map(repr, events))
        arguments = ", ".join([str(window), *map(repr, modes)])
        query = (
            f"SELECT u, windowFunnel({arguments})(t, {', '.join(conditions)}) "
            f"FROM values('u UInt64, t UInt64, e Int64', {values}) GROUP BY u ORDER BY u"
        )
        lines = str(chdb.query(query, "CSV")).split()
        theirs = {int(user): int(level) for user, level in (line.split(",") for line in lines)}
        assert _levels(conditions, window, modes, events) == theirs


def _events(source: random.Random, ties: bool) -> Iterator[Event]:
    for user in range(60):
        count = source.randint(1, 9)
        times = source.choices(range(13), k=count) if ties else source.sample(range(14), count)
        for time in sorted(times):
            yield user, time, source.randint(0, 4)


def _levels(
    conditions: Sequence[str], window: int, modes: Sequence[str], events: Sequence[Event]
) -> dict[int, int]:
    """Return how far each user gets, by the funnel."""
    names = {f"s{number}": text for number, text in enumerate(conditions)}
    time = "t" if "strict_increase" in modes else None
    pattern = windowFunnel(timedelta(milliseconds=window), names, modes, time)
    rows: list[dict[str, Any]] = [{"u": user, "t": time, "e": kind} for user, time, kind in events]
    counted = funnel(pattern, rows, timestamp="t", key="u", by="u")
    levels = dict.fromkeys((user for user, _, _ in events), 0)
    for row in counted.rows:
        if row["keys"]:
            levels[row["u"]] = row["step"]
    return levels
