# SPDX-License-Identifier: Apache-2.0
"""An analysed query computes each result once, however many ask."""

from __future__ import annotations

from typing import Any

import pytest

from pyflinkcep.errors import NotSupportedError
from pyflinkcep.sase import analysis, parse
from pyflinkcep.sase.analysis import AnalysedQuery

_SEQ = "PATTERN SEQ(A a, B+ b[], C c) WHERE upper(a.name) = 'X' AND b[i].x > b[i-1].x"
_RESULTS = ("edges", "slots", "computed", "usable_sql", "why_no_pattern", "pattern")
_FUNCTIONS = ("placed", "computed_for", "why_no_pattern")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Count the calls of what an analysed query asks."""
    counted = dict.fromkeys(_FUNCTIONS, 0)

    def counting(name: str) -> None:
        function = getattr(analysis, name)

        def call(*arguments: Any) -> Any:
            counted[name] += 1
            return function(*arguments)

        monkeypatch.setattr(analysis, name, call)

    for name in _FUNCTIONS:
        counting(name)
    return counted


def test_each_result_is_computed_once(calls: dict[str, int]) -> None:
    """What all results need, such as where clauses are placed, is computed once too."""
    query = AnalysedQuery(parse(_SEQ), "kind")
    assert not any(calls.values())  # nothing until it is asked for
    for _ in range(3):
        for name in _RESULTS:
            assert getattr(query, name) is getattr(query, name)
    assert calls == dict.fromkeys(_FUNCTIONS, 1)


def test_a_pattern_that_there_is_not(calls: dict[str, int]) -> None:
    """The refusal names the reason, which is found once; elements with ; have no edges."""
    query = AnalysedQuery(parse("PATTERN A;B WHERE a.x < b.x WITHIN 5"))
    for _ in range(2):
        with pytest.raises(NotSupportedError, match=str(query.why_no_pattern)):
            _ = query.pattern
    assert (query.edges, query.slots, calls["placed"], calls["why_no_pattern"]) == ({}, {}, 0, 1)
    assert query.usable_sql == "(`type` = 'A') OR (`type` = 'B')"
