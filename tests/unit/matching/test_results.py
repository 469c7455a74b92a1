# SPDX-License-Identifier: Apache-2.0
"""Results in columns: how they are split."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pyflinkcep.matching.columns import retyped
from pyflinkcep.matching.results import Found


def test_results_are_split_by_their_events() -> None:
    """A part has at most so many events, or one result; together they are all results in order."""
    ends = np.array([2, 3, 9, 10, 10, 12])
    size = len(ends)
    stage_of, handles = np.zeros(12, np.int32), np.arange(12)
    found = Found(("x",), np.ones(size, np.uint8), np.arange(size), ends, stage_of, handles)
    parts = list(found.parts(3))

    assert [len(part) for part in parts] == [2, 1, 3]
    assert [part.handles.tolist() for part in parts] == [
        [0, 1, 2], [3, 4, 5, 6, 7, 8], [9, 10, 11],
    ]  # fmt: skip
    assert [part.times.tolist() for part in parts] == [[0, 1], [2], [3, 4, 5]]
    assert list(found.parts(12)) == [found]


def test_joined_results_are_those_of_the_parts_in_order() -> None:
    """Joining keeps each result with its own events, and lets go of the parts."""
    one = Found.of(
        ("x", "y"),
        [
            b"\1",
            *(np.array(n).tobytes() for n in ([5], [2])),
            np.array([0, 1], np.int32).tobytes(),
            np.array([7, 8]).tobytes(),
        ],
        1,
    )
    two = Found.of(
        ("x", "y"),
        [
            b"\0\1",
            *(np.array(n).tobytes() for n in ([6, 9], [1, 2])),
            np.array([0, 1], np.int32).tobytes(),
            np.array([3, 4]).tobytes(),
        ],
        2,
    )
    parts = [one, two]
    joined = Found.concat(parts)

    assert list(joined.results()) == [*one.results(), *two.results()]
    assert joined.dropped == 3
    assert not parts


# --- arrays under another type keep their values, nulls at every level among them


_INNER = [pa.field("y", pa.int32(), nullable=False)]
_STRICT = pa.struct([pa.field("x", pa.struct(_INNER), nullable=False)])
_PLAIN = pa.struct([pa.field("x", pa.struct([pa.field("y", pa.int32())]))])
_STRUCTS = [{"x": {"y": 1}}, None, {"x": {"y": 2}}, None]
_MAPS = [[("a", {"x": {"y": 1}}), ("b", None)], None, [], [("c", {"x": {"y": 2}})]]
_VOID = pa.struct([("x", pa.int32()), ("nothing", pa.null())])
_VOIDS = [{"x": 1, "nothing": None}, None, {"x": 2, "nothing": None}]


@pytest.mark.parametrize(
    ("values", "given", "wanted"),
    [
        (_STRUCTS, _PLAIN, _STRICT),
        ([_STRUCTS, None, [], [None]], pa.list_(_PLAIN), pa.list_(pa.field("element", _STRICT))),
        (_STRUCTS, _STRICT, _STRICT),
        ([_STRUCTS, None, [], [None]], pa.list_(_STRICT), pa.list_(pa.field("element", _STRICT))),
        (_MAPS, pa.map_(pa.string(), _PLAIN), pa.map_(pa.string(), _STRICT)),
        (_MAPS, pa.map_(pa.string(), _STRICT), pa.map_(pa.string(), _PLAIN)),
        ([[_VOIDS[0]], None, []], pa.list_(_VOID), pa.list_(pa.field("e", _VOID, False))),
        ([["a"], None, []], pa.large_list(pa.large_string()), pa.list_(pa.string())),
        ([1, None], pa.int32(), pa.int64()),
        ([], _PLAIN, _STRICT),
    ],
    ids=[
        "structs",
        "lists of structs",
        "strict structs",
        "lists of strict structs",
        "maps of strict structs",
        "maps",
        "structs with nothing",
        "large lists",
        "numbers",
        "nothing",
    ],
)
def test_values_stay(values: Any, given: pa.DataType, wanted: pa.DataType) -> None:
    """The array has the wanted type and the same values, whole, cut, and in pieces."""
    array = pa.array([*values, *values], given)
    whole = retyped(array, wanted)
    part = retyped(array.slice(1, len(values)), wanted)
    pieces = retyped(pa.chunked_array([array.slice(1), array], given), wanted)

    assert (whole.type, whole.to_pylist()) == (wanted, array.to_pylist())
    assert (part.type, part.to_pylist()) == (wanted, array.slice(1, len(values)).to_pylist())
    assert (pieces.type, len(pieces)) == (wanted, max(2 * len(array) - 1, 0))
