# SPDX-License-Identifier: Apache-2.0
"""The rows of values of columns: of each distinct one, and of ranges, from columns in order."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.expressions.arrays import Values
from pyflinkcep.expressions.tree import Column, Literal, Operation, Tree, attribute_of
from pyflinkcep.matching.columns import Flags, Ints, in_one_piece, plain_numbers
from pyflinkcep.matching.order import order_by
from pyflinkcep.tables.order import Rows

_SAMPLE = 4_096
_SHORT = 1 << 16


@attrs.frozen(eq=False, slots=False)
class ValueIndex:
    """The distinct values of a column, and their rows."""

    values: Values  # Each value once; NULL, if there is any, at the end
    ends: Ints  # Where the rows of each value end
    rows: Rows  # The rows, those of a value in order

    @classmethod
    def of(cls, own: Values) -> ValueIndex | None:
        """Return the index of a column; None if it has too many values."""
        if _are_many(own.data):
            return None
        distinct, codes = _coded(own.data)
        nulls: Any = np.zeros(len(distinct), bool)
        if own.nulls is not False:
            codes = np.where(own.nulls, len(distinct), codes)
            distinct, nulls = np.append(distinct, distinct[:1]), np.append(nulls, True)
        if len(distinct) < _SHORT:
            codes = codes.astype(np.uint16)  # which are sorted by their digits
        rows = np.argsort(codes, kind="stable").astype(np.int32)
        ends = np.cumsum(np.bincount(codes, minlength=len(distinct)))
        return cls(Values(distinct, nulls), ends, rows)

    def value_of(self, _column: str) -> Values:
        """Return the distinct values, of which a condition asks."""
        return self.values

    @cached_property
    def sizes(self) -> Ints:
        """How many rows each value has."""
        return np.diff(self.ends, prepend=0)

    def count(self, chosen: Flags) -> int:
        """Return how many rows have one of some values."""
        return int(self.sizes[chosen].sum())

    def rows_of(self, chosen: Flags) -> Rows:
        """Return the rows of some values, in order."""
        numbers = np.flatnonzero(chosen).tolist()
        parts = [self.rows[self.ends[n - 1] if n else 0 : self.ends[n]] for n in numbers]
        if len(parts) == 1:
            return parts[0]
        found: Rows = np.concatenate([*parts, np.zeros(0, np.int32)])
        found.sort()
        return found


def _are_many(data: Ints) -> bool:
    """Whether a sample of a column says that most of its values are distinct."""
    some = data[:: max(len(data) // _SAMPLE, 1)]
    return len(np.unique(some)) * 2 > len(some) or not len(data)


def _coded(data: Ints) -> tuple[Ints, Ints]:
    """Return distinct values, and the number of each row's own."""
    low, high = data.min().item(), data.max().item()  # whose distance may not fit 64 bits
    if data.dtype == np.int64 and high - low < _SHORT - 1:
        return np.arange(low, high + 1), data - low  # some of which no row has
    distinct, codes = np.unique(data, return_inverse=True)
    return distinct, codes.reshape(-1)


_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
_REMEMBERED = 20_000


@attrs.frozen
class ValueRange:
    """The values of a column for which a condition holds: whole numbers, or one text."""

    column: str
    low: int = _LEAST
    high: int = _MOST
    text: str | None = None


@lru_cache(maxsize=_REMEMBERED)
def ranges_of(tree: Tree) -> tuple[ValueRange, ...] | None:
    """
    Return the ranges all of which values have to be in; None for any other condition.

    Examples
    --------
    >>> from pyflinkcep.expressions.arrays import EventTree
    >>> ranges_of(EventTree.of("n >= 3 AND 7 > n").tree)
    (ValueRange(column='n', low=3, high=6, text=None),)
    >>> ranges_of(EventTree.of("n >= 3 OR n < 0").tree)
    """
    found: dict[str, ValueRange] = {}
    waiting = [tree]
    while waiting:
        match waiting.pop():
            case Operation("and", operands):
                waiting += reversed(operands)
                continue
            case Operation("coalesce", (inner, Literal(False))):
                waiting.append(inner)
                continue
            case Operation(word, (Column() as column, Literal(value))) if word in _MIRRORED:
                pass
            case Operation(word, (Literal(value), Column() as column)) if word in _MIRRORED:
                word = _MIRRORED[word]
            case _:
                return None
        name = attribute_of(column.sql or "")
        own = _range(name, word, value)
        if own is None or column.variable or column.index is not None:
            return None
        known = found.setdefault(name, own)
        if known.text != own.text:
            return None
        low, high = max(known.low, own.low), min(known.high, own.high)
        found[name] = ValueRange(name, low, high, own.text)
    return tuple(found.values())


def _range(column: str, word: str, value: object) -> ValueRange | None:
    if isinstance(value, str):
        return ValueRange(column, text=value) if word == "=" else None
    if not isinstance(value, int) or isinstance(value, bool) or not _LEAST < value < _MOST:
        return None
    low = {">": value + 1, ">=": value, "=": value}.get(word, _LEAST)
    high = {"<": value - 1, "<=": value, "=": value}.get(word, _MOST)
    return ValueRange(column, low, high)


@attrs.frozen(eq=False)
class OrderedColumn:
    """A column of whole numbers, or of texts by number, in order."""

    values: Ints  # Those that are there, in order
    rows: Rows  # The row of each
    by_row: Ints
    nulls: Flags | None  # By row; None without any
    texts: dict[str, int] | None  # The number of each

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> OrderedColumn | None:
        """Return a column in order; None for one of another type."""
        texts = None
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            encoded = in_one_piece(column.dictionary_encode())
            texts = {text: number for number, text in enumerate(encoded.dictionary.to_pylist())}
            column = pa.chunked_array([encoded.indices])
        elif not pa.types.is_signed_integer(column.type):
            return None
        nulls = column.is_null().to_numpy() if column.null_count else None
        known = column if nulls is None else column.fill_null(0)
        by_row = plain_numbers(known).astype(np.int64, copy=False)
        rows = order_by([by_row]).astype(np.int32)
        if nulls is not None:
            rows = rows[~nulls[rows]]
        return cls(by_row[rows], rows, by_row, nulls, texts)

    def bounds(self, own: ValueRange) -> tuple[int, int] | None:
        """Return where the values of a range begin and end; None if it is of another type."""
        if (own.text is None) != (self.texts is None):
            return None
        low, high = self._numbers(own)
        if low > high:
            return 0, 0
        begin = int(self.values.searchsorted(low))
        return begin, int(self.values.searchsorted(high, "right"))

    def rows_between(self, begin: int, end: int) -> Rows:
        """Return the rows from one place to another, in order."""
        rows = self.rows[begin:end]
        if begin < end and self.values[begin] == self.values[end - 1]:
            return rows  # those of one value are in order
        return np.sort(rows)

    def _numbers(self, own: ValueRange) -> tuple[int, int]:
        if own.text is None or self.texts is None:
            return own.low, own.high
        number = self.texts.get(own.text)
        return (1, 0) if number is None else (number, number)

    def among(self, rows: Rows, own: ValueRange) -> Rows:
        """Return those of some rows whose value is in a range."""
        low, high = self._numbers(own)
        values = self.by_row[rows]
        is_in = (values >= low) & (values <= high)
        if self.nulls is not None:
            is_in &= ~self.nulls[rows]
        return rows[is_in]
