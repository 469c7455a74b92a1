# SPDX-License-Identifier: Apache-2.0
"""Results that are kept without what they share are what they were."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from pyflinkcep import Pattern, match
from pyflinkcep.matching import results as module
from pyflinkcep.matching.results import Found, SharedPrefixes
from tests.unit.tables.support import answer

NAMES = ("kinds", "times", "ends", "stage_of", "handles")


def results(seed: int, count: int, most_own: int) -> Found:
    """Return results that begin, in part, as the one before them."""
    rng = np.random.default_rng(seed)
    lists: list[list[tuple[int, int]]] = [[]]
    for _ in range(count):
        kept = lists[-1][: rng.integers(0, len(lists[-1]) + 1)]
        own = rng.integers(0, 3, (rng.integers(1, most_own), 2)).tolist()
        lists.append([*kept, *map(tuple, own)])
    lists = lists[1:]
    events = np.array([event for own in lists for event in own], np.int64)
    ends = np.cumsum([len(own) for own in lists])
    kinds = np.ones(count, np.uint8)
    return Found(("a", "b", "c"), kinds, np.arange(count), ends, events[:, 0], events[:, 1])


def assert_equal(left: Found, right: Found) -> None:
    assert len(left) == len(right)
    for name in NAMES:
        assert np.array_equal(getattr(left, name), getattr(right, name)), name


@pytest.mark.parametrize("seed", range(6))
def test_results_come_back(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of them, all, or a part at a time, with the same events in the same order."""
    found = results(seed, 300, most_own=2 + seed)
    monkeypatch.setattr(module, "_LEAST_EVENTS", 100)
    monkeypatch.setattr(module, "_LEAST_LENGTH", 0)
    parts = list(map(module._Part.of, found.parts(100)))
    begins = np.r_[0, np.cumsum([len(part.own) for part in parts])].tolist()
    shared = SharedPrefixes(parts, begins)
    assert len(shared) == len(found)
    assert_equal(shared.between(0, len(found)), found)
    cuts = [0, 1, 7, 7, 150, 299, 300]
    for begin, end in pairwise(cuts):
        assert_equal(shared.between(begin, end), found.between(begin, end))
    assert_equal(shared.between(250, 2_000), found.between(250, 300))
    assert_equal(Found.concat(list(shared.parts(40))), found)


def test_only_long_results_that_share_much_are_kept_so() -> None:
    """Others would take more memory, or time, than they save."""
    count = 40_000
    ends, stages = np.arange(1, count + 1) * 2, np.zeros(2 * count, np.int64)
    short = Found(("a",), np.ones(count, np.uint8), ends, ends, stages, np.arange(2 * count))
    assert SharedPrefixes.of(short) is short
    long = np.arange(1, 11) * 4_000
    apart = Found(("a",), np.ones(10, np.uint8), long, long, stages[:40_000], np.arange(40_000))
    apart = Found.concat([apart, apart])
    assert SharedPrefixes.of(apart) is apart


@pytest.mark.slow
def test_loops_in_loops() -> None:
    """Matches of loops in loops share most, and are those that a list of events has."""
    loop = Pattern.begin(Pattern.begin("a").where("x > 0").oneOrMore()).oneOrMore()
    table = pa.table({"at": range(13), "x": [1] * 13})
    found = match(loop, table, "at")
    assert isinstance(found._lookup.found, SharedPrefixes)  # type: ignore[union-attr]
    assert answer(loop, table, timestamp="at") == answer(loop, table.to_pylist(), timestamp="at")
    whole = found.toArrow()
    assert pa.Table.from_batches(found.toBatches()).equals(whole)
    assert whole["a"].to_pylist() == [m["a"] for m in found]
