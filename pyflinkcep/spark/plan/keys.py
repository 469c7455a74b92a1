# SPDX-License-Identifier: Apache-2.0
"""What keys are compared by, where Arrow cannot compare the keys themselves as Spark does."""

from __future__ import annotations

from collections.abc import Iterator
from types import UnionType

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, DoubleType, FloatType, NullType, StructType

__all__ = ["contains", "key_signature", "parts"]

_AS_TEXT = {
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


def key_signature(key: Column, type_: DataType) -> Column | None:
    """
    Give a column that is equal where keys are, and null where the key is.

    Parameters
    ----------
    key : Column
        The key.
    type_ : DataType
        Its type.

    Returns
    -------
    Column or None
        A text of arrays and structs, a number for floating-point numbers; None where the key
        itself will do.

    Notes
    -----
    As in Spark's ``groupBy``, 0.0 and -0.0 are one key, and so are all NaNs.
    """
    if isinstance(type_, ArrayType | StructType):
        text = F.to_json(F.struct(_one_zero(key, type_).alias("k")), _AS_TEXT)
    elif isinstance(type_, DoubleType | FloatType):
        text = F.xxhash64(_one_zero(key, type_))  # no two numbers have the same
    elif isinstance(type_, NullType):
        return F.lit(None).cast("int")
    else:
        return None
    return F.when(key.isNotNull(), text)


def contains(type_: DataType, kind: type | UnionType) -> bool:
    """Say whether a type is of a kind, or has it inside."""
    return any(isinstance(part, kind) for part in parts(type_))


def parts(type_: DataType) -> Iterator[DataType]:
    """Give the types that a type is made of, arrays and structs taken apart."""
    if isinstance(type_, ArrayType):
        yield from parts(type_.elementType)
    elif isinstance(type_, StructType):
        for field in type_.fields:
            yield from parts(field.dataType)
    else:
        yield type_


def _one_zero(value: Column, type_: DataType) -> Column:
    """Give a value with 0.0 for every -0.0 in it."""
    if not contains(type_, DoubleType | FloatType):
        return value
    if isinstance(type_, ArrayType):
        element = type_.elementType
        return F.transform(value, lambda item: _one_zero(item, element))
    if isinstance(type_, StructType):
        fields = [
            _one_zero(value.getField(field.name), field.dataType).alias(field.name)
            for field in type_.fields
        ]
        return F.when(value.isNotNull(), F.struct(*fields))
    zero = F.lit(0).cast(type_)
    return F.when(value == zero, zero).otherwise(value)
