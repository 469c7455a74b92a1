# SPDX-License-Identifier: Apache-2.0
"""The kernel's join of ordered lists against the plain one, on random queries and streams."""

from __future__ import annotations

import math
import random
import tracemalloc
from itertools import groupby, product
from typing import Any
from unittest import mock

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyflinkcep.engines.lists import clauses, matching
from pyflinkcep.engines.lists.frame import TypeCodes
from pyflinkcep.engines.lists.matching import EventLists, joined_frames
from pyflinkcep.engines.table import Coded, EventTable
from pyflinkcep.expressions.arrays import TextRanks, Values, columnar, holding
from pyflinkcep.expressions.codegen import generated
from pyflinkcep.expressions.program import Code, CompiledExpressions, Instruction, Kind, Op, Type
from pyflinkcep.kernel.module import compiled_module
from pyflinkcep.sase import SaseQuery, parse
from pyflinkcep.sase.attributes import queried_attributes
from pyflinkcep.testing import matchSase
from tests.kernel_harness import needs_kernel
from tests.unit.kernel.random_programs import FIELDS, ROWS, SLOTS, truths

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
    lists = EventLists.of(query, table)
    frames = lists.frames(joined_frames(lists) if with_kernel else None)
    found = (match for frame in frames for match in lists.matches(frame))
    return sorted(found, key=lambda match: [*match.values()])


@needs_kernel
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


@pytest.mark.slow
@needs_kernel
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


@needs_kernel
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


@needs_kernel
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


# --- what is far from every event of the rarest element is in no match, and forbids none


QUERIES = [
    "PATTERN SEQ(A a, B b, R r, C c) WHERE c.x > a.x WITHIN 12",
    "PATTERN SEQ(~(C n), A a, ~(B m), R r) WHERE n.x > a.x + 3 AND m.x > a.x + 2 WITHIN 9",
    "PATTERN SEQ(R r, A a, ~(C n)) WHERE n.x > a.x WITHIN 9",
    "PATTERN A;!C;R;B^2 WHERE c.x > a.x + 2 WITHIN 10",
    "PATTERN B^2;R;A WHERE sum(b.x) > r.x WITHIN 10",
]


