# SPDX-License-Identifier: Apache-2.0
"""Columns of Arrow in the types and values that programs have."""

from __future__ import annotations

from collections.abc import Iterable

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyflinkcep.expressions.arrays import Array, TextRanks, Values
from pyflinkcep.expressions.event_arrays import Range
from pyflinkcep.expressions.program import EXACT_DIGITS, Kind, Type
from pyflinkcep.matching.columns import Ints
from pyflinkcep.matching.pieces import in_one_piece, integers, plain_numbers

__all__ = ["NumberColumn", "is_exact", "kind_of", "numbers", "ranked"]

_US = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": 1}


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
