# SPDX-License-Identifier: Apache-2.0
"""The order of a table's events: C, on any number of threads, gives that of plain Python."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pyflinkcep import Pattern, match
from pyflinkcep.tables import column_match, placing
from pyflinkcep.tables.column_match import ColumnMatch
from tests.kernel_harness import needs_kernel

SIZE = 300


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deal a few hundred events to several threads, in several blocks."""
    monkeypatch.setattr(placing, "_LEAST_PART", 20)
    monkeypatch.setattr(placing, "_AT_ONCE", 17)
    monkeypatch.setattr(placing, "_LONG", 40)
    monkeypatch.setattr(column_match, "LEAST_SHARE", 16)


def _with_nulls(values: Any, random: np.random.Generator) -> pa.Array:
    return pa.array(values, mask=random.random(len(values)) < 0.2)


def keys(random: np.random.Generator) -> dict[str, Any]:
    """Return columns of keys of many types, by what they are."""
    few, one_hot = random.integers(-3, 4, SIZE), random.integers(0, 30, SIZE)
    one_hot[random.random(SIZE) < 0.7] = 4
    floats = random.choice([0.0, -0.0, 1.5, float("nan"), float("-nan"), float("inf")], SIZE)
    return {
        "integers": few,
        "one hot key": one_hot.astype(np.int16),
        "wide": few * (1 << 60),
        "unsigned": few.astype(np.uint64),
        "missing": _with_nulls(few, random),
        "floats": _with_nulls(floats, random),
        "texts": _with_nulls(random.choice(list("abcd"), SIZE), random),
        "decimals": pa.array([Decimal(int(n)) / 4 for n in few], pa.decimal128(9, 2)),
        "flags": few > 0,
        "lists": pa.array([[int(n)] for n in few]),
        "all differ": random.permutation(SIZE),
        "in order": np.sort(few),
    }


def times(random: np.random.Generator) -> dict[str, Any]:
    """Return columns of times: with ties, in and out of order, in several units."""
    some = random.integers(0, 200, SIZE)
    return {
        "sorted": np.sort(some),
        "random": some,
        "microseconds": pa.array(some * 300, pa.timestamp("us")),
        "nanoseconds": pa.array(some * 300_123, pa.timestamp("ns")),
        "seconds": pa.array(np.sort(some), pa.timestamp("s")),
        "before 1970": pa.array(some * 300 - 30_000, pa.timestamp("us")),
    }


A = Pattern.begin("a").where("n < 4")
PATTERNS = {
    "strict": A.next("b").where("n > 2"),
    "relaxed": A.followedBy("b").where("n = 1").within(timedelta(milliseconds=20)),
}


