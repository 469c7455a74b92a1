# SPDX-License-Identifier: Apache-2.0
"""The partitions of a table of events."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyflinkcep.engines.queries import query_matches
from pyflinkcep.engines.table import EventTable
from pyflinkcep.expressions.program import Kind
from pyflinkcep.sase import parse

_AS_LIST = [None, None, 1, 1]
_AS_ARRAY = np.ma.MaskedArray([0, 0, 1, 1], [True, True, False, False])


@pytest.mark.parametrize("keys", [None, [1, 1, 2, 2]])
@pytest.mark.parametrize("values", [_AS_LIST, _AS_ARRAY], ids=["list", "array"])
@pytest.mark.parametrize("evaluation", ["nfa", "backtracking"])
def test_null_equals_nothing(keys: list[int] | None, values: Any, evaluation: str) -> None:
    """Events whose [attr] is NULL match alone, however a column says NULL, by key or not."""
    table = EventTable(range(4), ["A"] * 4, {"k": values}, {"k": Kind.BIGINT}, keys)
    loop = query_matches(parse("PATTERN SEQ(A+ a[]) WHERE [k]"), table, evaluation, "all")
    assert sorted(match["a"] for match in loop) == [[0], [1], [2], [2, 3], [3]]
    two = query_matches(parse("PATTERN SEQ(A a, A b) WHERE [k]"), table, evaluation, "all")
    assert list(two) == [{"a": [2], "b": [3]}]
