# SPDX-License-Identifier: Apache-2.0
"""What an automaton tells an observer, for traces and funnels; an observer decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from pyflinkcep.engines.flink.nfa.atoms import Atom
from pyflinkcep.engines.flink.nfa.partial_matches import ComputationState, Continuation, EventMatch
from pyflinkcep.engines.flink.sharedbuffer import (
    DeweyNumber,
    SharedBufferAccessor,
    SharedBufferNode,
)


class Observer:
    """Receives what an automaton does, in the order in which it does it."""

    def comes(self, event: Any, timestamp: int) -> None:
        """Receive that an event is about to be processed."""

    def answered(
        self, atom: Atom, holds: bool, node: SharedBufferNode | None, version: DeweyNumber | None
    ) -> None:
        """Receive a condition's answer; node and version tell for which partial match."""

    def began(self, accessor: SharedBufferAccessor, made: Sequence[Continuation]) -> None:
        """Receive the partial matches, and matches, that an event begins."""

    def went_on(
        self,
        accessor: SharedBufferAccessor,
        partial: ComputationState,
        before: ComputationState,
        made: Sequence[Continuation],
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
        Receive the emitted matches, in order, and what that changes.

        `gone` are the matches that wait no more, emitted or discarded by the skip strategy,
        `waiting` those that still do; `partials` are the partial matches that it has discarded,
        and `left` those that go on, by their first event.
        """


@attrs.define(eq=False)
class StageObserver(Observer):
    """
    Tells when a partial match takes its first event for a stage, for funnels.

    A partial match that goes on as several counts as several from then on. Specifies
    ``give_reached`` in ``kernel/src/flink/nfa.c``; they must be changed together.
    """

    # Called with the event's time and what the partial match has taken, this event last.
    reached: Callable[[int, EventMatch], None]
    _event: Any = None
    _time: int = 0

    def comes(self, event: Any, timestamp: int) -> None:
        """Note which event is at work."""
        self._event, self._time = event, timestamp

    def began(self, accessor: SharedBufferAccessor, made: Sequence[Continuation]) -> None:
        """Tell of the first stage."""
        for one in made:
            self.reached(self._time, {one.move.stage: [self._event]})

    def went_on(
        self,
        accessor: SharedBufferAccessor,
        partial: ComputationState,
        before: ComputationState,
        made: Sequence[Continuation],
    ) -> None:
        """Tell of the moves that take an event for a stage of which there was none."""
        node = before.previous_node
        for one in made:
            if not one.move.takes or (node is not None and node.stage == one.move.stage):
                continue
            taken = one.events(accessor)
            if len(taken[one.move.stage]) == 1:
                self.reached(self._time, taken)
