# SPDX-License-Identifier: Apache-2.0
"""The standard's matcher against facts from Trino's tests, Oracle's manual, and random cases."""

from __future__ import annotations

import pytest

from tests.conformance.cases import Case
from tests.conformance.sql_cases import problem, problem_with_error, standard_cases
from tests.unit.match_recognize.lists import answer

_SIZE = 20
_PARTS = [standard_cases()[at : at + _SIZE] for at in range(0, len(standard_cases()), _SIZE)]


@pytest.mark.parametrize("cases", _PARTS, ids=lambda part: part[0]["id"])
def test_the_standards_answers(cases: tuple[Case, ...]) -> None:
    """Rows, or the error, are those recorded."""
    problems = {}
    for case in cases:
        try:
            columns, rows = answer(None, case)
            found = problem(case, columns, rows)
        except Exception as raised:
            found = problem_with_error(case, raised)
        if found is not None:
            problems[case["id"]] = found

    assert problems == {}
