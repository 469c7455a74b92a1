# SPDX-License-Identifier: Apache-2.0
"""Rows of arrays that are taken as bytes are those that Arrow takes."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from pyflinkcep.matching.columns import taken

TYPES = [
    *(pa.list_(one) for one in (pa.int8(), pa.uint16(), pa.int32(), pa.int64(), pa.float64())),
    *(pa.list_(pa.string()), pa.list_(pa.bool_()), pa.list_(pa.list_(pa.int8())), pa.int32()),
]


@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_rows_of_an_array(type_: pa.DataType) -> None:
    """With nulls among lists or in them, of a slice, of none, in any order, and several times."""
    random = Random(str(type_))

    def value(of: pa.DataType, nulls: float) -> object:
        if random.random() < nulls:
            return None
        if pa.types.is_list(of):
            return [value(of.value_type, nulls / 9) for _ in range(random.randrange(4))]
        number = random.randrange(100)
        return f"{number}" if of == pa.string() else number % 2 > 0 if of == pa.bool_() else number

    for nulls in (0, 0.2, 0, 1):
        whole = pa.array([value(type_, nulls) for _ in range(random.randrange(2, 60))], type_)
        begin = random.randrange(len(whole))
        some = whole.slice(begin, random.randrange(len(whole) - begin) + 1)
        if pa.types.is_list(type_):  # values that are a slice too
            inner = whole.values.slice(1) if len(whole.values) else whole.values
            ends = pa.array([0, len(inner) // 2, len(inner)], pa.int32())
            assert taken(pa.ListArray.from_arrays(ends, inner), pa.array([1, 0])).to_pylist() == [
                inner.slice(len(inner) // 2).to_pylist(),
                inner.slice(0, len(inner) // 2).to_pylist(),
            ]
        for array in (whole, some):
            rows = [random.randrange(len(array)) for _ in range(random.choice([0, 1, 90]))]
            found = taken(array, pa.array(rows, pa.int32()))
            found.validate(full=True)
            assert found.equals(array.take(pa.array(rows, pa.int32())))
            assert found.type == type_
