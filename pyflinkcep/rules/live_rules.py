# SPDX-License-Identifier: Apache-2.0
"""Rules on a stream that come and go, compiled; each sees the events that arrive in its life."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.errors import CepError, NotSupportedError, StateFormatError
from pyflinkcep.expressions.tree import Literal
from pyflinkcep.matching.columns import HASH, Flags, Ints, in_one_piece, integers, plain_numbers
from pyflinkcep.matching.matcher import ranges
from pyflinkcep.rules.alike_patterns import number_type
from pyflinkcep.rules.document import Part
from pyflinkcep.rules.finishing import begin_of, finishing_time
from pyflinkcep.rules.page_events import HOLDING
from pyflinkcep.rules.pattern_reader import registry_of
from pyflinkcep.rules.routes import (
    BY_ITSELF,
    Demand,
    Fields,
    RoutedRule,
    RoutedRules,
    is_array,
    ways_of,
)
from pyflinkcep.rules.rule import Rule
from pyflinkcep.rules.rule_file import rule_of
from pyflinkcep.rules.rule_keys import condition_code, number_of_text
from pyflinkcep.rules.rule_lives import RuleLife, document_of
from pyflinkcep.rules.rules_in_force import RuleChange
from pyflinkcep.rules.running_patterns import StreamPattern
from pyflinkcep.rules.shared_events import Condition, Conditions, SharedEvents
from pyflinkcep.rules.stream_rules import StreamRules
from pyflinkcep.rules.wanting_rule import WantingRule, needed_texts, shared_events
from pyflinkcep.rules.wants import Wants
from pyflinkcep.sase import SaseQuery
from pyflinkcep.sase.types import literal_moments
from pyflinkcep.tables.order import Rows

_MOST_RULES = 20_000

_ASKED = Literal(True)
"""A condition that holds for events of which those of all rules were asked before they came."""


@attrs.frozen(slots=False)
class RuleBasis:
    """What rules of a stream are checked against; the same on the driver and all workers."""

    probe: bytes  # Events of which no rule can have more general ones, as an Arrow stream
    timestamp: str  # The column of the event's time
    type: str  # The column of the event's type
    zone: str  # The clock of conditions
    routes: tuple[Fields, ...]  # How events are sent

    @cached_property
    def table(self) -> pa.Table:
        """The columns of events."""
        return pa.ipc.open_stream(self.probe).read_all()

    def events_for(self, rule: Rule) -> SharedEvents:
        """Return events for a rule to be checked against; what others found out is known."""
        found = shared_events([rule], self.table, self.timestamp, self.type, self.zone)
        return attrs.evolve(found, fields=self._events.fields, needs=self._events._needs)

    @cached_property
    def _events(self) -> SharedEvents:
        return SharedEvents.of(self.table, self.timestamp, self.type, (), self.zone)

    @property
    def sending(self) -> RoutedRules:
        """What sends each event by all routes, before any rule is known."""
        return RoutedRules(
            rules=(),
            demands=[
                Demand(number, field, True, Wants())
                for number, fields in enumerate(self.routes)
                for field in fields or ("",)
            ],
            routes=self.routes,
            conditions=(),
            type=self.type,
            zone=self.zone,
            timestamp=self.timestamp,
            codes=np.zeros(0, np.int64),
        )


@attrs.frozen(eq=False)
class CompiledRule:
    """A rule on the events of a stream."""

    wanting: WantingRule  # Its conditions are numbered in their order
    conditions: tuple[Condition, ...]
    begins: frozenset[int]  # The conditions of events that begin a match, if it may finish
    finishes: int | None  # See `RuleLife`
    route: int
    position: int | None
    pattern: StreamPattern | None
    code: int

    @property
    def whole_code(self) -> int:
        """What stands for its code and those of its conditions."""
        own = [self.code, *map(condition_code, self.conditions)]
        return number_of_text(" ".join(map(str, own)))


@lru_cache(maxsize=_MOST_RULES)
def _read(basis: RuleBasis, document: str) -> tuple[Rule, SharedEvents, RoutedRules]:
    """Return the rule of a document, events to check it against, and it on these."""
    rule = rule_of(Part(json.loads(document)), registry_of(None))
    probe = basis.events_for(rule)
    return rule, probe, RoutedRules.of_checked([rule], probe, basis.zone)


@lru_cache(maxsize=_MOST_RULES)
def compiled(basis: RuleBasis, document: str, sent_by: Fields | None = None) -> CompiledRule:
    """Return the rule of a document; raise CepError if a stream like this cannot run it."""
    # `sent_by` is how the events of a rule in force have been sent, which its state and the queue
    # depend on; such a rule was checked when it came into force.
    rule, probe, routed = _read(basis, document)
    if sent_by is None:
        routed.refuse(probe)
    _refuse_conditions(rule, probe, basis.zone)
    route, position = _way(rule, probe, basis.routes, sent_by)
    stream = StreamRules.of(attrs.evolve(routed, routes=basis.routes[route : route + 1]), probe)
    wanting = routed.rules[0].rule
    wants = wanting.wants
    conditions = tuple(routed.conditions[number] for number in wants.conditions)
    in_order = attrs.evolve(wants, conditions=tuple(range(len(conditions))))
    finishes = finishing_time(rule)
    return CompiledRule(
        attrs.evolve(wanting, wants=in_order),
        conditions,
        frozenset() if finishes is None else _begins(wanting),
        finishes,
        route,
        position,
        _never_failing(stream.patterns.get(0)),
        int(stream.codes[0]),
    )


def _refuse_conditions(rule: Rule, probe: SharedEvents, zone: str) -> None:
    """Raise for what cannot be asked of events without Spark, or could fail on one of them."""
    for text in needed_texts(rule):
        if not probe.computes(text):
            raise NotSupportedError(
                f"{text!r} can fail on some value, or only Spark computes it",
                "write a condition that cannot fail, such as try_divide for /",
            )
    definition = rule.definition
    if isinstance(definition, SaseQuery) and zone != "UTC" and any(literal_moments(definition)):
        raise NotSupportedError(
            "its query has literal dates or timestamps, which are those of the session's clock",
            "set spark.sql.session.timeZone to UTC",
        )


def _never_failing(pattern: StreamPattern | None) -> StreamPattern | None:
    """Return a pattern in whose SQL over stages NULL is what cannot be computed."""
    # What fails would fail again when the micro-batch is repeated, before the rule can be paused.
    if pattern is None or pattern.sql is None:
        return pattern
    own = pattern.sql
    sql = attrs.evolve(own, expressions=attrs.evolve(own.expressions, ansi=False), fails=False)
    return attrs.evolve(pattern, sql=sql)


def _begins(rule: WantingRule) -> frozenset[int]:
    """Return the conditions of events that begin a match, if no others have them."""
    if rule.pattern is None:
        return frozenset({0})  # of the first step
    begin = begin_of(rule.pattern.pattern)
    bits = {atom.bit for atom in rule.pattern.nfa.atoms if atom.stage == begin}
    return frozenset(place for place, bit in enumerate(rule.wants.bits) if bit in bits)


def checked(basis: RuleBasis, change: RuleChange) -> tuple[int | None, Fields, int]:
    """Return how long a rule goes on when it ends, its route, and its code; see `Check`."""
    rule = compiled(basis, document_of(change))
    return rule.finishes, basis.routes[rule.route], rule.whole_code


def _way(
    rule: Rule, probe: SharedEvents, routes: Sequence[Fields], sent_by: Fields | None
) -> tuple[int, int | None]:
    """Return a route by which all events that a rule wants together come to one place."""
    ways = ways_of(rule, probe)
    for fields, position in [*ways, ((), None)]:
        if fields in routes and sent_by in (None, fields):
            is_several = _sends_several(fields, probe)
            return routes.index(fields), position if is_several else None
    if ways[0][0] == (BY_ITSELF,):
        numbers = sorted(range(len(routes)), key=lambda number: routes[number] != sent_by)
        for number in numbers:
            if not _sends_several(routes[number], probe):
                return number, None
    own = [fields for fields, _ in ways] if sent_by is None else [sent_by]
    wanted = " or ".join(", ".join(fields) or "no column" for fields in own)
    raise NotSupportedError(
        f"its events would be sent by {wanted}, those of the stream are sent by "
        f"{' and by '.join(', '.join(fields) for fields in routes)}",
        "start the query anew with that column among its keys, and publish the rule with a higher "
        "version",
    )


def _sends_several(fields: Fields, probe: SharedEvents) -> bool:
    """Whether one event may be sent to several places."""
    return len(fields) > 1 or any(is_array(probe, field) for field in fields)


def routes_of(published: Iterable[Iterable[Rule]], basis: RuleBasis) -> tuple[Fields, ...]:
    """
    Return the routes that rules need: of a rule with several keys, its first.

    Given are the rules of each publication. A query that starts again has all routes that it may
    have had, so that events which wait for the watermark find their rules.
    """
    found: dict[Fields, bool] = {}
    has_singles = False
    for rules in published:
        for rule in rules:
            with suppress(CepError):
                probe = basis.events_for(rule)
                RoutedRules.of([rule], probe, basis.zone)  # which refuses what cannot be asked
                fields = ways_of(rule, probe)[0][0]
                if fields == (BY_ITSELF,):
                    has_singles = True
                else:
                    found[fields] = _sends_several(fields, probe)
        if has_singles and all(found.values()):
            found[BY_ITSELF,] = False
    return tuple(found)


# --- before events are sent


@lru_cache(maxsize=4)
def sending_of(basis: RuleBasis, documents: tuple[str, ...]) -> RoutedRules:
    """
    Return what sends the events that rules may want, which may be in force where they arrive.

    By which route each is in force is in the state of buckets alone.
    """
    shared = Conditions([_ASKED])
    wanted: list[set[int]] = [set() for _ in basis.routes]
    want_all: set[int] = set()
    for document in documents:
        conditions, wants_all, routes = _demanded(basis, document)
        numbers = list(map(shared.number, conditions))
        for route in routes:
            wanted[route].update(numbers)
            if wants_all:
                want_all.add(route)
    demands = [
        Demand(number, field, True, Wants() if number in want_all else Wants.any_of(tuple(own)))
        for number, own in enumerate(wanted)
        for field in basis.routes[number] or ("",)
    ]
    return attrs.evolve(basis.sending, demands=demands, conditions=shared.every).with_codes()


@lru_cache(maxsize=_MOST_RULES)
def _demanded(
    basis: RuleBasis, document: str
) -> tuple[tuple[Condition, ...], bool, tuple[int, ...]]:
    """Return the conditions of a rule, whether it wants all events, and by which routes it may."""
    routes: set[int] = set()
    try:
        rule, probe, routed = _read(basis, document)
        _refuse_conditions(rule, probe, basis.zone)
    except CepError:
        return (), False, ()  # No bucket runs it
    for sent_by in basis.routes:
        with suppress(CepError):
            routes.add(_way(rule, probe, basis.routes, sent_by)[0])
    wants = routed.rules[0].rule.wants
    conditions = tuple(routed.conditions[number] for number in wants.conditions)
    return conditions, wants.wants_all, tuple(routes)


# --- where they arrive


@attrs.frozen(eq=False)
class _Own:
    """A rule in one of its lives."""

    life: RuleLife
    rule: CompiledRule
    codes: tuple[int, ...]  # Those of its conditions
    code: int | None  # That of the events that it may see, if it wants all
    of_states: int  # That of its states

    @property
    def sees_all(self) -> bool:
        """Whether it sees all events that arrive, and wants those with any of its conditions."""
        life = self.life
        return life.begin is None and life.end is None and self.rule.wanting.wants.are_any


@lru_cache(maxsize=_MOST_RULES)
def _own(basis: RuleBasis, life: RuleLife) -> _Own:
    """Return the rule of a life, made once in a process: most go on when some change."""
    rule = compiled(basis, life.document, life.sent_by)
    if life.code not in (None, rule.whole_code):
        raise StateFormatError(
            f"rule {life.name!r}: its state is of another release, which runs the rule otherwise",
            "restore with the release that wrote it, or start from empty state",
        )
    salt = f"{life.since} {life.name}"
    codes = tuple(
        number_of_text(f"{salt} {place} {condition_code(one)}")
        for place, one in enumerate(rule.conditions)
    )
    code = number_of_text(f"{salt} all") if rule.wanting.wants.wants_all else None
    return _Own(life, rule, codes, code, number_of_text(f"{salt} {rule.code}"))


@attrs.frozen(eq=False, slots=False)
class LiveRules:
    """The rules of a bucket."""

    basis: RuleBasis
    stream: StreamRules  # What runs them
    conditions: Conditions  # The different conditions
    asking: _Asking  # Those that see all events
    # The others that take events, with the numbers of their conditions among the different ones.
    rest: Sequence[tuple[_Own, tuple[int, ...]]]

    @classmethod
    def of(cls, basis: RuleBasis, lives: Iterable[RuleLife]) -> LiveRules:
        """Compile the rules of some lives."""
        routed: list[RoutedRule] = []
        every: list[Condition] = []
        codes: list[int] = []
        patterns: dict[int, StreamPattern] = {}
        shared, taking = Conditions(), list[tuple[_Own, tuple[int, ...]]]()
        owns = [_own(basis, life) for life in lives]
        for own in owns:
            rule, first, place = own.rule, len(every), None
            every += rule.conditions
            codes += own.codes
            if own.code is not None:
                place = len(every)
                every.append("")
                codes.append(own.code)
            wants = rule.wanting.wants
            moved = attrs.evolve(wants, conditions=tuple(first + n for n in wants.conditions))
            wanting = attrs.evolve(rule.wanting, wants=moved)
            if rule.pattern is not None:
                patterns[len(routed)] = rule.pattern
            routed.append(RoutedRule(wanting, rule.route, rule.position, place))
            if own.life.takes_events:
                taking.append((own, tuple(map(shared.number, rule.conditions))))
        rules = RoutedRules(
            routed,
            (),
            basis.routes,
            every,
            basis.type,
            basis.zone,
            basis.timestamp,
            np.asarray(codes, np.int64),
        )
        of_states = np.asarray([own.of_states for own in owns], np.int64)
        stream = StreamRules(rules, of_states, patterns)
        asking = _Asking.of((one for one in taking if one[0].sees_all), rules.route_numbers)
        rest = [one for one in taking if not one[0].sees_all]
        return cls(basis, stream, shared, asking, rest)

    def arrived(self, table: pa.Table) -> pa.Table:
        """Return the events that rules want, of those that arrive, with what holds for them."""
        told = self._told(in_one_piece(table.column(HOLDING)))
        events = None if told is not None and not self.rest else self._events(table)
        if told is None:
            assert events is not None
            told = _Holding.of([events.holding(n) for n in range(len(self.conditions.every))])
        targets = plain_numbers(table.column(HASH)) >> 32
        found, codes = self.asking.codes_of(told, targets)
        is_wanted = np.zeros(table.num_rows, bool)
        is_wanted[found] = True
        rows = [found]
        every = [codes]
        if self.rest:
            assert events is not None
            held = told.by_number(len(self.conditions.every))
            for own, numbers in self.rest:
                in_route = targets == self.stream.routed.route_numbers[own.rule.route]
                of_rule = [held[number] for number in numbers]
                for code, places in _seen(own, of_rule, events.ms, in_route, is_wanted):
                    rows.append(places)
                    every.append(np.full(len(places), code))
        return _with_codes(table, np.concatenate(rows), np.concatenate(every), is_wanted)

    def _events(self, table: pa.Table) -> SharedEvents:
        basis = self.basis
        own = table.select([name for name in table.column_names if name not in (HASH, HOLDING)])
        texts = [one for one in self.conditions.every if isinstance(one, str)]
        return SharedEvents.of(own, basis.timestamp, basis.type, texts, basis.zone, self.conditions)

    def _told(self, lists: pa.ListArray) -> _Holding | None:
        """Return the conditions that hold for events, if all were asked before they came."""
        codes = plain_numbers(lists.flatten())
        if np.count_nonzero(codes == condition_code(_ASKED)) < len(lists):
            return None
        order, ordered = self._in_order
        rows = np.repeat(np.arange(len(lists)), np.diff(plain_numbers(lists.offsets)))
        places = np.searchsorted(ordered, codes)
        is_known = ordered[places] == codes  # those of other versions are not
        return _Holding(order[places[is_known]], rows[is_known])

    @cached_property
    def _in_order(self) -> tuple[Ints, Ints]:
        """The numbers of the different conditions in the order of their codes, and these."""
        codes = np.asarray(list(map(condition_code, self.conditions.every)), np.int64)
        order = np.argsort(codes)
        # The last code is beyond all others.
        return np.append(order, len(order)), np.append(codes[order], np.iinfo(np.int64).max)


@attrs.frozen(eq=False)
class _Holding:
    """Conditions that hold for events: pairs of a number and a row, in the order of either."""

    numbers: Ints
    rows: Ints

    @classmethod
    def of(cls, held: Sequence[Rows]) -> _Holding:
        """Return those of the rows for which each condition holds."""
        numbers = np.repeat(np.arange(len(held)), list(map(len, held)))
        return cls(numbers, np.concatenate([np.zeros(0, np.int64), *held]))

    def by_number(self, count: int) -> list[Ints]:
        """Return the rows for which each of some conditions holds, in order."""
        order = np.argsort(self.numbers.astype(number_type(count)), kind="stable")
        ends = np.cumsum(np.bincount(self.numbers, minlength=count))
        return np.split(self.rows[order], ends[: count - 1])


@attrs.frozen(eq=False)
class _Asking:
    """The rules that see all events that arrive, by the conditions of those that they want."""

    ends: Ints  # By condition, where its rules end
    codes: Ints  # What each knows it by
    routes: Ints  # The first half of targets of each

    @classmethod
    def of(
        cls, rules: Iterable[tuple[_Own, Sequence[int]]], route_numbers: Sequence[int]
    ) -> _Asking:
        """Return it for rules with the numbers of their conditions."""
        rows = [
            (number, route_numbers[own.rule.route], code)
            for own, numbers in rules
            for number, code in zip(numbers, own.codes, strict=True)
        ]
        numbers, routes, codes = np.asarray(sorted(rows), np.int64).reshape(-1, 3).T
        return cls(np.r_[0, np.cumsum(np.bincount(numbers))], codes, routes)

    def codes_of(self, held: _Holding, targets: Ints) -> tuple[Ints, Ints]:
        """Return the rows of events that rules want, and the code of each condition that holds."""
        is_asked = held.numbers < len(self.ends) - 1
        numbers, rows = held.numbers[is_asked], held.rows[is_asked]
        sizes = np.diff(self.ends)[numbers]
        own, rows = ranges(self.ends[numbers], sizes), np.repeat(rows, sizes)
        is_sent = self.routes[own] == targets[rows]
        return rows[is_sent], self.codes[own[is_sent]]


def _seen(
    own: _Own,
    holding: Sequence[Ints],
    times: Ints,
    in_route: Flags,
    is_wanted: Flags,
) -> Iterable[tuple[int, Ints]]:
    """Return codes, and the rows that have them; note which rows a rule wants."""
    life, rule, wants = own.life, own.rule, own.rule.wanting.wants
    if life.begin is not None:
        in_route = in_route & (times >= life.begin)
    begins = in_route if life.end is None else in_route & (times < life.end)
    if life.finishes is None:
        in_route = begins
    held: list[Any] = [
        rows[(begins if place in rule.begins else in_route)[rows]]
        for place, rows in enumerate(holding)
    ]
    if wants.wants_all:
        is_wanted |= in_route
    elif wants.are_any:
        for rows in held:
            is_wanted[rows] = True
    else:
        is_wanted[wants.of(held.__getitem__, len(in_route)).places] = True
    found = list(zip(own.codes, held, strict=False))
    if own.code is not None:
        found.append((own.code, np.flatnonzero(in_route)))
    return found


def _with_codes(table: pa.Table, rows: Ints, codes: Ints, is_wanted: Flags) -> pa.Table:
    """Return wanted events with codes."""
    kept = is_wanted[rows]
    rows, codes = rows[kept], codes[kept]
    order = np.argsort(rows, kind="stable")
    ends = np.cumsum(np.bincount(rows, minlength=len(is_wanted)))
    offsets = np.r_[0, ends].astype(np.int32)
    lists = pa.ListArray.from_arrays(integers(offsets), integers(codes[order]))
    place = table.column_names.index(HOLDING)
    field = table.schema.field(HOLDING)
    found = table.set_column(place, field, lists.cast(field.type))
    return found.filter(pa.array(is_wanted))


@lru_cache(maxsize=16)
def live_rules(basis: RuleBasis, lives: tuple[RuleLife, ...]) -> LiveRules:
    """Return the rules of some lives, compiled once in a process."""
    return LiveRules.of(basis, lives)
