# SPDX-License-Identifier: Apache-2.0
"""Columns in one piece, where Arrow keeps them in several."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

__all__ = [
    "has_part",
    "in_one_piece",
    "integers",
    "pandas_of",
    "plain_numbers",
    "structs",
    "values_of",
]


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


def has_part(type_: pa.DataType, test: Callable[[pa.DataType], bool]) -> bool:
    """Whether a type, or one inside of it, passes a test."""
    inside = [type_.field(place).type for place in range(type_.num_fields)]
    return test(type_) or any(has_part(part, test) for part in inside)


def values_of(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """
    Return values as Spark's Rows have them: maps are dicts.

    Examples
    --------
    >>> values_of(pa.array([[[("a", 1)]], None], pa.list_(pa.map_(pa.string(), pa.int64()))))
    [[{'a': 1}], None]
    """
    values: list[Any] = column.to_pylist()
    read = _map_reader(column.type)
    return values if read is None else list(map(read, values))


def pandas_of(table: pa.Table) -> Any:
    """Return a table as a DataFrame of pandas, with Python's values inside of lists and structs."""
    inside = [pa.types.is_nested(column.type) for column in table.columns]
    frame = table.to_pandas(ignore_metadata=True)
    for place, column in enumerate(table.columns):
        if inside[place]:
            frame.isetitem(place, values_of(column))
    return frame


def _map_reader(type_: pa.DataType) -> Callable[[Any], Any] | None:
    """Return what makes dicts of the pairs in a value; None for a type without maps."""
    inside = [type_.field(place) for place in range(type_.num_fields)]
    if pa.types.is_map(type_):
        if pa.types.is_nested(type_.key_type):
            return None  # which cannot be the key of a dict
        item = _map_reader(type_.item_type)
        return lambda pairs: (
            None if pairs is None else {k: v if item is None else item(v) for k, v in pairs}
        )
    readers = [_map_reader(field.type) for field in inside]
    if not any(readers) or pa.types.is_union(type_):
        return None
    if pa.types.is_struct(type_):
        named = {field.name: read for field, read in zip(inside, readers, strict=True) if read}
        return lambda fields: (
            None if fields is None else fields | {n: read(fields[n]) for n, read in named.items()}
        )
    (element,) = readers
    return lambda items: None if items is None else list(map(element, items))  # type: ignore[arg-type]


_TYPES = {
    name: getattr(pa, name)()
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
}
