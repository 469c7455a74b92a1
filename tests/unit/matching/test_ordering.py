# SPDX-License-Identifier: Apache-2.0
"""Events in order of time: keys, columns to order by, sorting, what waits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyflinkcep import Pattern, WithinType
from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.matching.columns import (
    WHOLE,
    field_rows,
    integers,
    plain_numbers,
    quoted,
    structs,
    values_of,
)
from pyflinkcep.matching.event_store import SortedEvents
from pyflinkcep.matching.held_back import HeldBack
from pyflinkcep.matching.keys import codes, differ, paired, ranks
from pyflinkcep.matching.layout import as_integers
from pyflinkcep.matching.order import OrderColumns, order_by, order_with_ties, pieces_in_order
from pyflinkcep.sase import parse
from tests.shorthand import ms


@pytest.mark.parametrize(("low", "high"), [(0, 3), (0, 65_536), (0, 65_537), (-2, 5), (7, 8)])
def test_orders_are_stable(low: int, high: int) -> None:
    """Equal numbers keep their order, whatever the range; the greatest of 16 bits is one of them."""
    rng = np.random.default_rng(low + high)
    for size in (0, 1, 500, 3000):
        groups = rng.integers(low, high, size)
        if size > 1:
            groups[:2] = high - 1, low
        times = rng.integers(0, 9, size)
        expected = np.argsort(groups, kind="stable")

        assert order_by([groups]).tolist() == expected.tolist()
        assert order_by([groups.astype(np.int32)]).tolist() == expected.tolist()
        by_both = np.lexsort((times, groups))
        assert order_by([times, groups]).tolist() == by_both.tolist()


def _joined(numbers: np.ndarray[Any, Any], pieces: list[tuple[int, int]]) -> list[int]:
    """Return the places of numbers, piece by piece."""
    places = np.arange(len(numbers))
    return [int(place) for begin, end in pieces for place in places[begin:end]]


def test_pieces_of_sources_that_are_read_by_turns() -> None:
    """Events of two files follow each other without a fall and are cut; times may be of both."""
    numbers = np.array([0, 1, 20, 21, 2, 3, 22, 3, 11])
    pieces = pieces_in_order(numbers)

    assert pieces == [(0, 2), (4, 5), (5, 6), (7, 9), (2, 4), (6, 7)]


@given(st.lists(st.lists(st.integers(0, 30), max_size=6), max_size=6))
def test_pieces_are_a_stable_order(runs: list[list[int]]) -> None:
    """Pieces, if there are any, have every number once, equal ones in the order that they had."""
    numbers = np.array([number for run in runs for number in sorted(run)], np.int64)
    pieces = pieces_in_order(numbers)
    if pieces is not None:
        assert _joined(numbers, pieces) == np.argsort(numbers, kind="stable").tolist()


@pytest.mark.parametrize(
    "numbers", [[], [*range(0, 90, 2), *range(1, 90, 2)], [*range(900, 0, -1)]]
)
def test_no_pieces(numbers: list[int]) -> None:
    """Of no numbers there are none, of two sources event by event, and of very many."""
    assert pieces_in_order(np.array(numbers, np.int64)) is None


_WIDE = [(0, 3), (-(2**63), 2**63 - 1), (0, 2**50), (-(2**62), -(2**62) + 9), (2**62, 2**63 - 1)]


@pytest.mark.parametrize(("low", "high"), _WIDE)
def test_orders_by_wide_numbers_are_stable(low: int, high: int) -> None:
    """Also where they take all 64 bits, and where only their lowest bits differ."""
    rng = np.random.default_rng(high % 1000)
    for size in (0, 1, 500, 3000):
        numbers = rng.integers(low, high, size, endpoint=True)
        if size > 1:
            numbers[:4] = high, low, high - 1, low
        for column in (numbers, numbers >> 20 << 20, np.sort(numbers)):
            expected = np.argsort(column, kind="stable")
            assert order_by([column]).tolist() == expected.tolist()
            last, middle = rng.integers(0, 9, (2, size))
            keys = [last, column, middle.astype(np.int32)]
            assert order_by(keys).tolist() == np.lexsort(keys).tolist()
            assert order_by([np.sort(last), column]).tolist() == expected.tolist()
            for ties in (last, -np.arange(size), np.arange(size)):
                expected = np.lexsort([ties, middle, column])
                assert order_with_ties([middle, column], ties).tolist() == expected.tolist()
    small = np.array([2**31 - 1, -(2**31), 5], np.int32)
    assert order_by([small]).tolist() == [1, 2, 0]


@st.composite
def columns(draw: Any) -> list[Any]:
    """Return columns of any ranges, one value among them, which may not be written, as Arrow's."""
    size = draw(st.integers(1, 40))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    found = []
    for bits in draw(st.lists(st.integers(0, 64), min_size=1, max_size=4)):
        least = draw(st.integers(-(2**63), 2**63 - 2**bits))
        column = rng.integers(least, least + 2**bits - 1, size, endpoint=True)
        column[-1], column[0] = least, least + 2**bits - 1
        column.flags.writeable = False
        found.append(column)
    return found


