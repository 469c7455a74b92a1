# SPDX-License-Identifier: Apache-2.0
"""Rules that occur together within a timespan: in any order, or one after another."""

from __future__ import annotations

from collections.abc import Hashable
from heapq import heappop, heappush

import attrs

from pyflinkcep.engines.correlations.alerts import Alert, Groups
from pyflinkcep.engines.latest.machine import LatestMachine, LatestMatch, Offer
from pyflinkcep.engines.latest.rule import LatestRule
from pyflinkcep.sigma.condition import Alternative
from pyflinkcep.sigma.correlation import Correlation


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
