# SPDX-License-Identifier: Apache-2.0
"""The rows of each distinct value of a column, so that a condition looks at few of them."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import attrs
import numpy as np

from pyflinkcep.expressions.arrays import Values
from pyflinkcep.matching.columns import Flags, Ints
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
