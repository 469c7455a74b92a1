# SPDX-License-Identifier: Apache-2.0
"""Compressed matches of ``;`` queries are those that are listed, and are not held."""

from __future__ import annotations

import random
import tracemalloc
from collections import Counter
from math import fsum
from statistics import stdev
from typing import Any

import pytest

from pyflinkcep.engines import queries
from pyflinkcep.testing import matchSase

PATTERNS = [
    "A a;B b", "A a;!N n;B b", "A a;B b;D d", "!N n;A a;B b", "A a;B b;!N n", "A a;N^1 n;B b",
    "N^2 n;A a;B b", "A a;B b;N^1 n", "A a;A b", "A a;!A n;B b",
]  # fmt: skip
CONDITIONS = ["", "a.x < b.x", "[k]", "[k] AND a.x < b.x", "a.x + b.x > 6 AND [k = 1]", "a.s = b.s"]


def events(random_: random.Random) -> list[dict[str, Any]]:
    """Return events with NULLs, many of equal time."""
    time, made = 0, []
    for n in range(random_.randint(1, 30)):
        time += random_.choice([0, 0, 1, 2])
        event = {
            "x": random_.choice([None, *range(9)]),
            "y": random_.choice([None, 0.1, 0.2, 1e300, 5.5]),
            "k": random_.choice([1, 2, None]),
            "s": random_.choice("pq"),
        }
        made.append({"id": n, "ts": time, "type": random_.choice(["A", "B", "N", "D"]), **event})
    return made


def ids(matches: Any) -> Counter[str]:
    return Counter(
        str({v: [e["id"] for e in match[v]] for v in sorted(match)}) for match in matches
    )


@pytest.mark.parametrize("path", ["0", "1"])
@pytest.mark.parametrize("many", [0, 1 << 22], ids=["automaton", "lists"])
def test_counts_and_totals_of_elements(
    path: str, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted by lists or by the automaton: the number of matches, and exact totals over them."""
    monkeypatch.setenv("PYFLINKCEP_KERNEL", path)
    monkeypatch.setattr(queries, "_MANY", many)
    random_ = random.Random(many)
    for _ in range(120):
        pattern, condition = random_.choice(PATTERNS), random_.choice(CONDITIONS)
        if " n" in pattern and "^" not in pattern and random_.random() < 0.5:
            condition += " AND " * bool(condition) + random_.choice(["n.x < b.x", "n.x > 3"])
        where = f"WHERE {condition}" if condition else ""
        text = f"PATTERN {pattern} {where} WITHIN {random_.choice([4, 9, 30])}"
        given = events(random_)
        listed = matchSase(text, given, "ts")
        found = matchSase(text, given, "ts", compressed=True)
        assert found.count() == len(listed), (text, given)
        assert ids(found.unpack()) == ids(listed)
        for variable in listed[0] if listed else ["a"]:
            taken = [event for match in listed for event in match[variable]]
            xs, ys = ([e[name] for e in taken if e[name] is not None] for name in "xy")
            assert list(
                found.aggregate(
                    *(f"{f}({variable}{a})" for f, a in [("count", ""), ("count", ".y")]),
                    *(f"{f}({variable}.x)" for f in ("sum", "avg", "min", "max")),
                    f"max({variable}.s)",
                    f"sum({variable}.y)",
                    f"stddev({variable}.x)",
                ).values()
            ) == [
                len(taken), len(ys),
                sum(xs) if xs else None, sum(xs) / len(xs) if xs else None,
                min(xs, default=None), max(xs, default=None),
                max((event["s"] for event in taken), default=None),
                pytest.approx(fsum(ys)) if ys else None,
                stdev(xs) if len(xs) > 1 else None,
            ], (text, given)  # fmt: skip


@pytest.mark.parametrize("pattern", ["A a;B b", "A a;N^1 n;B b"])
def test_compressed_elements_hold_no_matches(pattern: str) -> None:
    """A quarter of a million matches need no more memory than their events."""
    types = ["A"] * 500 + ["N"] + ["B"] * 500
    given = [{"type": type_, "x": 1} for type_ in types]
    tracemalloc.start()
    try:
        found = matchSase(f"PATTERN {pattern}", given, compressed=True)
        assert found.count() == 250_000
        assert found.aggregate("sum(b.x)") == {"sum(b.x)": 250_000}
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


def test_a_trillion_matches_of_elements() -> None:
    """Counted by the automaton in linear time, with conditions on single events and [attr]."""
    given = [{"type": type_, "k": 1, "x": 2} for type_ in "ABCD" for _ in range(1000)]
    found = matchSase("PATTERN A a;B b;C c;D d WHERE [k] AND b.x > 1", given, compressed=True)
    assert found.count() == 10**12
    assert found.aggregate("sum(d.x)") == {"sum(d.x)": 2 * 10**12}
    assert len(found.unpack(limit=3)) == 3
