# SPDX-License-Identifier: Apache-2.0
"""Sorted events whose late columns stay as they came are the same as sorted ones."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyflinkcep.matching.columns import WHOLE
from pyflinkcep.matching.event_store import SortedEvents

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
