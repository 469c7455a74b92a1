# SPDX-License-Identifier: Apache-2.0
"""Counting in the kernel against the plain path, on random queries and streams."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from contextlib import nullcontext
from fractions import Fraction
from typing import Any
from unittest import mock

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyflinkcep.engines.compressed.counting import CountPayloads, Ranked, Weighed
from pyflinkcep.engines.compressed.matches import Measured
from pyflinkcep.engines.sequences.compiler import compile_query
from pyflinkcep.engines.sequences.evaluation import KernelCounter, Sequences, rise_of
from pyflinkcep.engines.sequences.runs import MergedRuns, Track
from pyflinkcep.engines.table import EventTable
from pyflinkcep.expressions.program import Kind
from pyflinkcep.kernel.module import compiled_module
from pyflinkcep.sase import SaseQuery, parse
from pyflinkcep.testing import matchSase
from tests.kernel_harness import needs_kernel

pytestmark = needs_kernel

_COMPARED = ["=", "<>", "<", "<=", ">", ">="]
_KINDS = {"x": Kind.BIGINT, "y": Kind.BIGINT, "f": Kind.DOUBLE, "s": Kind.STRING}
_STRATEGIES = [
    "strict_contiguity",
    "partition_contiguity",
    "skip_till_next_match",
    "skip_till_any_match",
    "skip_till_next_match",
    "skip_till_any_match",
]


def random_query(chance: random.Random, compares_absent: bool = False) -> SaseQuery:
    """A SEQ with loops, negated components, strategies, and clauses about other events."""
    parts, names, loops, absent = [], [], [], []
    for number in range(chance.randint(1, 4)):
        type_, name = chance.choice("ABC"), f"v{number}"
        if chance.random() < 0.2:
            parts.append(f"~({type_} {name})")
            absent.append(name)
        elif chance.random() < 0.4:
            parts.append(f"{type_}+ {name}[]")
            loops.append(name)
            names.append(name)
        else:
            parts.append(f"{type_} {name}")
            names.append(name)
    listed = [name + "[]" if name in loops else name for name in names]
    conditions = [random_clause(chance, names, loops) for _ in range(chance.randint(0, 2))]
    if compares_absent and absent and names:
        a, b, sign = chance.choice(absent), chance.choice(names), chance.choice(_COMPARED)
        forms = [f"sum({b}[].x)", f"{b}[LEN].f", f"{b}[1].y"] if b in loops else [f"{b}.f"]
        conditions.append(f"{a}.{chance.choice('xy')} {sign} {chance.choice(forms)}")
    strategy = chance.choice(_STRATEGIES)
    if strategy == "partition_contiguity" or chance.random() < 0.2:
        conditions.append("[k]")
    elif chance.random() < 0.1:
        conditions.append("[k = 1]")
    body = f" {{ {' AND '.join(conditions)} }}" if conditions else " { }"
    where = f" WHERE {strategy}({', '.join(listed)}){body}" if names else ""
    window = f" WITHIN {chance.choice([3, 8, 20])}" if chance.random() < 0.6 else ""
    return parse(f"PATTERN SEQ({', '.join(parts)}){where}{window}")


def random_clause(chance: random.Random, names: list[str], loops: list[str]) -> str:
    """A clause about one event, an earlier component, or a loop's events before."""
    a, b = chance.choice(names or ["v0"]), chance.choice(names or ["v0"])
    sign, number = chance.choice(_COMPARED), chance.choice("xyf")
    forms = [f"{a}{'[i]' if a in loops else ''}.{number} {sign} {chance.choice(['1', '0.5'])}"]
    if a not in loops and b not in loops:
        forms += [f"{a}.{number} {sign} {b}.x", f"{a}.s {sign} {b}.s"]
    if a in loops:
        own = chance.choice(["x", "y", "f", "s"])
        forms += [f"{a}[i].{own} {sign} {a}[i-1].{own}"] * 3
        forms += [
            f"{a}[i].{number} {sign} avg({a}[..i-1].{number})",
            f"{a}[i].x {sign} max({a}[..i-1].x)",
            f"count({a}[]) {sign} 2",
            f"{a}[1].x {sign} 1",
        ]
        if b not in loops:
            forms += [f"{b}.x {sign} {a}[LEN].x", f"sum({a}[].x) {sign} {b}.y"]
    return chance.choice(forms)


