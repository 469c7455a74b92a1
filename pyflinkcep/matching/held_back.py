# SPDX-License-Identifier: Apache-2.0
"""How far behind the watermark the events of a match can be when it is emitted."""

from __future__ import annotations

import attrs

from pyflinkcep.engines.flink.nfa import NFA, StateTransitionAction
from pyflinkcep.engines.flink.nfa.state import StateTable
from pyflinkcep.engines.latest.machine import LatestRule
from pyflinkcep.sase.model import Query


@attrs.frozen
class HeldBack:
    """How far behind the watermark before it the times in a row of output can be."""

    events_ms: int | None  # That of the match's events; None if there is no bound
    time_ms: int | None = 0  # That of ``matchTimestamp``

    @classmethod
    def by_pattern(cls, nfa: NFA, *, of_query: bool = False) -> HeldBack:
        """Return that of a pattern, or of a query that runs as a pattern."""
        # A match is emitted by the event that completes it, by the end of its window, or by the end
        # of a partial match that began before it; whichever it is, its window is not over before.
        # The time of a match is the end of that wait, but for a query the time of its last event.
        longest = nfa.window_time or _gaps(nfa)
        return cls(longest, longest if of_query and may_wait(nfa) else 0)

    @classmethod
    def by_latest(cls, rule: LatestRule) -> HeldBack:
        """Return that of a rule of which the latest runs live."""
        return cls(rule.maxspan, rule.maxspan if rule.trails else 0)

    @classmethod
    def by_query(cls, query: Query, output: str, *, compressed: bool = False) -> HeldBack:
        """Return that of a query."""
        # A match that later events may undo, or which may not be the first of its start, waits for
        # the end of its window; compressed ones for the end of a window that begins with their
        # last.
        waits = query.looks_ahead or output != "all"
        if query.window is None:
            return cls(None, None if waits else 0)
        windows = 2 if compressed and query.looks_ahead else 1
        return cls(windows * query.window, query.window if waits else 0)


def may_wait(nfa: NFA) -> bool:
    """Whether a match of a pattern may wait for time to pass after its last event."""
    return nfa.skips or any(table.is_pending for table in nfa.tables.values())


def _gaps(nfa: NFA) -> int | None:
    """Return the sum of the gaps of a pattern that bounds each of them and does not loop."""
    gaps: dict[str, int | None] = {}

    def is_bounded(table: StateTable) -> bool:
        if table.is_stop or table.is_final:
            return True
        if table.name in gaps:
            return gaps[table.name] is not None  # a state that is not done leads back to itself
        gaps[table.name] = None
        if table is not nfa.start and table.gap_ms <= 0:
            return False
        edges = table.state.transitions
        onward = [edge for edge in edges if edge.action is not StateTransitionAction.IGNORE]
        if not all(is_bounded(table.tables[edge.target]) for edge in onward):
            return False
        gaps[table.name] = 0 if table is nfa.start else table.gap_ms
        return True

    return sum(gap or 0 for gap in gaps.values()) if is_bounded(nfa.start) else None
