# SPDX-License-Identifier: Apache-2.0
"""Columns in one piece, where Arrow keeps them in several."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["in_one_piece", "integers", "plain_numbers", "structs"]


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


def plain_numbers(column: pa.Array | pa.ChunkedArray) -> np.ndarray[Any, Any]:
    """
    Return numbers without nulls as an array, which ``to_numpy`` would load pandas to do.

    Examples
    --------
    >>> plain_numbers(pa.chunked_array([[1, 2], [], [3]]).slice(1)).tolist()
    [2, 3]
    """
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    dtype = np.dtype(column.type.to_pandas_dtype())
    parts = [
        np.frombuffer(chunk.buffers()[1], dtype, len(chunk), chunk.offset * dtype.itemsize)
        for chunk in chunks
        if len(chunk)
    ]
    return parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, dtype), *parts])


_TYPES = {
    name: getattr(pa, name)()
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
}
