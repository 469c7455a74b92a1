# SPDX-License-Identifier: Apache-2.0
"""What is far from every event of the rarest element is in no match, and forbids none."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from pyflinkcep.engines.lists import matching
from pyflinkcep.engines.lists.bridge import kernel_split
from pyflinkcep.engines.lists.matching import EventLists
from pyflinkcep.engines.lists.ranges import TypeCodes
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
    of = EventLists.of.__func__  # type: ignore[attr-defined]

    def counted(cls: Any, *given: Any) -> EventLists:
        lists = of(cls, *given)
        seen.append(max(map(len, lists.lists.values())))
        return lists  # type: ignore[no-any-return]

    monkeypatch.setattr(EventLists, "of", classmethod(counted))
    for rarer in (16, 10**9):
        monkeypatch.setattr(matching, "RARER", rarer)
        rows = matchSase(query, events(), "ts", evaluation="eventLists")
        found[rarer] = sorted(str([[e["id"] for e in own] for own in m.values()]) for m in rows)
    assert found[16] == found[10**9]
    assert found[16]
    assert seen[0] < 100 < 900 < seen[1]


def test_without_the_rarest_there_is_no_match() -> None:
    """A type without events leaves nothing near it."""
    without = [event for event in events() if event["type"] != "R"]
    assert matchSase(QUERIES[0], without, "ts", evaluation="eventLists") == []


@pytest.mark.parametrize("stretches", [None, ([0, 40], [1, 230]), ([], [])])
def test_types_are_sorted_within_stretches(stretches: Any) -> None:
    """The kernel and the plain path find the positions of each type, in some stretches or all."""
    choose = random.Random(5)
    codes = [choose.randrange(-1, 6) for _ in range(300)]
    lists = [2, -1, 0, 2, 1]
    chosen = None if stretches is None else tuple(np.array(own, np.int64) for own in stretches)
    inside = range(300) if stretches is None else [0, *range(40, 230)] if stretches[0] else []
    expected = [
        [at for at in inside if 0 <= codes[at] < 5 and lists[codes[at]] == number]
        for number in range(3)
    ]
    names = ["x", "y", "z"]
    own = TypeCodes(np.array(codes, np.int32), np.array(lists, np.int32), names)
    for split in (None, kernel_split()):
        found = own.positions(split, chosen)
        assert [found[name].tolist() for name in names] == expected
    assert own.positions_of("z").tolist() == [at for at, c in enumerate(codes) if c in (0, 3)]
