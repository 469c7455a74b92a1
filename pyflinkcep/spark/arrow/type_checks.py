# SPDX-License-Identifier: Apache-2.0
"""Which Python values fit a Spark type unconverted; Arrow alone would turn 1.5 into 1."""

from __future__ import annotations

import array
import datetime
import decimal
from collections.abc import Callable
from typing import Any

import numpy as np
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    FractionalType,
    IntegralType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

__all__ = ["Fits", "field_fits", "fits"]

Fits = Callable[[Any], bool]
"""Says whether a value fits."""

_NOTHING: tuple[type, ...] = ()
# The first entry that a type is an instance of applies: (type, what fits, exceptions).
_SCALARS: tuple[tuple[type[DataType], tuple[type, ...], tuple[type, ...]], ...] = (
    (StringType, (str,), _NOTHING),
    (BooleanType, (bool, np.bool_), _NOTHING),
    (IntegralType, (int, np.integer), (bool,)),
    (DecimalType, (decimal.Decimal,), _NOTHING),
    (FractionalType, (float, int, np.floating, np.integer), (bool,)),
    (BinaryType, (bytes, bytearray), _NOTHING),
    (DateType, (datetime.date,), (datetime.datetime,)),
    (TimestampType, (datetime.datetime,), _NOTHING),
    (TimestampNTZType, (datetime.datetime,), _NOTHING),
    (DayTimeIntervalType, (datetime.timedelta,), _NOTHING),
)
_LISTS = (list, tuple, array.array, np.ndarray)


def field_fits(field: StructField) -> Fits:
    """Return the test for values of a column; None fits if the column may be null."""
    return _or_none(fits(field.dataType), field.nullable)


def fits(type_: DataType) -> Fits:
    """Return the test for values of a type that are not None."""
    if isinstance(type_, ArrayType):
        element = _or_none(fits(type_.elementType), type_.containsNull)
        return lambda value: isinstance(value, _LISTS) and all(map(element, value))
    if isinstance(type_, MapType):
        key, item = fits(type_.keyType), _or_none(fits(type_.valueType), type_.valueContainsNull)
        return lambda value: (
            isinstance(value, dict) and all(map(key, value)) and all(map(item, value.values()))
        )
    if isinstance(type_, StructType):
        return _struct_fits(type_)
    for kind, good, bad in _SCALARS:
        if isinstance(type_, kind):
            return _is_a(good, bad)
    return _is_a((object,), _NOTHING)  # rare types: left to PySpark


def _is_a(good: tuple[type, ...], bad: tuple[type, ...]) -> Fits:
    if bad:
        return lambda value: isinstance(value, good) and not isinstance(value, bad)
    return lambda value: isinstance(value, good)


def _or_none(test: Fits, nullable: bool) -> Fits:
    if nullable:
        return lambda value: value is None or test(value)
    return lambda value: value is not None and test(value)


def _struct_fits(type_: StructType) -> Fits:
    tests = [field_fits(field) for field in type_.fields]
    names = type_.fieldNames()

    def test(value: Any) -> bool:
        if isinstance(value, tuple):
            values: Any = value
        elif isinstance(value, dict):
            values = [value.get(name) for name in names]
        else:
            values = [getattr(value, name, None) for name in names]
        return len(values) == len(tests) and all(
            fits_field(item) for fits_field, item in zip(tests, values, strict=True)
        )

    return test
