# SPDX-License-Identifier: Apache-2.0
"""From completed matches to emitted ones: their order, and after-match skipping.

Specifies ``kernel/src/flink/emission.c`` and ``results.c``; they must be changed together.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeVar

import attrs

from pyflinkcep.engines.flink.nfa.nfa_state import ComputationState, NFAState, by_start
from pyflinkcep.engines.flink.sharedbuffer import EventId, SharedBufferAccessor
from pyflinkcep.pattern.aftermatch import AfterMatchSkipStrategy

T = TypeVar("T")
Key = Callable[[T], Any]


def heap_add(heap: list[T], item: T, key: Key[T]) -> None:
    """
    Add an item, moving it up past parents that are strictly larger.

    Ports ``java.util.PriorityQueue.add``; :mod:`heapq` sifts differently and so orders items
    of equal keys differently.
    """
    heap.append(item)
    index, wanted = len(heap) - 1, key(item)
    while index > 0:
        parent = (index - 1) >> 1
        if wanted >= key(heap[parent]):
            break
        heap[index] = heap[parent]
        index = parent
    heap[index] = item


def heap_poll(heap: list[T], key: Key[T]) -> T:
    """Take the smallest item; ports ``java.util.PriorityQueue.poll``."""
    first, last = heap[0], heap.pop()
    if heap:
        heap[0] = last
        _sift_down(heap, 0, key)
    return first


def heap_remove_if(heap: list[T], predicate: Callable[[T], bool], key: Key[T]) -> None:
    """Drop items and restore the heap; ports ``java.util.PriorityQueue.removeIf``."""
    kept = [item for item in heap if not predicate(item)]
    if len(kept) == len(heap):
        return
    heap[:] = kept
    for index in range((len(heap) >> 1) - 1, -1, -1):
        _sift_down(heap, index, key)


def _sift_down(heap: list[T], index: int, key: Key[T]) -> None:
    item, size = heap[index], len(heap)
    wanted = key(item)
    while index < size >> 1:
        child = 2 * index + 1
        if child + 1 < size and key(heap[child]) > key(heap[child + 1]):
            child += 1
        if wanted <= key(heap[child]):
            break
        heap[index] = heap[child]
        index = child
    heap[index] = item


EventMatch = dict[str, list[Any]]
"""A match in the buffer: stage name to events, or to handles of events."""


@attrs.define(eq=False)
class FoundMatch:
    """A match that need not wait."""

    start_event_id: EventId  # Its first event
    events: EventMatch  # Its events, or handles of events
    time: int = 0  # The end of the window that it waited for; 0 if an event completed it


def emit_at_once(found: list[FoundMatch]) -> list[FoundMatch]:
    """
    Emit matches without a skip strategy, in the order of Flink's priority queue.

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
