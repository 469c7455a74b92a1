# SPDX-License-Identifier: Apache-2.0
"""Which values of columns are one key, as in Spark (nulls, all NaNs, 0.0 and -0.0), and hashes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyflinkcep.matching.columns import Flags, Ints, in_one_piece, plain_numbers

Columns = Sequence[pa.ChunkedArray]
Hashes: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]
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


# --- numbers for values, equal for what is one key, by which events are dealt

_ODD = np.uint64(0x9E3779B97F4A7C15)
_NULL = np.uint64(0x6A09E667F3BCC909)
_AT_ONCE = 1 << 16  # bytes of texts, for the caches of the processor


def hashes(columns: Sequence[pa.ChunkedArray], other: Callable[[Any], int]) -> Hashes:
    """Return a number for each row; `other` returns that of a value that has no column of SQL."""
    found = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            column = pa.chunked_array([in_one_piece(column.dictionary_encode())])
        found = mixed(found + _ODD) ^ np.concatenate(
            [np.zeros(0, np.uint64), *(_of_chunk(chunk, other) for chunk in column.chunks)]
        )
    return mixed(found)


def mixed(numbers: Hashes) -> Hashes:
    """Return other numbers, different for different ones, all of whose bits depend on all bits."""
    found: Hashes = (numbers ^ (numbers >> np.uint64(32))) * _ODD
    return (found ^ (found >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)


def _of_chunk(chunk: pa.Array, other: Callable[[Any], int]) -> Hashes:
    type_ = chunk.type
    if pa.types.is_null(type_):
        return np.full(len(chunk), _NULL)
    if pa.types.is_dictionary(type_):
        own = np.r_[_of_chunk(chunk.dictionary, other), _NULL]
        places: Any = chunk.indices.fill_null(len(chunk.dictionary))
        return np.asarray(own[plain_numbers(places.cast(pa.int64()))])
    found = _of_values(chunk, other)
    if chunk.null_count:
        found = np.where(chunk.is_null().to_numpy(zero_copy_only=False), _NULL, found)
    return found


def _of_values(chunk: pa.Array, other: Callable[[Any], int]) -> Hashes:
    """Return a number for each value, any for NULL."""
    type_ = chunk.type
    if pa.types.is_floating(type_):
        numbers = in_one_piece(one_of_each(pa.chunked_array([chunk]))).cast(pa.float64())
        return mixed(plain_numbers(numbers.fill_null(0.0)).view(np.uint64))
    if pa.types.is_boolean(type_):
        chunk, type_ = chunk.cast(pa.int8()), pa.int8()
    if pa.types.is_integer(type_) or pa.types.is_temporal(type_):
        if not pa.types.is_integer(type_):
            chunk = chunk.cast(pa.int32()) if type_.bit_width == 32 else chunk.cast(pa.int64())
        return mixed(plain_numbers(chunk.fill_null(0)).astype(np.uint64))
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        return _of_texts(chunk)
    values = chunk.to_pylist()
    return mixed(np.fromiter((other(v) & (2**64 - 1) for v in values), np.uint64, len(values)))


def _of_texts(chunk: pa.Array) -> Hashes:
    """Return for each text the sum of its bytes, each by a random number of its place."""
    width = np.int32 if pa.types.is_string(chunk.type) else np.int64
    size = len(chunk)
    if not size:
        return np.zeros(0, np.uint64)
    _, ends, data = chunk.buffers()
    offsets = np.frombuffer(ends, width, size + 1, chunk.offset * np.dtype(width).itemsize)
    text = np.frombuffer(b"" if data is None else data, np.uint8)
    lengths = np.diff(offsets).astype(np.int64)
    factors = np.random.default_rng(7).integers(1, 2**63, int(lengths.max()) + 1, np.uint64) | 1
    found = np.empty(size, np.uint64)
    begin = 0
    while begin < size:
        end = int(np.searchsorted(offsets, int(offsets[begin]) + _AT_ONCE, "right")) - 1
        end = min(max(end, begin + 1), size)
        own, first = lengths[begin:end], int(offsets[begin])
        starts = np.cumsum(own) - own
        part = text[first : int(offsets[end])].astype(np.uint64) + np.uint64(1)
        part *= factors[np.arange(len(part)) - np.repeat(starts, own)]
        sums = np.add.reduceat(part, np.minimum(starts, len(part) - 1)) if len(part) else 0
        found[begin:end] = np.where(own > 0, sums, 0)
        begin = end
    return mixed(found)
