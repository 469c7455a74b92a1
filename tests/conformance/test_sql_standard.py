# SPDX-License-Identifier: Apache-2.0
"""The standard's matcher on rows that come in portions."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from pyflinkcep.errors import SkipError
from tests.conformance.cases import Case
from tests.conformance.sql_cases import standard_cases
from tests.unit.match_recognize.lists import answer, reading

_SIZE = 20
_PARTS = [standard_cases()[at : at + _SIZE] for at in range(0, len(standard_cases()), _SIZE)]


def _outcome(case: Case, within: int, portions: Callable[[int], Sequence[int]]) -> Any:
    """Return the answer, or the message of the error, which a window may bring about."""
    try:
        return answer(None, case, portions, within)
    except SkipError as error:
        return error.message


def _portions(rng: random.Random, size: int) -> Sequence[int]:
    cuts = rng.sample(range(size), min(size, rng.choice([0, 1, 2, 5])))
    return sorted({*cuts, size} - {0})


@pytest.mark.parametrize(
    "cases",
    [pytest.param(part, marks=[pytest.mark.slow] * bool(n)) for n, part in enumerate(_PARTS)],
    ids=[part[0]["id"] for part in _PARTS],
)
def test_rows_that_come_in_portions(cases: tuple[Case, ...]) -> None:
    """Whatever portions rows come in, the output is that of all rows at once, in its order."""
    rng = random.Random(cases[0]["id"])
    differ = {}
    for case in cases:
        if "error" in case["expect"] or reading(case).plan({}, ansi=False).looks_ahead:
            continue
        has_time = re.search(r"\bORDER BY id\b(?! DESC)", case["sql"])
        has_time = has_time and ["id", "INT"] in case["columns"]
        within = rng.choice([0, 2, 5]) if has_time else 0
        expected = _outcome(case, within, lambda size: [size])
        found = _outcome(case, within, lambda size: _portions(rng, size))
        if found != expected:
            differ[case["id"]] = (found, expected)

    assert differ == {}