def random_table(chance: random.Random, size: int) -> EventTable:
    """Events of a few values, NULL and NaN among them."""
    time, times = 0, []
    for _ in range(size):
        time += chance.choice([0, 1, 1, 3])
        times.append(time)
    columns: dict[str, Any] = {
        "x": [chance.randrange(-1, 3) for _ in range(size)],
        "y": [chance.choice([None, 0, 1]) for _ in range(size)],
        "f": [chance.choice([None, -0.0, 0.0, 1.5, math.nan]) for _ in range(size)],
        "s": [chance.choice([None, "p", "q"]) for _ in range(size)],
        "k": [chance.choice([None, 1, 1, 1, 2]) for _ in range(size)],
    }
    starts = [chance.random() < 0.7 for _ in range(size)] if chance.random() < 0.3 else None
    types = [chance.choice("AABBCCD") for _ in range(size)]
    return EventTable(times, types, columns, {**_KINDS, "k": Kind.BIGINT}, None, starts)


def counts_of(counter: KernelCounter, own: Sequence[int]) -> dict[int, int]:
    """How many matches end with each event of a partition, by the kernel."""
    return {at: count for at, count, _ in counter.by_event(own)}


def plain_counts(query: SaseQuery, table: EventTable, own: list[int]) -> dict[int, int]:
    """How many matches end with each event of a partition, by the plain path."""
    automaton = compile_query(query, table.kinds)
    fields = [tuple(table.columns[name][at] for name in automaton.fields) for at in own]
    starts = None if table.starts is None else [table.starts[at] for at in own]
    track = Track.of(
        automaton, [table.types[at] for at in own], [table.times[at] for at in own], fields, starts
    )
    found: dict[int, int] = {}
    for at, (count, _) in MergedRuns(track, CountPayloads()).matches():
        found[own[at]] = found.get(own[at], 0) + count
    return found


def partition(query: SaseQuery, table: EventTable, chance: random.Random) -> list[int]:
    """The events of some partition, or of any keys for queries without one."""
    found = [list(own) for own, is_null in table.partitions(query) if not is_null]
    return chance.choice(found) if found else []


@settings(max_examples=settings.default.max_examples * 5)
@given(st.integers(0, 1 << 40))
def test_the_kernel_counts_what_the_plain_path_counts(seed: int) -> None:
    """Both count the same matches of each event, under every strategy and condition."""
    chance = random.Random(seed)
    try:
        query = random_query(chance, compares_absent=chance.random() < 0.5)
    except ValueError:
        return  # a negation at an end without WITHIN, ...
    table = random_table(chance, chance.choice([0, 1, 9, 14]))
    counter = KernelCounter.of(compile_query(query, table.kinds), table)
    if counter is None:
        return  # a negated component at an end that looks at others
    own = partition(query, table, chance)
    expected = plain_counts(query, table, own)
    assert counts_of(counter, own) == expected
    assert counter.count(own) == sum(expected.values())


