# SPDX-License-Identifier: Apache-2.0
"""
The run state of one key: its partial matches, what a step makes of them, and what is emitted.

Specifies ``kernel/src/flink/partials.c``, ``emission.c`` and ``results.c``; they must be changed
together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import add
from typing import Any, TypeVar

import attrs

from pyflinkcep.engines.flink.nfa.state import Move, StateTable, Step
from pyflinkcep.engines.flink.sharedbuffer import (
    DeweyNumber,
    EventId,
    LockableEvent,
    SharedBufferAccessor,
    SharedBufferNode,
)
from pyflinkcep.pattern.aftermatch import AfterMatchSkipStrategy

NEVER = 1 << 63
"""A time after that of every event, epoch milliseconds."""

ALWAYS = -NEVER - 1
"""A time before that of every event, epoch milliseconds."""


@attrs.define(eq=False)
class ComputationState:
    """
    One partial match: its position in the pattern and in the buffer.

    Ports ``org.apache.flink.cep.nfa.ComputationState`` (Flink 2.3.0). Differs from Flink: it
    changes in place if an event leads to one state only. Its start and previous timestamps are
    those of its first and last event.
    """

    table: StateTable  # The state it is in
    version: DeweyNumber  # The version that marks its path through the buffer
    start_event_id: EventId | None = None  # Its first event; None for the start state
    # Its last event in the buffer; None for the start state.
    previous_node: SharedBufferNode | None = None

    def copy(self) -> ComputationState:
        """Return a copy, which stays as it is."""
        return ComputationState(self.table, self.version, self.start_event_id, self.previous_node)


def by_start(state: ComputationState) -> Any:
    """Return the sort key of partial matches and matches."""
    return state.start_event_id


@attrs.define(eq=False)
class EndCounts:
    """How many partial matches ended without becoming a match, by reason."""

    window: int = 0  # Those whose window, or gap, was over
    skipped: int = 0  # Those that the skip strategy discarded, matches held back among them
    # Those that an event ended, by its number in ``EventEnd``.
    by_event: list[int] = attrs.field(factory=lambda: [0, 0, 0])

    def add(self, other: EndCounts) -> None:
        """Add other counts to these."""
        self.window += other.window
        self.skipped += other.skipped
        self.by_event = list(map(add, self.by_event, other.by_event))

    @classmethod
    def sum(cls, parts: Iterable[EndCounts]) -> EndCounts:
        """Return several counts added up."""
        total = cls()
        for part in parts:
            total.add(part)
        return total


@attrs.define(eq=False)
class NFAState:
    """
    The state of a key besides the buffer.

    Ports ``org.apache.flink.cep.nfa.NFAState`` (Flink 2.3.0). `deadline` follows
    from the partial matches, so it is not stored; nor is `ended`.
    """

    # Ordered by start event; the start state is always present and comes last.
    partial_matches: list[ComputationState]
    # A heap by start event: matches that a skip strategy holds back.
    completed_matches: list[ComputationState] = attrs.field(factory=list)
    state_changed: bool = False  # Whether anything changed since the flag was last reset
    # Whether a partial match began since the flag was last reset.
    is_new_start_partial_match: bool = False
    # No window ends earlier; the default makes the next advance of time check.
    deadline: int = ALWAYS
    # What has ended since the state was made or read.
    ended: EndCounts = attrs.field(factory=EndCounts)

    def is_initial(self) -> bool:
        """Whether only the start state is left and no match waits."""
        return len(self.partial_matches) == 1 and not self.completed_matches

    def reset_flags(self) -> None:
        """Reset the flags of changes."""
        self.state_changed = False
        self.is_new_start_partial_match = False


# --- from completed matches to emitted ones: their order, and after-match skipping


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


# --- the effect of a step on the buffer and the partial matches


@attrs.frozen
class Windows:
    """
    The windows of a pattern.

    Ports ``NFA.isStateTimedOut`` (Flink 2.3.0). Windows are half open: a window has ended when
    exactly its length has passed.
    """

    length_ms: int  # The longest time from first to last event; 0 for any
    has_gaps: bool  # Whether some state limits the time since the previous event

    def deadline(self, partial: ComputationState) -> int:
        """Return when the first window of a partial match ends."""
        start, node = partial.start_event_id, partial.previous_node
        if start is None or node is None:
            return NEVER
        length, gap = self.length_ms, partial.table.gap_ms
        by_first = start.timestamp + length if length > 0 else NEVER
        return by_first if gap <= 0 else min(by_first, node.entry.event_id.timestamp + gap)

    def passed_deadline(self, partial: ComputationState, timestamp: int) -> int:
        """Return the end of the window that is over at a time; the gap's if both are."""
        start, node = partial.start_event_id, partial.previous_node
        assert start is not None
        assert node is not None
        gap_end = node.entry.event_id.timestamp + partial.table.gap_ms
        over = partial.table.gap_ms > 0 and timestamp >= gap_end
        return gap_end if over else start.timestamp + self.length_ms

    def first_deadline(self, partials: list[ComputationState]) -> int:
        """Return when the first window of partial matches ends; a clock may have stepped back."""
        return min(map(self.deadline, partials))

    def deadline_after(self, known: int, partials: list[ComputationState]) -> int:
        """Return before when no window ends after an event, as `known` was before it."""
        if self.has_gaps:
            return self.first_deadline(partials)
        return min(known, self.deadline(partials[-2:][0]))  # what it began is the last but one


