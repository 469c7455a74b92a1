# SPDX-License-Identifier: Apache-2.0
"""An automaton that tells a watcher what it does, for traces; it decides nothing itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import attrs

from pyflinkcep.engines.flink.nfa.atoms import Atom
from pyflinkcep.engines.flink.nfa.emission import EventMatch
from pyflinkcep.engines.flink.nfa.evaluation import EventEvaluation, Expressions
from pyflinkcep.engines.flink.nfa.moves import Successors, begin, branch, move_on
from pyflinkcep.engines.flink.nfa.nfa import NFA, TimedOut
from pyflinkcep.engines.flink.nfa.nfa_state import ComputationState, NFAState
from pyflinkcep.engines.flink.nfa.steps import Move, StateTable, Step
from pyflinkcep.engines.flink.nfa.windows import Windows
from pyflinkcep.engines.flink.sharedbuffer import (
    DeweyNumber,
    LockableEvent,
    SharedBufferAccessor,
    SharedBufferNode,
)

__all__ = ["Continuation", "Watched", "Watcher"]


@attrs.frozen(eq=False)
class Continuation:
    """
    What one move made of a partial match.

    Attributes
    ----------
    move : Move
        The move.
    partial : ComputationState or None
        The partial match that goes on; None if none does.
    completed : ComputationState or dict or None
        The match, as the automaton has it: one that may wait, or its events.
    """

    move: Move
    partial: ComputationState | None
    completed: ComputationState | EventMatch | None = None


class Watcher(Protocol):
    """Receives what a watched automaton does, in the order in which it does it."""

    def comes(self, event: Any, timestamp: int) -> None:
        """Receive that an event is about to be processed."""

    def answered(
        self, atom: Atom, holds: bool, node: SharedBufferNode | None, version: DeweyNumber | None
    ) -> None:
        """Receive a condition's answer; node and version tell for which partial match."""

    def began(self, partials: Sequence[Continuation]) -> None:
        """Receive the partial matches, and matches, that an event begins."""

    def went_on(
        self, partial: ComputationState, before: ComputationState, made: Sequence[Continuation]
    ) -> None:
        """Receive a partial match, as it was before, and what it became; nothing if it ended."""

    def done(self, partials: Sequence[ComputationState]) -> None:
        """Receive the partial matches after an event."""

    def timed_out(self, partial: ComputationState, end: int) -> None:
        """Receive that a partial match's window has ended, at a time in epoch milliseconds."""

    def waited(self, partial: ComputationState) -> None:
        """Receive that a partial match is a match, for its window passed without a NOT stage."""

    def dropped(self, partials: Sequence[ComputationState]) -> None:
        """Receive the partial matches that the limit drops."""

    def emitted(
        self,
        matches: Sequence[EventMatch],
        gone: Sequence[ComputationState],
        waiting: Sequence[ComputationState],
        partials: Sequence[ComputationState],
        left: Sequence[ComputationState],
    ) -> None:
        """
        Receive what is emitted.

        Parameters
        ----------
        matches : sequence of dict
            The emitted matches, in order.
        gone : sequence of ComputationState
            The matches that wait no more: emitted, or discarded by the skip strategy.
        waiting : sequence of ComputationState
            The matches that still wait.
        partials : sequence of ComputationState
            The partial matches that the skip strategy has discarded.
        left : sequence of ComputationState
            Those that go on, by their first event.
        """


class _Evaluation(EventEvaluation):
    """Tells the watcher of each answer."""

    __slots__ = ("_watcher",)

    _watcher: Watcher

    def _ask(self, atom: Atom) -> bool:
        return self._told(atom, super()._ask(atom))

    def _compute(self, atom: Atom, expressions: Expressions) -> bool:
        return self._told(atom, super()._compute(atom, expressions))

    def _told(self, atom: Atom, holds: bool) -> bool:
        self._watcher.answered(atom, holds, self._node, self._version)
        return holds


