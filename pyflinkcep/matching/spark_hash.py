# SPDX-License-Identifier: Apache-2.0
"""Spark's ``xxhash64`` of columns: checkpoints hold groups of keys that are numbered by it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from pyflinkcep.kernel.module import compiled_module
from pyflinkcep.matching.columns import Ints, plain_numbers
from pyflinkcep.matching.keys import Hashes

_SEED = 42  # Spark's
_DIGITS = 18  # of decimals that Spark hashes as integers of 64 bits
_TEXTS = {pa.string(), pa.binary()}
_LARGE = {pa.large_string(), pa.large_binary()}
_SHORT = {pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.date32()}


def is_hashed(type_: pa.DataType) -> bool:
    """Whether :func:`spark_hash` takes columns of a type."""
    if pa.types.is_dictionary(type_):
        return is_hashed(type_.value_type)
    if pa.types.is_decimal128(type_):
        return bool(type_.precision <= _DIGITS)
    if pa.types.is_timestamp(type_):
        return bool(type_.unit == "us")
    return type_ in {*_TEXTS, *_LARGE, *_SHORT, pa.int64()}


def spark_hash(columns: Sequence[pa.ChunkedArray | pa.Array]) -> Ints:
    """Return for each row what Spark's ``xxhash64`` does of columns, whose types are hashed."""
    found = np.full(len(columns[0]), _SEED, np.uint64)
    for place, column in enumerate(columns):
        begin = 0
        for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
            own = found[begin : begin + len(chunk)]
            if not pa.types.is_dictionary(chunk.type):
                _go_on(own, chunk)
            elif place or len(chunk.dictionary) > len(chunk):
                _go_on(own, chunk.dictionary_decode())
            else:
                own[:] = _of_dictionary(chunk)
            begin += len(chunk)
    return found.view(np.int64)


def _of_dictionary(chunk: pa.DictionaryArray) -> Hashes:
    """Return the hashes of values in a first column, where all rows have one seed."""
    known = np.full(len(chunk.dictionary) + 1, _SEED, np.uint64)  # with that of NULL
    _go_on(known[:-1], chunk.dictionary)
    places = chunk.indices.cast(pa.int64()).fill_null(len(chunk.dictionary))
    return np.asarray(known[plain_numbers(places)])


def _go_on(hashes: Hashes, chunk: pa.Array) -> None:
    """Replace the hashes of rows, so far, by those that have their next value too, unless NULL."""
    if chunk.null_count == len(chunk):
        return
    before = hashes.copy() if chunk.null_count else None
    values, data = _parts(chunk)
    module = compiled_module()
    if module is not None:
        module.hash_values(values, values.itemsize, data, hashes)
    elif data is None:
        hashes[:] = _of_numbers(values, hashes)
    else:
        bounds, text = values.tolist(), memoryview(data)
        parts = (bytes(text[begin:end]) for begin, end in pairwise(bounds))
        hashes[:] = [_of_text(*pair) for pair in zip(parts, hashes.tolist(), strict=True)]
    if before is not None:
        np.copyto(hashes, before, where=chunk.is_null().to_numpy(zero_copy_only=False))


def _parts(chunk: pa.Array) -> tuple[np.ndarray[Any, Any], Any]:
    """Return integers of 32 or 64 bits, or where texts begin and end, and the bytes of these."""
    type_, size = chunk.type, len(chunk)
    if type_ in _TEXTS or type_ in _LARGE:
        _, bounds, data = chunk.buffers()
        width = np.dtype(np.int32 if type_ in _TEXTS else np.int64)
        return np.frombuffer(bounds, width, size + 1, chunk.offset * width.itemsize), data or b""
    if pa.types.is_decimal128(type_):
        words = np.frombuffer(chunk.buffers()[1], np.int64)[2 * chunk.offset :: 2]
        return np.ascontiguousarray(words[:size]), None
    return plain_numbers(chunk.cast(pa.int32() if type_ in _SHORT else pa.int64())), None


# --- XXH64, of integers of Python and of arrays of them alike

_WORD = 2**64 - 1
_1, _2, _3, _4, _5 = (  # the primes that the algorithm names
    0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)  # fmt: skip


def _turned(number: Any, bits: int) -> Any:
    number = number & _WORD
    return (number << bits | number >> 64 - bits) & _WORD


def _lane(total: Any, word: Any) -> Any:
    return _turned(total + word * _2, 31) * _1 & _WORD


def _with_long(found: Any, word: Any) -> Any:
    return _turned(found ^ _lane(0, word), 27) * _1 + _4 & _WORD


def _with_int(found: Any, word: Any) -> Any:
    return _turned(found ^ word * _1 & _WORD, 23) * _2 + _3 & _WORD


def _finished(found: Any) -> Any:
    found = (found ^ found >> 33) * _2 & _WORD
    found = (found ^ found >> 29) * _3 & _WORD
    return found ^ found >> 32


def _of_numbers(numbers: np.ndarray[Any, Any], seeds: Hashes) -> Hashes:
    """Return the hashes of integers, as many bytes as these have."""
    width = numbers.itemsize
    words = numbers.view(f"u{width}").astype(np.uint64)
    with_word = _with_int if width == 4 else _with_long
    return np.asarray(_finished(with_word(seeds + np.uint64(_5 + width), words)))


def _of_text(text: bytes, seed: int) -> int:
    """Return the hash of bytes."""
    rest = len(text) % 32
    blocks, words = text[: len(text) - rest], text[len(text) - rest :]
    found = _of_blocks(blocks, seed) if blocks else seed + _5
    found = found + len(text) & _WORD
    while len(words) >= 8:
        found, words = _with_long(found, int.from_bytes(words[:8], "little")), words[8:]
    if len(words) >= 4:
        found, words = _with_int(found, int.from_bytes(words[:4], "little")), words[4:]
    for byte in words:
        found = _turned(found ^ byte * _5 & _WORD, 11) * _1 & _WORD
    return int(_finished(found))


def _of_blocks(blocks: bytes, seed: int) -> int:
    """Return the hash of bytes, 32 and 32 at once."""
    totals = [seed + _1 + _2, seed + _2, seed, seed - _1]
    for at in range(0, len(blocks), 8):
        lane = at // 8 % 4
        totals[lane] = _lane(totals[lane], int.from_bytes(blocks[at : at + 8], "little"))
    found = sum(_turned(total, bits) for total, bits in zip(totals, (1, 7, 12, 18), strict=True))
    for total in totals:
        found = (found & _WORD ^ _lane(0, total)) * _1 + _4
    return int(found & _WORD)
