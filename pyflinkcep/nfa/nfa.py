# SPDX-License-Identifier: Apache-2.0
"""The automaton: advances the partial matches of a key by one event or by time."""

from __future__ import annotations

from typing import Any

import attrs

from pyflinkcep.nfa.emission import EventMatch, emit
from pyflinkcep.nfa.evaluation import EventEvaluation
from pyflinkcep.nfa.nfa_state import NEVER, ComputationState, NFAState
from pyflinkcep.nfa.situations import Plan, Situations
from pyflinkcep.nfa.steps import Ask, Atom, StateTable, Step
from pyflinkcep.pattern.aftermatch import AfterMatchSkipStrategy
from pyflinkcep.runtime import RichFunction, RuntimeContext
from pyflinkcep.sharedbuffer import EventId, SharedBuffer, SharedBufferNode, materialize_match

__all__ = ["NFA", "TimedOut"]

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
    _situations: dict[int, Situations] = attrs.field(factory=dict, init=False, repr=False)

    def create_initial_state(self) -> NFAState:
        """Make the state of a key that has seen nothing."""
        return NFAState([ComputationState(self.start)], deadline=NEVER)

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
        self, state: NFAState, timestamp: int
    ) -> tuple[list[EventMatch], list[TimedOut]]:
        """
        End the partial matches whose window has passed.

        Parameters
        ----------
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
            elif partial.table.is_pending:
                pending.append(partial)
            elif self.handle_timeout:
                match = materialize_match(partial.previousBufferEntry)
                timed_out.append((match, self._passed_deadline(partial, timestamp)))
        state.deadline = self.first_deadline(kept)
        if len(kept) == len(partials):
            return [], []
        state.stateChanged = True
        state.partialMatches = kept
        state.situation = None
        return emit(self, state, pending), timed_out

    def _deadline(self, partial: ComputationState) -> int:
        """Give when the first of the windows of a partial match ends."""
        start, node = partial.startEventID, partial.previousBufferEntry
        if start is None or node is None:
            return NEVER
        window, gap = self.window_time, partial.table.gap_ms
        by_first = start.timestamp + window if window > 0 else NEVER
        return by_first if gap <= 0 else min(by_first, node.eventId.timestamp + gap)

    def _passed_deadline(self, partial: ComputationState, timestamp: int) -> int:
        """Give the end of the window that is over; the gap's, where both are over."""
        start, node = partial.startEventID, partial.previousBufferEntry
        assert start is not None
        assert node is not None
        gap_end = node.eventId.timestamp + partial.table.gap_ms
        over = partial.table.gap_ms > 0 and timestamp >= gap_end
        return gap_end if over else start.timestamp + self.window_time

    def first_deadline(self, partials: list[ComputationState]) -> int:
        """Give the first end of a window."""
        if self.window_times:
            return min(map(self._deadline, partials))
        return self._deadline(partials[0])

    # --- events

    def process(
        self,
        buffer: SharedBuffer,
        state: NFAState,
        timestamp: int,
        evaluation: EventEvaluation,
        event: Any,
    ) -> list[EventMatch]:
        """
        Show an event to every partial match; call :meth:`advance_time` first.

        Parameters
        ----------
        buffer : SharedBuffer
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
        return [] if plan.passes else self.apply(plan, buffer, state, timestamp, evaluation, event)

    def apply(
        self,
        plan: Plan,
        buffer: SharedBuffer,
        state: NFAState,
        timestamp: int,
        evaluation: EventEvaluation,
        event: Any,
    ) -> list[EventMatch]:
        """Do what an event does, by the plan for it; see :meth:`process`."""
        event_id = buffer.register_event(timestamp)
        if plan.begins is not None:
            self._begin(plan.begins, event_id, event, state)
            state.situation = plan.following
            return []
        steps, start = plan.steps, self.start
        following: list[ComputationState] = []
        completed: list[ComputationState] = []
        changed = False
        for partial in state.partialMatches:
            step = steps[partial.table]
            if step.__class__ is Ask:
                step = evaluation.decide(partial, step)
            if step.keeps:
                following.append(partial)
                continue
            changed = True
            move = step.single
            if move is not None:
                if move.takes:
                    partial.previousBufferEntry = SharedBufferNode(
                        move.stage, event_id, event, partial.previousBufferEntry
                    )
                partial.table = move.target
                following.append(partial)
                continue
            if partial.table is start and timestamp > 0:
                state.isNewStartPartialMatch = True
            self._branch(partial, step, event_id, event, following, completed)
        if not changed:
            return []
        state.stateChanged = True
        state.partialMatches = following
        state.situation = plan.following
        state.deadline = self.first_deadline(following)
        if not completed and not state.completedMatches:
            return []
        return emit(self, state, completed)

    def _begin(self, step: Step, event_id: EventId, event: Any, state: NFAState) -> None:
        """Begin partial matches; the others stay as they are."""
        partials = state.partialMatches
        start = partials.pop()
        for move in step.moves:
            node = SharedBufferNode(move.stage, event_id, event, None)
            partial = ComputationState(move.target, event_id, node)
            partials.append(partial)
            deadline = self._deadline(partial)
            if deadline < state.deadline:
                state.deadline = deadline
        partials.append(start)
        state.stateChanged = True
        if event_id.timestamp > 0:
            state.isNewStartPartialMatch = True

    def _branch(
        self,
        partial: ComputationState,
        step: Step,
        event_id: EventId,
        event: Any,
        following: list[ComputationState],
        completed: list[ComputationState],
    ) -> None:
        """Add what a partial match becomes to the partial matches and the matches."""
        before, start = partial.previousBufferEntry, partial.startEventID
        if start is None:
            start = event_id
        for move in step.moves:
            if move.stays:
                following.append(partial)
                continue
            node = before
            if move.takes:
                node = SharedBufferNode(move.stage, event_id, event, before)
            if move.continues:
                following.append(ComputationState(move.target, start, node))
            if move.completes:
                completed.append(ComputationState(self.final, start, node))
