# SPDX-License-Identifier: Apache-2.0
"""The events of pages' keys as rules on a stream see them: held ones, and which want the new."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from functools import cached_property

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.eql.model import Field as EqlField
from pyflinkcep.matching.columns import HASH, PREFIX, Ints, in_one_piece, plain_numbers
from pyflinkcep.matching.keys import Hashes
from pyflinkcep.matching.matcher import Items, ranges
from pyflinkcep.rules.routes import RoutedRules
from pyflinkcep.rules.rule_keys import key_hashes
from pyflinkcep.rules.shared_events import Conditions, SharedEvents
from pyflinkcep.tables.order import Rows

HOLDING = f"{PREFIX}holding"
"""The column with the conditions that hold for an event."""

EveryKey = tuple[tuple[EqlField, ...], ...]
"""The keys of the steps of a query."""

_NOTHING: Ints = np.zeros(0, np.int64)


@attrs.frozen(eq=False)
class RuleEvents:
    """Events that rules want, rule by rule."""

    rules: Ints  # The rule of each
    rows: Ints  # In order, for each rule
    bits: Ints  # Those of the conditions that hold, for rules that are not `apart`
    places: Ints  # Their numbers, for rules that are
    # The bits of rules with other ones: None if no conditions are known, or some words.
    apart: Mapping[int, Ints | None]

    def taken(self, order: Ints) -> RuleEvents:
        """Return the events in another order."""
        own = (self.rules[order], self.rows[order], self.bits[order], self.places[order])
        return RuleEvents(*own, self.apart)

    def bits_of(self, rule: int, begin: int, end: int) -> Ints | None:
        """Return the bits of a rule's events, which are some of all; see `Events`."""
        if rule not in self.apart:
            return self.bits[begin:end]
        bits = self.apart[rule]
        return None if bits is None else bits[self.places[begin:end]]


