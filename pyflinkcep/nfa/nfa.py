# SPDX-License-Identifier: Apache-2.0
"""The automaton: advances the partial matches of a key by one event or by time."""

from __future__ import annotations

from typing import Any

import attrs

from pyflinkcep.nfa.evaluation import EventEvaluation
from pyflinkcep.nfa.heap import heap_add, heap_poll, heap_remove_if
from pyflinkcep.nfa.nfa_state import ComputationState, NFAState, start_event_id
from pyflinkcep.nfa.steps import Atom, Move, StateTable, Step
from pyflinkcep.pattern.aftermatch import AfterMatchSkipStrategy
from pyflinkcep.runtime import RichFunction, RuntimeContext
from pyflinkcep.sharedbuffer import (
    DeweyNumber,
    LockableEvent,
    SharedBufferAccessor,
)

__all__ = ["NFA", "EventMatch", "TimedOut"]

EventMatch = dict[str, list[Any]]
"""A match as the buffer holds it: stage name to events, or to handles of events."""

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

    def create_initial_state(self) -> NFAState:
        """Make the state of a key that has seen nothing."""
        return NFAState([ComputationState(self.start, DeweyNumber((1,)))])

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
        buffer = accessor.buffer
        if buffer.eventCounts:
            buffer.advance_time(timestamp)
        partials = state.partialMatches
        if len(partials) == 1 and not state.completedMatches:
            return [], []
        window = self.window_time
        if not self.window_times and (
            window <= 0 or timestamp - partials[0].startTimestamp < window or len(partials) == 1
        ):
            return [], []
        kept: list[ComputationState] = []
        pending: list[ComputationState] = []
        timed_out: list[TimedOut] = []
        for partial in partials:
            deadline = self._passed_deadline(partial, timestamp)
            if deadline is None:
                kept.append(partial)
            elif partial.table.is_pending:
                pending.append(partial)
            else:
                node = partial.previousBufferEntry
                assert node is not None
                if self.handle_timeout:
                    path = accessor.extract_patterns(node, partial.version)[0]
                    timed_out.append((_materialize(path), deadline))
                accessor.release_node(node, partial.version)
        if len(kept) == len(partials):
            return [], []
        state.stateChanged = True
        state.partialMatches = kept
        return self._emit(accessor, state, pending), timed_out

    def _passed_deadline(self, partial: ComputationState, timestamp: int) -> int | None:
        """Give the end of the window that is over, None while every window is open."""
        if partial.startEventID is None:
            return None
        gap = partial.table.gap_ms
        if gap > 0 and timestamp - partial.previousTimestamp >= gap:
            return partial.previousTimestamp + gap
        window = self.window_time
        if window > 0 and timestamp - partial.startTimestamp >= window:
            return partial.startTimestamp + window
        return None

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
        following: list[ComputationState] = []
        completed: list[ComputationState] = []
        entry: LockableEvent | None = None
        changed = False
        for partial in state.partialMatches:
            step = evaluation.decide(partial)
            if step.keeps:
                following.append(partial)
                continue
            changed = True
            if entry is None and any(move.takes for move in step.moves):
                entry = accessor.register_event(event, timestamp)
            successors = self._successors(accessor, partial, step, entry, timestamp)
            if partial.table is self.start and len(successors) > 1 and timestamp > 0:
                state.isNewStartPartialMatch = True
            retained = [s for s in successors if not s.table.is_final and not s.table.is_stop]
            completed += [s for s in successors if s.table.is_final]
            stops = [s for s in successors if s.table.is_stop]
            if stops:
                for successor in stops + retained:
                    _release(accessor, successor)
            else:
                following += retained
        if not changed:
            return []
        state.stateChanged = True
        state.partialMatches = following
        matches = self._emit(accessor, state, completed)
        if entry is not None:
            accessor.release_event(entry)
        return matches

    def _successors(
        self,
        accessor: SharedBufferAccessor,
        partial: ComputationState,
        step: Step,
        entry: LockableEvent | None,
        timestamp: int,
    ) -> list[ComputationState]:
        """Give the states that a partial match goes on to; the start state also to itself."""
        successors = []
        for move in step.moves:
            if move.takes:
                assert entry is not None
                successor = self._take(accessor, partial, move, entry, timestamp)
            else:
                successor = self._ignore(accessor, partial, move)
            successors.append(successor)
            if move.reaches_final:
                successors.append(self._finish(accessor, successor))
        if partial.table is self.start:
            version = partial.version.increase(step.start_increase)
            successors.append(ComputationState(self.start, version))
        _release(accessor, partial)
        return successors

    def _take(
        self,
        accessor: SharedBufferAccessor,
        partial: ComputationState,
        move: Move,
        entry: LockableEvent,
        timestamp: int,
    ) -> ComputationState:
        """Make the partial match that has taken the event."""
        version = partial.version.increase(move.increase)
        node = accessor.put(move.stage, entry, partial.previousBufferEntry, version)
        version = version.add_stage()
        accessor.lock_node(node, version)
        if partial.startEventID is None:
            return ComputationState(move.target, version, timestamp, timestamp, node, entry.eventId)
        return ComputationState(
            move.target, version, partial.startTimestamp, timestamp, node, partial.startEventID
        )

    def _ignore(
        self, accessor: SharedBufferAccessor, partial: ComputationState, move: Move
    ) -> ComputationState:
        """Make the partial match that has passed the event by."""
        version = partial.version.increase(move.increase)
        if move.adds_stage:
            version = version.add_stage()
        node = partial.previousBufferEntry
        assert node is not None
        accessor.lock_node(node, version)
        return ComputationState(
            move.target,
            version,
            partial.startTimestamp,
            partial.previousTimestamp,
            node,
            partial.startEventID,
        )

    def _finish(
        self, accessor: SharedBufferAccessor, successor: ComputationState
    ) -> ComputationState:
        """Make the match of a partial match whose remaining stages may stay empty."""
        node = successor.previousBufferEntry
        assert node is not None
        accessor.lock_node(node, successor.version)
        return attrs.evolve(successor, table=self.final)

    # --- matches

    def _emit(
        self,
        accessor: SharedBufferAccessor,
        state: NFAState,
        completed: list[ComputationState],
    ) -> list[EventMatch]:
        """
        Emit the matches that may be emitted, earliest start first.

        With a skip strategy, a match waits while a partial match with an earlier start lives,
        and each emitted match prunes what it makes superfluous.
        """
        waiting, skip = state.completedMatches, self.skip_strategy
        for match in completed:
            heap_add(waiting, match, start_event_id)
        skips = skip.isSkipStrategy()
        matches = []
        while waiting:
            first = waiting[0].startEventID
            if skips:
                earliest = state.partialMatches[0].startEventID
                if earliest is not None and first is not None and earliest < first:
                    break
            match = heap_poll(waiting, start_event_id)
            node = match.previousBufferEntry
            assert node is not None
            paths = accessor.extract_patterns(node, match.version)
            if skips:
                self._prune(accessor, state, paths)
            matches.append(_materialize(paths[0]))
            accessor.release_node(node, match.version)
        return matches

    def _prune(
        self,
        accessor: SharedBufferAccessor,
        state: NFAState,
        paths: list[dict[str, list[LockableEvent]]],
    ) -> None:
        """Drop the partial matches and waiting matches that an emitted match makes superfluous."""
        skip = self.skip_strategy
        pruning_id = skip.pruning_id(
            [{stage: [e.eventId for e in path[stage]] for stage in path} for path in paths]
        )
        if pruning_id is None:
            return

        def superfluous(candidate: ComputationState) -> bool:
            start = candidate.startEventID
            if start is None or not skip.should_prune(start, pruning_id):
                return False
            _release(accessor, candidate)
            return True

        state.partialMatches = [p for p in state.partialMatches if not superfluous(p)]
        heap_remove_if(state.completedMatches, superfluous, start_event_id)


def _release(accessor: SharedBufferAccessor, state: ComputationState) -> None:
    if state.previousBufferEntry is not None:
        accessor.release_node(state.previousBufferEntry, state.version)


def _materialize(path: dict[str, list[LockableEvent]]) -> EventMatch:
    return {stage: [entry.event for entry in entries] for stage, entries in path.items()}
