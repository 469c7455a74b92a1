# SPDX-License-Identifier: Apache-2.0
"""The fields that match expressions use, read from the columns that Spark computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["FieldArray", "field_array", "field_columns", "field_rows"]

FieldArray = tuple[np.ndarray[Any, Any] | list[str | None], np.ndarray[Any, Any] | None, bool]
"""
A field's values, as int64 or float64; which of them are not NULL; whether they are floats. Texts
are a list.
"""


def field_rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """Return the fields of each event of a table that has only their columns."""
    if not table.num_columns:  # nothing is needed of an event but that it is there
        return [()] * table.num_rows
    return list(zip(*map(_plain, table.columns), strict=True))


def field_columns(table: pa.Table) -> dict[str, list[Any]]:
    """Return the fields in columns, by name, of a table that has only fields."""
    return {name: _plain(table.column(name)) for name in table.column_names}


def field_array(column: pa.ChunkedArray) -> FieldArray:
    """Return a column as an array or list, its validity mask, and its type."""
    if pa.types.is_string(column.type):
        return column.to_pylist(), None, False
    is_float = pa.types.is_floating(column.type)
    plain = column if is_float else column.cast(_integers(column.type)).cast(pa.int64())
    valid = column.is_valid().to_numpy() if column.null_count else None
    if valid is not None:
        plain = plain.fill_null(0)
    return plain.to_numpy(), valid, is_float


def _integers(type_: pa.DataType) -> pa.DataType:
    """Return the integer type that represents values of a type."""
    return pa.int32() if pa.types.is_date(type_) else pa.int64()


def _plain(column: pa.ChunkedArray) -> list[Any]:
    """Return a column's values, times as integers."""
    if pa.types.is_temporal(column.type):
        column = column.cast(_integers(column.type))
    values: list[Any]
    if column.null_count or pa.types.is_string(column.type):
        values = column.to_pylist()
    else:
        values = column.to_numpy().tolist()
    return values
