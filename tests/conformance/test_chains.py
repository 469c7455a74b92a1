# SPDX-License-Identifier: Apache-2.0
"""Chains of followedByAny by ordered lists: the matches that Flink gave, each as often."""

from __future__ import annotations

from typing import Any

from pyflinkcep.errors import NotSupportedError
from pyflinkcep.testing import match
from tests.conformance.cases import NFA_FILES, Case, build_pattern, chunks, make_event, match_ids


def by_lists(case: Case) -> list[Any] | None:
    """The matches by ordered lists, in order; None if they do not answer the pattern."""
    rows = [row for row in case["events"] if "id" in row]
    times = {row["id"]: row["ts"] for row in rows}
    events = [make_event(row) for row in rows]
    try:
        found = match(build_pattern(case), events, lambda e: times[e.id], evaluation="eventLists")
    except NotSupportedError:
        return None
    return sorted(match_ids(m) for m in found)


def test_recorded_matches() -> None:
    """Every recorded pattern that lists take has Flink's matches; there are enough of them."""
    cases = [c for _, part in chunks(NFA_FILES, 400) for c in part if not c["expect"].get("error")]
    answered = 0
    for case in cases:
        found = by_lists(case)
        if found is not None:
            answered += 1
            assert found == sorted(m["match"] for m in case["expect"]["matches"]), case["id"]
    assert answered > 30
