# SPDX-License-Identifier: Apache-2.0
"""The automaton of a pattern as a picture."""

from __future__ import annotations

from pyflinkcep.conditions import (
    BooleanConditions,
    IterativeCondition,
    RichAndCondition,
    RichNotCondition,
)
from pyflinkcep.engines.flink.nfa.compiler import NFACompiler
from pyflinkcep.engines.flink.nfa.state import State, StateType
from pyflinkcep.pattern.pattern import Pattern
from pyflinkcep.show import Diagram
from pyflinkcep.show.model import Edge, Graph, Node
from pyflinkcep.time import duration_text

_KINDS = {
    StateType.START: "start",
    StateType.NORMAL: "stage",
    StateType.FINAL: "final",
    StateType.STOP: "stop",
    StateType.PENDING: "pending",
}


def automaton_diagram(pattern: Pattern) -> Diagram:
    """Return the picture of a pattern's states and edges, in the order of the pattern."""
    nfa = NFACompiler.compile(pattern)
    states = [table.state for table in nfa.tables.values()][::-1]
    names = {id(state): f"s{number}" for number, state in enumerate(states)}
    nodes, edges = [], []
    for state in states:
        title = "match" if state.kind is StateType.FINAL else state.name
        gap = nfa.window_times.get(state.name)
        lines = () if gap is None else (f"gap < {duration_text(gap)}",)
        nodes.append(Node(names[id(state)], title, lines, _KINDS[state.kind]))
        edges += [] if state.kind is StateType.STOP else list(_edges(state, names))
    notes = []
    if nfa.window_time:
        notes.append(f"within {duration_text(nfa.window_time)} of the first event")
    return Diagram(Graph(tuple(nodes), tuple(edges)), tuple(notes), title=nfa.description)


def _edges(state: State, names: dict[int, str]) -> list[Edge]:
    found = []
    for edge in state.transitions:
        text = _shown(edge.condition)
        if text != _NEVER:
            source, target = names[id(edge.source)], names[id(edge.target)]
            found.append(Edge(source, target, edge.action.value.lower(), text))
    return found


_NEVER = "false"


def _shown(condition: IterativeCondition | None) -> str:
    """Return a condition without the constants that the compiler puts in; empty for always."""
    if condition is None:
        return ""
    if isinstance(condition, BooleanConditions):
        return "" if condition.value else _NEVER
    if isinstance(condition, RichNotCondition):
        text = _shown(condition.nestedConditions[0])
        return {"": _NEVER, _NEVER: ""}.get(text, f"not {text}")
    if not isinstance(condition, RichAndCondition):
        return repr(condition)
    parts = [_shown(part) for part in condition.nestedConditions]
    if _NEVER in parts:
        return _NEVER
    left, right = parts
    return f"({left} and {right})" if left and right else left or right