def events() -> list[dict[str, Any]]:
    """Events of three frequent types, and two places where there are some of a rare one."""
    choose = random.Random(3)
    found = [
        {"type": choose.choice("ABC"), "x": choose.randrange(5), "ts": n // 2, "id": n}
        for n in range(3000)
    ]
    for at in (0, 700, 705, 706, 2999):
        found[at]["type"] = "R"
    return found


@pytest.mark.parametrize("query", QUERIES)
def test_far_events_make_no_difference(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Matches are the same with all events in the lists; with few of them there are few rows."""
    found = {}
    seen: list[int] = []
    of = EventLists.of.__func__  # type: ignore[attr-defined]

    def counted(cls: Any, *given: Any) -> EventLists:
        lists = of(cls, *given)
        seen.append(max(map(len, lists.lists.values())))
        return lists  # type: ignore[no-any-return]

    monkeypatch.setattr(EventLists, "of", classmethod(counted))
    for rarer in (16, 10**9):
        monkeypatch.setattr(matching, "RARER", rarer)
        rows = matchSase(query, events(), "ts", evaluation="eventLists")
        found[rarer] = sorted(str([[e["id"] for e in own] for own in m.values()]) for m in rows)
    assert found[16] == found[10**9]
    assert found[16]
    assert seen[0] < 100 < 900 < seen[1]


def test_without_the_rarest_there_is_no_match() -> None:
    """A type without events leaves nothing near it."""
    without = [event for event in events() if event["type"] != "R"]
    assert matchSase(QUERIES[0], without, "ts", evaluation="eventLists") == []


@pytest.mark.parametrize("stretches", [None, ([0, 40], [1, 230]), ([], [])])
def test_types_are_sorted_within_stretches(stretches: Any) -> None:
    """The kernel and the plain path find the positions of each type, in some stretches or all."""
    choose = random.Random(5)
    codes = [choose.randrange(-1, 6) for _ in range(300)]
    lists = [2, -1, 0, 2, 1]
    chosen = None if stretches is None else tuple(np.array(own, np.int64) for own in stretches)
    inside = range(300) if stretches is None else [0, *range(40, 230)] if stretches[0] else []
    expected = [
        [at for at in inside if 0 <= codes[at] < 5 and lists[codes[at]] == number]
        for number in range(3)
    ]
    names = ["x", "y", "z"]
    own = TypeCodes(np.array(codes, np.int32), np.array(lists, np.int32), names)
    for found in (own.positions(chosen), own.plain_positions(chosen)):
        assert [found[name].tolist() for name in names] == expected
    assert own.positions_of("z").tolist() == [at for at, c in enumerate(codes) if c in (0, 3)]


# --- the first match of each start, by lists


SELECTING = [
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


@pytest.mark.parametrize("pattern", SELECTING)
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


@pytest.mark.usefixtures("each_path")
def test_other_matches_are_not_held() -> None:
    """Half a million matches of a thousand starts leave a thousand rows."""
    events = [{"type": "A"}] * 700 + [{"type": "B"}] * 700
    tracemalloc.start()
    try:
        found = matchSase("PATTERN A a;B b", events, output="onePerStart")
        assert len(found) == 700
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


# --- programs for many rows at once, on arrays and in C, say what they say row by row


TEXTS = ["", "a", "ab", "a%", "ä", "\U0001f600", "\ud7ff", "zz", "A\nb", "\\"]
RANKS = TextRanks({text: number for number, text in enumerate(sorted(TEXTS))})
OTHERS: dict[Op, Instruction] = {
    Op.CONCAT: (Op.GREATEST, Type.TEXT), Op.STARTS_WITH: (Op.LE, Type.TEXT),
    Op.LIKE: (Op.IS_NULL, None),
}  # fmt: skip
"""What stands here for what lists do not have; LIKE they have on arrays."""


def of_two(code: Code, kept: tuple[Op, ...] = ()) -> Code:
    """Return a program over the fields of two events, by turns, without slots."""
    found: list[Instruction] = []
    for number, (op, operand) in enumerate(code):
        if op in (Op.FIELD, Op.SLOT):
            field = operand if op is Op.FIELD else SLOTS[int(operand or 0)].type
            found.append((Op.FIELD, int(field or 0) + 3 * (number % 2)))
        elif op is Op.ADD_PASSING:
            found.append((Op.LEAST, operand))
        else:
            found.append((op, operand) if op in kept else OTHERS.get(op, (op, operand)))
    return tuple(found)


def row_by_row(code: Code, rows: list[tuple[Any, ...]]) -> list[bool]:
    """Return for which rows a program holds."""
    programs = CompiledExpressions(FIELDS * 2, (), {"t": code}, False)
    holds = generated(programs).conditions["t"]
    return [holds(row, ()) for row in rows]


def column(values: list[Any], field: int) -> Values:
    """Return a field of each row."""
    if field == 2:
        values = [None if value is None else RANKS.numbers[value] for value in values]
    data = np.asarray([value or 0 for value in values], float if field == 1 else np.int64)
    return Values(data, np.asarray([value is None for value in values]))


EVENTS = st.lists(ROWS, min_size=1, max_size=4)


@given(truths(3), EVENTS, EVENTS)
def test_many_rows_say_what_each_says(code: Code, first: list[Any], second: list[Any]) -> None:
    """Jumps, NULL, NaN, wrapped numbers and texts: on arrays, and in a join in C if there is one."""
    with_like, without = of_two(code, (Op.LIKE,)), of_two(code)
    rows = [(*a, *b) for a, b in product(first, second)]
    columns = [column(list(values), n % 3) for n, values in enumerate(zip(*rows, strict=True))]
    found = holding(columnar(with_like, RANKS), len(rows), columns.__getitem__, RANKS)
    assert found.tolist() == row_by_row(with_like, rows)
    if compiled_module() is not None:
        assert joined(without, first, second) == row_by_row(without, rows)


def joined(code: Code, first: list[Any], second: list[Any]) -> list[bool]:
    """Return for which pairs a program holds: each of one list with all of the other at once."""
    module, size, more = compiled_module(), len(first), len(second)
    assert module is not None
    places = np.arange(size), np.arange(size, size + more)
    fields = [column([event[n % 3] for event in (first, second)[n // 3]], n % 3) for n in range(6)]
    program = tuple((int(op), v) for op, v in columnar(code, RANKS, is_condition=True))
    join = module.Join(
        tuple((own, own, None) for own in places),
        False,
        tuple((n // 3, field.data, ~field.nulls) for n, field in enumerate(fields)),
        ((0, -1, -1, True, None, ()), (1, 0, 0, True, None, (program,))),
        -1,
    )
    room = np.empty((size * more + 1, 2), np.int64)
    found = {(int(a), int(b) - size) for a, b in room[: join.rows(room)]}
    return [pair in found for pair in product(range(size), range(more))]


@pytest.mark.parametrize("digits", [-1, 0, 1, 2, 3])
def test_the_digits_of_round_are_no_type(digits: int) -> None:
    """As many digits are kept as were asked for, whatever types have the same number."""
    rows: list[tuple[Any, ...]] = [(0, 16.25, ""), (0, 6.125, "")]
    code: Code = ((Op.FIELD, 1), (Op.ROUND, digits), (Op.FLOAT, 16.25), (Op.GE, Type.FLOAT))
    columns = [column(list(values), n) for n, values in enumerate(zip(*rows, strict=True))]
    found = holding(columnar(code, RANKS), len(rows), columns.__getitem__, RANKS)
    assert found.tolist() == row_by_row(code, rows)


@needs_kernel
@pytest.mark.parametrize("op", [Op.SLOT, Op.LIKE, Op.PREFIX_END, Op.JUMP, 4711])
def test_joins_refuse_what_they_lack(op: int) -> None:
    """An operation that is not one of columns is refused when the join is made."""
    module, own = compiled_module(), np.arange(1)
    assert module is not None
    lists = ((own, own, None),)
    with pytest.raises(ValueError, match=r"expected .* in a program"):
        module.Join(lists, False, (), ((0, -1, -1, True, None, (((int(op), 0),),)),), -1)
