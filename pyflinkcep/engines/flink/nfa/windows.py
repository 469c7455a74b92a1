# SPDX-License-Identifier: Apache-2.0
"""
When the windows of partial matches end.

Specifies ``kernel/src/flink/deadlines.c``; they must be changed together.
"""

from __future__ import annotations

import attrs

from pyflinkcep.engines.flink.nfa.nfa_state import NEVER, ComputationState

__all__ = ["Windows"]


@attrs.frozen
class Windows:
    """
    The windows of a pattern.

    Attributes
    ----------
    length_ms : int, milliseconds
        The longest time from first to last event; 0 for any.
    has_gaps : bool
        Whether some state limits the time since the previous event.

    Notes
    -----
    Ports ``NFA.isStateTimedOut`` (Flink 2.3.0). Windows are half open: a window has ended when
    exactly its length has passed.
    """

    length_ms: int
    has_gaps: bool

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
