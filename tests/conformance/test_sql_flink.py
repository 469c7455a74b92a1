# SPDX-License-Identifier: Apache-2.0
"""Flink's dialect, read and matched without Spark, against the answers of Flink SQL."""

from __future__ import annotations

from functools import partial

import pytest

from tests.conformance.cases import Case
from tests.conformance.sql_cases import flink_cases, problems
from tests.unit.match_recognize.flink_lists import answer, can_answer

_SIZE = 40
_CASES = [
    case
    for case in flink_cases()
    if can_answer(case) and not case["id"].startswith("order-by-other")  # which needs types
]
_PARTS = [tuple(_CASES[at : at + _SIZE]) for at in range(0, len(_CASES), _SIZE)]


@pytest.mark.parametrize("cases", _PARTS, ids=lambda part: part[0]["id"])
def test_flinks_answers(cases: tuple[Case, ...]) -> None:
    """Rows with their release times, and errors, are those of Flink SQL 2.3.0."""
    assert problems(cases, partial(answer, None)) == {}
