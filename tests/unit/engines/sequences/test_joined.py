# SPDX-License-Identifier: Apache-2.0
"""Runs that events find in C by the value of an equality."""

from __future__ import annotations

import math
import random
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyflinkcep.engines.sequences.bridge import KernelCounter
from pyflinkcep.engines.sequences.compiler import Equality, compile_query, equality_of
from pyflinkcep.engines.sequences.evaluation import Sequences
from pyflinkcep.engines.table import EventTable
from pyflinkcep.expressions.program import Kind
from pyflinkcep.kernel.module import compiled_module
from pyflinkcep.sase import SaseQuery, parse
from tests.unit.engines.sequences.test_counts import counts_of, plain_counts

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


def comparable(matches: Any) -> list[str]:
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
        assert comparable(sequences.matches()) == comparable(sequences._unpacked())


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
