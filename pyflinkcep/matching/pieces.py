# SPDX-License-Identifier: Apache-2.0
"""Columns in one piece, where Arrow keeps them in several."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["in_one_piece", "integers", "structs"]


def in_one_piece(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array, copied only if it is in several pieces."""
    if column.num_chunks == 1:
        return column.chunk(0)
    whole = column.combine_chunks()
    if not isinstance(whole, pa.ChunkedArray):
        return whole
    return whole.chunk(0) if whole.num_chunks else pa.array([], whole.type)


def structs(table: pa.Table) -> pa.StructArray:
    """
    Return the rows of a table as structs.

    Examples
    --------
    >>> structs(pa.table({"x": [1, 2], "y": ["a", None]})).to_pylist()
    [{'x': 1, 'y': 'a'}, {'x': 2, 'y': None}]
    """
    return pa.StructArray.from_arrays(
        [in_one_piece(column) for column in table.columns], fields=list(table.schema)
    )


def integers(numbers: np.ndarray[Any, Any]) -> pa.Array:
    """
    Return whole numbers as Arrow, without a copy; ``pyarrow.array`` would load pandas to do so.

    Examples
    --------
    >>> integers(np.array([1, 2], np.int32)).type
    DataType(int32)
    """
    whole = np.ascontiguousarray(numbers)
    return pa.Array.from_buffers(_TYPES[whole.dtype.name], len(whole), [None, pa.py_buffer(whole)])


_TYPES = {
    name: getattr(pa, name)()
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
}
