# SPDX-License-Identifier: Apache-2.0
"""Totals of windows of a query on lists: what events have in common, and the names of columns."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from pyflinkcep import matchSase
from pyflinkcep.errors import InvalidArgumentError
from pyflinkcep.sase import parse

PAIRS = "PATTERN SEQ(A a, B b) WITHIN 10 SLIDE 10 GROUP BY k RETURN count(*)"


def pairs(*keys: Any) -> list[dict[str, Any]]:
    """Return an A and a B of each two keys."""
    return [{"type": "AB"[n % 2], "ts": n, "k": key, "x": 1} for n, key in enumerate(keys)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (math.nan, float("nan")),
        (0.0, -0.0),
        (1, 1.0),
        (None, None),
        ([1, 2], [1, 2]),
        (Decimal("1.0"), Decimal("1.00")),
        (datetime(2026, 1, 1, 2, tzinfo=UTC),
         datetime(2026, 1, 1, 4, tzinfo=timezone(timedelta(hours=2)))),
    ],
)  # fmt: skip
def test_values_that_spark_groups_are_one_group(one: Any, other: Any) -> None:
    """Every match is counted, whatever its key; so it is with [attr], which null does not equal."""
    (row,) = matchSase(PAIRS, pairs(one, other), "ts")
    assert row["count"] == 1
    assert row["k"] is one
    if isinstance(one, float):
        tested = PAIRS.replace("WITHIN", "WHERE [k] WITHIN")
        assert matchSase(tested, pairs(one, other), "ts") == [row]


def test_no_column_takes_the_place_of_another() -> None:
    """An aggregate named as a column of windows, or as another aggregate, is refused."""
    rows = pairs(1, 1)
    for name in ("k", "K", "count", "windowStart", "windowend"):
        with pytest.raises(InvalidArgumentError, match="two columns"):
            matchSase(PAIRS.replace("count(*)", f"sum(a.x) AS {name}"), rows, "ts")
    found = matchSase("PATTERN SEQ(A a, B b) WHERE [k]", rows, "ts", compressed=True)
    for texts in (["sum(a.x) AS k"], ["sum(a.x) AS s", "min(b.x) AS s"]):
        with pytest.raises(InvalidArgumentError, match="two columns"):
            found.aggregate(*texts, window="1 second")
    with pytest.raises(InvalidArgumentError, match="two columns"):
        found.aggregate("sum(a.x) AS s", "min(b.x) AS s")
    assert found.aggregate("count(b) AS count", "sum(a.x) AS k") == {"count": 1, "k": 1}


def test_events_of_matches_keep_their_type_and_time() -> None:
    """No column of theirs may take these names, however it is written."""
    query = parse("PATTERN SEQ(A a, B b) RETURN EVENT Pair(a.x)")
    for name in ("type", "matchTimestamp"):
        with pytest.raises(InvalidArgumentError, match="two columns"):
            query.returns(f"a.x AS {name}")
