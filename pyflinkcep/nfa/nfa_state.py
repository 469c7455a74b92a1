# SPDX-License-Identifier: Apache-2.0
"""The run state of one key: its partial matches, and matches that wait to be emitted."""

from __future__ import annotations

from typing import Any

import attrs

from pyflinkcep.nfa.steps import StateTable
from pyflinkcep.sharedbuffer import DeweyNumber, EventId, SharedBufferNode

__all__ = ["ComputationState", "NFAState", "start_event_id"]


@attrs.define(eq=False)
class ComputationState:
    """
    One partial match: where it stands in the pattern and in the buffer.

    Attributes
    ----------
    table : StateTable
        The state it is in.
    version : DeweyNumber
        The version that marks its path in the buffer.
    startTimestamp : int, epoch milliseconds
        The time of its first event, -1 for the start state.
    previousTimestamp : int, epoch milliseconds
        The time of its last event, -1 for the start state.
    previousBufferEntry : SharedBufferNode or None
        Its last event in the buffer, None for the start state.
    startEventID : EventId or None
        Its first event, None for the start state.

    Notes
    -----
    Ports ``org.apache.flink.cep.nfa.ComputationState`` (Flink 2.3.0).
    """

    table: StateTable
    version: DeweyNumber
    startTimestamp: int = -1
    previousTimestamp: int = -1
    previousBufferEntry: SharedBufferNode | None = None
    startEventID: EventId | None = None


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

    Notes
    -----
    Ports ``org.apache.flink.cep.nfa.NFAState`` (Flink 2.3.0).
    """

    partialMatches: list[ComputationState]
    completedMatches: list[ComputationState] = attrs.field(factory=list)
    stateChanged: bool = False
    isNewStartPartialMatch: bool = False

    def is_initial(self) -> bool:
        """Say whether only the start state is left and no match waits."""
        return len(self.partialMatches) == 1 and not self.completedMatches

    def reset_flags(self) -> None:
        """Forget what changed."""
        self.stateChanged = False
        self.isNewStartPartialMatch = False
