# SPDX-License-Identifier: Apache-2.0
"""Parameters of a statement become literals."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from pyflinkcep.errors import InvalidArgumentError
from pyflinkcep.match_recognize.statement import with_parameters


def test_named_parameters_are_literals_wherever_they_stand() -> None:
    """A name may occur twice; casts, paths into JSON and texts are not parameters."""
    text = "SELECT j:k, x::int, ':n' FROM t WHERE a = :n AND (:n > 0 OR b = :s) -- :n"

    assert with_parameters(text, {"n": 1, "s": "it's \\"}) == (
        "SELECT j:k, x::int, ':n' FROM t WHERE a = 1 AND (1 > 0 OR b = 'it\\'s \\\\') -- :n"
    )


def test_question_marks_are_parameters_outside_pattern() -> None:
    """In PATTERN they are quantifiers."""
    text = "x > ? AND MATCH_RECOGNIZE (PATTERN (A? (B+?)?) DEFINE A AS v = ?)"

    assert with_parameters(text, [1, 2.5]) == (
        "x > 1 AND MATCH_RECOGNIZE (PATTERN (A? (B+?)?) DEFINE A AS v = 2.5D)"
    )


@pytest.mark.parametrize(
    ("value", "literal"),
    [
        (None, "NULL"),
        (True, "TRUE"),
        (1 << 40, "1099511627776L"),
        (-1.5, "-1.5D"),
        (float("nan"), "double('nan')"),
        (Decimal("1.50"), "1.50BD"),
        (b"\x01", "X'01'"),
        (date(2026, 1, 2), "DATE '2026-01-02'"),
        (datetime(2026, 1, 2, tzinfo=UTC), "TIMESTAMP '2026-01-02 00:00:00.000000+00:00'"),
        (timedelta(seconds=90), "INTERVAL '90.000000' SECOND"),
        ([1, "a"], "array(1, 'a')"),
    ],
)
def test_values_as_literals(value: Any, literal: str) -> None:
    """Each type that Spark's parameters take has a literal of the same type."""
    assert with_parameters("x = ?", [value]) == f"x = {literal}"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"low": 1}, "no value for :high (at line 1, column 5: :)"),
        ([], "no value for :high"),
        ("x", "args: expected a dict or a list, got str"),
        ({"high": object()}, "a parameter is object"),
    ],
)
def test_wrong_arguments_are_refused(args: Any, message: str) -> None:
    """A missing value, and one without a literal, are refused with their place."""
    with pytest.raises(InvalidArgumentError) as raised:
        with_parameters("x > :high", args)

    assert message in raised.value.message
    assert raised.value.hint


def test_values_left_over_are_refused() -> None:
    """As many values as question marks, no more and no less."""
    with pytest.raises(InvalidArgumentError, match="1 value more than the statement has"):
        with_parameters("x > ?", [1, 2])
    with pytest.raises(InvalidArgumentError, match="no value for"):
        with_parameters("x > ? + ?", [1])
