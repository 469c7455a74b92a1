# SPDX-License-Identifier: Apache-2.0
"""What of a pattern may grow: its states, its partial matches, the events that they hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from pyflinkcep.engines.flink.nfa.nfa import NFA
from pyflinkcep.engines.flink.nfa.state import (
    State,
    StateTransition,
    StateTransitionAction,
    StateType,
    reached,
)
from pyflinkcep.time import duration_text

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


def splitting_stages(nfa: NFA) -> list[str]:
    """
    Return the stages of loops within loops, such as ``(a+)+``: `n` events in 2ⁿ ways.

    From such a stage the same events lead back to it in two ways, since each may go on with a round
    of the outer loop or begin another.
    """
    steps = {state.name: _steps(state) for state in _states(nfa)}
    return list(dict.fromkeys(s.stage for s in _states(nfa) if _splits(s, steps)))


def _doubling(nfa: NFA) -> Iterator[str]:
    doubling = doubling_stages(nfa)
    splitting = [stage for stage in splitting_stages(nfa) if stage not in doubling]
    within = f" within {duration_text(nfa.window_time)}" if nfa.window_time > 0 else ""
    many = f"n such events of a key{within} make up to 2ⁿ partial matches"
    if doubling:
        yield f"{_named(doubling)} may take or leave each event that fits, again and again: {many}"
    if splitting:
        yield (
            f"{_named(splitting)} loops within a loop: each event that fits may go on with a round "
            f"of the outer loop or begin another: {many}"
        )
    if not doubling and not splitting:
        return
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

    def goes_on(edge: StateTransition) -> bool:
        is_ignore = edge.action is StateTransitionAction.IGNORE
        return not is_ignore and edge.target.kind is not StateType.STOP

    return state.kind is not StateType.START and any(
        edge.target is state and goes_on(edge)
        for at in reached(state, goes_on)
        for edge in at.transitions
    )


_Step = tuple[tuple[str, str], State]
"""How an event is taken, by which stage and on which condition, and the state after it."""


def _steps(state: State, skipped: tuple[State, ...] = ()) -> list[_Step]:
    """Return each way in which a partial match in a state may take an event."""
    found: list[_Step] = []
    for edge in state.transitions:
        if edge.action is StateTransitionAction.TAKE:
            found.append(((state.stage, str(edge.condition)), edge.target))
        elif edge.action is StateTransitionAction.PROCEED and edge.target not in skipped:
            found += _steps(edge.target, (*skipped, state))
    return found


def _splits(state: State, steps: dict[str, list[_Step]]) -> bool:
    """Whether two ways to take one event from a state both lead back to it, on equal events."""

    def after(at: State) -> list[_Step]:
        return steps[at.name] if at.name in steps else _steps(at)

    first = combinations(after(state), 2)
    pairs = [(one[1], other[1]) for one, other in first if one[0] == other[0]]
    for left, right in pairs:  # it grows: each pair of states that equal events may lead to
        if left is state and right is state:
            return True
        for event, one in after(left):
            for same, other in after(right):
                if event == same and (one, other) not in pairs:
                    pairs.append((one, other))
    return False
