# SPDX-License-Identifier: Apache-2.0
"""
An automaton that tells when a partial match takes its first event for a stage, for funnels.

Specifies ``give_reached`` in ``kernel/src/flink/nfa.c``; they must be changed together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from pyflinkcep.engines.flink.nfa.emission import EventMatch
from pyflinkcep.engines.flink.nfa.evaluation import EventEvaluation
from pyflinkcep.engines.flink.nfa.moves import Successors, begin, branch, move_on
from pyflinkcep.engines.flink.nfa.nfa import NFA
from pyflinkcep.engines.flink.nfa.nfa_state import ComputationState, NFAState
from pyflinkcep.engines.flink.nfa.steps import Move, StateTable, Step
from pyflinkcep.engines.flink.nfa.windows import Windows
from pyflinkcep.engines.flink.sharedbuffer import LockableEvent, SharedBufferAccessor

__all__ = ["Reaching"]


@attrs.define(eq=False)
class _Now:
    """The time of the event at work."""

    time: int = 0


@attrs.frozen(eq=False)
class Reaching(NFA):
    """
    A compiled pattern that tells of each stage that a partial match reaches.

    Attributes
    ----------
    reached : callable
        Called with the event's time in epoch milliseconds and what the partial match has taken,
        this event last, when it takes its first event for a stage.

    Notes
    -----
    Each method calls that of :class:`NFA`, and decides nothing. A partial match that goes on as
    several counts as several from then on.
    """

    reached: Callable[[int, EventMatch], None] = attrs.field(kw_only=True)
    _now: _Now = attrs.field(factory=_Now, init=False)

    @classmethod
    def of(cls, nfa: NFA, reached: Callable[[int, EventMatch], None]) -> Reaching:
        """Return a copy of an automaton that tells of stages."""
        given = {field.name: getattr(nfa, field.name) for field in attrs.fields(NFA) if field.init}
        return cls(**given, reached=reached)

    def process(
        self,
        accessor: SharedBufferAccessor,
        state: NFAState,
        timestamp: int,
        evaluation: EventEvaluation,
        event: Any,
    ) -> list[EventMatch]:
        """Process an event; see :meth:`NFA.process`."""
        self._now.time = timestamp
        return super().process(accessor, state, timestamp, evaluation, event)

    def _begin(
        self,
        step: Step,
        accessor: SharedBufferAccessor,
        state: NFAState,
        windows: Windows,
        event: Any,
        timestamp: int,
    ) -> None:
        begin(step, accessor, state, windows, event, timestamp)
        for move in step.moves:
            if not move.stays:
                self.reached(timestamp, {move.stage: [event]})

    def _move_on(
        self,
        accessor: SharedBufferAccessor,
        partial: ComputationState,
        move: Move,
        entry: LockableEvent | None,
    ) -> None:
        if entry is not None:
            self._takes(accessor, partial, move, entry.event)
        move_on(accessor, partial, move, entry)

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
        for move in step.moves:
            if not move.stays:
                self._takes(accessor, partial, move, event)
        branch(accessor, partial, step, entry, event, final, successors)

    def _takes(
        self, accessor: SharedBufferAccessor, partial: ComputationState, move: Move, event: Any
    ) -> None:
        """Tell of a move, if it takes an event for a stage that the partial match has none of."""
        node = partial.previous_node
        if not move.takes or (node is not None and node.stage == move.stage):
            return
        version = partial.version.increase(move.increase)
        taken = {} if node is None else accessor.materialize_match(node, version)
        if move.stage not in taken:
            self.reached(self._now.time, {**taken, move.stage: [event]})
