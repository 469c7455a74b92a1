# SPDX-License-Identifier: Apache-2.0
"""The run state of one key: its partial matches, and matches waiting to be emitted."""

from __future__ import annotations

from collections.abc import Iterable
from operator import add
from typing import Any

import attrs

from pyflinkcep.engines.flink.nfa.steps import StateTable
from pyflinkcep.engines.flink.sharedbuffer import DeweyNumber, EventId, SharedBufferNode

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
