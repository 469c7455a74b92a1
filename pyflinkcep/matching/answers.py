# SPDX-License-Identifier: Apache-2.0
"""The answers of the conditions that Spark evaluated: a bit each, in as many words as needed."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np
import pyarrow as pa

from pyflinkcep.engines.flink.nfa.atoms import WORD, Atom, words
from pyflinkcep.matching.columns import BITS, Flags, Ints

__all__ = ["as_integers", "bit_name", "bit_names", "is_among", "read_bits"]


def bit_name(word: int) -> str:
    """Return the name of the column with a word of bits."""
    return f"{BITS}{word or ''}"


def bit_names(atoms: Iterable[Atom]) -> tuple[str, ...]:
    """Return the names of the columns with the bits of conditions, the lowest bits first."""
    most = max((atom.bit.bit_length() for atom in atoms), default=0)
    return tuple(bit_name(word) for word in range(-(-most // WORD)))


def read_bits(table: pa.Table, names: Collection[str]) -> Ints | None:
    """Return the bits: a number for each event, or a row of numbers; None without columns."""
    columns = [table.column(name).to_numpy() for name in names]
    if len(columns) > 1:
        return np.column_stack(columns)
    return columns[0] if columns else None


def as_integers(bits: Ints) -> list[int]:
    """
    Return the bits of each event as one integer, however many words they have.

    Examples
    --------
    >>> as_integers(np.array([5, 6])), as_integers(np.array([[5, 1]])) == [5 + (1 << 63)]
    ([5, 6], True)
    """
    if bits.ndim == 1:
        whole: list[int] = bits.tolist()
        return whole
    return [sum(word << (WORD * at) for at, word in enumerate(row)) for row in bits.tolist()]


def is_among(bits: Ints, kinds: Collection[int]) -> Flags:
    """Return for each event whether its bits are one of some integers."""
    if bits.ndim == 1:
        return np.isin(bits, np.asarray(sorted(kinds), np.int64))
    found = np.zeros(len(bits), bool)
    for kind in kinds:
        found |= (bits == np.asarray(words(kind, bits.shape[1]))).all(axis=1)
    return found
