# SPDX-License-Identifier: Apache-2.0
"""Arrays under another type keep their values, nulls at every level among them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pyflinkcep.matching.columns import retyped

_INNER = [pa.field("y", pa.int32(), nullable=False)]
_STRICT = pa.struct([pa.field("x", pa.struct(_INNER), nullable=False)])
_PLAIN = pa.struct([pa.field("x", pa.struct([pa.field("y", pa.int32())]))])
_STRUCTS = [{"x": {"y": 1}}, None, {"x": {"y": 2}}, None]


@pytest.mark.parametrize(
    ("values", "given", "wanted"),
    [
        (_STRUCTS, _PLAIN, _STRICT),
        ([_STRUCTS, None, [], [None]], pa.list_(_PLAIN), pa.list_(pa.field("element", _STRICT))),
        ([["a"], None, []], pa.large_list(pa.large_string()), pa.list_(pa.string())),
        ([1, None], pa.int32(), pa.int64()),
        ([], _PLAIN, _STRICT),
    ],
    ids=["structs", "lists of structs", "large lists", "numbers", "nothing"],
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
