# SPDX-License-Identifier: Apache-2.0
"""Which values are one key, and columns as numbers, rows and SQL."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pyflinkcep.matching.columns import integers, plain_numbers, quoted, structs, values_of
from pyflinkcep.matching.keys import codes, differ, paired, ranks
from pyflinkcep.matching.layout import as_integers


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
