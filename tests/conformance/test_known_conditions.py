# SPDX-License-Identifier: Apache-2.0
"""What an engine knows of the conditions beforehand never changes an answer."""

from __future__ import annotations

import random
from typing import Any

import pytest

from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.engines.flink.operator import CepOperator
from tests.conformance.cases import (
    NFA_FILES,
    Case,
    build_pattern,
    chunks,
    make_event,
    match_ids,
)

_CHUNKS = chunks(NFA_FILES, 100)
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


@pytest.mark.parametrize("cases", [part for _, part in _CHUNKS], ids=[name for name, _ in _CHUNKS])
def test_known_conditions_change_nothing(cases: tuple[Case, ...]) -> None:
    """All, some or none known: the same results, partial matches and buffer."""
    runnable = [case for case in cases if "error" not in case["expect"]]

    differ = [c["id"] for c in runnable if not answer(c, 0) == answer(c, 0.5) == answer(c, 1)]

    assert differ == []
