# SPDX-License-Identifier: Apache-2.0
"""Listing in the kernel against the plain path, on random queries and streams."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from itertools import islice
from typing import Any
from unittest import mock

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyflinkcep.engines.queries import QueryPlan, query_matches
from pyflinkcep.engines.sequences import evaluation
from pyflinkcep.engines.sequences.compiler import Equality, compile_query, equality_of
from pyflinkcep.engines.sequences.evaluation import (
    KernelCounter,
    KernelQuery,
    MatchPositions,
    Sequences,
)
from pyflinkcep.engines.sequences.runs import RunLimit, Track
from pyflinkcep.engines.streamed_queries import Portion, StreamedQuery
from pyflinkcep.engines.table import EventTable
from pyflinkcep.errors import StateLimitError
from pyflinkcep.expressions.program import Kind
from pyflinkcep.kernel.module import compiled_module
from pyflinkcep.sase import SaseQuery, parse
from pyflinkcep.sase.model import Query
from pyflinkcep.testing import matchSase
from tests.kernel_harness import needs_kernel
from tests.unit.engines.sequences.test_counts import (
    counts_of,
    plain_counts,
    random_query,
    random_table,
)

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


@needs_kernel
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


@needs_kernel
def test_matches_come_in_the_same_order_each_time() -> None:
    """The order among the matches of one event is free, but the same in every run."""
    chance = random.Random(5)
    query = parse(f"{_MANY} WHERE b[i].x >= b[i-1].x WITHIN 20")
    table = attrs.evolve(random_table(chance, 40), starts=None)
    first = list(Sequences(query, table).matches())
    assert first == list(Sequences(query, table).matches())
    assert len(first) > 100


@needs_kernel
def test_two_listings_take_turns() -> None:
    """Each listing has a place of its own in the stream."""
    sequences = Sequences(parse(_MANY), of_letters("ABBBBBBBBBBBBC"))
    one, other = sequences.matches(), sequences.matches()
    pairs = list(zip(one, other, strict=True))
    assert len(pairs) == 2**12 - 1
    assert all(a == b for a, b in pairs)


@needs_kernel
def test_the_first_of_many_matches_need_not_wait_for_the_rest() -> None:
    """Of 2**999 - 1 matches some are listed, each another, those with the latest events first."""
    sequences = Sequences(parse(_MANY), of_letters("A" + "B" * 999 + "C"))
    some = [tuple(match["b"]) for match in islice(sequences.matches(), 5000)]
    assert len(set(some)) == 5000


@needs_kernel
def test_starts_in_the_window_are_found_among_those_before_it() -> None:
    """Ways that begin before the window are left out, however many have become one run."""
    letters = "AB" * 400 + "C"
    query = parse("PATTERN SEQ(A a, B b, C c) WITHIN 20")
    found = list(Sequences(query, of_letters(letters)).matches())
    expected = {(a, b) for a in range(780, 800, 2) for b in range(a + 1, 800, 2)}
    assert {(m["a"][0], m["b"][0]) for m in found} == expected
    assert len(found) == len(expected)


@needs_kernel
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


@pytest.mark.slow
@needs_kernel
@pytest.mark.parametrize(
    ("strategy", "within"),
    [
        ("strict_contiguity", ""),
        ("skip_till_next_match", " WITHIN 60"),
        ("skip_till_any_match", " WITHIN 60"),
    ],
)
def test_what_no_match_can_use_is_forgotten(strategy: str, within: str) -> None:
    """As many nodes are held after 20,000 events as after 2,000."""
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

    assert 0 < most_held(20_000) <= 1.5 * most_held(2_000)


@needs_kernel
def test_matches_of_one_event_and_of_none() -> None:
    """A query of one event lists each; the arrays of no match are empty."""
    query = parse("PATTERN SEQ(A a)")
    assert list(Sequences(query, of_letters("ABA")).matches()) == [{"a": [0]}, {"a": [2]}]
    assert list(Sequences(query, of_letters("B")).matches()) == []
    assert list(Sequences(query, of_letters("")).matches()) == []
    looped = list(Sequences(parse("PATTERN SEQ(A+ a[])"), of_letters("AA")).matches())
    assert comparable(iter(looped)) == ["{'a': [0, 1]}", "{'a': [0]}", "{'a': [1]}"]


@needs_kernel
def test_arrays_are_cut_at_a_number_of_matches() -> None:
    """`first` keeps whole matches, of single events and of loops."""
    for pattern in ("SEQ(A a, B b)", "SEQ(A a, B+ b[])"):
        sequences = Sequences(parse(f"PATTERN {pattern}"), of_letters("ABBB"))
        found = list(sequences.matches())
        (arrays,) = sequences.arrays() or ()
        for count in range(len(found) + 2):
            assert list(arrays.first(count).matches(["a", "b"])) == found[:count]


@needs_kernel
def test_numbers_beyond_64_bits_are_left_to_the_plain_path() -> None:
    """What the kernel cannot hold is listed all the same."""
    for most in (3, 10**25):
        events = [{"type": "AB"[n % 2], "x": n * most} for n in range(6)]
        found = matchSase("PATTERN SEQ(A a, B b) WHERE b.x > a.x", events, evaluation="nfa")
        assert len(found) == 6


@needs_kernel
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


# --- runs that events find in C by the value of an equality


_KINDS = {"n": Kind.BIGINT, "f": Kind.DOUBLE, "s": Kind.STRING, "x": Kind.BIGINT}
_EDGES = ["n = {0}.n", "n = {0}.f", "f = {0}.n", "f = {0}.f", "s = {0}.s"]


def joined_query(chance: random.Random) -> SaseQuery:
    """A SEQ whose clauses ask later events for values of earlier ones."""
    strategy = chance.choice(["skip_till_any_match", "skip_till_any_match", "skip_till_next_match"])
    loops = [chance.random() < 0.3 for _ in range(3)]
    parts, clauses = [], []
    for name, repeats in zip("abc", loops, strict=True):
        parts.append(f"{name.upper()}{'+' if repeats else ''} {name}{'[]' if repeats else ''}")
        if name == "a":
            continue
        before = "ab"["bc".index(name)]
        before += "[LEN]" if loops["abc".index(before)] else ""
        own = f"{name}[1]" if repeats else name
        clauses.append(f"{own}.{chance.choice(_EDGES).format(before)}")
        if repeats:
            clauses.append(f"{name}[i].{chance.choice(_EDGES).format(f'{name}[i-1]')}")
        if chance.random() < 0.3:
            clauses.append(f"{own}.x >= {before}.x")
    if loops[0]:
        clauses.append("a[i].n = a[i-1].n")
    if chance.random() < 0.2:
        parts.insert(chance.choice([1, 2]), "~(D d)")
    chance.shuffle(clauses)
    names = ", ".join(n + "[]" if r else n for n, r in zip("abc", loops, strict=True))
    within = f" WITHIN {chance.choice([60, 400])}" if chance.random() < 0.7 else ""
    where = f"{strategy}({names}) {{ {' AND '.join(clauses)} }}"
    return parse(f"PATTERN SEQ({', '.join(parts)}) WHERE {where}{within}")


def joined_table(chance: random.Random, size: int) -> EventTable:
    """Events of many values, with NULL, NaN and both zeros among them."""
    odd = [None, math.nan, -math.nan, 0.0, -0.0]
    values = range(2**53, 2**53 + 4) if chance.random() < 0.2 else range(90)
    columns: dict[str, Any] = {
        "n": [chance.choice([None, 0, *values, *values]) for _ in range(size)],
        "f": [chance.choice([*odd, *map(float, values)]) for _ in range(size)],
        "s": [chance.choice([None, *map(str, values)]) for _ in range(size)],
        "x": [chance.randrange(9) for _ in range(size)],
    }
    types = [chance.choice("AAAABBBBCCCD"[: chance.choice([11, 12])]) for _ in range(size)]
    return EventTable(range(size), types, columns, _KINDS)


def as_lists(matches: Any) -> list[str]:
    return sorted(map(repr, matches))


@settings(max_examples=settings.default.max_examples)
@given(st.integers(0, 1 << 40))
def test_an_event_finds_all_runs_that_it_can_extend(seed: int) -> None:
    """Found by value, as C does, or asked one by one, runs make the same matches."""
    chance = random.Random(seed)
    query = joined_query(chance)
    table = joined_table(chance, chance.choice([40, 160, 220]))
    own = list(range(len(table.times)))
    found = plain_counts(query, table, own)
    counter = KernelCounter.of(compile_query(query, _KINDS), table)
    assert counter is None or counts_of(counter, own) == found
    if sum(found.values()) < 2000:
        sequences = Sequences(query, table)
        assert as_lists(sequences.matches()) == as_lists(sequences._unpacked())


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("b.n = a.n", Equality(0, 0)),
        ("a.n = b.n", Equality(0, 0)),
        ("b.x > a.x AND b.n = a.f", Equality(1, 1)),
        ("b.x > a.x AND b.s = a.s AND b.n < a.n", Equality(1, 1)),
        ("b.n = a.n OR b.s = a.s", None),
        ("b.n + 1 = a.n", None),
        ("(b.n = a.n OR b.x = 1) AND b.s = a.s", Equality(2, 1)),
    ],
)
def test_equalities_among_clauses(clause: str, expected: Equality | None) -> None:
    """A clause that must hold, of a field and a slot alone, is found wherever it stands."""
    query = parse(f"PATTERN SEQ(A a, B b) WHERE {clause}")
    automaton = compile_query(query, _KINDS)
    assert equality_of(automaton.begin[1].codes[1]) == expected


def test_the_kernel_looks_up_runs() -> None:
    """Each of 20,000 events meets one run of 10,000: asked one by one, that would take minutes."""
    if compiled_module() is None:
        pytest.skip("no kernel")
    size = 20_000
    columns = {"n": [at % 10_000 for at in range(size)]}
    table = EventTable(
        range(size), ["A"] * (size // 2) + ["B"] * (size // 2), columns, {"n": Kind.BIGINT}
    )
    query = parse("PATTERN SEQ(A a, B b) WHERE b.n = a.n WITHIN 1 hour")
    assert len(list(Sequences(query, table).matches())) == size // 2
    nulls = attrs.evolve(table, columns={"n": [None] * size})
    assert list(Sequences(query, nulls).matches()) == []


# --- automata on the events near the rarest component


@given(st.integers(0, 1 << 40))
def test_events_far_from_the_rarest_change_no_match(seed: int) -> None:
    """Under every strategy, with negations at either end, for every output, in C and in Python."""
    chance = random.Random(seed)
    try:
        query = random_query(chance, compares_absent=chance.random() < 0.5)
    except ValueError:
        return  # a negation at an end without WITHIN, ...
    table = random_table(chance, chance.choice([14, 40]))
    weights = chance.choice(["AAAAAAAAAAB", "AAAAAABBBBBBBBBCD", "BBBBBBBBCCCCCCCCCDA"])
    ends = [chance.random() < 0.5 for _ in table.times] if chance.random() < 0.2 else None
    table = attrs.evolve(table, types=[chance.choice(weights) for _ in table.times], ends=ends)
    whole = Sequences(query, table)
    if sum(1 for _ in islice(whole._unpacked(), 2001)) > 2000:
        return
    with mock.patch.multiple(evaluation, _MANY=2, RARER=1):
        near = Sequences(query, table, narrows=True)
        assert as_lists(near.matches()) == as_lists(whole.matches())
        assert as_lists(near._unpacked()) == as_lists(whole._unpacked())
        for output in ("all", "onePerStart", "nonOverlapping"):
            expected = as_lists(whole.searched(output))
            assert as_lists(near.searched(output)) == expected
            assert as_lists(near._searched(output, None, None)) == expected


def test_a_loop_with_a_rare_end_starts_from_it() -> None:
    """Only events within the window of the one C are looked at; without a C, none is."""
    size = 4000
    query = parse("PATTERN SEQ(A a, B+ b[], C c) WHERE b[i].x > b[i-1].x WITHIN 10")
    asked = []
    of = Track.of

    def counted(*given: Any) -> Track:
        asked.append(len(given[1]))
        return of(*given)

    def found(types: list[str]) -> int:
        asked.clear()
        table = EventTable(
            range(size), types, {"x": list(range(size))}, random_table(random.Random(), 0).kinds
        )
        with mock.patch.object(Track, "of", counted):
            return len(list(Sequences(query, table, narrows=True)._unpacked()))

    types = list("AB" * (size // 2))
    assert (found(types), asked) == (0, [])
    types[2000] = "C"
    assert found(types) == sum(2**n - 1 for n in (5, 4, 3, 2, 1))
    assert asked == [21]


# --- a bound on the runs of a query, which counts the same in C and in Python


QUERIES = [
    "SEQ(A a, B b, C c)",
    "SEQ(A+ a[], B b) WHERE a[i].x > a[i-1].x",
    "SEQ(A+ a[], B+ b[]) WHERE b[i].x > avg(a[].x)",
    "SEQ(A a, ~C c, B b, A d) WHERE skip_till_next_match AND c.x > a.x",
    "SEQ(A+ a[], ~C c, B b) WHERE b.x > a[LEN].x",
    "SEQ(A a, B b, ~C c) WHERE b.x > a.x",
    "SEQ(~C c, A a, B+ b[], A d) WHERE b[i].x <> a.x",
    "SEQ(A+ a[], B b) WHERE strict_contiguity AND a[i].x >= a[i-1].x",
]


def table(seed: int) -> EventTable:
    random_, time = random.Random(seed), 0
    size = random_.randint(1, 25)
    times = [time := time + random_.choice([0, 1, 1, 3]) for _ in range(size)]
    columns = {"x": [random_.choice([None, 1, 2, 3, 4]) for _ in range(size)]}
    types = [random_.choice("AABBC") for _ in range(size)]
    return EventTable(times, types, columns, {"x": Kind.BIGINT})


def peak(query: Query, events: EventTable) -> tuple[int, list[tuple[str, int | None]]]:
    """Return the least bound under which a query runs, and the errors of smaller ones."""
    errors = []
    for most in range(1, 1000):
        try:
            list(query_matches(query, events, "nfa", "all", RunLimit(most)))
        except StateLimitError as error:
            errors.append((error.message, error.timestamp_ms))
        else:
            return most, errors
    raise AssertionError("no bound is enough")


@pytest.mark.slow
@pytest.mark.parametrize("text", QUERIES)
def test_kernel_and_plain_path_count_the_same_runs(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs that are merged are one, and those out of the window none."""
    for seed in range(0, 25, 2):
        query, events = parse(f"PATTERN {text} WITHIN {3 + seed}"), table(seed)
        found = []
        for path in "01":
            monkeypatch.setenv("PYFLINKCEP_KERNEL", path)
            found.append(peak(query, events))
        assert found[0] == found[1], (query, events)


@pytest.mark.usefixtures("each_path")
def test_too_many_runs() -> None:
    """The error names the bound and the event's time, on streams too; a bound that is kept
    changes no match.
    """
    query = parse("PATTERN SEQ(A+ a[], B b) WHERE a[i].x > avg(a[..i-1].x)")
    size = 30
    xs = [n * n for n in range(size)]
    events = EventTable(range(size), ["A"] * size, {"x": xs}, {"x": Kind.BIGINT}, [0] * size)
    with pytest.raises(StateLimitError, match=r"partial matches, maxPartialMatches is 500 \(event"):
        list(query_matches(query, events, "nfa", "all", RunLimit(500)))
    streamed = StreamedQuery(QueryPlan(query, "nfa", runs=RunLimit(500)))
    with pytest.raises(StateLimitError, match="maxPartialMatches is 500"):
        streamed.matches(Portion(events, [0, size], [0], [0], size))
    short = EventTable(range(9), [*"AAAAAAAAB"], {"x": xs[:9]}, {"x": Kind.BIGINT})
    free, bound = (
        sorted(map(str, query_matches(query, short, "nfa", "all", limit)))
        for limit in (None, RunLimit(500))
    )
    assert free == bound
    assert len(free) > 100
