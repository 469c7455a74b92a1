# SPDX-License-Identifier: Apache-2.0
"""What matching gives on a worker, before users' functions or Arrow make rows of it."""

from __future__ import annotations

from typing import Any

import attrs

from pyflinkcep.nfa import EventMatch

__all__ = ["Result", "Results"]

Result = tuple[bool, int, EventMatch]
"""(is a match, else a timeout; its time in epoch milliseconds; stage name to event handles)."""


@attrs.define(eq=False)
class Results:
    """
    Collects matches and timeouts in the order in which they come.

    Attributes
    ----------
    wants_timeouts : bool
        Whether timeouts are collected at all.
    found : list of Result
        What came since the last :meth:`clear`.
    dropped_count : int
        How many partial matches were dropped because there were too many.
    """

    wants_timeouts: bool
    found: list[Result] = attrs.field(factory=list)
    dropped_count: int = 0

    def match(self, key: Any, timestamp: int, match: EventMatch) -> None:
        """Receive a match."""
        self.found.append((True, timestamp, match))

    def timeout(self, key: Any, timestamp: int, match: EventMatch) -> None:
        """Receive a timed-out partial match."""
        if self.wants_timeouts:
            self.found.append((False, timestamp, match))

    def dropped(self, key: Any, count: int) -> None:
        """Receive how many partial matches were dropped because there were too many."""
        self.dropped_count += count

    def clear(self) -> None:
        """Forget what was collected."""
        self.found = []
