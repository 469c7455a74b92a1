# SPDX-License-Identifier: Apache-2.0
"""Sigma correlations over events whose rules are known, and over alerts of other correlations."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
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
from pyflinkcep.errors import StateFormatError
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


# --- a correlation and those to whose alerts it refers, event by event


PENDING = "pending"
"""The group of events that wait until all alerts up to their time are known."""


class Seen(NamedTuple):
    """What a correlation sees: an event of the user's, or an alert of another correlation."""

    events: tuple[int, ...]  # The user's events that it is made of, by number, in order
    is_event: bool
    rules: tuple[int, ...]  # That it satisfies, by their places in the correlation

    @property
    def order(self) -> tuple[object, ...]:
        """What correlations see first, so that the order does not tell how alerts are found."""
        return self.events[-1], len(self.events), *self


@attrs.frozen(eq=False)
class Link:
    """A correlation of a chain."""

    correlation: Correlation
    inner: tuple[str, ...]  # Those to whose alerts it refers
    lag: int  # How long after an event's time all alerts up to that time are known
    span: int  # The longest time from the first event of an alert to its last

    @property
    def decides_after(self) -> int:
        """How long after its time an alert is known."""
        return self.lag + (self.correlation.timespan if self.correlation.waits else 0)


def links_of(correlations: Mapping[str, Correlation], last: str) -> dict[str, Link]:
    """Return a correlation of several, by their names, after those to which it refers."""
    found: dict[str, Link] = {}

    def add(name: str) -> None:
        own = correlations[name]
        inner = tuple(rule for rule in dict.fromkeys(own.rules) if rule in correlations)
        for rule in inner:
            if rule not in found:
                add(rule)
        before = [found[rule] for rule in inner]
        lag = max((one.decides_after for one in before), default=0)
        span = own.timespan + max((one.span for one in before), default=0)
        found[name] = Link(own, inner, lag, span)

    add(last)
    return found


@attrs.frozen(eq=False)
class Reading:
    """What correlations read of the user's events, which are numbered in their final order."""

    time_of: Callable[[int], int]
    group_of: Callable[[str, str, int], Hashable | None]  # Given a correlation and a rule
    value_of: Callable[[str, int], Any]


@attrs.define(eq=False)
class _Running:
    """The machine of a correlation, whose events are numbered in the order that it sees them."""

    name: str
    link: Link
    reading: Reading
    pending: list[Seen] = attrs.field(factory=list)
    _made: list[tuple[int, ...]] = attrs.field(factory=list)  # By number, the user's events
    _machine: Any = attrs.field(init=False)

    @_machine.default
    def _make_machine(self) -> Any:
        value_of = self.reading.value_of
        return correlating(
            self.link.correlation, lambda event: value_of(self.name, self._of(event)[-1])
        )

    def _number(self, events: tuple[int, ...]) -> int:
        if not self.link.inner:
            return events[0]
        self._made.append(events)
        return len(self._made) - 1

    def _of(self, number: int) -> tuple[int, ...]:
        return self._made[number] if self.link.inner else (number,)

    def run(self, seen: Iterable[Seen], watermark: int, restore: Callable[[Hashable], None]
            ) -> list[tuple[int, ...]]:  # fmt: skip
        """Return the events of the alerts that are known at a watermark."""
        reached = watermark if watermark == END else watermark - self.link.lag
        waiting = sorted([*self.pending, *seen], key=lambda one: one.order)
        self.pending, machine, found = [], self._machine, []
        time_of, group_of = self.reading.time_of, self.reading.group_of
        rules = self.link.correlation.rules
        for place, one in enumerate(waiting):
            last = one.events[-1]
            time = time_of(last)
            if time > reached:
                self.pending = waiting[place:]
                break
            by_rule = [(rules[at], group_of(self.name, rules[at], last)) for at in one.rules]
            groups = grouped([(rule, group) for rule, group in by_rule if group is not None])
            for group, _ in groups:
                restore(group)
            if groups:
                found += machine.process(self._number(one.events), time, groups)
        found += machine.advance(reached)
        return [
            tuple(sorted({event for number in alert.events for event in self._of(number)}))
            for alert in sorted(found, key=lambda alert: alert.rank)
        ]

    # --- stored state

    def read(self, group: Hashable, numbers: Sequence[int], events: Sequence[int]) -> None:
        """Go on from what was written."""
        time_of = self.reading.time_of
        if group == PENDING:
            self.pending = list(self._pending_of(numbers, events))
            return
        if not self.link.inner:
            self._machine.read(group, numbers, [(event, time_of(event)) for event in events])
            return
        count, *rest = numbers
        made = list(_divided(rest[:count], events))
        numbered = {one: self._number(one) for one in sorted(set(made), key=lambda m: (m[-1], m))}
        own = [(numbered[one], time_of(one[-1])) for one in made]
        self._machine.read(group, rest[count:], own)

    def written(self, watermark: int) -> Iterator[tuple[Hashable, GroupState]]:
        """Yield the state of each group."""
        lag = self.link.lag
        reached = watermark if watermark == END else watermark - lag
        for group, state in self._machine.written(reached):
            numbers, events, deadline = state
            if self.link.inner:
                made = list(map(self._of, events))
                numbers = [len(made), *map(len, made), *numbers]
                events = [event for one in made for event in one]
            yield group, GroupState(numbers, events, deadline + lag)
        if self.pending:
            numbers = []
            for one in self.pending:
                numbers += [len(one.events), one.is_event, len(one.rules), *one.rules]
            events = [event for one in self.pending for event in one.events]
            first = self.reading.time_of(self.pending[0].events[-1])
            yield PENDING, GroupState(numbers, events, first + lag)

    def _pending_of(self, numbers: Sequence[int], events: Sequence[int]) -> Iterator[Seen]:
        told, taken = iter(numbers), iter(events)
        for size in told:
            is_event, count = bool(next(told)), next(told)
            rules = tuple([next(told) for _ in range(count)])
            yield Seen(tuple([next(taken) for _ in range(size)]), is_event, rules)


