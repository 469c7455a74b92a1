# SPDX-License-Identifier: Apache-2.0
"""Which values of columns are one key: null and NaN are, and so are 0.0 and -0.0, as in Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyflinkcep.matching.columns import Flags, Ints, in_one_piece, plain_numbers

Columns = Sequence[pa.ChunkedArray]
_MOST = 1 << 62


def one_of_each(numbers: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return floats with one zero and one NaN, of whose many forms keys know one."""
    nan, zero = (pa.scalar(value, numbers.type) for value in (float("nan"), 0.0))
    return pc.if_else(pc.is_nan(numbers), nan, pc.add(numbers, zero))


def codes(column: pa.ChunkedArray) -> Ints:
    """Return a number for each value, 0 for the first and so on."""
    return plain_numbers(encoded(column).indices)


def encoded(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """Return values as codes and what each stands for, in the order of their first occurrence."""
    if pa.types.is_floating(column.type):
        column = one_of_each(column)
    return in_one_piece(column.dictionary_encode(null_encoding="encode"))


def paired(left: Ints, right: Ints) -> Ints:
    """Return numbers that tell pairs of numbers from 0 apart."""
    width = int(right.max(initial=0)) + 1
    if int(left.max(initial=0)) >= _MOST // width:
        left = np.unique(left, return_inverse=True)[1]
    return left.astype(np.int64) * width + right


def ranks(column: pa.ChunkedArray, order: Callable[[pa.Scalar], Any]) -> Ints:
    """Return a number for each value, equal for equal values, in an order of values."""
    known = encoded(column)
    values = [order(value) for value in known.dictionary]
    places = np.empty(len(values), np.int64)
    places[sorted(range(len(values)), key=values.__getitem__)] = np.arange(len(values))
    found: Ints = places[plain_numbers(known.indices)]
    return found


def differ(left: Columns, right: Columns) -> Flags:
    """Return for each row whether two lists of key columns differ in it."""
    found = np.zeros(len(left[0]) if left else 0, bool)
    for one, other in zip(map(in_one_piece, left), map(in_one_piece, right), strict=True):
        if pa.types.is_integer(one.type) and not one.null_count and not other.null_count:
            found |= plain_numbers(one) != plain_numbers(other)
            continue
        unequal = pc.fill_null(pc.not_equal(one, other), False)
        if one.null_count or other.null_count:
            unequal = pc.or_(unequal, pc.xor(one.is_null(), other.is_null()))
        found |= unequal.to_numpy(zero_copy_only=False)
    return found


def changes(columns: Columns) -> Flags:
    """Return for each row but the first whether its key is another than that of the row before."""
    size = len(columns[0]) - 1 if columns else 0
    if size <= 0:
        return np.zeros(0, bool)
    whole = [pa.chunked_array([in_one_piece(column)]) for column in columns]
    return differ([c.slice(0, size) for c in whole], [c.slice(1) for c in whole])


def has_mixed_hashes(columns: Columns, hashes: Ints) -> bool:
    """Whether different keys, sorted by hash, share a hash, which is very rare."""
    return bool((changes(columns) & (hashes[1:] == hashes[:-1])).any()) if columns else False