@settings(max_examples=settings.default.max_examples * 3)
@given(st.integers(0, 1 << 40))
def test_the_kernel_weighs_what_the_plain_path_weighs(seed: int) -> None:
    """Aggregates over the events of each component: NULL, negative numbers, floats and texts."""
    chance = random.Random(seed)
    try:
        query = random_query(chance)
    except ValueError:
        return  # a negation at an end without WITHIN, ...
    table = random_table(chance, chance.choice([1, 9, 14]))
    size = len(table.times)
    choices: list[list[Any]] = [
        [chance.randrange(-9, 9) for _ in range(size)],
        [chance.choice([None, 3, 2**62, -(2**62)]) for _ in range(size)],
        [chance.choice([None, 0.1, -2.5, 1e300]) for _ in range(size)],
        [2**70 + at for at in range(size)],
        [chance.choice([0.5, math.inf]) for _ in range(size)],
        [None] * size,
    ]
    texts = [chance.choice([None, "p", "q", "r"]) for _ in range(size)]
    functions = {"sum": chance.choice(choices), "min": chance.choice([*choices, texts])}
    functions |= {"max": chance.choice([*choices, texts]), "count": chance.choice([None, texts])}
    functions["stddev"] = chance.choice([*choices, [chance.choice([1, 0.5]) for _ in range(size)]])
    sequences = Sequences(query, table)
    measures = [(v, *chance.choice([*functions.items()])[::-1]) for v in sequences.variables]
    found = weighed(sequences, measures)
    with mock.patch.object(Sequences, "weighed", return_value=None):
        assert found == weighed(Sequences(query, table), measures)


def weighed(sequences: Sequences, measures: Any) -> dict[int, Any]:
    """The number of matches of each event, and what is wanted of the totals."""
    wanted = [Measured(function, variable, "x", "") for variable, _, function in measures]
    return {
        at: (count, [m.result(count, total) for m, total in zip(wanted, totals, strict=True)])
        for at, count, totals in sequences.totals_by_event(measures)
    }


def test_what_the_kernel_weighs() -> None:
    """Sums of whole numbers, in parts, and the least and greatest of anything with an order."""
    floats, texts, sets = [0.5, None, 1e300], ["b", "a", None], [{1}, {2}, {3}]
    for values in (floats, texts, [math.nan, 1.0, 2.0]):
        ranks = Ranked.of(values, False)
        assert ranks is not None
        assert Weighed.of((0, ranks.ranks, "rank"), True, 3) is not None
    for values in ([1, "a", 2], sets):
        assert Ranked.of(values, True) is None
        assert Weighed.of((0, values, "min"), True, 3) is None
    wide = Weighed.of((0, [2**130, -5, None], "sum"), False, 3)
    assert wide is not None
    parts = [int(part[0]) << 63 * number for number, part in enumerate(wide.weights)]
    assert (len(parts), wide.least + sum(parts)) == (3, 2**130)
    assert Weighed.of((0, [1, 2**600], "sum"), False, 2) is None
    ranked = [Ranked.of(texts, least) for least in (False, True)]
    assert [list(one.ranks) for one in ranked if one is not None] == [[2, 1, None], [1, 2, None]]
    ranked = [Ranked.of([math.nan, 1.0, None, math.nan], least) for least in (False, True)]
    assert [list(one.ranks) for one in ranked if one is not None] == [
        [2, 1, None, 2],
        [1, 2, None, 1],
    ]


def test_sums_of_any_size_are_exact() -> None:
    """Sums beyond 64 and 128 bits, of large weights, with a number for each start."""
    types = ["A" if at % 9 == 0 else "C" if at % 7 == 0 else "B" for at in range(300)]
    for within in ("", " WITHIN 90"):
        query = parse(f"PATTERN SEQ(A a, B+ b[], C c){within}")
        table = EventTable(range(300), types, {}, {})
        for values in ([2**63 - 1 - at for at in range(300)], [at / 3 for at in range(300)]):
            sequences = Sequences(query, table)
            assert sequences._summing is not None
            measures = [("b", values, function) for function in ("sum", "min", "max")]
            found = weighed(sequences, measures)
            with mock.patch.object(Sequences, "weighed", return_value=None):
                assert found == weighed(Sequences(query, table), measures)
            assert len(found) > 30


