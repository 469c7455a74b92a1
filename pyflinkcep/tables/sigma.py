# SPDX-License-Identifier: Apache-2.0
"""The alerts of a Sigma correlation on events in memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import attrs

from pyflinkcep.engines.correlations.running import alerts_of, grouped
from pyflinkcep.errors import (
    InputError,
    InvalidArgumentError,
    did_you_mean,
    suggesting,
)
from pyflinkcep.sigma.correlation import Correlation, Kind, read_correlation
from pyflinkcep.tables.conditions import satisfying
from pyflinkcep.tables.events import Table
from pyflinkcep.tables.rows import rows_of
from pyflinkcep.tables.values import exact_times_of, grouping_key

Rule = Any  # SQL on an event, a function of it, or the document of a correlation


@attrs.frozen(eq=False)
class _Event:
    """An event as a correlation sees it: one of the user's, or an alert of a correlation."""

    time: int  # In ms
    row: Any  # Whose fields it has
    made_of: tuple[int, ...]  # Positions of the user's events, in order


@suggesting
def matchSigma(
    correlation: Mapping[str, Any],
    events: Table | Iterable[Any],
    rules: Mapping[str, Rule],
    timestamp: str | Callable[[Any], Any] | None = None,
) -> list[list[Any]]:
    """
    Return the alerts of a Sigma correlation on events in memory.

    Parameters
    ----------
    correlation : dict
        The section `correlation` of a Sigma file, or the whole file, read from its YAML.
    events : iterable or table
        As for :func:`match`. They are sorted by time first.
    rules : dict
        For each name or id in `rules` of the correlation a condition on one event, as SQL or as a
        function; or the dict of another correlation, whose alerts are then events: with the time
        and the fields of their last event.
    timestamp : str or callable, optional
        The field or function of an event's time, as for :func:`match`; by default events are in
        order, a millisecond apart.

    Returns
    -------
    list of list
        The events of each alert in order, alerts in order of their last event; of calendar windows
        by window.

    Raises
    ------
    CepError
        If the correlation is refused, names rules that are not given, or fields that no event has.

    Examples
    --------
    >>> failures = {
    ...     "type": "event_count", "rules": ["failed"], "group-by": ["user"],
    ...     "timespan": "1m", "condition": {"gte": 3},
    ... }
    >>> events = [{"user": "ann", "ok": n == 2, "t": n * 1_000} for n in range(5)]
    >>> for alert in matchSigma(failures, events, {"failed": "not ok"}, timestamp="t"):
    ...     print([event["t"] for event in alert])
    [0, 1000, 3000]
    """
    read = read_correlation(correlation)
    chained = {name: read_correlation(rule, name) for name, rule in _correlations(rules)}
    given = rows_of(events)
    exact: Sequence[int] = range(0, 1000 * len(given), 1000)
    if timestamp is not None:
        exact = exact_times_of(given, timestamp)
    order = sorted(range(len(given)), key=exact.__getitem__)
    rows, times = [given[at] for at in order], [exact[at] // 1000 for at in order]
    running = _Running(rules, chained, rows, times)
    return [[rows[at] for at in found.made_of] for found in running.alerts(read)]


def _correlations(rules: Mapping[str, Rule]) -> list[tuple[str, Mapping[str, Any]]]:
    return [(name, rule) for name, rule in rules.items() if isinstance(rule, Mapping)]


@attrs.frozen(eq=False)
class _Running:
    """Correlations on events in order."""

    rules: Mapping[str, Rule]
    chained: Mapping[str, Correlation]
    rows: Sequence[Any]
    times: Sequence[int]

    def alerts(self, correlation: Correlation, above: tuple[str, ...] = ()) -> list[_Event]:
        """Return the alerts of a correlation, each as an event."""
        if correlation.name in above:
            raise InvalidArgumentError(
                f"{correlation.name}: the correlation refers to itself",
                "name rules, or correlations that do not refer to it",
            )
        seen = self._seen(correlation, (*above, correlation.name))
        events = sorted(seen, key=lambda own: (own.time, own.made_of[-1], len(own.made_of)))
        fields = _Fields.of(correlation, self.rows)
        groups = []
        for event in events:
            by_rule = [(rule, fields.group(rule, event.row)) for rule in seen[event]]
            known = [(rule, group) for rule, group in by_rule if group is not None]
            groups.append(grouped(known))
        times = [event.time for event in events]
        found = alerts_of(correlation, times, groups, lambda at: fields.value(events[at].row))
        return [
            _Event(
                alert.time,
                events[alert.events[-1]].row,
                tuple(dict.fromkeys(at for one in alert.events for at in events[one].made_of)),
            )
            for alert in found
        ]

    def _seen(self, correlation: Correlation, above: tuple[str, ...]) -> dict[_Event, list[str]]:
        """Return the events of a correlation, each with the rules that it satisfies."""
        own, conditions = set(correlation.rules), {}
        for name in dict.fromkeys(correlation.rules):
            if name not in self.rules:
                raise InvalidArgumentError(
                    f"{correlation.name}: unknown rule {name!r}",
                    did_you_mean(name, self.rules, f"pass its condition: rules={{{name!r}: …}}"),
                )
            if name not in self.chained:
                conditions[name] = self.rules[name]
        found = satisfying(conditions, self.rows, self.times)
        by_position: dict[int, list[str]] = {}
        for rule in (name for name in dict.fromkeys(correlation.rules) if name in found):
            for at in found[rule]:
                by_position.setdefault(at, []).append(rule)
        seen = {
            _Event(self.times[at], self.rows[at], (at,)): names for at, names in by_position.items()
        }
        for name in own & set(self.chained):
            for alert in self.alerts(self.chained[name], above):
                seen[alert] = [name]
        return seen


@attrs.frozen(eq=False)
class _Fields:
    """The fields of events that a correlation reads."""

    correlation: Correlation

    @classmethod
    def of(cls, correlation: Correlation, rows: Sequence[Any]) -> _Fields:
        """Check that events have the fields that a correlation reads."""
        every = dict.fromkeys(name for names in correlation.group_fields.values() for name in names)
        for name in dict.fromkeys((*every, *correlation.fields)):
            if rows and not any(_has(row, name) for row in rows):
                known = {key: None for row in rows for key in _names(row)}
                raise InputError(
                    f"{correlation.name}: no event has the field {name!r}",
                    did_you_mean(name, known, "name a field of the events"),
                )
        return cls(correlation)

    def group(self, rule: str, row: Any) -> Hashable:
        """Return the group of an event that satisfies a rule; None if a field of it is missing."""
        found = [_value(row, name) for name in self.correlation.group_fields[rule]]
        return None if None in found else tuple(map(grouping_key, found))

    def value(self, row: Any) -> Any:
        """Return what the correlation measures of an event; None if a field of it is missing."""
        found = [_value(row, name) for name in self.correlation.fields]
        if not found or None in found:
            return None
        if self.correlation.kind is Kind.VALUE_COUNT:
            return tuple(map(grouping_key, found))
        if isinstance(found[0], str):
            raise InputError(
                f"{self.correlation.name}: {self.correlation.kind.value} of the field "
                f"{self.correlation.fields[0]!r}: expected numbers, got {found[0]!r}",
                "name a field of numbers, or write value_count",
            )
        return found[0]


def _value(row: Any, name: str) -> Any:
    """Return a field of an event, `a.b` also being b within a; None if it is missing."""
    if not isinstance(row, Mapping):
        return getattr(row, name, None)
    found = row.get(name)
    if found is None and "." in name:
        found = row
        for part in name.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _has(row: Any, name: str) -> bool:
    known = row if isinstance(row, Mapping) else _names(row)
    return name in known or _value(row, name) is not None


def _names(row: Any) -> Iterable[str]:
    return row if isinstance(row, Mapping) else (name for name in dir(row) if name[:1] != "_")
