# SPDX-License-Identifier: Apache-2.0
"""Flink's recorded answers are given without the events that are said to change nothing."""

from __future__ import annotations

from typing import Any

from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.engines.flink.nfa.relevance import Relevance
from pyflinkcep.errors import CepError
from pyflinkcep.testing import NFATestHarness
from tests.conformance.cases import Case, build_pattern, load, make_event, match_ids


def rows_to_keep(case: Case) -> list[tuple[int, Any]] | None:
    """Return the rows of a case that are needed, numbered; None where all are."""
    try:
        nfa = NFACompiler.compile(build_pattern(case), case["timeouts"])
    except CepError:
        return None
    known = sum(atom.bit for atom in nfa.atoms)
    droppable = Relevance.of(nfa, known, shows_next=True).droppable

    def is_needed(row: dict[str, Any]) -> bool:
        if "id" not in row:
            return True
        event = make_event(row)
        return sum(a.bit for a in nfa.atoms if a.bit and a.function(event)) not in droppable

    kept = [(at, row) for at, row in enumerate(case["events"]) if is_needed(row)]
    return kept if len(kept) < len(case["events"]) else None


def answer(case: Case, rows: list[tuple[int, Any]]) -> Any:
    """Return the matches by the number of their last row, and the timeouts."""
    harness = NFATestHarness(build_pattern(case), case["timeouts"])
    matches, timeouts = [], []
    for at, row in rows:
        held, expired = harness.advanceTime(row["ts"])
        timeouts += [[ts, match_ids(match)] for match, ts in expired]
        found = [*held, *(harness.process(make_event(row), row["ts"]) if "id" in row else [])]
        matches += [[at, match_ids(match)] for match in found]
    _, expired = harness.advanceTime(case["events"][-1]["ts"])  # the last row may be dropped
    timeouts += [[ts, match_ids(match)] for match, ts in expired]
    return matches, timeouts


def test_recorded_answers_without_droppable_events() -> None:
    """The automaton gives Flink's matches and timeouts though it is not shown every event."""
    wrong, compared, dropped = [], 0, 0
    for case in (*load("flink_itcases"), *load("nfa_cases")):
        if "error" in case["expect"] or (rows := rows_to_keep(case)) is None:
            continue
        expect = case["expect"]
        recorded = (
            [[match["at"], match["match"]] for match in expect["matches"]],
            [[timeout["ts"], timeout["match"]] for timeout in expect["timeouts"]],
        )
        compared += bool(recorded[0])
        dropped += len(case["events"]) - len(rows)
        if answer(case, rows) != recorded:
            wrong.append(case["id"])

    assert wrong == []
    assert compared > 100
    assert dropped > 1000
