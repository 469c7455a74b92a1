# SPDX-License-Identifier: Apache-2.0
"""What an engine knows or leaves out beforehand never changes a recorded answer."""

from __future__ import annotations

import random
from typing import Any

import pytest

from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.engines.flink.nfa.analysis import Relevance
from pyflinkcep.engines.flink.operator import CepOperator
from pyflinkcep.errors import CepError
from pyflinkcep.testing import NFATestHarness
from tests.conformance.cases import NFA_FILES, Case, build_pattern, load, make_event, match_ids
from tests.conformance.drivers import nfa_answers

pytestmark = pytest.mark.slow

_END = 10**12


class Recorded:
    """Receives results."""

    def __init__(self) -> None:
        self.results: list[Any] = []

    def match(self, key: Any, timestamp: int, match: Any) -> None:
        """Keep a match."""
        self.results.append(("match", timestamp, match_ids(match)))

    def timeout(self, key: Any, timestamp: int, match: Any) -> None:
        """Keep a timeout."""
        self.results.append(("timeout", timestamp, match_ids(match)))


def answer(case: Case, share: float) -> Any:
    """Run a case in one go with a share of the one-event conditions known beforehand."""
    chance = random.Random(case["id"])
    nfa = NFACompiler.compile(build_pattern(case), case["timeouts"])
    rows = sorted((row for row in case["events"] if "id" in row), key=lambda row: row["ts"])
    times, events = [row["ts"] for row in rows], [make_event(row) for row in rows]
    atoms = [atom for atom in nfa.atoms if atom.bit and chance.random() < share]
    values = [sum(a.bit for a in atoms if a.condition.filter(e, None)) for e in events]
    operator, recorded = CepOperator(nfa), Recorded()
    state = operator.new_key()
    known = sum(atom.bit for atom in atoms)
    operator.process_events("k", state, times, events, recorded, known, values)
    held = (state.buffer.node_count, len(state.buffer.events))
    partials = [partial.table.name for partial in state.nfa_state.partial_matches]
    operator.advance_time("k", state, _END, recorded)
    return recorded.results, partials, held


def test_known_conditions_change_nothing() -> None:
    """All, some or none known: the same results, partial matches and buffer."""
    cases = [case for file in NFA_FILES for case in load(file) if "error" not in case["expect"]]

    differ = [
        case["id"] for case in cases if not answer(case, 0) == answer(case, 0.5) == answer(case, 1)
    ]

    assert differ == []
    assert len(cases) > 2000


# --- flink's recorded answers are given without the events that are said to change nothing


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


def answer_without(case: Case, rows: list[tuple[int, Any]]) -> Any:
    """Return the matches by the number of their last row, and the timeouts."""
    harness = NFATestHarness(build_pattern(case), case["timeouts"])
    matches, timeouts = nfa_answers(harness, rows)
    _, expired = harness.advanceTime(case["events"][-1]["ts"])  # the last row may be dropped
    late = [[ts, match_ids(match)] for match, ts in expired]
    return (
        [[found["at"], found["match"]] for found in matches],
        [[found["ts"], found["match"]] for found in timeouts] + late,
    )


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
        if answer_without(case, rows) != recorded:
            wrong.append(case["id"])

    assert wrong == []
    assert compared > 100
    assert dropped > 1000
