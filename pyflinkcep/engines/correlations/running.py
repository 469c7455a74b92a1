# SPDX-License-Identifier: Apache-2.0
"""The machine that runs a correlation, and all its alerts on events that are all there."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from pyflinkcep.engines.correlations.alerts import Alert, Correlating, Groups
from pyflinkcep.engines.correlations.temporal import Ordered, Together
from pyflinkcep.engines.correlations.windows import CalendarWindows, SlidingWindows, ValueOf
from pyflinkcep.engines.latest.machine import END
from pyflinkcep.sigma.correlation import Correlation, Kind


def correlating(correlation: Correlation, value_of: ValueOf) -> Correlating:
    """Return the machine for a correlation; `value_of` tells what it measures of an event."""
    if correlation.kind is Kind.TEMPORAL:
        return Together(correlation)
    if correlation.kind is Kind.TEMPORAL_ORDERED:
        return Ordered(correlation)
    if correlation.slides:
        return SlidingWindows(correlation, value_of)
    return CalendarWindows(correlation, value_of)


def alerts_of(
    correlation: Correlation, times: Sequence[int], groups: Sequence[Groups], value_of: ValueOf
) -> list[Alert]:
    """Return all alerts of events in order, given the times and groups of each."""
    machine = correlating(correlation, value_of)
    found: list[Alert] = []
    for event, (time, own) in enumerate(zip(times, groups, strict=True)):
        if own:
            found += machine.process(event, time, own)
    return sorted([*found, *machine.advance(END)], key=lambda alert: alert.rank)


def grouped(by_rule: Sequence[tuple[str, Hashable]]) -> Groups:
    """Return groups, each once, of the rules that an event satisfies and its group at each."""
    rules: dict[Hashable, set[str]] = {}
    for rule, group in by_rule:
        rules.setdefault(group, set()).add(rule)
    return [(group, frozenset(own)) for group, own in rules.items()]