@attrs.frozen(eq=False, slots=False)
class PageEvents:
    """The events of a run: those that states hold, then the due ones. They are known by row."""

    rules: RoutedRules
    shared: SharedEvents
    held: int  # How many are held
    owners: Ints  # The number of the item of each due event
    targets: Ints  # Where each due event was sent
    watermark: int
    _told: Told

    @classmethod
    def of(
        cls, rules: RoutedRules, table: pa.Table, due: pa.Table, items: Items, watermark: int
    ) -> PageEvents:
        """Return the events of a page."""
        sizes = items.ends - items.starts
        owners = np.zeros(due.num_rows, np.int64)
        owners[ranges(items.starts, sizes)] = np.repeat(np.arange(len(sizes)), sizes)
        targets = plain_numbers(due.column(HASH))
        held = table.num_rows - due.num_rows
        found = Told.of(rules, in_one_piece(due.column(HOLDING)), targets >> 32, held)
        shared = SharedEvents.of(
            table, rules.timestamp, rules.type, (), rules.zone, Conditions(), {}
        )
        return cls(rules, shared, held, owners, targets, watermark, found)

    @cached_property
    def _holding(self) -> dict[tuple[int, int], Ints]:
        """The due events for which a condition holds, by route and number of the condition."""
        return self._told.by_condition()

    @property
    def size(self) -> int:
        """The number of all events."""
        return self.held + len(self.owners)

    @cached_property
    def wanting(self) -> list[int]:
        """The rules that want some of the due events."""
        own: dict[int, list[int]] = {route: [] for route in self._routes}
        for route, number in self._holding:
            own[route].append(number)
        found = (self.rules.wanting(route, numbers) for route, numbers in own.items())
        return sorted(number for part in found for number in part)

    @cached_property
    def _routes(self) -> dict[int, Ints]:
        """The rows of each route's due events."""
        own = self.targets >> 32
        return {
            route: self.held + np.flatnonzero(own == route) for route in np.unique(own).tolist()
        }

    def route_of(self, rule: int) -> int:
        """Return the number of a rule's route."""
        return self.rules.route_numbers[self.rules.rules[rule].route]

    def holding(self, rule: int, condition: int) -> Ints:
        """Return the rows of due events sent to a rule for which a condition holds, in order."""
        return self.holding_in(self.rules.rules[rule].route, condition)

    def holding_in(self, route: int, condition: int) -> Ints:
        """Return the rows of due events sent by a route for which a condition holds, in order."""
        return self._holding.get((self.rules.route_numbers[route], condition), _NOTHING)

    def wanted(self, rule: int) -> tuple[Ints, Ints | None]:
        """Return the rows of due events that a rule wants, in order, and the bits of what holds."""
        seen = self.rules.rules[rule].seen
        if seen is None:
            rows = self._routes.get(self.route_of(rule), _NOTHING)
        else:
            rows = self.holding(rule, seen)

        def places(condition: int) -> Rows:
            return np.searchsorted(rows, self.holding(rule, condition)).astype(np.int32)

        found = self.rules.rules[rule].rule.wants.of(places, len(rows))
        return rows[found.places], found.bits

    def wanted_by(self, patterns: Container[int]) -> RuleEvents:
        """Return the due events that some patterns want."""
        told, asking = self._told, self.rules.asking
        firsts = np.searchsorted(asking.conditions, told.numbers)
        sizes = np.searchsorted(asking.conditions, told.numbers, "right") - firsts
        own = ranges(firsts, sizes)
        is_sent = asking.routes[own] == np.repeat(told.routes, sizes)
        own, rows = own[is_sent], np.repeat(told.rows, sizes)[is_sent]
        pairs = asking.rules[own] << 32 | rows
        order = np.argsort(pairs, kind="stable")
        pairs = pairs[order]
        begins = np.flatnonzero(np.r_[True, pairs[1:] != pairs[:-1]][: len(pairs)])
        bits = asking.bits[own][order]
        bits = np.bitwise_or.reduceat(bits, begins) if len(bits) else bits
        pairs = pairs[begins]
        parts = [(pairs >> 32, pairs & 0xFFFFFFFF, bits, np.zeros(len(pairs), np.int64))]
        apart: dict[int, Ints | None] = {}
        for number in self.wanting:
            if number in patterns and number not in asking.known:
                rows, apart[number] = self.wanted(number)
                places = np.arange(len(rows))
                parts.append((np.full(len(rows), number), rows, np.zeros_like(rows), places))
        of_rules, rows, bits, places = map(np.concatenate, zip(*parts, strict=True))
        return RuleEvents(of_rules, rows, bits, places, apart)

    def owner_of(self, rows: Ints) -> Ints:
        """Return the item of due events."""
        return self.owners[rows - self.held]

    def keys(self, names: Sequence[str]) -> Ints:
        """Return a number for the key of each event."""
        known = self._keys
        if tuple(names) not in known:
            known[tuple(names)] = key_hashes(self.shared.table, names)
        return known[tuple(names)]

    @cached_property
    def _keys(self) -> dict[tuple[str, ...], Ints]:
        return {}

    @cached_property
    def field_hashes(self) -> dict[tuple[str, bool], Hashes]:
        """The numbers of the values of fields, or of these as doubles, as far as they are known."""
        return {}

    @cached_property
    def key_numbers(self) -> dict[EveryKey, dict[tuple[EqlField, ...], tuple[Ints | None, Ints]]]:
        """
        The events with keys of steps, and the numbers of these, as far as they are known.

        They are by the keys of all steps of a query, which say whether numbers are compared as
        doubles, and then by those of the step. Without events, each of all has one number.
        """
        return {}

    @cached_property
    def in_time(self) -> Ints:
        """The numbers of due events, from 0 on, in the order of time."""
        return np.argsort(self.shared.times.exact()[self.held :], kind="stable")


@attrs.frozen(eq=False)
class Told:
    """What is known of due events: conditions that hold, by route, condition and row."""

    routes: Ints
    numbers: Ints  # Of conditions
    rows: Ints

    @classmethod
    def of(cls, rules: RoutedRules, lists: pa.ListArray, routes: Ints, held: int) -> Told:
        """Read what came with events."""
        known = rules.codes
        assert known is not None
        codes = plain_numbers(lists.flatten())
        rows = np.repeat(np.arange(len(lists)), np.diff(plain_numbers(lists.offsets)))
        order, ordered = rules.codes_in_order
        if not len(known) or not len(codes):
            return cls(_NOTHING, _NOTHING, _NOTHING)
        places = np.minimum(np.searchsorted(ordered, codes), len(known) - 1)
        is_known = ordered[places] == codes  # a rule that is no longer there may have others
        rows, numbers = rows[is_known], order[places[is_known]]
        own = routes[rows]
        order = np.lexsort([rows, numbers, own])
        return cls(own[order], numbers[order], rows[order] + held)

    def by_condition(self) -> dict[tuple[int, int], Ints]:
        """Return the rows by route and number of a condition."""
        numbers, own = self.numbers, self.routes
        is_new = np.r_[True, (numbers[1:] != numbers[:-1]) | (own[1:] != own[:-1])]
        firsts = np.flatnonzero(is_new)[: len(self.rows)]
        if not len(self.rows):
            return {}
        names = zip(own[firsts].tolist(), numbers[firsts].tolist(), strict=True)
        return dict(zip(names, np.split(self.rows, firsts[1:]), strict=True))
