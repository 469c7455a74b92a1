# SPDX-License-Identifier: Apache-2.0
"""The routes of events to many rules: which keys rules have in common, and who wants an event."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.eql import Eql
from pyflinkcep.matching.columns import Flags, Ints, integers, plain_numbers, taken, values_of
from pyflinkcep.pattern import Pattern
from pyflinkcep.rules.alike_patterns import AlikePatterns, ToldConditions, listed
from pyflinkcep.rules.query_rules import type_at
from pyflinkcep.rules.rule import Rule
from pyflinkcep.rules.rule_keys import condition_code
from pyflinkcep.rules.rule_matches import RuleMatches
from pyflinkcep.rules.shared_events import Condition, Conditions, SharedEvents
from pyflinkcep.rules.sigma_correlation import SigmaCorrelation
from pyflinkcep.rules.wanting_rule import FoundByRule, WantingRule
from pyflinkcep.rules.wants import Wants
from pyflinkcep.tables.eql_match import Narrowed, key_time
from pyflinkcep.tables.field_values import FieldValues
from pyflinkcep.tables.order import Rows

BY_ITSELF = "each event by itself"
_MOST_ROUTES = (1 << 31) - 1
Fields = tuple[str, ...]
"""The fields by which a route sends events, in order; none to send all to one place."""


def number_of(value: Any) -> int:
    """Return a number by which events are sent, the same for values that are equal in any type."""
    if value is None:
        return 0
    if isinstance(value, datetime):
        value = key_time(value).astimezone(UTC)  # whatever clock shows it
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        try:
            value = float(value) + 0.0  # of -0.0, too
        except OverflowError:
            value = float("inf")
    return zlib.crc32(f"{type(value).__name__}{value}".encode(errors="surrogatepass"))


@attrs.frozen(eq=False)
class Demand:
    """The events that a rule wants to be sent by the values of a field."""

    route: int
    field: str  # Empty for events that are not sent by a field
    with_null: bool  # Whether it wants events without a value, too
    wants: Wants


@attrs.frozen(eq=False)
class RoutedRule:
    """A rule with its route."""

    rule: WantingRule
    route: int
    # The part of an EQL key by which events are sent, if one event may go to several places.
    position: int | None = None
    # The condition that stands for the events that it may see, if these are not all of its route.
    seen: int | None = None


@attrs.frozen(eq=False)
class Sent:
    """Events on their way: one for each route and place that wants it."""

    rows: Rows  # The events
    targets: Ints  # The route of each, and the number of the place
    # For each event, sent or not, the conditions that hold for it.
    _holding: pa.ListArray
    # Of those sent several times, the one that rules about single events see; None if they have a
    # route of their own for all of theirs.
    seen_alone: Flags | None
    mark: int  # The number that such a one has among its conditions

    def holding(self, order: Any) -> pa.ListArray:
        """Return for those sent, in an order, the conditions that hold for them."""
        lists = taken(self._holding, integers(self.rows[order]))
        if self.seen_alone is None:
            return lists
        offsets, is_seen = plain_numbers(lists.offsets), self.seen_alone[order]
        numbers = np.insert(plain_numbers(lists.flatten()), offsets[1:][is_seen], self.mark)
        ends = (offsets - offsets[0]) + np.r_[0, np.cumsum(is_seen)]
        return pa.ListArray.from_arrays(integers(ends.astype(np.int32)), integers(numbers))


@attrs.frozen(eq=False, slots=False)
class RoutedRules:
    """Rules with their routes; travels to the workers."""

    rules: Sequence[RoutedRule]
    demands: Sequence[Demand]
    routes: Sequence[Fields]
    conditions: Sequence[Condition]
    type: str  # The column of the event's type
    zone: str  # The clock of conditions
    timestamp: str  # The column of the event's time
    # The number of each condition that stays the same whatever the others are, if events travel
    # with these.
    codes: Ints | None = None
    # What stands for a condition of an event that rules about single events see where it is, with
    # those of a key: it is not sent again. None to send it by a route of its own.
    mark: int | None = None

    @classmethod
    def of(cls, rules: Sequence[Rule], probe: SharedEvents, zone: str) -> RoutedRules:
        """Check rules against events, and choose few routes for them."""
        found = cls.of_checked(rules, probe, zone)
        found.refuse(probe)
        return found

    def refuse(self, probe: SharedEvents) -> None:
        """Raise for what matching would refuse of rules."""
        no_events = probe.table.slice(0, 0)
        nothing = SharedEvents.of(no_events, probe.timestamp, probe.type, zone=self.zone, given={})
        alike = {number for own in self._alike for number in own.numbers[1:]}
        for number, own in enumerate(self.rules):
            if number not in alike:  # they would be refused for the same
                own.rule.found(nothing)

    @classmethod
    def of_checked(cls, rules: Sequence[Rule], probe: SharedEvents, zone: str) -> RoutedRules:
        """Do the same for rules that were checked before."""
        wanting = [WantingRule.of(rule, probe) for rule in rules]
        candidates = [ways_of(rule, probe) for rule in rules]
        routes: list[Fields] = []
        routed: list[RoutedRule] = []
        demands: list[Demand] = []
        for own, (fields, position) in zip(wanting, _chosen(candidates), strict=True):
            if fields not in routes:
                routes.append(fields)
            route = routes.index(fields)
            is_several = len(fields) > 1 or any(is_array(probe, field) for field in fields)
            routed.append(RoutedRule(own, route, position if is_several else None))
            demands += _demands(own, route, fields, position)
        assert isinstance(probe.timestamp, str)
        every = tuple(probe.conditions.every)
        return cls(
            routed, demands, routes, every, probe.type, zone, probe.timestamp, mark=len(every)
        )

    def send_by_moments(self, schema: pa.Schema) -> bool:
        """Whether events are sent by times that clocks of other zones show otherwise."""
        types = (type_at(schema, field) for fields in self.routes for field in fields)
        own = (getattr(type_, "value_type", type_) for type_ in types)  # those in arrays, too
        return any(getattr(type_, "tz", None) is not None for type_ in own)

    def with_codes(self) -> RoutedRules:
        """Return rules whose events travel with the codes of conditions."""
        codes = np.asarray([condition_code(one) for one in self.conditions], np.int64)
        return attrs.evolve(self, codes=codes, mark=None)

    @cached_property
    def route_numbers(self) -> list[int]:
        """The first half of targets, by route: the same whatever the others are."""
        found: list[int] = []
        for fields in self.routes:
            number = zlib.crc32("\n".join(fields).encode()) & _MOST_ROUTES
            while number in found:
                number = (number + 1) & _MOST_ROUTES
            found.append(number)
        return found

    @cached_property
    def codes_in_order(self) -> tuple[Ints, Ints]:
        """The numbers of conditions in the order of their codes, and these."""
        assert self.codes is not None
        order = np.argsort(self.codes)
        return order, self.codes[order]

    @cached_property
    def asking(self) -> Asking:
        """The patterns that want exactly the events for which any of their conditions holds."""
        return Asking.of(self)

    # --- before events are sent

    def sending(self) -> RoutedRules:
        """Return what is needed of them before events are sent."""
        return attrs.evolve(self, rules=())

    def events(self, table: pa.Table) -> SharedEvents:
        """Return events of which conditions are to be computed."""
        texts = [condition for condition in self.conditions if isinstance(condition, str)]
        return SharedEvents.of(table, self.timestamp, self.type, texts, self.zone, self._numbered)

    @cached_property
    def _numbered(self) -> Conditions:
        return Conditions(self.conditions)

    def sent(self, table: pa.Table) -> Sent:
        """Return which events are sent where."""
        events = self.events(table)
        size = table.num_rows
        by_route: dict[int, list[tuple[Ints, Ints]]] = {}
        for (route, field), masks in self._masks(events).items():
            for with_null, mask in enumerate(masks):
                if mask is not None:
                    own = _places(events, self.routes[route], field, mask, with_null)
                    by_route.setdefault(self.route_numbers[route], []).append(own)
        sent = {route: _once(pairs) for route, pairs in by_route.items()}
        alone: Flags | None = None
        if self.mark is not None and self._alone_number in sent and len(sent) > 1:
            alone = np.zeros(size, bool)
            alone[sent.pop(self._alone_number)[0]] = True
            left = alone.copy()  # those that no other rule wants
            for wanted, _ in sent.values():
                left[wanted] = False
            places = np.flatnonzero(left)
            sent[self._alone_number] = places, places
        none = np.zeros(0, np.int32)
        rows = np.concatenate([none, *(own.astype(np.int32) for own, _ in sent.values())])
        targets = np.concatenate(
            [none.astype(np.int64)] + [route << 32 | own for route, (_, own) in sent.items()]
        )
        if len(sent) > 1:  # in the order of events
            order = np.argsort(rows, kind="stable")
            rows, targets = rows[order], targets[order]
        if alone is not None:
            alone = alone[rows]
            alone[1:] &= rows[1:] != rows[:-1]
        held = listed([events.holding(n) for n in range(len(self.conditions))], size, self.codes)
        return Sent(rows, targets, held, alone, self.mark or 0)

    @cached_property
    def _alone_number(self) -> int:
        """The first half of targets of events by themselves; -1 if none are sent so."""
        route = (BY_ITSELF,)
        return self.route_numbers[self.routes.index(route)] if route in self.routes else -1

    def _masks(self, events: SharedEvents) -> dict[tuple[int, str], list[Any]]:
        """Return by route and field which events are wanted: with a value, and without, too."""
        found: dict[tuple[int, str], list[Any]] = {}
        size = events.table.num_rows
        for demand in self.demands:
            masks = found.setdefault((demand.route, demand.field), [None, None])
            if masks[demand.with_null] is None:
                masks[demand.with_null] = np.zeros(size, bool)
            mask, wants = masks[demand.with_null], demand.wants
            if wants.are_any:
                for number in wants.conditions:
                    mask[events.holding(number)] = True
            elif wants.wants_all:
                mask[:] = True
            else:
                mask[wants.of(events.holding, size).places] = True
        return found

    # --- where they arrive

    def arrived(self) -> RoutedRules:
        """Return what is needed of them where events arrive."""
        return attrs.evolve(self, demands=(), conditions=())

    def found(self, table: pa.Table, targets: Ints, holding: pa.Array) -> RuleMatches:
        """Return the matches of events of one route."""
        told = ToldConditions(holding)
        events = SharedEvents.of(
            table, self.timestamp, self.type, (), self.zone, Conditions(), told
        )
        route = int(targets[0]) >> 32
        found: dict[int, FoundByRule] = {}
        for alike in self._alike:
            if self.route_numbers[self.rules[alike.numbers[0]].route] == route:
                found.update(alike.found(events, told))
        if self.mark is not None and self.mark in told and route != self._alone_number:
            marked = attrs.evolve(events, given=_Marked(told, self.mark, table.num_rows))
            for number in self.wanting(self._alone_number, told):
                found[number] = self.rules[number].rule.found(marked)
        for number in self.wanting(route, told):
            if number not in self._alone:
                continue
            routed = self.rules[number]
            narrowed = None
            if routed.position is not None:
                narrowed = Narrowed(routed.position, number_of, targets & 0xFFFFFFFF)
            found[number] = routed.rule.found(events, narrowed)
        return RuleMatches(events, [found[number] for number in sorted(found)])

    @cached_property
    def _alike(self) -> Sequence[AlikePatterns]:
        """The patterns that are matched together."""
        return AlikePatterns.among(
            (number, own.rule, own.route)
            for number, own in enumerate(self.rules)
            if own.seen is None
        )

    @cached_property
    def _alone(self) -> Set[int]:
        """The rules that are matched by themselves."""
        together = {number for own in self._alike for number in own.numbers}
        return {number for number in range(len(self.rules)) if number not in together}

    def wanting(self, route: int, conditions: Iterable[int]) -> list[int]:
        """Return the rules of a route that want events for which some conditions hold."""
        own = {n for c in conditions for n in self._wanting.get((route, c), ())}
        return sorted(own.union(self._wanting.get((route, -1), ())))

    @cached_property
    def _wanting(self) -> dict[tuple[int, int], list[int]]:
        """The rules of a route that want events with a condition; by -1 those that want all."""
        found: dict[tuple[int, int], list[int]] = {}
        for number, routed in enumerate(self.rules):
            wants = routed.rule.wants
            everything = -1 if routed.seen is None else routed.seen
            for condition in (everything,) if wants.wants_all else wants.conditions:
                route = self.route_numbers[routed.route]
                found.setdefault((route, condition), []).append(number)
        return found


class _Marked(Mapping[int, Rows]):
    """The events for which conditions hold, of those that have a mark."""

    def __init__(self, told: ToldConditions, mark: int, size: int) -> None:
        self._told = told
        self._is_marked = np.zeros(size, bool)
        self._is_marked[told[mark]] = True

    def __getitem__(self, condition: int) -> Rows:
        """Return the rows for which a condition holds, in order."""
        rows = self._told[condition]
        return rows[self._is_marked[rows]]

    def __iter__(self) -> Iterator[int]:
        """Yield the conditions that hold for some event, marked or not."""
        return iter(self._told)

    def __len__(self) -> int:
        """Return how many these are."""
        return len(self._told)


@attrs.frozen(eq=False)
class Asking:
    """Which patterns ask for which conditions, in the order of conditions."""

    conditions: Ints
    rules: Ints
    bits: Ints  # That the pattern knows the condition by
    routes: Ints  # The number of the pattern's route
    known: Set[int]  # The patterns

    @classmethod
    def of(cls, rules: RoutedRules) -> Asking:
        """Return those of rules whose bits fit a number."""
        rows: list[tuple[int, int, int, int]] = []
        for number, routed in enumerate(rules.rules):
            wants, route = routed.rule.wants, rules.route_numbers[routed.route]
            if routed.rule.pattern is not None and wants.are_any and not max(wants.bits) >> 62:
                rows += (
                    (condition, number, bit, route)
                    for condition, bit in zip(wants.conditions, wants.bits, strict=True)
                )
        conditions, own, bits, routes = np.asarray(sorted(rows), np.int64).reshape(-1, 4).T
        return cls(conditions, own, bits, routes, frozenset(own.tolist()))


def ways_of(rule: Rule, events: SharedEvents) -> list[tuple[Fields, int | None]]:
    """Return the ways to send a rule's events, each with the part of an EQL key that it is."""
    definition = rule.definition
    if isinstance(definition, Eql):
        model = definition.model
        if model.pipes:
            return [((), None)]
        if not model.is_sequence:
            return [((BY_ITSELF,), None)]
        keys = [step.keys for step in model.every]
        return [(tuple(sorted({own[n].path for own in keys})), n) for n in range(len(keys[0]))] or [
            ((), None)
        ]
    if isinstance(definition, SigmaCorrelation):
        names = definition.common_fields
    elif isinstance(definition, Pattern) or definition.is_global:
        names = rule.key
    else:
        names = (*rule.key, *definition.equal)
    own = [name for name in dict.fromkeys(names) if _has_one_value(events, name)]
    return [((name,), None) for name in own] or [((), None)]


