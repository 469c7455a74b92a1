# SPDX-License-Identifier: Apache-2.0
"""The kernel's join of ordered lists against the plain one, on random queries and streams."""

from __future__ import annotations

import math
import random
from typing import Any
from unittest import mock

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyflinkcep.engines.lists import clauses
from pyflinkcep.engines.lists.bridge import joined_frames, kernel_split
from pyflinkcep.engines.lists.matching import EventLists
from pyflinkcep.engines.table import Coded, EventTable
from pyflinkcep.expressions.program import Kind
from pyflinkcep.kernel.module import compiled_module
from pyflinkcep.sase import SaseQuery, parse
from pyflinkcep.sase.attributes import queried_attributes
from tests.kernel_harness import needs_kernel

pytestmark = needs_kernel

_COMPARED = ["=", "<>", "<", "<=", ">", ">="]
_KINDS = {"x": Kind.BIGINT, "y": Kind.BIGINT, "f": Kind.DOUBLE, "s": Kind.STRING}


def random_query(chance: random.Random) -> SaseQuery:
    """A ``;`` query, or a SEQ of single events, with conditions of every form."""
    size = chance.randint(2, 5)
    is_list = chance.random() < 0.5
    parts, names = [], []
    for number in range(size):
        type_, name = chance.choice("ABC"), f"v{number}"
        negated = chance.random() < 0.25 and any(not n for _, n in names)
        names.append((name, negated))
        loops = is_list and not negated and chance.random() < 0.15
        if is_list:
            parts.append(f"{'!' if negated else ''}{type_}{'^1' if loops else ''} {name}")
        else:
            parts.append(f"~({type_} {name})" if negated else f"{type_} {name}")
    conditions = [random_clause(chance, [n for n, _ in names]) for _ in range(chance.randint(0, 2))]
    if chance.random() < 0.2:
        conditions.append("[s]")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    window = f" WITHIN {chance.choice([3, 8, 20])}" if chance.random() < 0.8 else ""
    pattern = "; ".join(parts) if is_list else f"SEQ({', '.join(parts)})"
    return parse(f"PATTERN {pattern}{where}{window}")


def random_clause(chance: random.Random, names: list[str]) -> str:
    """A comparison of two elements, or two of them under OR, or a test for NULL."""
    a, b = chance.choice(names), chance.choice(names)
    sign = chance.choice(_COMPARED)
    number = chance.choice("xyf")
    forms = [
        f"{a}.{number} {sign} {b}.{chance.choice('xyf')}",
        f"{a}.s {sign} {b}.s",
        f"{a}.s {sign} 'q'",
        f"{a}.{number} {sign} {b}.x + {chance.choice(['1', '2.5', f'{b}.y'])}",
        f"{a}.{number} * {b}.x {sign} {chance.choice(['4', '80%', f'{a}.f'])}",
        f"{a}.x {chance.choice('%/')} {b}.y {sign} 1",
        f"-{a}.f - {b}.x {sign} {a}.y % {b}.x",
        f"{a}.y + {b}.y IS {chance.choice(['', 'NOT '])}NULL",
        f"{a}.x {sign} NULL",
        f"round({a}.f * {b}.x, {chance.choice([0, 1, -1])}) {sign} {b}.{number}",
        f"{chance.choice(['floor', 'ceil', 'sqrt', 'sign'])}({a}.f + {b}.{number}) {sign} {a}.x",
        f"{chance.choice(['power', 'pmod'])}({a}.{number}, {b}.{chance.choice('xyf')}) {sign} 1",
        f"startswith({a}.s, {b}.s)",
        f"startswith({a}.s, {chance.choice(['NULL', chr(39) + 'p' + chr(39)])})",
    ]
    clause = chance.choice(forms)
    if chance.random() < 0.4:
        return f"({clause} OR {chance.choice(forms)})"
    return clause


