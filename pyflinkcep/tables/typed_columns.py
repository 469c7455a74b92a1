# SPDX-License-Identifier: Apache-2.0
"""Columns of Arrow in the types and values that programs have."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyflinkcep.expressions.arrays import Array, TextRanks, Values
from pyflinkcep.expressions.evaluator import RowTypes
from pyflinkcep.expressions.event_arrays import Range
from pyflinkcep.expressions.program import EXACT_DIGITS, Kind, Type
from pyflinkcep.expressions.sql_types import (
    ARRAY,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTERVAL,
    MAP,
    STRING,
    STRUCT,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    SqlType,
)
from pyflinkcep.expressions.text_values import zone_of
from pyflinkcep.matching.columns import Ints
from pyflinkcep.matching.pieces import in_one_piece, integers, plain_numbers

__all__ = [
    "NumberColumn",
    "arrow_type",
    "as_column",
    "clock_zone",
    "is_exact",
    "kind_of",
    "numbers",
    "ranked",
    "row_types",
    "sql_type",
]

_US = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": 1}


_WHOLE = {
    pa.int8(): "tinyint", pa.int16(): "smallint", pa.int32(): "int", pa.int64(): "bigint",
    pa.uint8(): "smallint", pa.uint16(): "int", pa.uint32(): "bigint",
}  # fmt: skip
_ARROW = {
    "void": pa.null(), "boolean": pa.bool_(), "tinyint": pa.int8(), "smallint": pa.int16(),
    "int": pa.int32(), "bigint": pa.int64(), "float": pa.float32(), "double": pa.float64(),
    "string": pa.string(), "binary": pa.binary(), "date": pa.date32(),
    "timestamp_ntz": pa.timestamp("us"), "interval": pa.duration("us"),
    "interval day": pa.duration("us"),
}  # fmt: skip
_MOST_DIGITS = 38


def sql_type(type_: pa.DataType) -> SqlType | None:
    """Return the type that Spark gives a column; None for one that it lacks."""
    if type_ in _WHOLE:
        return SqlType(_WHOLE[type_])
    if pa.types.is_timestamp(type_):
        return TIMESTAMP if type_.tz else TIMESTAMP_NTZ
    if pa.types.is_decimal(type_):
        is_short = 0 <= type_.scale <= type_.precision <= _MOST_DIGITS
        return SqlType("decimal", type_.precision, type_.scale) if is_short else None
    if pa.types.is_map(type_):
        return SqlType(MAP, inner=(sql_type(type_.key_type), sql_type(type_.item_type)))
    if (
        pa.types.is_list(type_)
        or pa.types.is_large_list(type_)
        or pa.types.is_fixed_size_list(type_)
    ):
        return SqlType(ARRAY, inner=(sql_type(type_.value_type),))
    if pa.types.is_struct(type_):
        own = [type_.field(place) for place in range(type_.num_fields)]
        inner = tuple(sql_type(field.type) for field in own)
        return SqlType(STRUCT, inner=inner, fields=tuple(field.name for field in own))
    return next((found for is_one, found in _OTHERS if is_one(type_)), None)


_OTHERS: tuple[tuple[Callable[[pa.DataType], bool], SqlType], ...] = (
    (pa.types.is_boolean, BOOLEAN), (pa.types.is_float64, DOUBLE), (pa.types.is_floating, FLOAT),
    (lambda type_: _is_text(type_), STRING), (pa.types.is_date, DATE),
    (pa.types.is_duration, INTERVAL), (pa.types.is_null, VOID), (pa.types.is_binary, BINARY),
    (pa.types.is_large_binary, BINARY),
)  # fmt: skip


def arrow_type(type_: SqlType | None, zone: str) -> pa.DataType | None:
    """Return the type of columns of values; None if it is not known."""
    if type_ is None:
        return None
    if type_ == TIMESTAMP:
        return pa.timestamp("us", zone)
    if type_.name == "decimal":
        return pa.decimal128(type_.digits, type_.scale) if type_.digits else None
    inner = [arrow_type(part, zone) for part in type_.inner]
    if None in inner:
        return None
    if type_.name == ARRAY:
        return pa.list_(inner[0])
    if type_.name == MAP:
        return pa.map_(*inner)
    if type_.name == STRUCT:
        return pa.struct(list(zip(type_.fields, inner, strict=True)))
    return _ARROW.get(type_.name)


def clock_zone(schema: pa.Schema) -> str:
    """Return the zone of a table: that of its first column that has one, otherwise UTC."""
    zones = (field.type.tz for field in schema if pa.types.is_timestamp(field.type))
    return next((zone for zone in zones if zone), "UTC")


def row_types(schema: pa.Schema, zone: str = "") -> RowTypes:
    """Return the types of a table's columns."""
    types = {field.name: sql_type(field.type) for field in schema}
    return RowTypes(types, zone_of(zone or clock_zone(schema)))


def as_column(values: Iterable[Any], type_: SqlType | None, zone: str) -> pa.ChunkedArray:
    """Return values of Python as a column: of their type, if it is known."""
    listed = list(values)
    if type_ is not None and type_.name == MAP:
        listed = [value if value is None else list(value.items()) for value in listed]
    own = arrow_type(type_, zone)
    if own is not None and pa.types.is_floating(own):
        listed = [None if value is None else float(value) for value in listed]
    return pa.chunked_array([pa.array(listed, own, from_pandas=False)])