@given(columns())
def test_columns_of_any_ranges_are_only_read(keys: list[Any]) -> None:
    """Columns of any ranges order events, few or many, and are never written."""
    before = [key.copy() for key in keys]
    assert order_by(keys).tolist() == np.lexsort(keys).tolist()
    assert order_with_ties(keys[1:] or keys, keys[0]).tolist() == np.lexsort(keys).tolist()
    for key, old in zip(keys, before, strict=True):
        assert key.tolist() == old.tolist()
        assert order_by([key]).tolist() == np.argsort(key, kind="stable").tolist()


# --- the order of events of equal key and time by columns


@pytest.mark.parametrize(
    ("columns", "values", "order"),
    [
        ([("x", False, None)], [3, 1, 2], [1, 2, 0]),
        ([("x", True, None)], [3, 1, 2], [0, 2, 1]),
        ([("x", False, None)], [3, None, 2], [1, 2, 0]),
        ([("x", True, None)], [3, None, 2], [0, 2, 1]),
        ([("x", False, False)], [3, None, 2], [2, 0, 1]),
        ([("x", True, True)], [3, None, 2], [1, 0, 2]),
        ([("x", False, None)], [1.0, math.nan, 2.0], [0, 2, 1]),
        ([("x", True, None)], [1.0, math.nan, None, 2.0], [1, 3, 0, 2]),
        ([("x", False, None)], ["b", "a", "B"], [2, 1, 0]),
        ([("x", False, None)], [1, 1, 1], [0, 1, 2]),
    ],
)
def test_columns_order_as_spark_does(columns: Any, values: list[Any], order: list[int]) -> None:
    """Nulls go first ascending and last descending, NaN is the greatest number, ties stay."""
    table = pa.table({"x": values})

    ranked = OrderColumns.of(columns).ranked(np.zeros(len(values), np.int64), table)

    assert ranked.tolist() == order


def test_groups_stay_apart_and_later_columns_decide_ties() -> None:
    """Events of different groups keep the groups' order; the second column orders the first's ties."""
    table = pa.table({"x": [2, 1, 1, 9, 8], "y": ["a", "a", "b", "z", "z"]})

    ranked = OrderColumns.of([("x", False, None), ("y", True, None)]).ranked(
        np.asarray([1, 1, 1, 2, 2]), table
    )

    assert ranked.tolist() == [2, 1, 0, 4, 3]


# --- sorted events whose late columns stay as they came are the same as sorted ones


NAMES = ["b", "time", "a"]