def random_table(chance: random.Random, size: int, keyed: bool) -> EventTable:
    """Events with equal times, NULL and NaN among them."""
    numbers = sorted(chance.randrange(3) for _ in range(size)) if keyed else None
    time, times = 0, []
    for at in range(size):
        if numbers is not None and at and numbers[at] != numbers[at - 1]:
            time = chance.randrange(4)
        time += chance.choice([0, 1, 1, 3])
        times.append(time)
    codes = np.array([chance.randrange(4) for _ in range(size)], np.int32)
    columns: dict[str, Any] = {
        "x": [chance.randrange(-2, 5) for _ in range(size)],
        "y": [chance.choice([None, 0, 1, 2]) for _ in range(size)],
        "f": [chance.choice([None, -0.0, 0.0, 1.5, math.nan, math.inf]) for _ in range(size)],
        "s": [chance.choice([None, "p", "q", "pr", "p\u00e4"]) for _ in range(size)],
    }
    if numbers is not None:  # a key has one text
        columns["s"] = [[None, "p", "q"][number] for number in numbers]
    starts = [chance.random() < 0.7 for _ in range(size)] if chance.random() < 0.3 else None
    types: Any = Coded(codes, ["A", "B", "other", "C"])
    if chance.random() < 0.3:
        types = list(types)
    return EventTable(times, types, columns, _KINDS, numbers, starts)


def matches(query: SaseQuery, table: EventTable, with_kernel: bool) -> list[dict[str, list[int]]]:
    """All matches, sorted."""
    lists = EventLists.of(query, table, kernel_split() if with_kernel else None)
    frames = lists.frames(joined_frames(lists) if with_kernel else None)
    found = (match for frame in frames for match in lists.matches(frame))
    return sorted(found, key=lambda match: [*match.values()])


@settings(max_examples=settings.default.max_examples * 5)
@given(st.integers(0, 1 << 40))
def test_the_kernel_joins_what_the_plain_path_joins(seed: int) -> None:
    """Both have the same matches, whatever the conditions, keys, NULLs and equal times."""
    chance = random.Random(seed)
    try:
        query = random_query(chance)
    except ValueError:
        return  # a closure beside another, a negation at an end without WITHIN, ...
    table = random_table(chance, chance.choice([0, 1, 12, 40]), chance.random() < 0.3)
    if not set(queried_attributes(query)) <= set(_KINDS):
        return  # a function of one event, which SQL computes
    assert matches(query, table, True) == matches(query, table, False)


def test_a_join_goes_on_where_it_stopped() -> None:
    """Matches beyond one block of candidates and one portion of rows are all there, once."""
    query = parse("PATTERN SEQ(A a, B b) WHERE b.x <> a.x")
    size = 300
    table = EventTable(
        range(2 * size),
        ["A"] * size + ["B"] * size,
        {"x": [n % 7 for n in range(2 * size)]},
        {"x": Kind.BIGINT},
    )
    found = matches(query, table, True)
    assert len(found) > 1 << 16
    assert found == matches(query, table, False)


def test_a_join_refuses_what_does_not_go_together() -> None:
    """Columns and lists of unequal sizes are refused, before anything is read beyond its end."""

    two, three = np.zeros(2, np.int64), np.zeros(3, np.int64)
    step = (0, -1, -1, True, None, ())
    with pytest.raises(ValueError, match="as long as their list"):
        compiled_module().Join(((two, three, None),), False, (), (step,), -1)
    with pytest.raises(ValueError, match="as long as their list"):
        compiled_module().Join(((two, two, None),), False, ((0, three, None),), (step,), -1)
    with pytest.raises(TypeError, match="items of 8 bytes"):
        compiled_module().Join(((two.astype(np.int32), two, None),), False, (), (step,), -1)


def test_conditions_are_compiled_once_for_all_tables_of_the_same_kinds() -> None:
    """A second table costs no compiling, whatever its texts; another type of a column does."""
    query = parse("PATTERN SEQ(A a, B b) WHERE a.x + 17 > b.y * 3 AND b.s < 'pq' WITHIN 20")
    tables = [random_table(random.Random(seed), 30, keyed=False) for seed in range(3)]
    expected = [matches(query, table, with_kernel=False) for table in tables]
    matches(query, tables[0], with_kernel=True)
    with mock.patch.multiple(
        clauses, condition_code=mock.DEFAULT, value_code=mock.DEFAULT, by_ranks=mock.DEFAULT
    ) as compiling:
        found = [matches(query, table, with_kernel=True) for table in tables]

    assert found == expected
    assert not any(own.called for own in compiling.values())
    other = attrs.evolve(tables[0], kinds={**_KINDS, "y": Kind.DOUBLE})
    assert matches(query, other, with_kernel=True) == expected[0]
