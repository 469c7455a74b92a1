# SPDX-License-Identifier: Apache-2.0
"""Counts and values of events in windows: the last timespan at each event, or by the calendar."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import attrs

from pyflinkcep.engines.correlations.alerts import Alert, Groups
from pyflinkcep.sigma.correlation import Correlation, Kind

ValueOf = Callable[[int], Any]
"""Returns what a correlation measures of an event; None if there is none."""


@attrs.define
class _Window:
    """The events of a group in the last timespan, and what is known of them together."""

    events: deque[tuple[int, int, Any]] = attrs.field(factory=deque)  # Number, time, value
    values: Counter[Any] = attrs.field(factory=Counter)  # How many have each value
    total: int = 0  # The sum of values, if they are whole numbers
    inexact: int = 0  # How many are not

    def add(self, event: int, time: int, value: Any, kind: Kind) -> None:
        """Add an event."""
        self.events.append((event, time, value))
        self._count(value, kind, 1)

    def drop_before(self, time: int, kind: Kind) -> None:
        """Drop the events before a time."""
        while self.events and self.events[0][1] < time:
            self._count(self.events.popleft()[2], kind, -1)

    def _count(self, value: Any, kind: Kind, change: int) -> None:
        if value is None or kind is Kind.EVENT_COUNT:
            return
        if kind is Kind.VALUE_COUNT:
            self.values[value] += change
            if not self.values[value]:
                del self.values[value]
        elif isinstance(value, int):
            self.total += change * value
        else:
            self.inexact += change

    def number(self, kind: Kind) -> Any:
        """Return what the correlation measures."""
        if kind is Kind.EVENT_COUNT:
            return len(self.events)
        if kind is Kind.VALUE_COUNT:
            return len(self.values)
        if self.inexact:  # in order, for the last digits depend on it
            return sum(value for *_, value in self.events if value is not None)
        return self.total


@attrs.frozen
class SlidingWindows:
    """
    A number that only grows: judged at each event over the last timespan, both ends included.

    An alert uses its events up, so a group keeps fewer than it takes to alert.
    """

    correlation: Correlation
    value_of: ValueOf
    _windows: dict[Hashable, _Window] = attrs.field(init=False, factory=dict)

    def process(self, event: int, time: int, groups: Groups) -> list[Alert]:
        """Return the alerts that an event decides."""
        found, kind = [], self.correlation.kind
        for group, _ in groups:
            window = self._windows.setdefault(group, _Window())
            window.drop_before(time - self.correlation.timespan, kind)
            window.add(event, time, self.value_of(event), kind)
            if self.correlation.holds(window.number(kind)):
                found.append(Alert((event,), time, tuple(own for own, *_ in window.events)))
                del self._windows[group]
        return found

    def advance(self, time: int) -> list[Alert]:
        """Forget windows that no event can add to."""
        past = time - self.correlation.timespan
        for group, window in list(self._windows.items()):
            if window.events[-1][1] < past:
                del self._windows[group]
        return []


@attrs.frozen
class CalendarWindows:
    """Numbers in any bounds: over windows since 1970, judged when they have ended."""

    correlation: Correlation
    value_of: ValueOf
    _windows: dict[int, dict[Hashable, list[tuple[int, int]]]] = attrs.field(
        init=False, factory=dict
    )

    def process(self, event: int, time: int, groups: Groups) -> list[Alert]:
        """Take an event into the window of its time."""
        found = self.advance(time - 1)
        for group, _ in groups:
            window = self._windows.setdefault(time // self.correlation.timespan, {})
            window.setdefault(group, []).append((event, time))
        return found

    def advance(self, time: int) -> list[Alert]:
        """Return the alerts of windows that have ended."""
        found = []
        ended = (time + 1) // self.correlation.timespan
        for number in sorted(number for number in self._windows if number < ended):
            for own in self._windows.pop(number).values():
                events = tuple(event for event, _ in own)
                value = measured(self.correlation, [self.value_of(event) for event in events])
                if value is not None and self.correlation.holds(value):
                    found.append(Alert((number, events[0]), own[-1][1], events))
        return found


def measured(correlation: Correlation, values: Sequence[Any]) -> Any:
    """Return the number of a window's values, None being no value; None if there is no number."""
    kind = correlation.kind
    if kind is Kind.EVENT_COUNT:
        return len(values)
    known = [value for value in values if value is not None]
    if kind is Kind.VALUE_COUNT:
        return len(set(known))
    if kind is Kind.VALUE_SUM:
        return sum(known)
    if not known:
        return None
    if kind is Kind.VALUE_AVG:
        return sum(known) / len(known)
    return _percentile(sorted(map(float, known)), correlation.percentile / 100)


def _percentile(ordered: Sequence[float], share: float) -> float:
    """Return a percentile between the two nearest values, as Spark's ``percentile``."""
    at = (len(ordered) - 1) * share
    low, high = math.floor(at), math.ceil(at)
    if ordered[low] == ordered[high]:
        return ordered[low]
    return (high - at) * ordered[low] + (at - low) * ordered[high]
