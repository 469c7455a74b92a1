# SPDX-License-Identifier: Apache-2.0
"""Which keys need no work, because nothing of theirs can begin a match."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyflinkcep.operator import CepOperator

__all__ = ["stretches_that_begin"]

_TABLE = 1 << 16

Ints = np.ndarray[Any, np.dtype[np.int64]]


def stretches_that_begin(
    operator: CepOperator, bits: Ints | None, known: int, firsts: Ints, size: int
) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """
    Say for each stretch of events of a key whether one of them may begin a match.

    Parameters
    ----------
    operator : CepOperator
        The rules.
    bits : array of int or None
        For each event the conditions that Spark evaluated and that hold.
    known : int
        The bits of the conditions that Spark evaluated.
    firsts : array of int
        Where each stretch begins; it ends where the next one begins.
    size : int
        The number of events.
    """
    if bits is None or not size or not len(firsts):
        return np.ones(len(firsts), bool)
    if _is_small(bits):  # by far the most frequent case: a table instead of a sort
        may = np.zeros(int(bits.max()) + 1, bool)
        for kind in np.flatnonzero(np.bincount(bits)).tolist():
            may[kind] = operator.may_begin(kind, known)
        answers = may[bits]
    else:
        kinds, inverse = np.unique(bits, return_inverse=True)
        answers = np.asarray([operator.may_begin(kind, known) for kind in kinds.tolist()])[inverse]
    begins: np.ndarray[Any, np.dtype[np.bool_]] = np.logical_or.reduceat(answers, firsts)
    return begins


def _is_small(bits: Ints) -> bool:
    return int(bits.min()) >= 0 and int(bits.max()) < _TABLE
