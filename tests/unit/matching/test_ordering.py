# SPDX-License-Identifier: Apache-2.0
"""Stable orders of numbers, by digits or as integers with positions."""

from __future__ import annotations

import numpy as np
import pytest

from pyflinkcep.matching.ordering import order_by_group, order_by_group_and_time


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

        assert order_by_group(groups).tolist() == expected.tolist()
        assert order_by_group(groups.astype(np.int32)).tolist() == expected.tolist()
        by_both = np.lexsort((times, groups))
        assert order_by_group_and_time(groups, times).tolist() == by_both.tolist()
