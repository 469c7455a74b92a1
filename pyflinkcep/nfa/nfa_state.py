# SPDX-License-Identifier: Apache-2.0
"""The run state of one key: its partial matches, and matches that wait to be emitted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from pyflinkcep.nfa.steps import StateTable
from pyflinkcep.sharedbuffer import DeweyNumber, EventId, SharedBufferNode

if TYPE_CHECKING:
    from pyflinkcep.nfa.state_sets import Situation

__all__ = ["ALWAYS", "NEVER", "ComputationState", "NFAState", "start_event_id"]

NEVER = 1 << 63
"""A time after that of every event, epoch milliseconds."""

ALWAYS = -NEVER - 1
"""A time before that of every event, epoch milliseconds."""


@attrs.define(eq=False)
class ComputationState:
    """
    One partial match: where it stands in the pattern and in the buffer.

    Attributes
    ----------
    table : StateTable
        The state it is in.
    version : DeweyNumber
        The version that marks its way through the buffer.
    startEventID : EventId or None
        Its first event, None for the start state.
    previousBufferEntry : SharedBufferNode or None
        Its last event in the buffer, None for the start state.

    Notes
    -----
    Ports ``org.apache.flink.cep.nfa.ComputationState`` (Flink 2.3.0). Differs from Flink: it
    changes in place when an event leads to one state only. Its start and previous timestamps
    are those of its first and last event.
    """

    table: StateTable
    version: DeweyNumber
    startEventID: EventId | None = None
    previousBufferEntry: SharedBufferNode | None = None


def start_event_id(state: ComputationState) -> Any:
    """Give what partial matches and matches are ordered by."""
    return state.startEventID


@attrs.define(eq=False)
class NFAState:
    """
    What is kept for a key besides the buffer.

    Attributes
    ----------
    partialMatches : list of ComputationState
        Ordered by start event; the start state, which is always there, comes last.
    completedMatches : list of ComputationState
        A heap by start event: matches that a skip strategy holds back.
    stateChanged : bool
        Whether anything changed since the flag was last reset.
    isNewStartPartialMatch : bool
        Whether a partial match began since the flag was last reset.
    situation : Situation or None
        The states that the partial matches are in; None while nobody has looked.
    deadline : int, epoch milliseconds
        No window ends before that; the default makes the next advance of time look.

    Notes
    -----
    Ports ``org.apache.flink.cep.nfa.NFAState`` (Flink 2.3.0). `situation` and `deadline`
    follow from the partial matches and are no state to be stored.
    """

    partialMatches: list[ComputationState]
    completedMatches: list[ComputationState] = attrs.field(factory=list)
    stateChanged: bool = False
    isNewStartPartialMatch: bool = False
    situation: Situation | None = None
    deadline: int = ALWAYS

    def is_initial(self) -> bool:
        """Say whether only the start state is left and no match waits."""
        return len(self.partialMatches) == 1 and not self.completedMatches

    def reset_flags(self) -> None:
        """Forget what changed."""
        self.stateChanged = False
        self.isNewStartPartialMatch = False