def _divided(sizes: Iterable[int], events: Iterable[int]) -> Iterator[tuple[int, ...]]:
    taken = iter(events)
    for size in sizes:
        yield tuple([next(taken) for _ in range(size)])


Stored = tuple[Sequence[int], Sequence[int]]
"""Numbers and events of a group."""


class Chain:
    """
    A correlation and those to whose alerts it refers, on some events.

    States of groups are read when an event of the group comes, or when their time has come.
    """

    def __init__(
        self,
        links: Mapping[str, Link],
        reading: Reading,
        stored: dict[tuple[str, Hashable], Stored],
    ) -> None:
        self._stored = stored  # Those that are not read yet
        self._running = [_Running(name, link, reading) for name, link in links.items()]

    def run(
        self,
        events: Iterable[tuple[int, Sequence[str]]],
        watermark: int,
        due: Iterable[tuple[str, Hashable]] = (),
    ) -> list[tuple[int, ...]]:
        """
        Return the events of the alerts that are known at a watermark.

        Given are new events with the rules that they satisfy, and the groups whose time has come.
        """
        wanted = {*due, *(at for at in self._stored if at[1] == PENDING)}
        alerts: dict[str, list[tuple[int, ...]]] = {}
        given = list(events)
        for one in self._running:
            restore = partial(self._restore, one)
            for name, group in wanted:
                if name == one.name:
                    restore(group)
            place = one.link.correlation.rules.index
            own = frozenset(one.link.correlation.rules)
            seen = [
                Seen((event,), True, satisfied)
                for event, rules in given
                if (satisfied := tuple(sorted(place(rule) for rule in rules if rule in own)))
            ]
            seen += [
                Seen(made, False, (place(rule),))
                for rule in one.link.inner
                for made in alerts[rule]
            ]
            alerts[one.name] = one.run(seen, watermark, restore)
        return alerts[self._running[-1].name]

    def _restore(self, one: _Running, group: Hashable) -> None:
        stored = self._stored.pop((one.name, group), None)
        if stored is None:
            return
        try:
            one.read(group, *stored)
        except (StopIteration, RuntimeError, IndexError, ValueError):
            raise StateFormatError(
                f"the state of the correlation {one.link.correlation.name!r} does not fit it",
                "restore a backup",
            ) from None

    def written(self, watermark: int) -> Iterator[tuple[str, Hashable, GroupState]]:
        """Yield the states of the groups that were read, by their correlations."""
        for one in self._running:
            for group, state in one.written(watermark):
                yield one.name, group, state
