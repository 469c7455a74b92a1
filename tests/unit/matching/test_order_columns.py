# SPDX-License-Identifier: Apache-2.0
"""The order of events of equal key and time by columns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pyflinkcep.matching.order import OrderColumns


@pytest.mark.parametrize(
    ("columns", "values", "order"),
    [
        ([("x", False, None)], [3, 1, 2], [1, 2, 0]),
        ([("x", True, None)], [3, 1, 2], [0, 2, 1]),
        ([("x", False, None)], [3, None, 2], [1, 2, 0]),
        ([("x", True, None)], [3, None, 2], [0, 2, 1]),
        ([("x", False, False)], [3, None, 2], [2, 0, 1]),
        ([("x", True, True)], [3, None, 2], [1, 0, 2]),
        ([("x", False, None)], [1.0, math.nan, 2.0], [0, 2, 1]),
        ([("x", True, None)], [1.0, math.nan, None, 2.0], [1, 3, 0, 2]),
        ([("x", False, None)], ["b", "a", "B"], [2, 1, 0]),
        ([("x", False, None)], [1, 1, 1], [0, 1, 2]),
    ],
)
def test_columns_order_as_spark_does(columns: Any, values: list[Any], order: list[int]) -> None:
    """Nulls go first ascending and last descending, NaN is the greatest number, ties stay."""
    table = pa.table({"x": values})

    ranked = OrderColumns.of(columns).ranked(np.zeros(len(values), np.int64), table)

    assert ranked.tolist() == order


def test_groups_stay_apart_and_later_columns_decide_ties() -> None:
    """Events of different groups keep the groups' order; the second column orders the first's ties."""
    table = pa.table({"x": [2, 1, 1, 9, 8], "y": ["a", "a", "b", "z", "z"]})

    ranked = OrderColumns.of([("x", False, None), ("y", True, None)]).ranked(
        np.asarray([1, 1, 1, 2, 2]), table
    )

    assert ranked.tolist() == [2, 1, 0, 4, 3]
