# SPDX-License-Identifier: Apache-2.0
"""Events one by one in the order given, under a watermark, as on a stream: the plain path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from pyflinkcep.engines.flink.nfa import EventMatch, NFACompiler
from pyflinkcep.engines.flink.operator import CepOperator, KeyedCepOperator, PartialMatchLimit
from pyflinkcep.pattern import Pattern
from pyflinkcep.runtime import RuntimeContext
from pyflinkcep.tables.sql import evaluated_here, expressions_over_stages
from pyflinkcep.time import MAX_WATERMARK

__all__ = ["Arrived", "arrived"]


@attrs.define(eq=False)
class Arrived:
    """
    What became of events, in order of emission.

    Attributes
    ----------
    matches, timeouts : list of (int, dict)
        The matches and timeouts, each with its time in epoch milliseconds.
    late : list
        The events behind the watermark.
    count_dropped : int
        The number of partial matches dropped because a key had too many.
    """

    matches: list[tuple[int, EventMatch]] = attrs.field(factory=list)
    timeouts: list[tuple[int, EventMatch]] = attrs.field(factory=list)
    late_events: list[Any] = attrs.field(factory=list)
    count_dropped: int = 0

    def match(self, key: Any, timestamp: int, match: EventMatch) -> None:
        """Receive a match."""
        self.matches.append((timestamp, match))

    def timeout(self, key: Any, timestamp: int, match: EventMatch) -> None:
        """Receive a timed-out partial match."""
        self.timeouts.append((timestamp, match))

    def dropped(self, key: Any, count: int) -> None:
        """Receive how many partial matches were dropped because there were too many."""
        self.count_dropped += count

    def late(self, key: Any, event: Any) -> None:
        """Receive a late event."""
        self.late_events.append(event)


def arrived(
    pattern: Pattern,
    events: Sequence[Any],
    times: Sequence[int],
    keys: Sequence[Any],
    delay: int | None,
    limit: PartialMatchLimit | None,
    order: Callable[[Any], Any] | None = None,
) -> Arrived:
    """
    Match events in the order given.

    Parameters
    ----------
    pattern : Pattern
        The pattern.
    events : sequence
        The events.
    times : sequence of int, epoch milliseconds
        Their times.
    keys : sequence
        Their keys, hashable.
    delay : int, milliseconds, or None
        How far the watermark is behind the latest time; None if it only comes at the end.
    limit : PartialMatchLimit or None
        How many partial matches a key may have.
    order : callable, optional
        A sort key for events of one millisecond; by default they keep the order given.
    """
    nfa = NFACompiler.compile(evaluated_here(pattern, events), timeoutHandling=True)
    nfa.open(RuntimeContext())
    found = Arrived()
    expressions = expressions_over_stages(nfa, events) if events else None
    rules = CepOperator(nfa, limit=limit, expressions=expressions)
    operator = KeyedCepOperator(rules, found, order)
    latest: int | None = None
    for event, time, key in zip(events, times, keys, strict=True):
        operator.process_element(key, event, time)
        latest = time if latest is None else max(latest, time)
        if delay is not None:
            operator.advance_watermark(latest - delay - 1)  # as in Flink: this time may still come
    operator.advance_watermark(MAX_WATERMARK)
    return found
