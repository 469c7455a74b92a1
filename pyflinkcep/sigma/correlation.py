# SPDX-License-Identifier: Apache-2.0
"""A Sigma correlation, read from its document and checked."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from enum import Enum
from functools import cached_property
from itertools import pairwise
from typing import Any

import attrs

from pyflinkcep.errors import CepError, InvalidArgumentError, NotSupportedError, did_you_mean
from pyflinkcep.sigma.condition import Alternative, alternatives_of

_UNITS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_MOST_DAYS, _MOST_DIGITS, _MOST_BOUND = timedelta.max.days, 15, 1e300
_PARTS = ("type", "rules", "group-by", "timespan", "aliases", "condition", "generate")

BOUNDS: dict[str, Callable[[Any, Any], bool]] = {
    "gt": lambda value, bound: value > bound,
    "gte": lambda value, bound: value >= bound,
    "lt": lambda value, bound: value < bound,
    "lte": lambda value, bound: value <= bound,
    "eq": lambda value, bound: value == bound,
    "neq": lambda value, bound: value != bound,
}
"""The bounds of a condition, as functions of what is measured and the bound."""


class Kind(Enum):
    """What a correlation measures."""

    EVENT_COUNT = "event_count"
    VALUE_COUNT = "value_count"
    VALUE_SUM = "value_sum"
    VALUE_AVG = "value_avg"
    VALUE_PERCENTILE = "value_percentile"
    VALUE_MEDIAN = "value_median"
    TEMPORAL = "temporal"
    TEMPORAL_ORDERED = "temporal_ordered"

    @property
    def is_temporal(self) -> bool:
        """Whether rules have to be together, rather than a number in bounds."""
        return self in (Kind.TEMPORAL, Kind.TEMPORAL_ORDERED)

    @property
    def may_slide(self) -> bool:
        """Whether a further event can only take the number up, if values are positive."""
        return self in (Kind.EVENT_COUNT, Kind.VALUE_COUNT, Kind.VALUE_SUM)


@attrs.frozen(slots=False)
class Correlation:
    """Which events of which rules make an alert."""

    name: str
    kind: Kind
    rules: tuple[str, ...]  # Base rules, or correlations whose alerts are the events
    group_by: tuple[str, ...]  # Fields, or aliases
    timespan: int  # In ms
    aliases: Mapping[str, Mapping[str, str]]  # By alias and rule the field
    bounds: tuple[tuple[str, float], ...] = ()  # What the number has to satisfy
    fields: tuple[str, ...] = ()  # Whose values are measured
    percentile: float = 50  # 0 to 100; a median is the half
    alternatives: tuple[Alternative, ...] = ()  # Of a temporal correlation
    generate: bool = False  # Whether the rules alert by themselves too

    @property
    def slides(self) -> bool:
        """Whether it is judged at each event over the last timespan, not by calendar windows."""
        return self.kind.may_slide and [name for name, _ in self.bounds] in (["gt"], ["gte"])

    @property
    def waits(self) -> bool:
        """Whether alerts are certain only when time has passed after their last event."""
        if self.kind.is_temporal:
            return any(way.absent for way in self.alternatives)
        return not self.slides

    def holds(self, number: Any) -> bool:
        """Whether a number is within the bounds."""
        return all(BOUNDS[name](number, bound) for name, bound in self.bounds)

    @cached_property
    def group_fields(self) -> Mapping[str, tuple[str, ...]]:
        """For each rule the fields by which its events are grouped."""
        return {
            rule: tuple(self.aliases.get(name, {}).get(rule, name) for name in self.group_by)
            for rule in self.rules
        }


def check_rules(rules: object) -> None:
    """Refuse what has no conditions by the names of rules."""
    if not isinstance(rules, Mapping):
        raise InvalidArgumentError(
            f"rules: expected a dict of conditions by name, got {rules!r}",
            "write rules={'failed': \"result = 'fail'\"}",
        )


def name_of(document: Mapping[str, Any], default: str) -> str:
    """Return the name of a rule or correlation, or else its id, or its title."""
    return str(document.get("name") or document.get("id") or document.get("title") or default)


def read_correlation(document: Mapping[str, Any], name: str = "correlation") -> Correlation:
    """Return a correlation of its document, or of the section of that name."""
    if not isinstance(document, Mapping):
        raise InvalidArgumentError(
            f"{name}: expected a mapping, got {document!r:.80}",
            "pass the section `correlation` of a Sigma file as a dict",
        )
    section = document.get("correlation", document)
    if section is not document:
        name = name_of(document, name)
        if not isinstance(section, Mapping):
            raise InvalidArgumentError(
                f"{name}: `correlation` is not a section, but {section!r:.80}",
                "write type, rules, timespan and the rest below it",
            )
    return _Reading(section, name).read()


@attrs.frozen
class _Reading:
    section: Mapping[str, Any]
    name: str

    def read(self) -> Correlation:
        """Return the correlation; refuse what it cannot mean."""
        for part in self.section:
            if part not in _PARTS:
                hint = did_you_mean(str(part), _PARTS, f"its parts are {', '.join(_PARTS)}")
                raise self._wrong(f"unknown part {part!r}", hint)
        kind, rules = self._kind(), self._rules()
        if kind is not Kind.TEMPORAL_ORDERED and len(set(rules)) < len(rules):
            raise self._wrong("a rule is named twice", "name each rule once")
        generate = self.section.get("generate", False)
        if not isinstance(generate, bool):
            raise self._wrong(f"generate: {generate!r}", "write true or false")
        known = Correlation(
            self.name,
            kind,
            rules,
            self._names("group-by"),
            self._timespan(),
            self._aliases(rules),
            generate=generate,
        )
        condition = self.section.get("condition")
        if kind is Kind.TEMPORAL_ORDERED:
            self._check_ordered(condition)
            return known
        if kind is Kind.TEMPORAL:
            return attrs.evolve(known, alternatives=self._alternatives(rules, condition))
        return self._measuring(known, condition)

    def _wrong(self, problem: str, hint: str) -> CepError:
        return InvalidArgumentError(f"{self.name}: {problem}", hint)

    def _kind(self) -> Kind:
        given = self.section.get("type")
        known = [kind.value for kind in Kind]
        if given not in known:
            hint = did_you_mean(str(given), known, f"the types are {', '.join(known)}")
            raise self._wrong(f"unknown type {given!r}", hint)
        return Kind(given)

    def _names(self, part: str) -> tuple[str, ...]:
        given = self.section.get(part)
        names = [given] if isinstance(given, str) else given or []
        if not isinstance(names, list | tuple) or not all(isinstance(n, str) for n in names):
            raise self._wrong(f"{part}: expected names, got {given!r}", f"write {part}: [name]")
        return tuple(names)

    def _rules(self) -> tuple[str, ...]:
        rules = self._names("rules")
        if not rules:
            raise self._wrong("it has no rules", "name rules or correlations: rules: [a, b]")
        return rules

    def _timespan(self) -> int:
        given = self.section.get("timespan")
        found = re.fullmatch(r"([0-9]+)([a-zA-Z])", str(given))
        if found is not None and found[2] in ("w", "M", "y"):
            raise NotSupportedError(
                f"{self.name}: timespan {given!r}: weeks, months and years are not supported",
                "write days, such as 7d",
            )
        if found is None or found[2] not in _UNITS or not found[1].strip("0"):
            problem = "it has no timespan" if given is None else f"timespan {given!r:.80}"
            raise self._wrong(problem, "write a whole number from 1 and s, m, h or d, such as 90m")
        # Python reads no numbers of thousands of digits.
        milliseconds = int(found[1].lstrip("0")[:_MOST_DIGITS]) * _UNITS[found[2]]
        if len(found[1].lstrip("0")) > _MOST_DIGITS or milliseconds > _MOST_DAYS * _UNITS["d"]:
            problem = f"the timespan {given!r:.80} is longer than any calendar"
            raise self._wrong(problem, f"write at most {_MOST_DAYS}d")
        return milliseconds

    def _aliases(self, rules: Iterable[str]) -> Mapping[str, Mapping[str, str]]:
        given = self.section.get("aliases") or {}
        if not isinstance(given, Mapping):
            raise self._wrong(f"aliases: {given!r:.80}", "write aliases: {alias: {rule: field}}")
        for alias, fields in given.items():
            if not isinstance(fields, Mapping):
                raise self._wrong(f"alias {alias!r}: {fields!r:.80}", "write a field for each rule")
            for rule, field in fields.items():
                if rule not in rules:
                    hint = did_you_mean(str(rule), rules, "name a rule of the correlation")
                    raise self._wrong(f"alias {alias!r}: unknown rule {rule!r}", hint)
                if not isinstance(field, str):
                    problem = f"alias {alias!r}: expected the name of a field, got {field!r:.80}"
                    raise self._wrong(problem, f"write {rule}: name")
        return given

    # --- conditions

    def _check_ordered(self, condition: object) -> None:
        if condition is not None:
            raise NotSupportedError(
                f"{self.name}: temporal_ordered with the condition {condition!r}",
                "leave it out: all rules have to occur; for an absent one write EQL with ![…]",
            )

    def _alternatives(self, rules: tuple[str, ...], condition: object) -> tuple[Alternative, ...]:
        every = frozenset(rules)
        if condition is None:
            return (Alternative(every, least=len(rules)),)
        if isinstance(condition, str):
            return alternatives_of(condition, rules, self.name)
        bounds = dict(self._bounds(condition, ()))
        hint = f"write gte: with a number of rules, from 1 to {len(rules)}"
        if len(bounds) != 1 or not set(bounds) <= {"gt", "gte"}:
            raise self._wrong("the condition of temporal is gt or gte", hint)
        least = math.ceil(bounds["gte"]) if "gte" in bounds else math.floor(bounds["gt"]) + 1
        if not 1 <= least <= len(rules):
            raise self._wrong(f"the condition {condition!r} fits no number of rules", hint)
        return (Alternative(every, least=least),)

    def _measuring(self, known: Correlation, condition: object) -> Correlation:
        kind = known.kind
        if condition is None:
            raise self._wrong(f"{kind.value} without a condition", "write condition: {gte: 5}")
        bounds = self._bounds(condition, ("field", "percentile"))
        assert isinstance(condition, Mapping)
        fields = self._fields(condition.get("field"))
        if kind is Kind.EVENT_COUNT and fields:
            raise self._wrong("event_count with a field", "write value_count, or no field")
        if kind is not Kind.EVENT_COUNT and not fields:
            raise self._wrong(f"{kind.value} without a field", "write condition: {field: name, …}")
        if kind not in (Kind.EVENT_COUNT, Kind.VALUE_COUNT) and len(fields) > 1:
            raise self._wrong(f"{kind.value} of several fields", "name one field of numbers")
        if not bounds:
            raise self._wrong("the condition has no bound", f"write one of {', '.join(BOUNDS)}")
        is_whole = kind in (Kind.EVENT_COUNT, Kind.VALUE_COUNT)
        if not _has_number(bounds, is_whole):
            raise self._wrong(f"no number fits {condition!r}", "widen the bounds")
        percentile = self._percentile(kind, condition.get("percentile"))
        return attrs.evolve(known, bounds=bounds, fields=fields, percentile=percentile)

    def _bounds(self, condition: object, others: Iterable[str]) -> tuple[tuple[str, float], ...]:
        if not isinstance(condition, Mapping):
            raise self._wrong(f"condition: {condition!r:.80}", "write condition: {gte: 5}")
        bounds = []
        for name, bound in condition.items():
            if name in others:
                continue
            if name not in BOUNDS:
                hint = did_you_mean(str(name), BOUNDS, f"the bounds are {', '.join(BOUNDS)}")
                raise self._wrong(f"unknown bound {name!r}", hint)
            is_number = isinstance(bound, int | float) and not isinstance(bound, bool)
            if not is_number or not abs(bound) <= _MOST_BOUND:
                raise self._wrong(f"{name}: expected a number, got {bound!r}", f"write {name}: 5")
            bounds.append((str(name), bound))
        return tuple(bounds)

    def _fields(self, given: object) -> tuple[str, ...]:
        names = [given] if isinstance(given, str) else given or []
        if not isinstance(names, list | tuple) or not all(isinstance(n, str) for n in names):
            raise self._wrong(f"field: expected names, got {given!r}", "write field: name")
        return tuple(names)

    def _percentile(self, kind: Kind, given: object) -> float:
        if (kind is Kind.VALUE_PERCENTILE) != (given is not None):
            problem = "without percentile" if given is None else f"with percentile {given!r}"
            raise self._wrong(f"{kind.value} {problem}", "write value_percentile, percentile: 95")
        if given is None:
            return 50
        if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= 100:
            raise self._wrong(f"percentile {given!r}", "write a number from 0 to 100")
        return float(given)


def _has_number(bounds: Iterable[tuple[str, float]], is_whole: bool) -> bool:
    """Whether some number fits bounds: a whole one from 0, or any."""
    bounds = tuple(bounds)
    ends = {bound for _, bound in bounds}
    if is_whole:
        near = {math.floor(end) + step for end in ends for step in (-1, 0, 1, 2)}
        numbers: Iterable[float] = [0, *(number for number in near if number >= 0)]
    else:
        ordered = sorted(ends)
        between = [(low + high) / 2 for low, high in pairwise(ordered)]
        numbers = [ordered[0] - 1, *ordered, *between, ordered[-1] + 1]
    return any(all(BOUNDS[name](number, bound) for name, bound in bounds) for number in numbers)
