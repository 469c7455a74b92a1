# SPDX-License-Identifier: Apache-2.0
"""A trace watches the code that finds matches: it changes nothing about them."""

from __future__ import annotations

import os
from typing import Any

import pytest

from pyflinkcep.errors import CepError
from pyflinkcep.testing import match, trace
from pyflinkcep.traces.model import End
from tests.conformance.cases import (
    NFA_FILES,
    OPERATOR_FILES,
    Case,
    build_pattern,
    chunks,
    make_event,
)

pytestmark = pytest.mark.slow

SHARE = int(os.environ.get("TRACE_SHARE", "4"))
"""One case in so many, which takes 2 s; ``TRACE_SHARE=1`` for all."""

CASES = [
    pytest.param(part[::SHARE], id=label)
    for label, part in chunks((*NFA_FILES, *OPERATOR_FILES), 400)
]


@pytest.mark.parametrize("cases", CASES)
def test_a_trace_finds_what_match_finds(cases: tuple[Case, ...]) -> None:
    """Matches, timeouts and errors are the same with a trace, and the trace accounts for each."""
    problems = {case["id"]: difference(case) for case in cases}

    assert {name: problem for name, problem in problems.items() if problem} == {}


def difference(case: Case) -> str | None:
    """Return how a trace differs from what is found without one; None if it does not."""
    rows = [row for row in case.get("events", case.get("items")) if "id" in row]
    events = [make_event(row) for row in rows]
    given = {id(event): row for event, row in zip(events, rows, strict=True)}

    def ask(function: Any) -> Any:
        try:
            return function(
                build_pattern(case),
                events,
                timestamp=lambda event: given[id(event)]["ts"],
                key=lambda event: given[id(event)].get("key"),
            )
        except CepError as error:
            return repr(error)

    expected, found = ask(match), ask(trace)
    if isinstance(expected, str) or isinstance(found, str):
        return None if expected == found else f"{found}, expected {expected}"
    out = [one for one in found.found if one.came_out]
    told = [{s: [events[n] for n in numbers] for s, numbers in m.events.items()} for m in out]
    kept = [one for one in found.found if not one.came_out]
    lanes = {one.ending.match for one in found.partials if one.ending.kind is End.MATCH}
    checks = {
        "matches": found.matches == list(expected),
        "timeouts": found.timeouts == [tuple(timeout) for timeout in expected.timeouts],
        "told": told == found.matches,
        "dropped": all(
            one.discarded_by is not None or one.held_back_by is not None for one in kept
        ),
        "ends": lanes <= {one.number for one in found.found},
        "text": len(found.text()) > 0 and len(found.text(full=True)) > 0,
    }
    wrong = [name for name, is_right in checks.items() if not is_right]
    return ", ".join(wrong) or None
