# SPDX-License-Identifier: Apache-2.0
"""From completed matches to emitted ones: their order, and what a skip strategy makes of them."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from pyflinkcep.nfa.heap import heap_add, heap_poll, heap_remove_if
from pyflinkcep.nfa.nfa_state import ComputationState, NFAState, start_event_id
from pyflinkcep.sharedbuffer import SharedBufferNode, extract_path, materialize_match

if TYPE_CHECKING:
    from pyflinkcep.nfa.nfa import NFA

__all__ = ["EventMatch", "emit"]

EventMatch = dict[str, list[Any]]
"""A match as the buffer holds it: stage name to events, or to handles of events."""


def emit(nfa: NFA, state: NFAState, completed: list[ComputationState]) -> list[EventMatch]:
    """
    Emit the matches that may be emitted, earliest start first.

    With a skip strategy, a match waits while a partial match with an earlier start lives,
    and each emitted match prunes what it makes superfluous.

    Parameters
    ----------
    nfa : NFA
        The pattern.
    state : NFAState
        The key's state; changed in place.
    completed : list of ComputationState
        The new matches, in the order of the partial matches they come from.

    Notes
    -----
    Ports ``NFA.processMatchesAccordingToSkipStrategy`` (Flink 2.3.0).
    """
    if not nfa.skip_strategy.isSkipStrategy():
        return [materialize_match(m.previousBufferEntry) for m in _in_heap_order(completed)]
    waiting = state.completedMatches
    for match in completed:
        heap_add(waiting, match, start_event_id)
    matches = []
    while waiting:
        first, earliest = waiting[0].startEventID, state.partialMatches[0].startEventID
        if earliest is not None and first is not None and earliest < first:
            break
        node = heap_poll(waiting, start_event_id).previousBufferEntry
        _prune(nfa, state, node)
        matches.append(materialize_match(node))
    return matches


def _prune(nfa: NFA, state: NFAState, node: SharedBufferNode | None) -> None:
    """Drop the partial matches and waiting matches that an emitted match makes superfluous."""
    skip, path = nfa.skip_strategy, extract_path(node)
    pruning_id = skip.pruning_id([{stage: [n.eventId for n in path[stage]] for stage in path}])
    if pruning_id is None:
        return

    def superfluous(candidate: ComputationState) -> bool:
        start = candidate.startEventID
        return start is not None and skip.should_prune(start, pruning_id)

    state.partialMatches = [p for p in state.partialMatches if not superfluous(p)]
    state.situation = None
    state.deadline = nfa.first_deadline(state.partialMatches)
    heap_remove_if(state.completedMatches, superfluous, start_event_id)


def _in_heap_order(matches: list[ComputationState]) -> list[ComputationState]:
    """
    Order matches that began in this order as Java's priority queue gives them back.

    As they are sorted, the queue's array is the list itself. Its ties are settled by moving
    the last element to the root: with one start for all, that turns all but the first round.
    """
    starts: list[Any] = [match.startEventID for match in matches]
    if len(matches) < 2 or all(map(operator.lt, starts, starts[1:])):
        return matches
    if starts[0] == starts[-1]:
        return matches[:1] + matches[:0:-1]
    heap, ordered = list(matches), []
    while heap:
        ordered.append(heap_poll(heap, start_event_id))
    return ordered
