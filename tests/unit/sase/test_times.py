# SPDX-License-Identifier: Apache-2.0
"""Dates and times in conditions of queries on lists."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

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
