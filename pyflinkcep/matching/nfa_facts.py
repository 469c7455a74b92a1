# SPDX-License-Identifier: Apache-2.0
"""What stored partial matches of a pattern depend on, as texts."""

from __future__ import annotations

import json

from pyflinkcep.conditions import ExpressionCondition
from pyflinkcep.engines.flink.nfa import NFA


def nfa_facts(nfa: NFA) -> dict[str, str]:
    """Return what must stay the same of an automaton for stored state to be reused."""
    facts = {
        "pattern": nfa.description,
        "skip strategy": repr(nfa.skip_strategy),
        "window": f"{nfa.window_time} ms",
        "gaps": json.dumps(nfa.window_times, sort_keys=True),
    }
    for name, table in nfa.tables.items():
        edges = [f"{t.action.value} {t.target.name}" for t in table.state.transitions]
        facts[f"state {name}"] = f"{table.state.kind.value}: {', '.join(edges)}"
    for number, atom in enumerate(nfa.atoms):
        if isinstance(atom.condition, ExpressionCondition):
            facts[f"condition {number} (stage {atom.stage})"] = atom.condition.text
        elif atom.expression is not None:
            facts[f"match expression {number} (stage {atom.stage})"] = atom.expression
    return facts
