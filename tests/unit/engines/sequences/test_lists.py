# SPDX-License-Identifier: Apache-2.0
"""Listing in the kernel against the plain path, on random queries and streams."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyflinkcep.engines.sequences.bridge import KernelQuery
from pyflinkcep.engines.sequences.compiler import compile_query
from pyflinkcep.engines.sequences.evaluation import MatchPositions, Sequences
from pyflinkcep.engines.table import EventTable
from pyflinkcep.kernel.module import compiled_module
from pyflinkcep.sase import SaseQuery, parse
from pyflinkcep.testing import matchSase
from tests.kernel_harness import needs_kernel
from tests.unit.engines.sequences.test_counts import random_query, random_table

pytestmark = needs_kernel

_MANY = "PATTERN SEQ(A a, B+ b[], C c)"


def lister(query: SaseQuery, table: EventTable) -> KernelQuery:
    found = KernelQuery.of(compile_query(query, table.kinds), table)
    assert found is not None
    return found


def of_letters(letters: str, times: Any = None, **columns: Any) -> EventTable:
    """Events whose types are letters, a millisecond apart."""
    return EventTable(times or range(len(letters)), list(letters), columns, {})


def comparable(matches: Iterator[MatchPositions]) -> list[str]:
    return sorted(map(repr, matches))


def last_of(match: MatchPositions) -> int:
    return list(match.values())[-1][-1]


@settings(max_examples=settings.default.max_examples * 5)
@given(st.integers(0, 1 << 40))
def test_the_kernel_lists_what_the_plain_path_lists(seed: int) -> None:
    """Both find the same matches, each once, under every strategy and condition."""
    chance = random.Random(seed)
    try:
        query = random_query(chance, compares_absent=chance.random() < 0.5)
    except ValueError:
        return  # a negation at an end without WITHIN, ...
    table = random_table(chance, chance.choice([0, 1, 9, 14, 20]))
    if chance.random() < 0.2:
        table = attrs.evolve(table, ends=[chance.random() < 0.5 for _ in table.times])
    sequences, begun, plainly_begun = Sequences(query, table), [], []
    found = list(sequences.matches(begun=begun))
    plain = sequences._unpacked(plainly_begun)
    assert comparable(iter(found)) == comparable(plain)
    if query.window is None:
        assert begun == plainly_begun
    else:  # the plain path looks at a run only when an event concerns it
        assert sum(begun) >= sum(plainly_begun) or len(begun) < len(plainly_begun)
    if len(list(sequences._positions())) == 1:
        assert list(map(last_of, found)) == sorted(map(last_of, found))


def test_matches_come_in_the_same_order_each_time() -> None:
    """The order among the matches of one event is free, but the same in every run."""
    chance = random.Random(5)
    query = parse(f"{_MANY} WHERE b[i].x >= b[i-1].x WITHIN 20")
    table = attrs.evolve(random_table(chance, 40), starts=None)
    first = list(Sequences(query, table).matches())
    assert first == list(Sequences(query, table).matches())
    assert len(first) > 100


def test_two_listings_take_turns() -> None:
    """Each listing has a place of its own in the stream."""
    sequences = Sequences(parse(_MANY), of_letters("ABBBBBBBBBBBBC"))
    one, other = sequences.matches(), sequences.matches()
    pairs = list(zip(one, other, strict=True))
    assert len(pairs) == 2**12 - 1
    assert all(a == b for a, b in pairs)


def test_the_first_of_many_matches_need_not_wait_for_the_rest() -> None:
    """Of 2**999 - 1 matches some are listed, each another, those with the latest events first."""
    sequences = Sequences(parse(_MANY), of_letters("A" + "B" * 999 + "C"))
    some = [tuple(match["b"]) for match in islice(sequences.matches(), 5000)]
    assert len(set(some)) == 5000


def test_starts_in_the_window_are_found_among_those_before_it() -> None:
    """Ways that begin before the window are left out, however many have become one run."""
    letters = "AB" * 400 + "C"
    query = parse("PATTERN SEQ(A a, B b, C c) WITHIN 20")
    found = list(Sequences(query, of_letters(letters)).matches())
    expected = {(a, b) for a in range(780, 800, 2) for b in range(a + 1, 800, 2)}
    assert {(m["a"][0], m["b"][0]) for m in found} == expected
    assert len(found) == len(expected)


def test_starts_that_a_negated_event_forbids_are_left_out_unwalked() -> None:
    """Of runs that are one, 2**40 ways begin where a later event forbids it, and one does not."""
    letters = "AA" + "B" * 41 + "CD"
    times = [0, 50, *range(51, 92), 93, 140]
    x = [1, 2] + [2] * 40 + [1, 0, 0]
    query = parse(
        "PATTERN SEQ(A a, B+ b[], C c, ~(D d)) WHERE skip_till_any_match(a, b[], c) "
        "{ b[1].x = a.x } WITHIN 100"
    )
    table = attrs.evolve(
        of_letters(letters, times, x=x), kinds=random_table(random.Random(), 0).kinds
    )
    assert list(Sequences(query, table).matches()) == [{"a": [0], "b": [42], "c": [43]}]


@pytest.mark.parametrize(
    ("strategy", "within"),
    [
        ("strict_contiguity", ""),
        ("skip_till_next_match", " WITHIN 60"),
        ("skip_till_any_match", " WITHIN 60"),
    ],
)
def test_what_no_match_can_use_is_forgotten(strategy: str, within: str) -> None:
    """As many nodes are held after 40,000 events as after 4,000."""
    query = parse(f"{_MANY} WHERE {strategy}(a, b[], c) {{ b[i].x >= b[i-1].x }}{within}")

    def most_held(size: int) -> int:
        chance = random.Random(3)
        letters = "".join(chance.choice("ABBCDDDD") for _ in range(size))
        x = [chance.randrange(5) for _ in range(size)]
        table = attrs.evolve(of_letters(letters, x=x), kinds=random_table(chance, 0).kinds)
        own = lister(query, table)
        listing = own.lister()
        listing.open(False, *own.streams([range(size)]))
        most = 0
        while listing.next(1)[1]:
            most = max(most, listing.size())
        return most

    assert 0 < most_held(40_000) <= 1.5 * most_held(4_000)


def test_matches_of_one_event_and_of_none() -> None:
    """A query of one event lists each; the arrays of no match are empty."""
    query = parse("PATTERN SEQ(A a)")
    assert list(Sequences(query, of_letters("ABA")).matches()) == [{"a": [0]}, {"a": [2]}]
    assert list(Sequences(query, of_letters("B")).matches()) == []
    assert list(Sequences(query, of_letters("")).matches()) == []
    looped = list(Sequences(parse("PATTERN SEQ(A+ a[])"), of_letters("AA")).matches())
    assert comparable(iter(looped)) == ["{'a': [0, 1]}", "{'a': [0]}", "{'a': [1]}"]


def test_arrays_are_cut_at_a_number_of_matches() -> None:
    """`first` keeps whole matches, of single events and of loops."""
    for pattern in ("SEQ(A a, B b)", "SEQ(A a, B+ b[])"):
        sequences = Sequences(parse(f"PATTERN {pattern}"), of_letters("ABBB"))
        found = list(sequences.matches())
        (arrays,) = sequences.arrays() or ()
        for count in range(len(found) + 2):
            assert list(arrays.first(count).matches(["a", "b"])) == found[:count]


def test_numbers_beyond_64_bits_are_left_to_the_plain_path() -> None:
    """What the kernel cannot hold is listed all the same."""
    for most in (3, 10**25):
        events = [{"type": "AB"[n % 2], "x": n * most} for n in range(6)]
        found = matchSase("PATTERN SEQ(A a, B b) WHERE b.x > a.x", events, evaluation="nfa")
        assert len(found) == 6


def test_a_lister_refuses_arrays_of_unequal_sizes() -> None:
    """Nothing is read beyond the end of an array, nor before a partition is opened."""
    component = (False, 3, ((), (), (), ()), ((), (), (), (), ()), (-1, -1), (-1, -1))
    made = compiled_module().Lister((component,), (), ((), ()), (), -1)
    one, codes = np.zeros(1, np.int64), np.zeros(1, np.int32)
    assert made.next(10) == (b"", b"", b"")
    bounds = np.array([0, 1])
    for wrong in (np.zeros(2, np.int64), np.array([1])):
        with pytest.raises(ValueError, match="as long as there are events"):
            made.open(True, bounds, None, one, wrong, codes, None, one, one, one)
    made.set_events(1, ())
    events = one, None, codes, None, one, one, one
    for wrong in ([], [0], [1, 1], [0, 2], [0, -1, 1], [0, 2, 1]):
        with pytest.raises(ValueError, match="as long as there are events"):
            made.open(True, np.array(wrong, np.int64), None, *events)
    with pytest.raises(ValueError, match="as long as there are events"):
        made.open(True, bounds, np.zeros(2, np.uint8), *events)
    assert made.next(10) == (b"", b"", b"")
    assert made.begun() == b""
