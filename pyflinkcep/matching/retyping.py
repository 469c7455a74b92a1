# SPDX-License-Identifier: Apache-2.0
"""Arrow arrays under a type that differs in names, nullability or time zone."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

__all__ = ["retyped"]


def retyped(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """
    Return an array as one of another type.

    Arrow's own cast refuses a null struct that contains a NOT NULL struct, because the inner one is
    then null too.

    Parameters
    ----------
    array : pyarrow.Array or pyarrow.ChunkedArray
        The array.
    type_ : pyarrow.DataType
        The type, with the same values.

    Examples
    --------
    >>> plain = pa.struct([("x", pa.struct([("y", pa.int32())]))])
    >>> inner = pa.struct([pa.field("y", pa.int32(), nullable=False)])
    >>> strict = pa.struct([pa.field("x", inner, nullable=False)])
    >>> retyped(pa.array([{"x": {"y": 1}}, None], plain), strict).to_pylist()
    [{'x': {'y': 1}}, None]
    """
    if array.type == type_:
        return array
    if isinstance(array, pa.ChunkedArray):
        return pa.chunked_array([retyped(chunk, type_) for chunk in array.chunks], type_)
    if pa.types.is_struct(type_):
        columns = [retyped(array.field(at), field.type) for at, field in enumerate(type_)]
        return pa.StructArray.from_arrays(columns, fields=list(type_), mask=array.is_null())
    if pa.types.is_list(type_):
        values = retyped(array.flatten(), type_.value_type)
        ends = np.cumsum(array.value_lengths().fill_null(0).to_numpy())
        offsets = pa.array(np.r_[0, ends], pa.int32())
        return pa.ListArray.from_arrays(offsets, values, type=type_, mask=array.is_null())
    return array.cast(type_)
