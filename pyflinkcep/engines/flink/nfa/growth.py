# SPDX-License-Identifier: Apache-2.0
"""What of a pattern may grow: its states, its partial matches, the events that they hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyflinkcep.engines.flink.nfa.nfa import NFA
from pyflinkcep.engines.flink.nfa.state import State, StateTransitionAction, StateType
from pyflinkcep.time import duration_text

__all__ = ["doubling_stages", "warnings_of"]

_MANY_STATES = 100


def warnings_of(nfa: NFA) -> Iterator[str]:
    """Warn of long repetitions, of combinations, and of partial matches that never end."""
    if len(nfa.tables) > _MANY_STATES:
        yield (
            f"the pattern has {len(nfa.tables)} states: with times(n) of a stage each event may "
            "begin a match, so that a match of n events costs about n² steps"
        )
    yield from _doubling(nfa)
    if nfa.window_time > 0:
        return
    states = [state for state in _states(nfa) if not nfa.tables[state.name].gap_ms]
    branching = list(dict.fromkeys(s.stage for s in states if _branches(s)))
    looping = list(dict.fromkeys(s.stage for s in states if _loops(s)))
    waiting = list(dict.fromkeys(s.stage for s in states if _waits(s)))
    if branching:
        yield (
            f"{_named(branching)} leaves a partial match behind for every event it could take "
            "or leave, and they never end"
        )
    if looping:
        yield f"{_named(looping)} loops, and the events of a partial match have no bound"
    if waiting and not branching:
        yield f"{_named(waiting)} waits for its event, possibly forever"
    if branching or looping or waiting:
        yield (
            "memory may grow without bound: write .within(timedelta(...)) on the pattern, "
            "the longest time from the first event to the last"
        )


def doubling_stages(nfa: NFA) -> list[str]:
    """Return the stages that may take or leave each event of a loop: `n` events in 2ⁿ ways."""
    return list(dict.fromkeys(s.stage for s in _states(nfa) if _branches(s) and _loops(s)))


def _doubling(nfa: NFA) -> Iterator[str]:
    stages = doubling_stages(nfa)
    if not stages:
        return
    within = f" within {duration_text(nfa.window_time)}" if nfa.window_time > 0 else ""
    yield (
        f"{_named(stages)} may take or leave each event that fits, again and again: n such events "
        f"of a key{within} make up to 2ⁿ partial matches"
    )
    counts = (
        "; .compressed() counts the matches without listing them" if nfa.is_compressible else ""
    )
    yield f"a stricter condition, a shorter window or maxPartialMatches=... bounds them{counts}"


def _states(nfa: NFA) -> list[State]:
    """Return the states with stages of the user's, first to last."""
    tables = [t for t in reversed(nfa.tables.values()) if not (t.is_stop or t.is_final)]
    return [table.state for table in tables if table.state.stage != "GroupPattern"]


def _named(stages: Sequence[str]) -> str:
    names = list(map(repr, stages))
    return ("stage " if len(names) == 1 else "each of the stages ") + ", ".join(names)


def _self_edges(state: State, action: StateTransitionAction) -> bool:
    return any(edge.action is action and edge.target is state for edge in state.transitions)


def _waits(state: State) -> bool:
    return state.kind is not StateType.START and _self_edges(state, StateTransitionAction.IGNORE)


def _branches(state: State) -> bool:
    """Whether the state may both take an event and stay where it is on it."""
    if state.kind is StateType.START:
        return False
    free = [
        edge
        for edge in state.transitions
        if edge.action is StateTransitionAction.IGNORE and str(edge.condition) in ("true", "None")
    ]
    takes = any(edge.action is StateTransitionAction.TAKE for edge in state.transitions)
    return bool(free) and takes


def _loops(state: State) -> bool:
    """Whether taking events leads back to the state."""
    reached: list[State] = [state]
    for at in reached:
        for edge in at.transitions:
            if edge.action is StateTransitionAction.IGNORE or edge.target.kind is StateType.STOP:
                continue
            if edge.target is state and state.kind is not StateType.START:
                return True
            if edge.target not in reached:
                reached.append(edge.target)
    return False
