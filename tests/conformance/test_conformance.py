# SPDX-License-Identifier: Apache-2.0
"""The core gives the answers that Apache Flink CEP 2.3.0 gave."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.cases import NFA_FILES, OPERATOR_FILES, Case, chunks, error_difference, load
from tests.conformance.drivers import check_nfa, check_operator, disagreements

_NFA = chunks(NFA_FILES, 50)
_OPERATOR = chunks(OPERATOR_FILES, 50)


@pytest.mark.parametrize("cases", [part for _, part in _NFA], ids=[name for name, _ in _NFA])
def test_nfa(cases: tuple[Case, ...]) -> None:
    """Matches, timeouts, their order and moment, and errors are Flink's; no more is held."""
    actual = disagreements(cases, check_nfa)

    assert actual == {}


@pytest.mark.parametrize(
    "cases", [part for _, part in _OPERATOR], ids=[name for name, _ in _OPERATOR]
)
def test_operator(cases: tuple[Case, ...]) -> None:
    """Keys, disorder, watermarks, late data and timeouts are Flink's, whenever state is restored."""
    actual = disagreements(cases, check_operator)

    assert actual == {}


def test_nothing_is_lost() -> None:
    """All recorded cases are run, each under an id of its own."""
    ids = [case["id"] for _, part in _NFA + _OPERATOR for case in part]

    assert (len(ids), len(set(ids))) == (2628, 2628)


# --- the comparison itself must be able to fail


def _case(file: str, wanted: str) -> Case:
    return copy.deepcopy(next(c for c in load(file) if c["expect"].get(wanted)))


def _alter(expect: Any, *path: Any) -> None:
    """Change the number, or the name, at the end of a path."""
    *before, last = path
    for step in before:
        expect = expect[step]
    expect[last] += 1 if isinstance(expect[last], int) else "x"


_ERROR = {"type": "MalformedPatternException", "message": "no"}
_SPOILT: dict[str, Callable[[Any], Any]] = {
    "match": lambda expect: _alter(expect, "matches", 0, "match", 0, 1),
    "stage": lambda expect: _alter(expect, "matches", 0, "match", 0, 0),
    "moment": lambda expect: _alter(expect, "matches", 0, "at"),
    "lost": lambda expect: expect["matches"].pop(),
    "repeated": lambda expect: expect["matches"].append(expect["matches"][0]),
    "timeout": lambda expect: expect["timeouts"].append({"at": 0, "ts": 1, "match": []}),
    "less held": lambda expect: expect.update(partial=0),
    "error": lambda expect: expect.update(error=_ERROR),
}


@pytest.mark.parametrize("spoil", _SPOILT.values(), ids=_SPOILT)
def test_a_wrong_nfa_expectation_is_noticed(spoil: Any) -> None:
    """Any change to a recorded answer makes its case fail, and the failure names the case."""
    case = _case("flink_itcases", "matches")
    before = disagreements([case], check_nfa)
    spoil(case["expect"])

    assert (before, list(disagreements([case], check_nfa))) == ({}, [case["id"]])


def test_swapped_matches_are_noticed() -> None:
    """The order of matches is part of the answer."""
    case = copy.deepcopy(next(c for c in load("flink_itcases") if len(c["expect"]["matches"]) > 1))
    case["expect"]["matches"].reverse()

    assert list(disagreements([case], check_nfa)) == [case["id"]]


@pytest.mark.parametrize("kind", ["match", "timeout", "late"])
@pytest.mark.parametrize("change", ["drop", "alter"])
def test_a_wrong_operator_expectation_is_noticed(kind: str, change: str) -> None:
    """A result that is missing or different makes its operator case fail."""
    case = copy.deepcopy(
        next(
            c
            for c in load("operator_cases")
            if any(row["kind"] == kind for row in c["expect"].get("out", ()))
        )
    )
    rows = case["expect"]["out"]
    row = next(row for row in rows if row["kind"] == kind)
    if change == "drop":
        rows.remove(row)
    else:
        row["key"] = "no such key"
        case["keyed"] = True

    assert list(disagreements([case], check_operator)) == [case["id"]]


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (None, {"type": "MalformedPatternException", "message": "m"}),
        (ValueError("m"), None),
        (ValueError("m"), {"type": "MalformedPatternException", "message": "m"}),
    ],
)
def test_a_wrong_error_is_noticed(raised: Any, expected: Any) -> None:
    """A missing error, an unexpected one and one of another type all count as differences."""
    assert error_difference(raised, expected) is not None


def test_a_wrong_message_is_noticed() -> None:
    """An error of the right type with another text counts as a difference."""
    case = _case("nfa_cases", "error")
    case["expect"]["error"]["message"] = "something else"

    assert list(disagreements([case], check_nfa)) == [case["id"]]