def kind_of(type_: pa.DataType) -> Kind | None:
    """Return the type that a column has in SQL; None for one that programs lack."""
    if pa.types.is_boolean(type_):
        return Kind.BOOLEAN
    if pa.types.is_integer(type_):
        return Kind.BIGINT
    if pa.types.is_floating(type_):
        return Kind.DOUBLE
    if _is_text(type_):
        return Kind.STRING
    if pa.types.is_timestamp(type_) and type_.unit in _US:
        return Kind.TIMESTAMP if type_.tz else Kind.TIMESTAMP_NTZ
    if pa.types.is_date32(type_):
        return Kind.DATE
    if pa.types.is_duration(type_) and type_.unit in _US:
        return Kind.INTERVAL
    if pa.types.is_decimal(type_):
        return Kind.DECIMAL if type_.precision <= EXACT_DIGITS else Kind.WIDE_DECIMAL
    return None


def is_exact(column: pa.ChunkedArray) -> bool:
    """Whether programs compare a column's values exactly: no decimals, no parts of microseconds."""
    type_ = column.type
    if pa.types.is_decimal(type_):
        return False
    if getattr(type_, "unit", None) != "ns" or not len(column):
        return True
    whole = column.cast(pa.int64())
    return not any(((chunk.fill_null(0).to_numpy() % 1_000) != 0).any() for chunk in whole.chunks)


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


@attrs.frozen(eq=False)
class NumberColumn:
    """
    A column as numbers, for programs: times are microseconds, texts their ranks.

    Attributes
    ----------
    column : pyarrow.ChunkedArray
        The numbers, in any type.
    is_float : bool
        Whether they are floats.
    factor, divisor : int
        What each is multiplied by, and what divided by.
    """

    column: pa.ChunkedArray
    is_float: bool
    factor: int = 1
    divisor: int = 1

    def values(self, begin: int, size: int) -> Values:
        """Return the values of some rows."""
        part = self.column.slice(begin, size)
        dtype = np.float64 if self.is_float else np.int64
        nulls = part.is_null().to_numpy() if part.null_count else False
        known = part.fill_null(0) if part.null_count else part
        return Values(self._scaled(plain_numbers(known).astype(dtype, copy=False)), nulls)

    def taken(self, rows: Ints) -> Values:
        """Return the values of some rows in any order."""
        part = self.column.take(integers(rows))
        return NumberColumn(part, self.is_float, self.factor, self.divisor).values(0, len(rows))

    def _scaled(self, data: Array) -> Array:
        if self.divisor != 1:
            return np.floor_divide(data, self.divisor)
        return data if self.factor == 1 else data * self.factor

    @property
    def range(self) -> Range:
        """The least and the greatest of whole numbers."""
        if self.is_float:
            return None
        found = pc.min_max(self.column).as_py()
        if found["min"] is None:
            return (0, 0)
        low, high = (found[end] * self.factor // self.divisor for end in ("min", "max"))
        return (low, high)


def numbers(column: pa.ChunkedArray, kind: Kind) -> NumberColumn | None:
    """
    Return a column that is not of texts as numbers.

    Returns
    -------
    NumberColumn or None
        None if they do not fit 64 bits.
    """
    type_ = column.type
    if kind is Kind.BOOLEAN:
        return NumberColumn(column.cast(pa.int8()), is_float=False)
    if pa.types.is_decimal(type_):
        return NumberColumn(column.cast(pa.float64()), is_float=True)
    factor = divisor = 1
    if pa.types.is_timestamp(type_) or pa.types.is_duration(type_):
        factor, divisor = _US[type_.unit], 1_000 if type_.unit == "ns" else 1
        column = column.cast(pa.int64())
    elif pa.types.is_date32(type_):
        column = column.cast(pa.int32())
    found = NumberColumn(column, kind.type is Type.FLOAT, factor, divisor)
    bounds = found.range if factor > 1 or pa.types.is_uint64(type_) else None
    if bounds is not None and not -(2**63) <= bounds[0] <= bounds[1] < 2**63:
        return None
    return found


def ranked(
    columns: Iterable[pa.ChunkedArray], texts: Iterable[str]
) -> tuple[TextRanks, list[NumberColumn]]:
    """
    Return columns of texts as numbers that compare as the texts do.

    Parameters
    ----------
    columns : iterable of pyarrow.ChunkedArray
        The columns.
    texts : iterable of str
        Further texts that get numbers.
    """
    encoded = [_encoded(column) for column in columns]
    known = [dictionary.to_pylist() for dictionary, _ in encoded]
    distinct = {text for texts_ in (*known, texts) for text in texts_ if text is not None}
    ranks = {text: rank for rank, text in enumerate(sorted(distinct))}
    found = []
    for (_, codes), own in zip(encoded, known, strict=True):
        places: Array = np.asarray([ranks.get(text, 0) for text in own] or [0], np.int32)
        if codes.null_count:
            nulls = codes.is_null().to_numpy(zero_copy_only=False)
            data = places[codes.fill_null(0).to_numpy(zero_copy_only=False)]
            array = pa.array(data, mask=nulls)
        else:
            array = integers(places[plain_numbers(codes)])
        found.append(NumberColumn(pa.chunked_array([array]), is_float=False))
    return TextRanks(ranks), found


def _encoded(column: pa.ChunkedArray) -> tuple[pa.Array, pa.Array]:
    """Return the distinct texts of a column, and for each row the index of its own."""
    whole = in_one_piece(column.dictionary_encode())
    return whole.dictionary, whole.indices
