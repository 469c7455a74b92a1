# SPDX-License-Identifier: Apache-2.0
"""
From completed matches to emitted ones: their order, and after-match skipping.

Specifies ``kernel/src/flink/emission.c`` and ``results.c``; they must be changed together.
"""

from __future__ import annotations

import operator
from typing import Any

import attrs

from pyflinkcep.engines.flink.nfa.java_heap import heap_add, heap_poll, heap_remove_if
from pyflinkcep.engines.flink.nfa.nfa_state import ComputationState, NFAState, by_start
from pyflinkcep.engines.flink.sharedbuffer import EventId, SharedBufferAccessor
from pyflinkcep.pattern.aftermatch import AfterMatchSkipStrategy

__all__ = ["EventMatch", "FoundMatch", "emit", "emit_at_once"]

EventMatch = dict[str, list[Any]]
"""A match in the buffer: stage name to events, or to handles of events."""


@attrs.define(eq=False)
class FoundMatch:
    """
    A match that need not wait.

    Attributes
    ----------
    start_event_id : EventId
        Its first event.
    events : dict of str to list
        Its events, or handles of events.
    time : int, epoch milliseconds
        The end of the window that it waited for; 0 if an event completed it.
    """

    start_event_id: EventId
    events: EventMatch
    time: int = 0


def emit_at_once(found: list[FoundMatch]) -> list[FoundMatch]:
    """
    Emit matches without a skip strategy, in the order of Flink's priority queue.

    Parameters
    ----------
    found : list of FoundMatch
        In the order of the partial matches they come from.

    Notes
    -----
    Since they are sorted by start, the queue's array is the list itself. Each removal moves the
    last element to the root, so with one start for all, all but the first come out reversed.
    """
    starts: list[Any] = [match.start_event_id for match in found]
    if len(found) < 2 or all(map(operator.lt, starts, starts[1:])):
        return found
    if starts[0] == starts[-1]:
        return found[:1] + found[:0:-1]
    heap, ordered = list(found), []
    while heap:
        ordered.append(heap_poll(heap, lambda match: match.start_event_id))
    return ordered


def emit(
    strategy: AfterMatchSkipStrategy,
    accessor: SharedBufferAccessor,
    state: NFAState,
    completed: list[ComputationState],
) -> list[EventMatch]:
    """
    Emit the matches that the skip strategy releases, earliest start first.

    A match waits while a partial match with an earlier start is live, and each emitted match prunes
    what it makes superfluous.

    Parameters
    ----------
    strategy : AfterMatchSkipStrategy
        Decides what a match makes superfluous.
    accessor : SharedBufferAccessor
        The key's buffer.
    state : NFAState
        The key's state; changed in place, except for its deadline.
    completed : list of ComputationState
        The new matches, in the order of the partial matches they come from.

    Notes
    -----
    Ports ``NFA.processMatchesAccordingToSkipStrategy`` (Flink 2.3.0).
    """
    waiting = state.completed_matches
    for match in completed:
        heap_add(waiting, match, by_start)
    matches = []
    pruned: set[EventId] = set()
    while waiting:
        first, earliest = waiting[0].start_event_id, state.partial_matches[0].start_event_id
        if earliest is not None and first is not None and earliest < first:
            break
        match = heap_poll(waiting, by_start)
        node = match.previous_node
        assert node is not None
        _prune(strategy, accessor, state, match, pruned)
        matches.append(accessor.materialize_match(node, match.version))
        accessor.release_node(node, match.version)
    return matches


def _prune(
    strategy: AfterMatchSkipStrategy,
    accessor: SharedBufferAccessor,
    state: NFAState,
    match: ComputationState,
    pruned: set[EventId],
) -> None:
    """
    Drop the partial matches and waiting matches that an emitted match makes superfluous.

    `pruned` has the pruning ids since any were added: those drop nothing more.
    """
    paths = accessor.extract_patterns(match.previous_node, match.version)
    pruning_id = strategy.pruning_id(
        [{stage: [e.event_id for e in path[stage]] for stage in path} for path in paths]
    )
    if pruning_id is None or pruning_id in pruned:
        return
    pruned.add(pruning_id)

    def superfluous(candidate: ComputationState) -> bool:
        start, node = candidate.start_event_id, candidate.previous_node
        if start is None or node is None or not strategy.should_prune(start, pruning_id):
            return False
        accessor.release_node(node, candidate.version)
        state.ended.skipped += 1
        return True

    state.partial_matches = [p for p in state.partial_matches if not superfluous(p)]
    heap_remove_if(state.completed_matches, superfluous, by_start)