def _has_one_value(events: SharedEvents, name: str) -> bool:
    """Whether a field has one value in each event: a list is one here, but in EQL it is several."""
    columns = events.table.schema
    if name in columns.names:
        is_either = "." in name and name.split(".")[0] in columns.names
        return not is_either and not pa.types.is_nested(columns.field(name).type)
    return name in events.fields and not is_array(events, name)


def _chosen(
    candidates: Sequence[Sequence[tuple[Fields, int | None]]],
) -> list[tuple[Fields, int | None]]:
    """Return a way for each rule, so that there are few: that of most rules first."""
    found: dict[int, tuple[Fields, int | None]] = {}
    while len(found) < len(candidates):
        left = [number for number in range(len(candidates)) if number not in found]
        counts = Counter(fields for n in left for fields in {one for one, _ in candidates[n]})
        (best, _), *_ = counts.most_common(1)
        for number in left:
            own = next((way for way in candidates[number] if way[0] == best), None)
            if own is not None:
                found[number] = own
    return [found[number] for number in range(len(candidates))]


def is_array(events: SharedEvents, field: str) -> bool:
    """Whether an event may have several values of a field."""
    values = events.fields.values_of(field) if field in events.fields else None
    return isinstance(values, FieldValues) and values.bounds is not None


def _demands(
    own: WantingRule, route: int, fields: Fields, position: int | None
) -> Iterator[Demand]:
    """Yield what a rule wants to be sent."""
    if position is None:
        yield Demand(route, fields[0] if fields else "", True, own.wants)
        return
    definition = own.rule.definition
    assert isinstance(definition, Eql)
    by_key: dict[tuple[str, bool], list[int]] = {}
    for step, number in zip(definition.model.every, own.wants.conditions, strict=True):
        key = step.keys[position]
        by_key.setdefault((key.path, key.optional), []).append(number)
    for (path, optional), numbers in by_key.items():
        yield Demand(route, path, optional, Wants.any_of(tuple(numbers)))