_NEWEST = EventId(NEVER, 0)
"""Stands for the id of an event that no partial match continues with."""


@attrs.define(eq=False)
class Successors:
    """What the partial matches of a key become after one event."""

    following: list[ComputationState]  # The partial matches afterwards
    completed: list[ComputationState]  # The matches, if a skip strategy may hold them back
    found: list[FoundMatch]  # The matches otherwise

    def made_of(self, step: Step, before: Sequence[int]) -> list[Continuation]:
        """Return what each move of a step has added since the lists had the sizes `before`."""
        partials = iter(self.following[before[0] :])
        events = [found.events for found in self.found[before[2] :]]
        matches: Iterator[Any] = iter([*self.completed[before[1] :], *events])
        return [
            Continuation(
                move,
                next(partials) if move.continues else None,
                next(matches) if move.completes else None,
            )
            for move in step.moves
        ]

    @property
    def sizes(self) -> tuple[int, int, int]:
        """The sizes of the three lists."""
        return len(self.following), len(self.completed), len(self.found)


@attrs.frozen(eq=False)
class Continuation:
    """What one move made of a partial match: what goes on, and the match, which may wait."""

    move: Move
    partial: ComputationState | None
    completed: ComputationState | EventMatch | None = None

    def events(self, accessor: SharedBufferAccessor) -> EventMatch:
        """Return what has been taken."""
        state = self.completed if self.partial is None else self.partial
        if not isinstance(state, ComputationState):
            assert state is not None
            return state
        return accessor.materialize_match(state.previous_node, state.version)


def move_on(
    accessor: SharedBufferAccessor,
    partial: ComputationState,
    move: Move,
    entry: LockableEvent | None,
) -> None:
    """Move a partial match to one other state, in place."""
    node, old = partial.previous_node, partial.version
    assert node is not None
    version: DeweyNumber = old.increase(move.increase).add_stage()
    if move.takes:  # the only take, so the version did not grow before it
        assert entry is not None
        node = accessor.extend(move.stage, entry, node, old, version)
        partial.previous_node = node
    else:
        accessor.relabel(node, old, version)
    partial.version = version
    partial.table = move.target


def branch(
    accessor: SharedBufferAccessor,
    partial: ComputationState,
    step: Step,
    entry: LockableEvent | None,
    event: Any,
    final: StateTable | None,
    successors: Successors,
) -> None:
    """
    Add what a partial match becomes to the partial matches and the matches.

    Each successor locks its node under its own version before the old version is released.

    Ports the second half of ``NFA.computeNextStates`` (Flink 2.3.0).
    """
    before, old = partial.previous_node, partial.version
    began = partial.start_event_id
    if began is None:
        began = _NEWEST if entry is None else entry.event_id
    stays: Move | None = None
    for move in step.moves:
        if move.stays:
            stays = move
            successors.following.append(partial)
            continue
        version, node = old.increase(move.increase), before
        if move.completes and final is None:
            events = accessor.materialize_match(before, version)
            if move.takes:
                events.setdefault(move.stage, []).append(event)
            successors.found.append(FoundMatch(began, events))
            if not move.continues:
                continue
        if move.takes:
            assert entry is not None
            node = accessor.put(move.stage, entry, before, version)
        assert node is not None
        if move.adds_stage:
            version = version.add_stage()
        if move.continues:
            accessor.lock_node(node, version)
            successors.following.append(ComputationState(move.target, version, began, node))
        if move.completes and final is not None:
            accessor.lock_node(node, version)
            successors.completed.append(ComputationState(final, version, began, node))
    if stays is not None:
        partial.version = old.increase(stays.increase)
        if before is not None:
            accessor.relabel(before, old, partial.version)
    elif before is not None:
        accessor.release_node(before, old)


def release(accessor: SharedBufferAccessor, partial: ComputationState) -> None:
    """Release what a partial match holds in the buffer."""
    if partial.previous_node is not None:
        accessor.release_node(partial.previous_node, partial.version)
