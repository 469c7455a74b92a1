# SPDX-License-Identifier: Apache-2.0
"""The operators of many keys under one watermark or clock, with their queues of early events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import attrs

from pyflinkcep.engines.flink.operator.cep_operator import CepOperator, KeyState, Output, is_late
from pyflinkcep.time import MAX_WATERMARK, MIN_WATERMARK


class KeyedOutput(Output, Protocol):
    """Receives the results of a keyed operator."""

    def late(self, key: Any, event: Any) -> None:
        """Receive an event that came too late."""


@attrs.define(eq=False)
class KeyContext:
    """The state of a key and its queue."""

    state: KeyState  # Partial matches, their events, and timers
    # Events that wait for the watermark, by time in epoch milliseconds.
    queue: dict[int, list[Any]] = attrs.field(factory=dict)


@attrs.define(eq=False)
class KeyedCepOperator:
    """Flink's keyed operator in memory."""

    operator: CepOperator  # The rules
    output: KeyedOutput  # Receives matches, timeouts and late events
    # A sort key for events of equal time; by default they keep the order of arrival.
    order: Callable[[Any], Any] | None = None
    keys: dict[Any, KeyContext] = attrs.field(factory=dict)  # The keys with anything pending
    watermark: int = MIN_WATERMARK  # The last watermark; in processing time the clock
    # The number of late events; Flink's ``numLateRecordsDropped`` if no output takes them.
    late_dropped: int = 0

    def process_element(self, key: Any, event: Any, timestamp: int) -> None:
        """Process an event."""
        if self.operator.processing_time:
            self._process_now(key, event)
        elif is_late(timestamp, self.watermark):
            self.late_dropped += 1
            self.output.late(key, event)
        else:
            self._context(key).queue.setdefault(timestamp, []).append(event)

    def advance_watermark(self, watermark: int) -> None:
        """Advance the watermark, or the clock, and process everything that waited for it."""
        if watermark <= self.watermark:
            return
        self.watermark = watermark
        due = []
        for number, (key, context) in enumerate(self.keys.items()):
            timers = [self.operator.timer_after(time) for time in context.queue]
            earliest = min([*timers, *context.state.timers], default=None)
            if earliest is not None and earliest <= watermark:
                due.append((earliest, number, key))
        for _, _, key in sorted(due, key=lambda entry: entry[:2]):
            self._on_timer(key)

    def _context(self, key: Any) -> KeyContext:
        context = self.keys.get(key)
        if context is None:
            context = self.keys[key] = KeyContext(self.operator.new_key())
        return context

    def _on_timer(self, key: Any) -> None:
        """Process what waited for the watermark, in order of time, then advance time."""
        context = self.keys[key]
        limit = self.watermark
        for timestamp in sorted(time for time in context.queue if time <= limit):
            events = context.queue.pop(timestamp)
            if self.order is not None:
                events.sort(key=self.order)
            times = [timestamp] * len(events)
            self.operator.process_events(key, context.state, times, events, self.output)
        self.operator.advance_time(key, context.state, limit, self.output)
        self._forget_if_idle(key, context)

    def _process_now(self, key: Any, event: Any) -> None:
        now, context = self.watermark, self._context(key)
        if self.order is not None:
            # Wait for the clock to move on, since events of the same instant must still be ordered.
            context.queue.setdefault(now, []).append(event)
            return
        self.operator.process_events(
            key, context.state, [now], [event], self.output, processing_time=now
        )
        context.state.nfa_state.reset_flags()
        self._forget_if_idle(key, context)

    def _forget_if_idle(self, key: Any, context: KeyContext) -> None:
        if not context.queue and self.operator.is_idle(context.state):
            del self.keys[key]


@attrs.frozen(eq=False)
class Input:
    """Events in the order in which they arrive at a keyed operator in memory."""

    events: Sequence[Any]  # The events, as conditions see them
    times: Sequence[int]  # Their times
    keys: Sequence[Any]  # Their keys, hashable
    # How far the watermark is behind the latest time; None to sort the events first.
    delay: int | None = None
    # A sort key for events of equal time; by default they keep their order.
    order: Callable[[Any], Any] | None = None
    # A key of which later events are left out, and the time of its last one: what is to become of
    # its partial matches after that is not known.
    cut: tuple[Any, int] | None = None

    @property
    def order_of_numbers(self) -> Callable[[int], Any] | None:
        """The order for events that are known by their numbers."""
        order, events = self.order, self.events
        return None if order is None else lambda number: order(events[number])

    def feed(self, keyed: KeyedCepOperator, *, by_number: bool = True) -> None:
        """Let the events arrive, as they are or as their numbers, and then the end."""
        latest: int | None = None
        elements = range(len(self.times)) if by_number else self.events
        for element, time, key in zip(elements, self.times, self.keys, strict=True):
            keyed.process_element(key, element, time)
            latest = time if latest is None else max(latest, time)
            if self.delay is not None:
                # As in Flink: this time may still come.
                keyed.advance_watermark(latest - self.delay - 1)
        if self.cut is not None:
            key, last = self.cut
            keyed.advance_watermark(last)
            keyed.keys.pop(key, None)
        keyed.advance_watermark(MAX_WATERMARK)
