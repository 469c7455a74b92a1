# SPDX-License-Identifier: Apache-2.0
"""The kernel's depth-first search against the plain one, on random queries and streams."""

from __future__ import annotations

import random
import signal
import tracemalloc
from unittest import mock

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyflinkcep.engines.sequences.compiler import compile_query
from pyflinkcep.engines.sequences.evaluation import KernelQuery, Sequences
from pyflinkcep.engines.table import Coded, EventTable
from pyflinkcep.expressions.program import Kind
from pyflinkcep.kernel.module import compiled_module
from pyflinkcep.sase import SaseQuery, parse
from pyflinkcep.testing import matchSase
from tests.kernel_harness import needs_kernel
from tests.unit.engines.sequences.test_counts import random_query, random_table

pytestmark = needs_kernel

_OUTPUTS = ("all", "onePerStart", "nonOverlapping")


def searched(
    query: SaseQuery, table: EventTable, output: str, watermark: int | None = None
) -> tuple[list[dict[str, list[int]]], list[int]]:
    """The matches in order, and the starts that are not decided."""
    undecided: list[int] = []
    found = list(Sequences(query, table).searched(output, watermark, undecided))
    return found, undecided


def searched_plainly(
    query: SaseQuery, table: EventTable, output: str, watermark: int | None = None
) -> tuple[list[dict[str, list[int]]], list[int]]:
    """The same, without the kernel."""
    with mock.patch.object(KernelQuery, "of", return_value=None):
        return searched(query, table, output, watermark)


@settings(max_examples=settings.default.max_examples * 5)
@given(st.integers(0, 1 << 40))
def test_the_kernel_finds_what_the_plain_search_finds(seed: int) -> None:
    """Both find the same matches in the same order, and stop at the same starts."""
    chance = random.Random(seed)
    try:
        query = random_query(chance, compares_absent=True)
    except ValueError:
        return  # a negation at an end without WITHIN, ...
    table = random_table(chance, chance.choice([0, 1, 9, 14]))
    size = len(table.times)
    if chance.random() < 0.3:
        keys = [chance.randrange(4) for _ in range(size)]
        table = attrs.evolve(table, keys=sorted(keys))
    if chance.random() < 0.3:
        table = attrs.evolve(table, ends=[chance.random() < 0.5 for _ in range(size)])
    watermark = chance.choice([None, *range(-1, 30)])
    assert KernelQuery.of(compile_query(query, table.kinds), table) is not None
    for output in _OUTPUTS:
        given = query, table, output, watermark
        assert searched(*given) == searched_plainly(*given)


@pytest.mark.slow
def test_a_long_stream_in_many_portions() -> None:
    """Matches that are handed over in portions are all there, of long windows and of short ones."""
    chance = random.Random(5)
    size = 3000
    table = EventTable(
        range(size),
        [chance.choice("ABCDEF") for _ in range(size)],
        {"x": [chance.randrange(100) for _ in range(size)]},
        {"x": Kind.BIGINT},
    )
    for within in (30, 300):
        for where in ("a.x < b.x", "skip_till_next_match(a, b, c) { b.x > a.x + c.x }"):
            query = parse(f"PATTERN SEQ(A a, ~(E e), B b, C c) WHERE {where} WITHIN {within}")
            for output in _OUTPUTS:
                found = searched(query, table, output)
                assert found == searched_plainly(query, table, output)
                assert len(found[0]) > 10
    query = parse("PATTERN SEQ(A a, B+ b[], C c) WHERE b[i].x >= b[i-1].x WITHIN 40")
    assert len(searched(query, table, "all")[0]) > 20_000
    assert searched(query, table, "all") == searched_plainly(query, table, "all")


@pytest.mark.parametrize(
    "clause",
    [
        "",
        "WHERE c.x > 100",
        "WHERE skip_till_next_match(a[], b[], c) { c.x > 100 }",
        "WHERE c.x > a[1].x",
    ],
)
def test_what_failed_once_is_not_tried_again(clause: str) -> None:
    """Loops that share their events fail in time that is polynomial, with and without an end."""
    types = ["A"] * 400 + (["C"] if clause else [])
    table = EventTable(range(len(types)), types, {"x": [7] * len(types)}, {"x": Kind.BIGINT})
    query = parse(f"PATTERN SEQ(A+ a[], A+ b[], C c) {clause}")
    for output in _OUTPUTS[1:]:
        assert searched(query, table, output) == ([], [])


@pytest.mark.slow
def test_what_failed_is_forgotten_when_it_is_too_much() -> None:
    """Without a window memory does not grow with starts times events."""
    size = 6000
    columns = {"x": list(range(size, 0, -1))}
    table = EventTable(range(size), ["A", "B"] * (size // 2), columns, {"x": Kind.BIGINT})
    query = parse("PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) { b.x > a.x }")
    tracemalloc.start()
    try:
        assert searched(query, table, "nonOverlapping") == ([], [])
        assert tracemalloc.get_traced_memory()[1] < 60e6
    finally:
        tracemalloc.stop()


def test_numbers_beyond_64_bits_are_left_to_the_plain_path() -> None:
    """What the kernel cannot hold is searched all the same."""
    for most in (3, 10**25):
        events = [{"type": "AB"[n % 2], "x": n * most} for n in range(6)]
        query = "PATTERN SEQ(A a, B b) WHERE b.x > a.x"
        assert len(matchSase(query, events, evaluation="backtracking")) == 6


def test_a_search_that_is_interrupted_ends() -> None:
    """Ctrl-C is looked at while no match is found, and the search can be used again."""
    size = 300_000
    table = EventTable(
        range(size),
        Coded(np.zeros(size, np.int32), ["A"]),
        {"x": np.arange(size)},
        {"x": Kind.BIGINT},
    )
    query = parse("PATTERN SEQ(A a, A b) WHERE b.x < a.x")
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(KeyboardInterrupt):
            searched(query, table, "nonOverlapping")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_search_refuses_arrays_of_unequal_sizes() -> None:
    """Nothing is read beyond the end of an array, and nothing of a search that has not begun."""
    component = (False, 3, ((), (), (), ()), ((), (), (), (), ()), (-1, -1), (-1, -1))
    module = compiled_module()
    with pytest.raises(ValueError, match="expected a component"):
        module.Backtracker((), (), ((), ()), (), -1)
    search = module.Backtracker((component,), (), ((), ()), (), -1)
    nothing = (b"", b"", b"")
    assert search.find(10) == nothing
    one, two, codes = np.zeros(1, np.int64), np.arange(2), np.zeros(2, np.int32)
    search.set_events(2, ())
    for bounds, may_end, places, types in (
        ([0, 2], None, None, codes[:1]),
        ([0, 1], None, two, codes),
        ([1, 2], None, two, codes),
        ([], None, two, codes),
        ([0, 2, 1, 2], None, two, codes),
        ([0, 1, 2], None, None, codes),
        ([0, 2], np.ones(1, np.uint8), two, codes),
    ):
        given = np.array(bounds, np.int64), may_end, two, places, types, None, one, one, one
        with pytest.raises(ValueError, match="as long as there are events"):
            search.turn_to(0, None, *given)
        assert search.find(10) == nothing
    search.turn_to(0, None, np.array([0, 2]), None, two, None, codes, None, one, one, one)
    assert search.find(10) == nothing