@pytest.mark.slow
@needs_kernel
@pytest.mark.parametrize("drops", [False, True])
@pytest.mark.parametrize("name", PATTERNS)
def test_the_order_is_that_of_plain_python(
    name: str, drops: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows, times, answers to conditions and where keys begin, for keys and times of all types."""
    random = np.random.default_rng([drops, len(name)])  # other units of time in each
    n = _with_nulls(random.integers(0, 9, SIZE), random)
    for kind, key in keys(random).items():
        units = times(random)
        for unit in random.choice(list(units), 2, replace=False).tolist():
            at = units[unit]
            table = pa.table({"key": key, "at": at, "n": n})
            halves = pa.concat_tables([table.slice(0, 111), table.slice(111)])
            for given in (None, "key", ["key", "n"]):
                job = ColumnMatch.analysed(PATTERNS[name], halves, "at", given)
                with monkeypatch.context() as patch:
                    patch.setattr(placing, "compiled_module", lambda: None)
                    plain = job.in_order(1, drops=drops).placed
                # In seven parts the range of keys that all differ is too wide to count by.
                for threads in (1, 3, 7) if kind == "all differ" else (1, 3):
                    found = job.in_order(threads, drops=drops).placed
                    where = (kind, unit, given, threads)
                    assert found.size == plain.size, where
                    assert (found.firsts == plain.firsts).all(), where
                    if plain.rows is None:
                        assert found.rows is None, where
                        continue
                    assert (found.rows == plain.rows).all(), where
                    every = slice(None)
                    assert (found.ms(every) == plain.ms(every)).all(), where
                    for own, word in zip(found.words, plain.words, strict=True):
                        assert (own == word).all(), where


@pytest.mark.parametrize("seed", range(2))
def test_dropped_events_change_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Matches and timeouts are those of all events, in their order, with or without C."""
    random = np.random.default_rng(seed)
    n, key = random.integers(0, 12, SIZE), random.integers(0, 6, SIZE)
    table = pa.table({"key": key, "at": np.sort(random.integers(0, 400, SIZE)), "n": n})
    b = A.followedBy("b").where("n = 5").oneOrMore()
    for pattern in (
        *PATTERNS.values(),
        A.followedByAny("b").where("n = 5").followedBy("c").where("n > at % 3 + last(b.at) % 5"),
        b.followedBy("c").where("n = 6"),
        b.greedy().followedBy("c").where("n = 6"),
        A.notFollowedBy("b").where("n = 5").followedBy("c").where("n = 6"),
    ):
        within = pattern.within(timedelta(milliseconds=30))
        drops = column_match.ColumnMatch.rounds
        for compiled in (True, False):
            with monkeypatch.context() as patch:
                if not compiled:
                    patch.setattr(placing, "compiled_module", lambda: None)
                found = match(within, table, timestamp="at", key="key", threads=2)
                patch.setattr(
                    column_match.ColumnMatch,
                    "rounds",
                    lambda job, threads, drops_=drops, **_: drops_(job, threads),
                )
                every = match(within, table, timestamp="at", key="key", threads=1)
            assert found == every
            assert found.timeouts == every.timeouts


@needs_kernel
def test_threads_compute_decimals_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decimals whose units fit 64 bits, and those whose do not, are as in Python."""
    random = np.random.default_rng(3)
    ends = np.array([0, 1, -1, 7, 8, 10, 1 << 62, -(1 << 62), (1 << 63) - 1, -(1 << 63)])
    n, key = random.choice(ends, SIZE), random.integers(0, 9, SIZE)
    table = pa.table({"key": key, "at": np.sort(random.integers(0, 400, SIZE)), "n": n})
    begun = Pattern.begin("a").where("n <> 1").followedBy("b")
    for condition in (
        "n < 0.8 * last(a.n)",
        "n + 0.25 >= 1.5 - last(a.n)",
        "n * 1.5 = last(a.n) * 12345678901234567.5",
        "n <= greatest(0.8 * last(a.n), 12345678901234567890123.25)",
        "0.000000000000000001 * n * 0.5 < last(a.n)",
    ):
        pattern = begun.where(condition).within(timedelta(milliseconds=60))
        job = ColumnMatch.analysed(pattern, table, "at", "key")
        found = [match(pattern, table, timestamp="at", key="key", threads=n) for n in (1, 3)]
        with monkeypatch.context() as patch:
            patch.setattr(placing, "compiled_module", lambda: None)
            patch.setattr("pyflinkcep.engines.flink.bridge.compiled_module", lambda: None)
            plain = match(pattern, table, timestamp="at", key="key")
        assert found == [plain, plain], condition
        needs_python = condition.startswith(
            ("n <=", "n * 1.5")
        )  # which may have more than 38 digits
        assert job.matcher(None).needs_python is needs_python, condition


@pytest.mark.parametrize("count", [378, 379, 450])
def test_as_many_conditions_as_a_pattern_has(count: int) -> None:
    """Patterns whose conditions do not fit what C moves at once are ordered by key all the same."""
    pattern = Pattern.begin("s0").where("n = 0")
    for number in range(1, count):
        pattern = pattern.next(f"s{number}").where(f"n = {number}")
    events = {"k": [1, 2] * count, "n": [at // 2 for at in range(2 * count)]}
    assert len(match(pattern, events, key="k")) == 2


@pytest.mark.parametrize("end", [-(1 << 63), (1 << 63) - 1])
def test_conditions_on_few_values_at_the_ends_of_the_range(end: int) -> None:
    """The table of a column of few values ends where 64 bits do."""
    n = np.full(SIZE, end)
    n[::3] += 1 if end < 0 else -1
    found = match(Pattern.begin("a").where(f"n = {end}"), pa.table({"n": n}))
    assert len(found) == int((n == end).sum())
