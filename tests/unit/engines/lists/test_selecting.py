# SPDX-License-Identifier: Apache-2.0
"""The first match of each start, by lists."""

from __future__ import annotations

import random
import tracemalloc
from itertools import groupby
from typing import Any

import pytest

from pyflinkcep.engines.lists import matching
from pyflinkcep.testing import matchSase

QUERIES = [
    "A a;B b",
    "A a;N^1 n;B b",
    "N^1 n;A a;B b",
    "A a;B b;N^1 n",
    "A a;!N;B b;A d",
    "A a;B b;B c",
]


def ids(matches: Any) -> list[tuple[tuple[int, ...], ...]]:
    return [tuple(tuple(e["id"] for e in own) for own in match.values()) for match in matches]


def chosen(found: list[Any], output: str) -> list[Any]:
    """Choose among all matches of one partition, as the rule is written."""
    firsts = [next(own) for _, own in groupby(sorted(found), lambda match: match[0][0])]
    if output == "onePerStart":
        return firsts
    kept: list[Any] = []
    for match in firsts:
        if not kept or match[0][0] > kept[-1][-1][-1]:
            kept.append(match)
    return kept


@pytest.mark.parametrize("pattern", QUERIES)
def test_the_least_match_of_each_start(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few rows are held at a time: by partition, closures at the ends, equal times."""
    monkeypatch.setattr(matching, "_ROWS", 3)
    random_ = random.Random(pattern)
    for _ in range(25):
        times = sorted(random_.randrange(30) for _ in range(25))
        events = [
            {"type": random_.choice("ABN"), "ts": ts, "k": random_.randrange(2), "id": n}
            for n, ts in enumerate(times)
        ]
        text = f"PATTERN {pattern} WHERE [k] WITHIN 9"
        for output in ("onePerStart", "nonOverlapping"):
            wanted = [
                match
                for key in (0, 1)
                for match in chosen(
                    ids(matchSase(text, [e for e in events if e["k"] == key], "ts")), output
                )
            ]
            assert sorted(ids(matchSase(text, events, "ts", output=output))) == sorted(wanted)


@pytest.mark.parametrize("path", ["0", "1"])
def test_other_matches_are_not_held(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a million matches of a thousand starts leave a thousand rows."""
    monkeypatch.setenv("PYFLINKCEP_KERNEL", path)
    events = [{"type": "A"}] * 700 + [{"type": "B"}] * 700
    tracemalloc.start()
    try:
        found = matchSase("PATTERN A a;B b", events, output="onePerStart")
        assert len(found) == 700
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()
