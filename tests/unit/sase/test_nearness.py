# SPDX-License-Identifier: Apache-2.0
"""What is far from every event of the rarest element is in no match, and forbids none."""

from __future__ import annotations

import random
from typing import Any

import pytest

from pyflinkcep.eventlists import nearness
from pyflinkcep.testing import matchSase

QUERIES = [
    "PATTERN SEQ(A a, B b, R r, C c) WHERE c.x > a.x WITHIN 12",
    "PATTERN SEQ(~(C n), A a, ~(B m), R r) WHERE n.x > a.x + 3 AND m.x > a.x + 2 WITHIN 9",
    "PATTERN SEQ(R r, A a, ~(C n)) WHERE n.x > a.x WITHIN 9",
    "PATTERN A;!C;R;B^2 WHERE c.x > a.x + 2 WITHIN 10",
    "PATTERN B^2;R;A WHERE sum(b.x) > r.x WITHIN 10",
]


def events() -> list[dict[str, Any]]:
    """Events of three frequent types, and two places where there are some of a rare one."""
    choose = random.Random(3)
    found = [
        {"type": choose.choice("ABC"), "x": choose.randrange(5), "ts": n // 2, "id": n}
        for n in range(3000)
    ]
    for at in (0, 700, 705, 706, 2999):
        found[at]["type"] = "R"
    return found


@pytest.mark.parametrize("query", QUERIES)
def test_far_events_make_no_difference(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Matches are the same with all events in the lists; with few of them there are few rows."""
    found = {}
    seen: list[int] = []
    near = nearness.near_the_rarest

    def counted(query: Any, ranks: Any, own: Any) -> Any:
        kept = near(query, ranks, own)
        seen.append(max(map(len, kept.values())))
        return kept

    monkeypatch.setattr("pyflinkcep.eventlists.matching.near_the_rarest", counted)
    for rarer in (16, 10**9):
        monkeypatch.setattr(nearness, "_RARER", rarer)
        rows = matchSase(query, events(), "ts", evaluation="eventLists")
        found[rarer] = sorted(str([[e["id"] for e in own] for own in m.values()]) for m in rows)
    assert found[16] == found[10**9]
    assert found[16]
    assert seen[0] < 100 < 900 < seen[1]