@given(st.permutations(range(7)), st.lists(st.integers(0, 6)), st.integers(0, 8), st.integers(0, 8))
def test_late_columns_are_read_in_order(
    order: list[int], rows: list[int], start: int, size: int
) -> None:
    """Take and slice give what a table with all columns in order gives."""
    late = pa.table({"a": list("pqrstuv"), "b": [None, 1, 2, None, 4, 5, 6]})
    times = pa.table({"time": list(range(7))})
    whole = pa.table(
        {**dict(zip(["a", "b"], late.take(order).columns, strict=True)), "time": times["time"]}
    )
    events = SortedEvents(times, late, np.asarray(order))

    assert events.take(np.asarray(rows, np.int64), NAMES) == whole.select(NAMES).take(
        pa.array(rows, pa.int64())
    )
    assert (
        events.slice(start, size, NAMES).to_pylist()
        == whole.select(NAMES).slice(start, size).to_pylist()
    )
    assert events.schema(NAMES) == whole.select(NAMES).schema


@pytest.mark.parametrize("is_late", [False, True])
@given(st.lists(st.booleans(), max_size=7), st.data())
def test_nested_columns_are_read_as_the_others(
    is_late: bool, are_there: list[bool], data: st.DataObject
) -> None:
    """Columns in lists of one struct are read one by one, as NULL where there is none."""
    size = len(are_there)
    rows = data.draw(st.lists(st.integers(0, size - 1)) if size else st.just([]))
    order = np.asarray(data.draw(st.permutations(range(size))), np.int64)
    type_ = pa.list_(pa.struct([("0", pa.int32()), ("1", pa.string())]))
    values = [(at, None if at % 3 else f"text {at}") for at in range(size)]
    given_ = [
        [{"0": number, "1": text}] if there else None
        for there, (number, text) in zip(are_there, values, strict=True)
    ]
    halves = [pa.array(given_[: size // 2], type_), pa.array(given_[size // 2 :], type_)]
    lists = pa.table({WHOLE: pa.chunked_array(halves), "c": pa.array(range(size), pa.int64())})
    times = pa.table({"time": pa.array(range(size), pa.int64())})
    nested = ("a", "b")
    if is_late:
        events = SortedEvents(times, lists, order, nested)
    else:
        columns = [*lists.take(pa.array(order)).columns, times["time"]]
        events = SortedEvents(pa.table(columns, names=[WHOLE, "c", "time"]), nested=nested)
    expected = [
        {
            "b": values[at][1] if are_there[at] else None,
            "time": row,
            "a": values[at][0] if are_there[at] else None,
            "c": at,
        }
        for row, at in enumerate(order.tolist())
    ]

    names = ["b", "time", "a", "c"]
    taken = events.take(np.asarray(rows, np.int64), names)
    assert taken.to_pylist() == [expected[row] for row in rows]
    assert taken.schema.types == events.schema(names).types
    assert events.slice(1, 3, ["a"]).to_pylist() == [{"a": row["a"]} for row in expected[1:4]]


# --- how far behind the watermark the events of a match can be


GAP = WithinType.PREVIOUS_AND_CURRENT
a = Pattern.begin("a")


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (a, 0),
        (a.followedBy("b").within(ms(9)), 9),
        (a.oneOrMore().notFollowedBy("b").within(ms(9)), 9),
        (a.followedBy("b"), None),
        (a.next("b"), None),
        (a.oneOrMore(), None),
        (a.followedBy("b").within(ms(9), GAP), 9),
        (a.followedBy("b").within(ms(9), GAP).followedBy("c").within(ms(4), GAP), 13),
        (a.followedBy("b").optional().within(ms(9), GAP).next("c").within(ms(4), GAP), 13),
        (a.followedBy("b").within(ms(9), GAP).followedBy("c"), None),
        (a.followedBy("b").oneOrMore().within(ms(9), GAP), None),
    ],
)
def test_of_a_pattern(pattern: Pattern, expected: int | None) -> None:
    """It is the window, or the sum of the gaps; a loop, or a stage without a gap, has no bound."""
    assert HeldBack.by_pattern(NFACompiler.compile(pattern)) == HeldBack(expected, 0)


@pytest.mark.parametrize(
    ("text", "output", "compressed", "expected"),
    [
        ("PATTERN SEQ(A a, B b) WITHIN 9", "all", False, HeldBack(9, 0)),
        ("PATTERN SEQ(A a, B b) WITHIN 9", "onePerStart", False, HeldBack(9, 9)),
        ("PATTERN SEQ(A a, ~(B b)) WITHIN 9", "all", False, HeldBack(9, 9)),
        ("PATTERN SEQ(A a, ~(B b)) WITHIN 9", "all", True, HeldBack(18, 9)),
        ("PATTERN SEQ(A a, B b)", "all", False, HeldBack(None, 0)),
        ("PATTERN SEQ(A a, B b)", "nonOverlapping", False, HeldBack(None, None)),
    ],
)
def test_of_a_query(text: str, output: str, compressed: bool, expected: HeldBack) -> None:
    """Matches that later events may undo wait for their window; compressed ones for one more."""
    assert HeldBack.by_query(parse(text), output, compressed=compressed) == expected


def test_of_a_query_that_runs_as_a_pattern() -> None:
    """The time of its matches is that of their last event, also of those that wait."""
    waiting = a.notFollowedBy("b").within(ms(9))

    for pattern, lag in ((waiting, 9), (a.followedBy("b").within(ms(9)), 0)):
        nfa = NFACompiler.compile(pattern)
        assert HeldBack.by_pattern(nfa, of_query=True) == HeldBack(9, lag)


# --- which values are one key, and columns as numbers, rows and SQL


def test_numbers_of_values() -> None:
    """Null and NaN are values, zeros are one; pairs of numbers are told apart, however large."""
    nan = float("nan")
    assert codes(pa.chunked_array([[-0.0, None, nan], [0.0, None, nan]])).tolist() == [0, 1, 2] * 2
    assert ranks(pa.chunked_array([["b", "a", "b"]]), lambda value: value.as_py()).tolist() == [
        1, 0, 1,
    ]  # fmt: skip
    left, right = np.array([0, 1 << 61, 0, 1 << 61]), np.array([5, 5, 7, 5])
    pairs = paired(left, right).tolist()
    assert (len(set(pairs)), pairs[1] == pairs[3]) == (3, True)


def test_rows_of_other_keys() -> None:
    """Two nulls are one key, a null and a value are not, with nulls in a column or without."""
    plain, nulls = pa.chunked_array([[1, 2, 3]]), pa.chunked_array([[1, None, None]])
    assert differ([plain], [pa.chunked_array([[1, 3, 3]])]).tolist() == [False, True, False]
    assert differ([nulls], [pa.chunked_array([[1, None, 2]])]).tolist() == [False, False, True]
    assert differ([plain, nulls], [plain, plain]).tolist() == [False, True, True]


def test_columns_as_python_has_them() -> None:
    """Of several pieces, and of parts of them; maps are dicts."""
    assert plain_numbers(pa.chunked_array([[1, 2], [], [3]]).slice(1)).tolist() == [2, 3]
    assert integers(np.array([1, 2], np.int32)).type == pa.int32()
    assert integers(np.array([0.5, 2])).to_pylist() == [0.5, 2.0]
    rows = [{"x": 1, "y": "a"}, {"x": 2, "y": None}]
    assert structs(pa.Table.from_pylist(rows)).to_pylist() == rows
    maps = pa.array([[[("a", 1)]], None], pa.list_(pa.map_(pa.string(), pa.int64())))
    assert values_of(maps) == [[{"a": 1}], None]
    assert as_integers(np.array([5, 6])) == [5, 6]
    assert as_integers(np.array([[5, 1]])) == [5 + (1 << 63)]
    assert quoted("a.b`c") == "`a.b``c`"


# --- what match expressions read of events, as Python values


def test_an_event_of_which_nothing_is_read_is_still_an_event() -> None:
    """``count(a.*)`` reads no field: each event has an empty tuple of them."""
    events = pa.table({"x": [1, 2], "y": [3.5, None]})

    assert field_rows(events) == [(1, 3.5), (2, None)]
    assert field_rows(events.select([])) == [(), ()]