def test_sums_are_correctly_rounded() -> None:
    """The sum of floats is that of exact numbers, rounded once, in any order of runs."""
    prices = [0.1 * at for at in range(40)]
    events = [{"type": "ABC"[at % 3], "x": price} for at, price in enumerate(prices)]
    compressed = matchSase("PATTERN SEQ(A a, B b, C c)", events, compressed=True)
    listed = [m["b"][0]["x"] for m in compressed.unpack()]
    texts = ("sum(b.x)", "avg(b.x)", "min(b.x)", "stddev(b.x)")
    by_kernel = compressed.aggregate(*texts)
    assert by_kernel["stddev(b.x)"] == statistics.stdev(listed)
    assert by_kernel["sum(b.x)"] == float(sum(map(Fraction, listed)))
    assert by_kernel["min(b.x)"] == min(listed)
    with mock.patch.object(Sequences, "weighed", return_value=None):
        assert compressed.aggregate(*texts) == by_kernel


@pytest.mark.parametrize(
    ("xs", "expected"),
    [([], None), ([2.5], None), ([math.nan], None), ([None, 1], None), ([1, 1], 0.0),
     ([1, None, 4], math.sqrt(4.5)), ([math.nan, 1.0], math.nan), ([1.0, -math.inf], math.nan),
     ([1e300, -1e300], math.sqrt(2) * 1e300), ([1e16, 1e16 + 2], math.sqrt(2)),
     ([1.7e308, -1.7e308], math.inf), ([5e-324, 0.0], 5e-324)],
)  # fmt: skip
def test_standard_deviations(xs: list[float | None], expected: float | None) -> None:
    """Of a sample: NULL of fewer than two values, NaN with one that is not finite, else exact."""
    events = [{"type": "A", "x": 7}, *({"type": "B", "x": x} for x in xs)]
    found = matchSase("PATTERN SEQ(A a, B b)", events, compressed=True)
    for plain in (mock.patch.object(Sequences, "weighed", return_value=None), nullcontext()):
        with plain:
            (got,) = found.aggregate("stddev(b.x)").values()
        assert repr(got) == repr(expected) or got == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("within", ["", " WITHIN 70", " WITHIN 1000"])
def test_counts_of_any_size_are_exact(within: str) -> None:
    """Numbers beyond 64 and 128 bits, with a number for each start and without."""
    types = ["A" if at % 9 == 0 else "C" if at % 7 == 0 else "B" for at in range(400)]
    query = parse(f"PATTERN SEQ(A a, B+ b[], C c){within}")
    table = EventTable(range(400), types, {}, {})
    counter = KernelCounter.of(compile_query(query, {}), table)
    assert counter is not None
    expected = plain_counts(query, table, list(range(400)))
    assert counts_of(counter, range(400)) == expected
    assert max(expected.values()).bit_length() > (50 if within == " WITHIN 70" else 200)


@pytest.mark.parametrize("sign", ["<", "<=", ">", ">="])
@pytest.mark.parametrize("attribute", ["x", "y", "f", "s"])
@pytest.mark.parametrize("within", ["", " WITHIN 30"])
def test_rising_loops_are_counted_by_their_order(sign: str, attribute: str, within: str) -> None:
    """Loops that rise or fall, of numbers, texts, NULL and NaN, the last component among them."""
    chance = random.Random(sign + attribute)
    for pattern in (
        "A a, B+ b[], C c",
        "B+ b[], C c",
        "A a, B+ b[]",
        "A+ a[], B+ b[], ~(D d), C c",
    ):
        loops = [name for name in "ab" if f"{name}[]" in pattern]
        clauses = [f"{n}[i].{attribute} {sign} {n}[i-1].{attribute}" for n in loops]
        query = parse(f"PATTERN SEQ({pattern}) WHERE {' AND '.join(clauses)}{within}")
        table = attrs.evolve(random_table(chance, 60), starts=None)
        automaton = compile_query(query, table.kinds)
        counter = KernelCounter.of(automaton, table)
        assert counter is not None
        assert rise_of(automaton, len(automaton.types) - 1 - ("C c" in pattern)) is not None or (
            "~" in pattern
        )
        assert counts_of(counter, range(60)) == plain_counts(query, table, list(range(60)))


