# SPDX-License-Identifier: Apache-2.0
"""Sigma correlations over events whose rules are known: counts in windows, and rules together."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from heapq import heappop, heappush
from typing import Any, NamedTuple, Protocol

import attrs

from pyflinkcep.engines.latest.machine import (
    END,
    NEVER,
    KeyState,
    LatestMachine,
    LatestMatch,
    LatestRule,
    Offer,
)
from pyflinkcep.expressions.aggregates import percentile
from pyflinkcep.sigma.condition import Alternative
from pyflinkcep.sigma.correlation import Correlation, Kind

Groups = Sequence[tuple[Hashable, frozenset[str]]]
"""The groups of an event, each with the rules that it satisfies there."""


class Alert(NamedTuple):
    """The events of an alert; alerts of a correlation are in the order of `rank`."""

    rank: tuple[int, ...]
    time: int  # That of its last event, in ms
    events: tuple[int, ...]  # Their numbers, in order


class GroupState(NamedTuple):
    """What a correlation keeps of a group between runs."""

    numbers: list[int]
    events: list[int]  # Their numbers; one may be there several times
    deadline: int  # When time alone has an effect: at the watermark of that time


class Correlating(Protocol):
    """A correlation over events in their final order, numbered from 0."""

    def process(self, event: int, time: int, groups: Groups) -> list[Alert]:
        """Return the alerts that an event decides."""

    def advance(self, time: int) -> list[Alert]:
        """Return the alerts decided by that no event up to `time` will still come."""

    def written(self, time: int) -> Iterator[tuple[Hashable, GroupState]]:
        """Yield what is kept of groups after `advance` to that time, without what has passed."""

    def read(
        self, group: Hashable, numbers: Sequence[int], events: Sequence[tuple[int, int]]
    ) -> None:
        """Go on from what was kept of a group, given its events with their times."""


# --- windows: the last timespan at each event, or by the calendar

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
        """Return no alerts: time alone decides none."""
        return []

    def written(self, time: int) -> Iterator[tuple[Hashable, GroupState]]:
        """Yield the events of each group that a later one may be counted with."""
        span = self.correlation.timespan
        for group, window in self._windows.items():
            window.drop_before(time + 1 - span, self.correlation.kind)
            if window.events:
                events = [event for event, *_ in window.events]
                yield group, GroupState([], events, window.events[-1][1] + span)

    def read(
        self, group: Hashable, numbers: Sequence[int], events: Sequence[tuple[int, int]]
    ) -> None:
        """Go on with the events of a group."""
        window = self._windows[group] = _Window()
        for event, time in events:
            window.add(event, time, self.value_of(event), self.correlation.kind)


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

    def written(self, time: int) -> Iterator[tuple[Hashable, GroupState]]:
        """Yield the events of each group in the window that has not ended."""
        for number, groups in self._windows.items():
            end = (number + 1) * self.correlation.timespan - 1
            for group, own in groups.items():
                yield group, GroupState([], [event for event, _ in own], end)

    def read(
        self, group: Hashable, numbers: Sequence[int], events: Sequence[tuple[int, int]]
    ) -> None:
        """Go on with the events of a group, which are of one window."""
        number = events[0][1] // self.correlation.timespan
        self._windows.setdefault(number, {})[group] = list(events)


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
    return percentile(sorted(map(float, known)), correlation.percentile / 100)


# --- rules that occur together within a timespan: in any order, or one after another


@attrs.define
class _Group:
    """What an alternative keeps for a group: one event for each rule."""

    latest: dict[str, tuple[int, int]] = attrs.field(factory=dict)  # By rule: number, time
    absent: int | None = None  # The latest time of an absent rule
    stopped: int = 0  # How often an absent rule stopped what waited


@attrs.frozen(order=True)
class _Waiting:
    """An alert, until no event of an absent rule can stop it any more."""

    decided: int  # The watermark that decides it
    alert: Alert
    group: _Group = attrs.field(order=False)
    stopped: int = attrs.field(order=False)  # As of the group when it began to wait


@attrs.frozen
class Together:
    """
    Rules in any order: the latest event of each within the timespan of the newest.

    An alert uses them up, also one that an absent rule stops.
    """

    correlation: Correlation
    _groups: dict[tuple[int, Hashable], _Group] = attrs.field(init=False, factory=dict)
    _waiting: list[_Waiting] = attrs.field(init=False, factory=list)

    def process(self, event: int, time: int, groups: Groups) -> list[Alert]:
        """Return the alerts that an event decides."""
        found = self.advance(time - 1)
        for number, way in enumerate(self.correlation.alternatives):
            for place, (group, rules) in enumerate(groups):
                if rules & (way.present | way.absent):
                    own = self._groups.setdefault((number, group), _Group())
                    found += self._offered(own, way, (event, time), rules, (event, number, place))
        return found

    def _offered(
        self,
        group: _Group,
        way: Alternative,
        event: tuple[int, int],
        rules: frozenset[str],
        rank: tuple[int, ...],
    ) -> list[Alert]:
        _, time = event
        if rules & way.absent:
            group.absent = time
            group.stopped += 1
        if not rules & way.present:
            return []
        group.latest |= dict.fromkeys(rules & way.present, event)
        near = {rule: one for rule, one in group.latest.items() if time - one[1] <= self._span}
        group.latest = near
        if len(near) < way.least:
            return []
        group.latest = {}
        events = sorted(set(near.values()))
        alert = Alert(rank, time, tuple(number for number, _ in events))
        first = events[0][1]
        if group.absent is not None and group.absent >= first:
            return []
        if not way.absent:
            return [alert]
        heappush(self._waiting, _Waiting(first + self._span, alert, group, group.stopped))
        return []

    @property
    def _span(self) -> int:
        return self.correlation.timespan

    def advance(self, time: int) -> list[Alert]:
        """Return the alerts that no event of an absent rule can stop any more."""
        found = []
        while self._waiting and self._waiting[0].decided <= time:
            one = heappop(self._waiting)
            if one.stopped == one.group.stopped:
                found.append(one.alert)
        return found

    # The numbers of a group are for each alternative: its number, the latest time of an absent
    # rule, how many rules occurred and which, how many alerts wait and the sizes of these.

    def written(self, time: int) -> Iterator[tuple[Hashable, GroupState]]:
        """Yield for each group what its alternatives keep."""
        past, span = time - self._span, self._span
        waiting: dict[int, list[_Waiting]] = {}
        for one in sorted(self._waiting):
            if one.stopped == one.group.stopped:
                waiting.setdefault(id(one.group), []).append(one)
        kept: dict[Hashable, GroupState] = {}
        rules = self.correlation.rules
        for (number, group), own in self._groups.items():
            latest = {rule: one for rule, one in own.latest.items() if one[1] > past}
            absent = own.absent if own.absent is not None and own.absent > past else None
            alerts = waiting.get(id(own), ())
            if not latest and absent is None and not alerts:
                continue
            numbers, events, deadline = kept.get(group, GroupState([], [], END))
            numbers += [number, NEVER if absent is None else absent]
            numbers += [len(latest), *map(rules.index, latest)]
            numbers += [len(alerts), *(len(one.alert.events) for one in alerts)]
            events += [event for event, _ in latest.values()]
            events += [event for one in alerts for event in one.alert.events]
            times = [at for _, at in latest.values()]
            if absent is not None:
                times.append(absent)
            ends = [one.decided for one in alerts]
            if times:
                ends.append(max(times) + span)
            kept[group] = GroupState(numbers, events, min(deadline, *ends))
        yield from kept.items()

    def read(
        self, group: Hashable, numbers: Sequence[int], events: Sequence[tuple[int, int]]
    ) -> None:
        """Go on with what the alternatives of a group kept."""
        told, taken = iter(numbers), iter(events)
        for number in told:
            own = self._groups[number, group] = _Group()
            absent = next(told)
            own.absent = None if absent == NEVER else absent
            rules = [self.correlation.rules[next(told)] for _ in range(next(told))]
            own.latest = {rule: next(taken) for rule in rules}
            for size in [next(told) for _ in range(next(told))]:
                made = [next(taken) for _ in range(size)]
                (_, first), (last, time) = made[0], made[-1]
                alert = Alert((last, number), time, tuple(event for event, _ in made))
                heappush(self._waiting, _Waiting(first + self._span, alert, own, 0))


@attrs.frozen
class Ordered:
    """Rules one after another: as steps of the machine of which the latest runs live."""

    correlation: Correlation
    _machine: LatestMachine = attrs.field(init=False)

    @_machine.default
    def _make_machine(self) -> LatestMachine:
        rules = self.correlation.rules
        return LatestMachine([LatestRule.of(len(rules), self.correlation.timespan)])

    def process(self, event: int, time: int, groups: Groups) -> list[Alert]:
        """Return the alerts that an event decides."""
        offers = [
            Offer(0, step, group)
            for group, rules in groups
            for step, rule in enumerate(self.correlation.rules)
            if rule in rules
        ]
        return self._alerts(self._machine.process((event, time), time, offers))

    def advance(self, time: int) -> list[Alert]:
        """Drop runs that are too old to go on."""
        self._machine.prune(time)
        return []

    @staticmethod
    def _alerts(matches: list[LatestMatch]) -> list[Alert]:
        found = []
        for match in matches:
            last, time = match.events[-1]
            found.append(Alert((last, match.number), time, tuple(own for own, _ in match.events)))
        return found

    def written(self, time: int) -> Iterator[tuple[Hashable, GroupState]]:
        """Yield the runs of each group."""
        (rule,) = self._machine.rules
        self._machine.prune(time)
        for (_, group), state in self._machine.states.items():
            numbers, events = state.written()
            deadline = state.last_time(rule)
            assert deadline is not None
            yield group, GroupState(numbers, [event for event, _ in events], deadline)

    def read(
        self, group: Hashable, numbers: Sequence[int], events: Sequence[tuple[int, int]]
    ) -> None:
        """Go on with the runs of a group."""
        (rule,) = self._machine.rules
        state = KeyState.read(rule, numbers, events, lambda event: int(event[1]))
        self._machine.restore(0, group, state)


# --- all alerts


def correlating(correlation: Correlation, value_of: ValueOf) -> Correlating:
    """Return the machine for a correlation; `value_of` tells what it measures of an event."""
    if correlation.kind is Kind.TEMPORAL:
        return Together(correlation)
    if correlation.kind is Kind.TEMPORAL_ORDERED:
        return Ordered(correlation)
    if correlation.slides:
        return SlidingWindows(correlation, value_of)
    return CalendarWindows(correlation, value_of)


def grouped(by_rule: Sequence[tuple[str, Hashable]]) -> Groups:
    """Return groups, each once, of the rules that an event satisfies and its group at each."""
    rules: dict[Hashable, set[str]] = {}
    for rule, group in by_rule:
        rules.setdefault(group, set()).add(rule)
    return [(group, frozenset(own)) for group, own in rules.items()]
