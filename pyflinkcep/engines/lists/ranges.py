# SPDX-License-Identifier: Apache-2.0
"""Ranges of numbers, many at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Ints", "Stretches", "expanded"]

Ints = np.ndarray[Any, np.dtype[np.int64]]

Stretches = tuple[Ints, Ints]
"""Where stretches of events begin and end, in ascending order."""


def expanded(low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """Return the numbers of all ranges in a row: (range of each, number)."""
    counts = np.maximum(high - low, 0)
    rows = np.repeat(np.arange(len(counts)), counts)
    begins = np.cumsum(counts) - counts
    return rows, low[rows] + np.arange(len(rows)) - begins[rows]