@pytest.mark.parametrize(
    ("pattern", "where"),
    [
        ("B+ b[], C c", "skip_till_next_match(b[], c) { b[i].x > b[i-1].x }"),
        ("B+ b[], C c", "b[i].x > b[i-1].x AND c.x > b[LEN].x"),
        ("B+ b[], C c", "b[i].x > b[i-1].x AND b[i].y > b[i-1].y"),
        ("B+ b[], C c", "b[i].x > b[i-1].x AND count(b[]) > 2"),
        ("A a, B+ b[], C c", "b[i].x > b[i-1].x AND c.x > a.x"),
        ("B+ b[], ~(D d), C c", "b[i].x > b[i-1].x"),
        ("B+ b[], C c", "b[i].x <> b[i-1].x"),
        ("B+ b[], C c", "b[i].x > max(b[..i-1].x)"),
    ],
)
def test_what_else_tells_runs_apart_keeps_them_apart(pattern: str, where: str) -> None:
    """A loop is counted by its order only if nothing ahead can tell its runs apart otherwise."""
    query = parse(f"PATTERN SEQ({pattern}) WHERE {where}")
    table = attrs.evolve(random_table(random.Random(where), 40), starts=None)
    automaton = compile_query(query, table.kinds)
    assert all(rise_of(automaton, number) is None for number in range(automaton.size))
    counter = KernelCounter.of(automaton, table)
    assert counter is not None
    assert counts_of(counter, range(40)) == plain_counts(query, table, list(range(40)))


def test_numbers_beyond_64_bits_are_left_to_the_plain_path() -> None:
    """What the kernel cannot hold is counted all the same."""
    for most in (3, 10**25):
        events = [{"type": "AB"[n % 2], "x": n * most} for n in range(6)]
        query = "PATTERN SEQ(A a, B b) WHERE b.x > a.x"
        listed = matchSase(query, events, evaluation="nfa")
        assert matchSase(query, events, compressed=True).count() == len(listed) == 6


def test_what_the_window_left_behind_is_forgotten() -> None:
    """A long stream counts the same with starts that come and go many times over."""
    chance = random.Random(3)
    size = 6000
    types = [chance.choice("ABC") for _ in range(size)]
    columns = {"x": [chance.randrange(1000) for _ in range(size)]}
    query = parse(
        "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_any_match(a, b[], c) "
        "{ b[i].x > b[i-1].x } WITHIN 12"
    )
    table = EventTable(range(size), types, columns, _KINDS)
    counter = KernelCounter.of(compile_query(query, _KINDS), table)
    assert counter is not None
    assert counts_of(counter, range(size)) == plain_counts(query, table, list(range(size)))


def test_a_counter_refuses_arrays_of_unequal_sizes() -> None:
    """Nothing is read beyond the end of an array."""
    component = (False, 3, ((), (), (), ()), ((), (), (), (), ()), (-1, -1), (-1, -1))
    counter = compiled_module().Counter((component,), (), ((), ()), (), -1)
    one, two = np.zeros(1, np.int64), np.zeros(2, np.int64)
    with pytest.raises(ValueError, match="as long as there are events"):
        counter.count(two, None, np.zeros(1, np.int32), None, one, one, one, False, None, -1, False)
    with pytest.raises(ValueError, match="as long as there are events"):
        counter.count(two, None, np.zeros(2, np.int32), None, one, two, one, False, None, -1, False)
    counter.set_events(1, ())
    weights = np.zeros(2, np.uint64)
    with pytest.raises(ValueError, match="as long as there are events"):
        counter.count(
            one, None, np.zeros(1, np.int32), None, one, one, one, True, weights, 0, False
        )
    for handle in (-1, 1):
        handles = np.array([handle])
        with pytest.raises(ValueError, match="as long as there are events"):
            counter.count(
                one, handles, np.zeros(1, np.int32), None, one, one, one, True, None, 0, False
            )
