# SPDX-License-Identifier: Apache-2.0
"""The alerts of a Sigma correlation on events in memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from numbers import Number
from typing import TYPE_CHECKING, Any, Protocol, overload

import attrs

from pyflinkcep.engines.correlations import Chain, Reading, links_of
from pyflinkcep.engines.latest.machine import END
from pyflinkcep.errors import CepError, InputError, InvalidArgumentError, did_you_mean, suggesting
from pyflinkcep.sigma.correlation import Correlation, Kind, check_rules, read_correlation
from pyflinkcep.sigma.rule import SigmaRule, SigmaRules
from pyflinkcep.tables.events import Table
from pyflinkcep.tables.rows import rows_of, table_or_rest
from pyflinkcep.tables.sql import satisfying
from pyflinkcep.tables.values import exact_times_of, grouping_key

if TYPE_CHECKING:
    import pyarrow as pa

    from pyflinkcep.expressions.tree import Tree
    from pyflinkcep.tables.rule_rows import RuleRows

Rule = Any  # SQL on an event, a function of it, or the document of a correlation


@overload
def matchSigma(
    correlation: Mapping[str, Any],
    events: Table | Iterable[Any],
    rules: Mapping[str, Rule] | SigmaRules,
    timestamp: str | Callable[[Any], Any] | None = None,
) -> list[list[Any]]: ...
@overload
def matchSigma(
    correlation: SigmaRules,
    events: Table | Iterable[Any],
    rules: None = None,
    timestamp: str | Callable[[Any], Any] | None = None,
) -> dict[str, list[list[Any]]]: ...
@suggesting
def matchSigma(
    correlation: Mapping[str, Any] | SigmaRules,
    events: Table | Iterable[Any],
    rules: Mapping[str, Rule] | SigmaRules | None = None,
    timestamp: str | Callable[[Any], Any] | None = None,
) -> list[list[Any]] | dict[str, list[list[Any]]]:
    """
    Return the alerts of a Sigma correlation, or of many rules, on events in memory.

    Parameters
    ----------
    correlation : dict or SigmaRules
        The section `correlation` of a Sigma file, or the whole file, read from its YAML; or all
        rules and correlations of files, as :func:`sigmaRules` reads them.
    events : iterable or table
        As for :func:`match`. They are sorted by time first.
    rules : dict or SigmaRules
        For each name or id in `rules` of the correlation a condition on one event, as SQL or as a
        function; or the dict of another correlation, whose alerts are then events: with the time
        and the fields of their last event.
    timestamp : str or callable, optional
        The field or function of an event's time, as for :func:`match`; by default events are in
        order, a millisecond apart.

    Returns
    -------
    list of list, or dict of str to list of list
        The events of each alert in order, alerts in order of their last event; of calendar windows
        by window. Of many rules those of each that alerts, by its name; a rule that a correlation
        without ``generate`` refers to does not alert by itself.

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
    if isinstance(correlation, SigmaRules) and rules is not None:
        raise InvalidArgumentError(
            "matchSigma: rules of files together with rules=", "leave rules= out"
        )
    table, rest = table_or_rest(events)
    given = rows_of(rest if table is None else table)
    exact = exact_times_of(given, timestamp)
    order = sorted(range(len(given)), key=exact.__getitem__)
    rows, times = [given[at] for at in order], [exact[at] // 1000 for at in order]
    known = None if table is None else field_names(table)
    if isinstance(correlation, SigmaRules):
        running = _Running(_OfFiles(correlation, rows, times), rows, times, known)
        every = {one.name: running.shown(one) for one in correlation.alerting}
        return {name: found for name, found in every.items() if found}
    if rules is None:
        raise InvalidArgumentError(
            "matchSigma: a correlation without rules", "pass rules={name: condition}"
        )
    named: _Rules
    if isinstance(rules, SigmaRules):
        named = _OfFiles(rules, rows, times)
    else:
        check_rules(rules)
        named = _Given(rules, rows, times)
    return _Running(named, rows, times, known).shown(read_correlation(correlation))


def field_names(table: pa.Table) -> Collection[str]:
    """Return the fields of events in columns: these, and what is in them by its path."""
    from pyflinkcep.tables.field_values import EventFields  # which loads Arrow

    return {**dict.fromkeys(table.column_names), **dict.fromkeys(EventFields.of_table(table))}


def alert_places(
    correlation: Correlation,
    rules: Mapping[str, Rule | list[int]],
    rows: Sequence[Any],
    times: Sequence[int],
    known: Collection[str],
) -> list[tuple[int, ...]]:
    """
    Return the events of each alert by their places, given events in order and their fields.

    A rule may be the places of the events that satisfy it.
    """
    return _Running(_Given(rules, rows, times), rows, times, known).alerts(correlation)


def check_fields(correlation: Correlation, known: Collection[str]) -> None:
    """Refuse a correlation that reads fields that events do not have."""
    every = (name for names in correlation.group_fields.values() for name in names)
    for name in dict.fromkeys((*every, *correlation.fields)):
        if name not in known:
            raise InputError(
                f"{correlation.name}: no event has the field {name!r}",
                did_you_mean(name, known, "name a field of the events"),
            )


class _Rules(Protocol):
    """What correlations refer to."""

    def found(self, name: str, where: str) -> Correlation | list[int]:
        """Return a correlation, or the positions of the events that satisfy a rule."""


@attrs.frozen(eq=False)
class _Given:
    """Conditions and correlations of a dict."""

    rules: Mapping[str, Rule]
    rows: Sequence[Any]
    times: Sequence[int]

    def found(self, name: str, where: str) -> Correlation | list[int]:
        """Return a correlation, or the positions of the events that satisfy a condition."""
        if name not in self.rules:
            raise InvalidArgumentError(
                f"{where}: unknown rule {name!r}",
                did_you_mean(name, self.rules, f"pass its condition: rules={{{name!r}: …}}"),
            )
        rule = self.rules[name]
        if isinstance(rule, Mapping):
            return read_correlation(rule, name)
        if isinstance(rule, list):
            return rule
        return satisfying({name: rule}, self.rows, self.times)[name]


@attrs.frozen(eq=False, slots=False)
class _OfFiles:
    """Rules and correlations of files."""

    rules: SigmaRules
    rows: Sequence[Any]
    times: Sequence[int]
    _places: dict[str, list[int]] = attrs.field(init=False, factory=dict)  # By SQL

    @cached_property
    def _asked(self) -> tuple[RuleRows, dict[str, int | CepError]]:
        """What answers the conditions of all rules, and their numbers, or why they have none."""
        if not all(isinstance(row, Mapping) for row in self.rows):
            raise InputError("Sigma rules need events with names of fields", "pass dicts")
        from pyflinkcep.tables.field_values import EventFields  # which loads Arrow
        from pyflinkcep.tables.rule_rows import RuleTests

        fields = EventFields.of_rows(self.rows)
        trees: list[Tree] = []
        numbers: dict[str, int | CepError] = {}
        for name, rule in self.rules.rules.items():
            try:
                trees.append(rule.tree(fields.fields))
                numbers[name] = len(trees) - 1
            except CepError as cause:
                numbers[name] = cause
        return RuleTests.of(trees).on(fields), numbers

    def found(self, name: str, where: str) -> Correlation | list[int]:
        """Return a correlation, or the positions of the events that satisfy a rule."""
        rule = self.rules.find(name, where)
        if isinstance(rule, Correlation):
            return rule
        if not self.rows:
            return []
        conditions, numbers = self._asked
        number = numbers[rule.name]
        if isinstance(number, CepError):
            raise number
        positions: list[int] = conditions.rows(number).tolist()
        if rule.where is None:
            return positions
        if rule.where not in self._places:
            own = satisfying({"logsource": rule.where}, self.rows, self.times)
            self._places[rule.where] = own["logsource"]
        return sorted({*positions} & {*self._places[rule.where]})


@attrs.frozen(eq=False)
class _Running:
    """Correlations on events in order."""

    rules: _Rules
    rows: Sequence[Any]
    times: Sequence[int]
    known: Collection[str] | None  # The fields of events in columns

    def shown(self, asked: SigmaRule | Correlation) -> list[list[Any]]:
        """Return the events of each alert of a rule or a correlation."""
        if isinstance(asked, SigmaRule):
            alone = self.rules.found(asked.name, asked.name)
            return [[self.rows[at]] for at in alone] if isinstance(alone, list) else []
        return [[self.rows[at] for at in own] for own in self.alerts(asked)]

    def alerts(self, correlation: Correlation) -> list[tuple[int, ...]]:
        """Return the events of each alert of a correlation, by position."""
        correlations: dict[str, Correlation] = {}
        satisfied: list[list[str]] = [[] for _ in self.rows]
        self._add("", correlation, correlations, satisfied, ())
        fields = {name: CorrelationFields(own) for name, own in correlations.items()}
        rows = self.rows
        reading = Reading(
            self.times.__getitem__,
            lambda name, rule, at: told_apart(fields[name].group(rule, rows[at])),
            lambda name, at: fields[name].value(rows[at]),
        )
        events = ((at, names) for at, names in enumerate(satisfied) if names)
        return Chain(links_of(correlations, ""), reading, {}).run(events, END)

    def _add(
        self,
        key: str,
        correlation: Correlation,
        correlations: dict[str, Correlation],
        satisfied: list[list[str]],
        above: tuple[str, ...],
    ) -> None:
        """Add a correlation and those to which it refers, and note which rules events satisfy."""
        if key in above:
            raise InvalidArgumentError(
                f"{correlation.name}: the correlation refers to itself",
                "name rules, or correlations that do not refer to it",
            )
        if key in correlations:
            return
        correlations[key] = correlation
        for name in dict.fromkeys(correlation.rules):
            found = self.rules.found(name, correlation.name)
            if isinstance(found, Correlation):
                self._add(name, found, correlations, satisfied, (*above, key))
                continue
            for at in found:
                if name not in satisfied[at]:  # which several correlations may name
                    satisfied[at].append(name)
        if self.rows:
            check_fields(correlation, self._fields if self.known is None else self.known)

    @cached_property
    def _fields(self) -> Collection[str]:
        """The fields of events one by one."""
        return _Names(self.rows)


def told_apart(values: tuple[Hashable, ...] | None) -> Hashable:
    """Return values as they are compared: True is not 1."""
    return None if values is None else (values, tuple(type(value) is bool for value in values))


@attrs.frozen(eq=False)
class CorrelationFields:
    """The fields of events that a correlation reads."""

    correlation: Correlation

    def group(self, rule: str, row: Any) -> tuple[Hashable, ...] | None:
        """Return the group of an event that satisfies a rule; None if a field of it is missing."""
        found = [_value(row, name) for name in self.correlation.group_fields[rule]]
        return None if None in found else tuple(map(grouping_key, found))

    def value(self, row: Any) -> Any:
        """Return what the correlation measures of an event; None if a field of it is missing."""
        found = [_value(row, name) for name in self.correlation.fields]
        if not found or None in found:
            return None
        if self.correlation.kind is Kind.VALUE_COUNT:
            return told_apart(tuple(map(grouping_key, found)))
        if not isinstance(found[0], Number):
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


@attrs.frozen(eq=False)
class _Names(Collection[str]):
    """The fields that any event has."""

    rows: Sequence[Any]

    def __contains__(self, name: object) -> bool:
        return any(_has(row, f"{name}") for row in self.rows)

    def __iter__(self) -> Iterator[str]:
        yield from dict.fromkeys(name for row in self.rows for name in _own_names(row))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _has(row: Any, name: str) -> bool:
    return name in _own_names(row) or _value(row, name) is not None


def _own_names(row: Any) -> Iterable[str]:
    return row if isinstance(row, Mapping) else [name for name in dir(row) if name[:1] != "_"]
