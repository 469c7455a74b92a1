# SPDX-License-Identifier: Apache-2.0
"""The columns that conditions read, over the rows of concatenated partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

__all__ = ["FieldArray", "RowColumns", "shifted"]

FieldArray = tuple[np.ndarray[Any, Any] | list[str | None], np.ndarray[Any, Any] | None, bool]
"""
Values as int64 or float64; the mask of those that are not NULL, None for all; whether they are
floats. Texts are a list.
"""


class RowColumns(Protocol):
    """The arguments of leaves, for each row."""

    def plain(self, argument: str) -> Sequence[Any]:
        """Return the values of an argument."""

    def array(self, argument: str) -> FieldArray:
        """Return the same as an array."""


def shifted(field: FieldArray, shift: int, ends: np.ndarray[Any, Any]) -> FieldArray:
    """
    Return for each row the value at a distance in the same partition; NULL outside.

    Parameters
    ----------
    field : FieldArray
        The values.
    shift : int
        How many rows to move; negative for PREV.
    ends : array of int64
        Where each partition ends, and the next one begins.
    """
    values, valid, is_float = field
    if not shift:
        return field
    sizes = np.diff(ends, prepend=0)
    rows = np.arange(len(values)) + shift
    there = (rows >= np.repeat(ends - sizes, sizes)) & (rows < np.repeat(ends, sizes))
    rows = np.where(there, rows, 0)
    if isinstance(values, list):
        texts = zip(rows.tolist(), there.tolist(), strict=True)
        return [values[row] if is_there else None for row, is_there in texts], None, is_float
    if valid is not None:
        there &= valid[rows]
    return values[rows], there, is_float
