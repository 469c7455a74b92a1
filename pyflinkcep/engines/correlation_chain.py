# SPDX-License-Identifier: Apache-2.0
"""A correlation and those to whose alerts it refers, event by event as time passes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import attrs

from pyflinkcep.engines.correlations import GroupState, correlating, grouped
from pyflinkcep.engines.latest.machine import END
from pyflinkcep.errors import StateFormatError
from pyflinkcep.sigma.correlation import Correlation

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
