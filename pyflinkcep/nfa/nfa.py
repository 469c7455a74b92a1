# SPDX-License-Identifier: Apache-2.0
"""The automaton: advances the partial matches of a key by one event or by time."""

from __future__ import annotations

from typing import Any

import attrs

from pyflinkcep.nfa.emission import EventMatch, FoundMatch, emit, emit_at_once
from pyflinkcep.nfa.evaluation import EventEvaluation
from pyflinkcep.nfa.nfa_state import NEVER, ComputationState, NFAState
from pyflinkcep.nfa.state_sets import Plan, Situations
from pyflinkcep.nfa.steps import Ask, Atom, Move, StateTable, Step
from pyflinkcep.pattern.aftermatch import AfterMatchSkipStrategy
from pyflinkcep.runtime import RichFunction, RuntimeContext
from pyflinkcep.sharedbuffer import DeweyNumber, EventId, LockableEvent, SharedBufferAccessor

__all__ = ["NFA", "TimedOut"]

_NEWEST = EventId(NEVER, 0)
"""Stands for the id of an event that no partial match goes on with."""

TimedOut = tuple[EventMatch, int]
"""A timed-out partial match, and the end of its window in epoch milliseconds."""


@attrs.frozen(eq=False)
class NFA:
    """
    A compiled pattern. It never changes while it runs; see :class:`NFAState` for what does.

    Attributes
    ----------
    tables : dict of str to StateTable
        The states by internal name.
    start : StateTable
        The start state.
    final : StateTable
        The final state.
    atoms : tuple of Atom
        The users' conditions.
    window_time : int, milliseconds
        The longest time from first to last event, 0 for any.
    window_times : dict of str to int
        The longest gap before a state's event, in milliseconds, by internal name.
    handle_timeout : bool
        Whether timed-out partial matches are wanted.
    skip_strategy : AfterMatchSkipStrategy
        What a match makes superfluous.
    description : str
        The pattern in one line.
    skips : bool
        Whether the skip strategy ever discards anything.

    Notes
    -----
    Ports ``org.apache.flink.cep.nfa.NFA`` (Flink 2.3.0), an NFA with a shared versioned match
    buffer. Not ported: the quadratic clean-up after each event, whose result Flink ignores.

    References
    ----------
    Agrawal, Diao, Gyllstrom, Immerman: Efficient Pattern Matching over Event Streams,
    SIGMOD 2008.
    """

    tables: dict[str, StateTable]
    start: StateTable
    final: StateTable
    atoms: tuple[Atom, ...]
    window_time: int
    window_times: dict[str, int]
    handle_timeout: bool
    skip_strategy: AfterMatchSkipStrategy
    description: str
    skips: bool = attrs.field(init=False)
    _situations: dict[int, Situations] = attrs.field(factory=dict, init=False, repr=False)

    @skips.default
    def _has_skip_strategy(self) -> bool:
        return self.skip_strategy.isSkipStrategy()

    def create_initial_state(self) -> NFAState:
        """Make the state of a key that has seen nothing."""
        return NFAState([ComputationState(self.start, DeweyNumber.of([1]))], deadline=NEVER)

    def situations(self, known: int) -> Situations:
        """Give the situations for runs in which the conditions of these bits are known."""
        situations = self._situations.get(known)
        if situations is None:
            situations = self._situations[known] = Situations(self.start, known)
        return situations

    def open(self, context: RuntimeContext) -> None:
        """Open the conditions that have a life cycle, once for every transition."""
        for condition in self._rich_conditions():
            condition.setRuntimeContext(context)
            condition.open(context)

    def close(self) -> None:
        """Close the conditions that have a life cycle."""
        for condition in self._rich_conditions():
            condition.close()

    def _rich_conditions(self) -> list[RichFunction]:
        conditions: list[object] = [
            t.condition for table in self.tables.values() for t in table.state.transitions
        ]
        return [condition for condition in conditions if isinstance(condition, RichFunction)]

    # --- time

    def advance_time(
        self, accessor: SharedBufferAccessor, state: NFAState, timestamp: int
    ) -> tuple[list[EventMatch], list[TimedOut]]:
        """
        End the partial matches whose window has passed.

        Parameters
        ----------
        accessor : SharedBufferAccessor
            The key's buffer.
        state : NFAState
            The key's state; changed in place.
        timestamp : int, epoch milliseconds
            The time that is reached. A window is over when it has exactly passed.

        Returns
        -------
        tuple of list
            Matches that were waiting for time to pass, and the timed-out partial matches
            with the end of their window (none of these without `handle_timeout`).
        """
        if timestamp < state.deadline:
            return [], []
        partials = state.partialMatches
        kept: list[ComputationState] = []
        pending: list[ComputationState] = []
        timed_out: list[TimedOut] = []
        for partial in partials:
            if timestamp < self._deadline(partial):
                kept.append(partial)
                continue
            node = partial.previousBufferEntry
            assert node is not None
            if partial.table.is_pending:
                pending.append(partial)
                continue
            if self.handle_timeout:
                match = accessor.materialize_match(node, partial.version)
                timed_out.append((match, self._passed_deadline(partial, timestamp)))
            accessor.release_node(node, partial.version)
        state.deadline = self.first_deadline(kept)
        if len(kept) == len(partials):
            return [], []
        state.stateChanged = True
        state.partialMatches = kept
        state.situation = None
        if self.skips:
            return emit(self, accessor, state, pending), timed_out
        found = []
        for partial in pending:
            node, start = partial.previousBufferEntry, partial.startEventID
            assert node is not None
            assert start is not None
            found.append(FoundMatch(start, accessor.materialize_match(node, partial.version)))
            accessor.release_node(node, partial.version)
        return emit_at_once(found), timed_out

    def _deadline(self, partial: ComputationState) -> int:
        """Give when the first of the windows of a partial match ends."""
        start, node = partial.startEventID, partial.previousBufferEntry
        if start is None or node is None:
            return NEVER
        window, gap = self.window_time, partial.table.gap_ms
        by_first = start.timestamp + window if window > 0 else NEVER
        return by_first if gap <= 0 else min(by_first, node.entry.eventId.timestamp + gap)

    def _passed_deadline(self, partial: ComputationState, timestamp: int) -> int:
        """Give the end of the window that is over; the gap's, where both are over."""
        start, node = partial.startEventID, partial.previousBufferEntry
        assert start is not None
        assert node is not None
        gap_end = node.entry.eventId.timestamp + partial.table.gap_ms
        over = partial.table.gap_ms > 0 and timestamp >= gap_end
        return gap_end if over else start.timestamp + self.window_time

    def first_deadline(self, partials: list[ComputationState]) -> int:
        """Give the first end of a window."""
        if self.window_times:
            return min(map(self._deadline, partials))
        return self._deadline(partials[0])

    def drop_oldest(self, accessor: SharedBufferAccessor, state: NFAState, count: int) -> None:
        """Drop the `count` partial matches that began first."""
        partials = state.partialMatches
        for partial in partials[:count]:
            _release(accessor, partial)
        state.partialMatches = partials[count:]
        state.situation = None
        state.deadline = self.first_deadline(state.partialMatches)

    # --- events

    def process(
        self,
        accessor: SharedBufferAccessor,
        state: NFAState,
        timestamp: int,
        evaluation: EventEvaluation,
        event: Any,
    ) -> list[EventMatch]:
        """
        Show an event to every partial match; call :meth:`advance_time` first.

        Parameters
        ----------
        accessor : SharedBufferAccessor
            The key's buffer.
        state : NFAState
            The key's state; changed in place.
        timestamp : int, epoch milliseconds
            The event's time.
        evaluation : EventEvaluation
            The conditions' answers for this event.
        event : object
            What the buffer is to hold for the event.

        Returns
        -------
        list of dict
            The matches completed, in Flink's order.
        """
        situation = self.situations(evaluation.always_known).of_state(state)
        plan = situation.decide(evaluation)
        if plan.passes:
            return []
        return self.apply(plan, accessor, state, timestamp, evaluation, event)

    def apply(
        self,
        plan: Plan,
        accessor: SharedBufferAccessor,
        state: NFAState,
        timestamp: int,
        evaluation: EventEvaluation,
        event: Any,
    ) -> list[EventMatch]:
        """Do what an event does, by the plan for it; see :meth:`process`."""
        if plan.begins is not None:
            self._begin(plan.begins, accessor, state, timestamp, event)
            state.situation = plan.following
            return []
        steps, start = plan.steps, self.start
        following: list[ComputationState] = []
        completed: list[ComputationState] = []
        found: list[FoundMatch] = []
        entry: LockableEvent | None = None
        changed = False
        for partial in state.partialMatches:
            step = steps[partial.table]
            if step.__class__ is Ask:
                step = evaluation.decide(partial, step)
            if step.keeps:
                following.append(partial)
                continue
            changed = True
            if entry is None and (step.keeps_event or (self.skips and step.takes)):
                entry = accessor.register_event(event, timestamp)
            move = step.single
            if move is not None:
                _move(accessor, partial, move, entry)
                following.append(partial)
                continue
            if partial.table is start and timestamp > 0:
                state.isNewStartPartialMatch = True
            self._branch(accessor, partial, step, entry, event, following, completed, found)
        if not changed:
            return []
        state.stateChanged = True
        state.partialMatches = following
        state.situation = plan.following
        state.deadline = self.first_deadline(following)
        matches = emit_at_once(found) if found else []
        if completed or state.completedMatches:
            matches = emit(self, accessor, state, completed)
        if entry is not None:
            accessor.release_event(entry)
        return matches

    def _begin(
        self,
        step: Step,
        accessor: SharedBufferAccessor,
        state: NFAState,
        timestamp: int,
        event: Any,
    ) -> None:
        """Begin partial matches; the others stay as they are."""
        partials = state.partialMatches
        start = partials.pop()
        entry = accessor.register_event(event, timestamp)
        for move in step.moves:
            version = start.version.increase(move.increase)
            if move.stays:
                start.version = version
                partials.append(start)
                continue
            following = version.add_stage()
            node = accessor.extend(move.stage, entry, None, version, following)
            partial = ComputationState(move.target, following, entry.eventId, node)
            partials.append(partial)
            deadline = self._deadline(partial)
            if deadline < state.deadline:
                state.deadline = deadline
        accessor.release_event(entry)
        state.stateChanged = True
        if timestamp > 0:
            state.isNewStartPartialMatch = True

    def _branch(
        self,
        accessor: SharedBufferAccessor,
        partial: ComputationState,
        step: Step,
        entry: LockableEvent | None,
        event: Any,
        following: list[ComputationState],
        completed: list[ComputationState],
        found: list[FoundMatch],
    ) -> None:
        """
        Add what a partial match becomes to the partial matches and the matches.

        Each successor locks its node under its own version before the old version is released.
        """
        before, old, start = partial.previousBufferEntry, partial.version, partial.startEventID
        stays: Move | None = None
        for move in step.moves:
            if move.stays:
                stays = move
                following.append(partial)
                continue
            version, node = old.increase(move.increase), before
            began = start
            if began is None:
                began = _NEWEST if entry is None else entry.eventId
            if move.completes and not self.skips:
                events = accessor.materialize_match(before, version)
                if move.takes:
                    events.setdefault(move.stage, []).append(event)
                found.append(FoundMatch(began, events))
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
                following.append(ComputationState(move.target, version, began, node))
            if move.completes and self.skips:
                accessor.lock_node(node, version)
                completed.append(ComputationState(self.final, version, began, node))
        if stays is not None:
            partial.version = old.increase(stays.increase)
            if before is not None:
                accessor.relabel(before, old, partial.version)
        elif before is not None:
            accessor.release_node(before, old)


def _release(accessor: SharedBufferAccessor, partial: ComputationState) -> None:
    """Give back what a partial match holds in the buffer."""
    if partial.previousBufferEntry is not None:
        accessor.release_node(partial.previousBufferEntry, partial.version)


def _move(
    accessor: SharedBufferAccessor,
    partial: ComputationState,
    move: Move,
    entry: LockableEvent | None,
) -> None:
    """Let a partial match go on to one other state."""
    node, old = partial.previousBufferEntry, partial.version
    assert node is not None
    version: DeweyNumber = old.increase(move.increase).add_stage()
    if move.takes:  # the only take, so that the version did not grow before it
        assert entry is not None
        node = accessor.extend(move.stage, entry, node, old, version)
        partial.previousBufferEntry = node
    else:
        accessor.relabel(node, old, version)
    partial.version = version
    partial.table = move.target
