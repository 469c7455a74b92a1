# SPDX-License-Identifier: Apache-2.0
"""Aggregates in Python, over the rows of a partial match."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from pyflinkcep.engines.rows.values import fold_function
from pyflinkcep.errors import NotSupportedError
from pyflinkcep.expressions.evaluator import RowTypes
from pyflinkcep.expressions.grammar import parsed
from pyflinkcep.expressions.sql_types import SqlType
from pyflinkcep.match_recognize.leaves import Fold

_ROWS = [{"f0": 2, "f1": "b"}, {"f0": None, "f1": "c"}, {"f0": 4, "f1": "a"}, {"f0": 2, "f1": None}]


def _folded(text: str, rows: list[dict[str, Any]]) -> Any:
    call = parsed(text)
    return fold_function(Fold(str(call.value), (), (text,), text, call, {})).function(rows)


@pytest.mark.parametrize(
    ("text", "value", "without_rows"),
    [
        ("count(f0)", 3, 0),
        ("count(DISTINCT f0)", 2, 0),
        ("count(1) FILTER (WHERE f1 > 'a')", 2, 0),
        ("count(DISTINCT f0) FILTER (WHERE f0 > 1)", 2, 0),
        ("sum(f0 + 1)", 11, None),
        ("avg(DISTINCT f0)", 3.0, None),
        ("min(f1)", "a", None),
        ("max(f1)", "c", None),
        ("max_by(f0, f1)", None, None),
        ("min_by(f0, f1)", 4, None),
        ("array_agg(f0)", [2, None, 4, 2], None),
        ("collect_list(f0)", [2, 4, 2], []),
        ("collect_set(f0)", [2, 4], []),
        ("bool_or(f0 > 3)", True, None),
        ("every(f0 > 3)", False, None),
        ("count_if(f0 < 3)", 2, 0),
        ("any_value(f1)", "b", None),
        ("last_value(f1)", None, None),
        ("stddev_pop(f0)", pytest.approx(0.942809041582), None),
        ("variance(f0)", pytest.approx(4 / 3), None),
        ("median(f0)", 2.0, None),
        ("listagg(f1, '-')", "b-c-a", None),
        ("bit_or(f0)", 6, None),
    ],
)
def test_aggregates(text: str, value: Any, without_rows: Any) -> None:
    """NULL is passed over, DISTINCT and FILTER are obeyed; without rows it is as in Spark."""
    assert _folded(text, _ROWS) == value
    assert _folded(text, []) == without_rows


def test_decimals_stay_exact() -> None:
    """Sums and averages of decimals are decimals."""
    rows = [{"f0": Decimal("0.1")}, {"f0": Decimal("0.2")}]

    assert _folded("sum(f0)", rows) == Decimal("0.3")
    assert _folded("avg(f0)", rows) == Decimal("0.15")


def test_averages_of_long_decimals_have_all_digits() -> None:
    """Of 34 digits, an average has Spark's 38, not the 28 that Python calculates with."""
    whole = "12345678901234567890123456789012"
    rows: Any = [{"f0": Decimal(f"{whole}.{end}")} for end in (34, 36, 37)]
    call, type_ = parsed("avg(f0)"), SqlType("decimal", 34, 2)
    fold = Fold("avg", (), ("avg(f0)",), "avg(f0)", call, {})
    found = fold_function(fold, RowTypes({"f0": type_}))
    assert found.function(rows) == Decimal(f"{whole}.356667")
    assert found.type == SqlType("decimal", 38, 6)


@pytest.mark.parametrize("text", ["corr(f0, f0)", "listagg(f1) WITHIN GROUP (ORDER BY f0)"])
def test_others_are_refused_with_those_that_there_are(text: str) -> None:
    """An aggregate that only Spark computes is refused; the hint has the list."""
    with pytest.raises(NotSupportedError, match="in DEFINE") as raised:
        _folded(text, [])

    assert "MAX_BY" in (raised.value.hint or "")
