# SPDX-License-Identifier: Apache-2.0
"""The tests ``[attr = literal]`` are comparisons as others are, in every evaluation."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

from pyflinkcep import matchSase

LARGE = 2**53


@pytest.mark.parametrize(
    ("value", "literal", "holds"),
    [
        (float(LARGE), str(LARGE + 1), True),  # compared as doubles
        (LARGE + 1, f"{LARGE}.0", True),
        (LARGE + 1, str(LARGE), False),
        (-0.0, "0", True),
        (float("nan"), "1", False),
        (0.1, "0.1", True),
        (0.8, "80%", True),
        (None, "1", False),
        (True, "TRUE", True),
        ("a", "'a'", True),
        ("b", "'a'", False),
        (date(2026, 1, 1), "DATE '2026-01-01'", True),
        (datetime(2026, 1, 1, tzinfo=UTC), "DATE '2026-01-01'", True),
        (datetime(2026, 1, 1, tzinfo=UTC), "TIMESTAMP '2026-01-01 02:00:00+02:00'", True),
    ],
)
@pytest.mark.usefixtures("each_path")
def test_a_test_is_the_condition(value: Any, literal: str, holds: bool) -> None:
    """It holds of events of which ``attr = literal`` holds, those of negated components too."""
    rows = [{"type": kind, "ts": n, "k": value} for n, kind in enumerate("ANB")]
    for test in (f"[k = {literal}]", f"a.k = {literal} AND b.k = {literal}"):
        for evaluation in ("nfa", "backtracking", "eventLists"):
            query = f"PATTERN SEQ(A a, B b) WHERE {test} WITHIN 9"
            assert len(matchSase(query, rows, "ts", evaluation=evaluation)) == holds  # type: ignore[call-overload]
        assert len(matchSase(f"PATTERN A a; B b WHERE {test} WITHIN 9", rows, "ts")) == holds
    absent = f"PATTERN SEQ(A a, ~(N n), B b) WHERE [k = {literal}] WITHIN 9"
    assert matchSase(absent, rows, "ts") == []