@attrs.frozen(eq=False)
class Watched(NFA):
    """
    A compiled pattern that tells a watcher what it does.

    Attributes
    ----------
    watcher : Watcher
        Receives it.

    Notes
    -----
    Each method calls that of :class:`NFA`, and compares what was with what is.
    """

    watcher: Watcher = attrs.field(kw_only=True)

    @classmethod
    def of(cls, nfa: NFA, watcher: Watcher) -> Watched:
        """Return a watched copy of an automaton."""
        given = {field.name: getattr(nfa, field.name) for field in attrs.fields(NFA) if field.init}
        return cls(**given, watcher=watcher)

    def evaluation(
        self,
        view: Callable[[Any], Any] | None = None,
        known: int = 0,
        processing_time: int | None = None,
        expressions: Expressions | None = None,
    ) -> EventEvaluation:
        """Return what evaluates the conditions, watched."""
        made = _Evaluation(view, known, processing_time, expressions)
        made._watcher = self.watcher
        return made

    def process(
        self,
        accessor: SharedBufferAccessor,
        state: NFAState,
        timestamp: int,
        evaluation: EventEvaluation,
        event: Any,
    ) -> list[EventMatch]:
        """Process an event; see :meth:`NFA.process`."""
        self.watcher.comes(event, timestamp)
        matches = super().process(accessor, state, timestamp, evaluation, event)
        self.watcher.done(state.partial_matches)
        return matches

    def advance_time(
        self, accessor: SharedBufferAccessor, state: NFAState, timestamp: int
    ) -> tuple[list[tuple[EventMatch, int]], list[TimedOut]]:
        """End the partial matches whose window has passed; see :meth:`NFA.advance_time`."""
        for partial in state.partial_matches:
            if timestamp >= self.windows.deadline(partial):
                if partial.table.is_pending:
                    self.watcher.waited(partial)
                else:
                    end = self.windows.passed_deadline(partial, timestamp)
                    self.watcher.timed_out(partial, end)
        return super().advance_time(accessor, state, timestamp)

    def drop_oldest(self, accessor: SharedBufferAccessor, state: NFAState, count: int) -> None:
        """Drop the partial matches that began first; see :meth:`NFA.drop_oldest`."""
        self.watcher.dropped(state.partial_matches[:count])
        super().drop_oldest(accessor, state, count)

    # --- steps

    def _begin(
        self,
        step: Step,
        accessor: SharedBufferAccessor,
        state: NFAState,
        windows: Windows,
        event: Any,
        timestamp: int,
    ) -> None:
        before = len(state.partial_matches) - 1  # the start state is last
        begin(step, accessor, state, windows, event, timestamp)
        moves = [move for move in step.moves if not move.stays]
        made = state.partial_matches[before : before + len(moves)]
        self.watcher.began([Continuation(*pair) for pair in zip(moves, made, strict=True)])

    def _move_on(
        self,
        accessor: SharedBufferAccessor,
        partial: ComputationState,
        move: Move,
        entry: LockableEvent | None,
    ) -> None:
        before = _copy(partial)
        move_on(accessor, partial, move, entry)
        self.watcher.went_on(partial, before, [Continuation(move, partial)])

    def _branch(
        self,
        accessor: SharedBufferAccessor,
        partial: ComputationState,
        step: Step,
        entry: LockableEvent | None,
        event: Any,
        final: StateTable | None,
        successors: Successors,
    ) -> None:
        before = _copy(partial)
        following, completed = len(successors.following), len(successors.completed)
        found = len(successors.found)
        branch(accessor, partial, step, entry, event, final, successors)
        partials = iter(successors.following[following:])
        matches: Any = iter([*successors.completed[completed:], *successors.found[found:]])
        made = [
            Continuation(
                move,
                next(partials) if move.continues else None,
                _events(next(matches)) if move.completes else None,
            )
            for move in step.moves
        ]
        if partial.table is self.start:
            self.watcher.began([one for one in made if not one.move.stays])
        else:
            self.watcher.went_on(partial, before, made)

    # --- emission

    def _emit(
        self, accessor: SharedBufferAccessor, state: NFAState, successors: Successors | None
    ) -> list[EventMatch]:
        new = [] if successors is None else successors.completed
        return self._watching(state, new, lambda: NFA._emit(self, accessor, state, successors))

    def _emit_pending(
        self,
        accessor: SharedBufferAccessor,
        state: NFAState,
        pending: list[ComputationState],
        timestamp: int,
    ) -> list[tuple[EventMatch, int]]:
        times: list[int] = []

        def emit() -> list[EventMatch]:
            found = NFA._emit_pending(self, accessor, state, pending, timestamp)
            times.extend(time for _, time in found)
            return [match for match, _ in found]

        return list(zip(self._watching(state, pending, emit), times, strict=True))

    def _watching(
        self,
        state: NFAState,
        completed: Sequence[ComputationState],
        emit: Callable[[], list[EventMatch]],
    ) -> list[EventMatch]:
        partials = list(state.partial_matches)
        before = [*state.completed_matches, *completed]
        matches = emit()
        waiting = list(state.completed_matches)
        gone = _without(before, waiting)
        left = list(state.partial_matches)
        self.watcher.emitted(matches, gone, waiting, _without(partials, left), left)
        return matches


def _copy(partial: ComputationState) -> ComputationState:
    start, node = partial.start_event_id, partial.previous_node
    return ComputationState(partial.table, partial.version, start, node)


def _events(completed: Any) -> Any:
    """Return the events of a match that need not wait, or the match."""
    return getattr(completed, "events", completed)


def _without(
    before: Sequence[ComputationState], after: Sequence[ComputationState]
) -> list[ComputationState]:
    left = set(map(id, after))
    return [state for state in before if id(state) not in left]
