# SPDX-License-Identifier: Apache-2.0
"""Stable orders of numbers, by digits or as integers with positions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyflinkcep.matching.order import order_by, order_with_ties


@pytest.mark.parametrize(("low", "high"), [(0, 3), (0, 65_536), (0, 65_537), (-2, 5), (7, 8)])
def test_orders_are_stable(low: int, high: int) -> None:
    """Equal numbers keep their order, whatever the range; the greatest of 16 bits is one of them."""
    rng = np.random.default_rng(low + high)
    for size in (0, 1, 3000):
        groups = rng.integers(low, high, size)
        if size > 1:
            groups[:2] = high - 1, low
        times = rng.integers(0, 9, size)
        expected = np.argsort(groups, kind="stable")

        assert order_by([groups]).tolist() == expected.tolist()
        assert order_by([groups.astype(np.int32)]).tolist() == expected.tolist()
        by_both = np.lexsort((times, groups))
        assert order_by([times, groups]).tolist() == by_both.tolist()


_WIDE = [(0, 3), (-(2**63), 2**63 - 1), (0, 2**50), (-(2**62), -(2**62) + 9), (2**62, 2**63 - 1)]


@pytest.mark.parametrize(("low", "high"), _WIDE)
def test_orders_by_wide_numbers_are_stable(low: int, high: int) -> None:
    """Also where a number and its position do not fit one integer, and lowest bits differ only."""
    rng = np.random.default_rng(high % 1000)
    for size in (0, 1, 3000):
        numbers = rng.integers(low, high, size, endpoint=True)
        if size > 1:
            numbers[:4] = high, low, high - 1, low
        for column in (numbers, numbers >> 20 << 20, np.sort(numbers)):
            expected = np.argsort(column, kind="stable")
            assert order_by([column]).tolist() == expected.tolist()
            last, middle = rng.integers(0, 9, (2, size))
            keys = [last, column, middle.astype(np.int32)]
            assert order_by(keys).tolist() == np.lexsort(keys).tolist()
            assert order_by([np.sort(last), column]).tolist() == expected.tolist()
            for ties in (last, -np.arange(size), np.arange(size)):
                expected = np.lexsort([ties, middle, column])
                assert order_with_ties([middle, column], ties).tolist() == expected.tolist()
    small = np.array([2**31 - 1, -(2**31), 5], np.int32)
    assert order_by([small]).tolist() == [1, 2, 0]


@st.composite
def columns(draw: Any) -> list[Any]:
    """Return columns of any ranges, one value among them, which may not be written, as Arrow's."""
    size = draw(st.integers(1, 40))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    found = []
    for bits in draw(st.lists(st.integers(0, 64), min_size=1, max_size=4)):
        least = draw(st.integers(-(2**63), 2**63 - 2**bits))
        column = rng.integers(least, least + 2**bits - 1, size, endpoint=True)
        column[-1], column[0] = least, least + 2**bits - 1
        column.flags.writeable = False
        found.append(column)
    return found


@given(columns())
def test_columns_of_any_ranges_are_only_read(keys: list[Any]) -> None:
    """Columns are packed into fewer ones whatever their ranges, and are never written."""
    before = [key.copy() for key in keys]
    assert order_by(keys).tolist() == np.lexsort(keys).tolist()
    assert order_with_ties(keys[1:] or keys, keys[0]).tolist() == np.lexsort(keys).tolist()
    for key, old in zip(keys, before, strict=True):
        assert key.tolist() == old.tolist()
        assert order_by([key]).tolist() == np.argsort(key, kind="stable").tolist()
