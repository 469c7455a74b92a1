# SPDX-License-Identifier: Apache-2.0
"""The effect of a step on the buffer and the partial matches of a key.

Specifies ``kernel/src/flink/partials.c``; they must be changed together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from pyflinkcep.engines.flink.nfa.emission import EventMatch, FoundMatch
from pyflinkcep.engines.flink.nfa.nfa_state import NEVER, ComputationState
from pyflinkcep.engines.flink.nfa.steps import Move, StateTable, Step
from pyflinkcep.engines.flink.sharedbuffer import (
    DeweyNumber,
    EventId,
    LockableEvent,
    SharedBufferAccessor,
)


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
        """Return when the first window of partial matches, ordered by start, ends."""
        if self.has_gaps:
            return min(map(self.deadline, partials))
        return self.deadline(partials[0])


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
