# SPDX-License-Identifier: Apache-2.0
"""Ranges of numbers, many at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Ints", "Stretches", "earlier", "expanded", "later"]

Ints = np.ndarray[Any, np.dtype[np.int64]]

Stretches = tuple[Ints, Ints]
"""Where stretches of events begin and end, in ascending order."""


_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def later(times: Ints, milliseconds: int) -> Ints:
    """Return times moved into the future; those beyond the last time are the last."""
    return np.where(times > _MOST - milliseconds, _MOST, times + milliseconds)


def earlier(times: Ints, milliseconds: int) -> Ints:
    """Return times moved into the past; those before the first time are the first."""
    return np.where(times < _LEAST + milliseconds, _LEAST, times - milliseconds)


def expanded(low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """Return the numbers of all ranges in a row: (range of each, number)."""
    counts = np.maximum(high - low, 0)
    rows = np.repeat(np.arange(len(counts)), counts)
    begins = np.cumsum(counts) - counts
    return rows, low[rows] + np.arange(len(rows)) - begins[rows]