def _places(
    events: SharedEvents, fields: Fields, field: str, mask: Any, with_null: int
) -> tuple[Ints, Ints]:
    """Return the events that are sent by a field, and the number of the place of each."""
    rows = np.flatnonzero(mask)
    if fields == (BY_ITSELF,):
        return rows, rows
    if not field:
        return rows, np.zeros(len(rows), np.int64)
    return _by_value(events, field, rows, with_null)


def _once(pairs: Sequence[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    """Return events and places, in the order of events, each pair once."""
    if len(pairs) == 1 and (pairs[0][0][1:] > pairs[0][0][:-1]).all():
        return pairs[0]
    known = np.unique(np.concatenate([rows << 32 | numbers for rows, numbers in pairs]))
    return known >> 32, known & 0xFFFFFFFF


def _by_value(events: SharedEvents, field: str, rows: Ints, with_null: int) -> tuple[Ints, Ints]:
    """Return some events with the numbers of their values of a field."""
    values = events.fields.values_of(field) if field in events.fields else None
    if not isinstance(values, FieldValues):
        if field not in events.table.column_names:  # an optional field that is missing
            return (rows, np.zeros(len(rows), np.int64)) if with_null else (rows[:0], rows[:0])
        listed = values_of(events.table.column(field).take(integers(rows)))
        return rows, np.asarray(list(map(number_of, listed)), np.int64)
    if values.bounds is None:
        codes = values.codes[rows]
    else:
        with_values, codes = values.choices
        own = np.isin(with_values, rows)
        without = np.setdiff1d(rows, with_values)
        rows = np.append(with_values[own], without)
        codes = np.append(codes[own], np.full(len(without), -1))
    if not with_null:
        rows, codes = rows[codes >= 0], codes[codes >= 0]
    places = codes + 1  # of null at the beginning
    used = np.flatnonzero(np.bincount(places)).tolist()
    known = np.zeros(used[-1] + 1 if used else 0, np.int64)
    known[used] = [number_of(values.distinct[n - 1] if n else None) for n in used]
    return rows, known[places]
