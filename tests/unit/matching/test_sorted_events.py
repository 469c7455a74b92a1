# SPDX-License-Identifier: Apache-2.0
"""Sorted events whose late columns stay as they came are the same as sorted ones."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pyflinkcep.matching.sorted_events import SortedEvents

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
