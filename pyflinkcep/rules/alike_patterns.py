# SPDX-License-Identifier: Apache-2.0
"""Patterns that differ in names, windows and conditions alone: one automaton for all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.engines.flink.nfa.analysis import Unbranched
from pyflinkcep.engines.flink.nfa.atoms import known_bits
from pyflinkcep.engines.flink.operator import CepOperator
from pyflinkcep.errors import CepError
from pyflinkcep.kernel.module import CompiledModule, compiled_module
from pyflinkcep.matching.columns import Ints, integers, plain_numbers
from pyflinkcep.matching.matcher import Wanted, make_matcher
from pyflinkcep.matching.results import Found
from pyflinkcep.matching.stretches import Events, Stretches, needed_stretches
from pyflinkcep.rules.shared_events import Route, SharedEvents
from pyflinkcep.rules.wanting_rule import FoundByRule, WantingRule
from pyflinkcep.tables.order import Rows

_AT_ONCE = 1 << 20
"""About how many events of rules are looked at in one call."""

_MOST_TOLD = 1 << 28
"""How often conditions may hold for events of which lists are made."""

_NOTHING: Rows = np.zeros(0, np.int32)


class ToldConditions(Mapping[int, Rows]):
    """The events for which conditions hold, of which each event has a list."""

    def __init__(self, lists: pa.ListArray) -> None:
        offsets = plain_numbers(lists.offsets)
        self.offsets = offsets - offsets[0] if len(offsets) else np.zeros(1, np.int32)
        self.numbers = plain_numbers(lists.flatten())

    @classmethod
    def of(cls, events: SharedEvents, conditions: Iterable[int]) -> ToldConditions | None:
        """Return those of some conditions, by their numbers; None if they hold too often."""
        known = set(conditions)
        held = [
            events.holding(number) if number in known else _NOTHING
            for number in range(max(known, default=-1) + 1)
        ]
        if sum(map(len, held)) > _MOST_TOLD:
            return None
        return cls(listed(held, events.table.num_rows, None))

    @cached_property
    def counts(self) -> Ints:
        """How many events each condition holds for."""
        return np.bincount(self.numbers)

    @cached_property
    def _rows(self) -> Rows:
        """The events, condition by condition."""
        lengths = np.diff(self.offsets)
        rows = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
        return rows.take(np.argsort(self.numbers, kind="stable"))  # short ones by their digits

    @cached_property
    def _ends(self) -> list[int]:
        return [0, *np.cumsum(self.counts).tolist()]

    def __getitem__(self, condition: int) -> Rows:
        """Return the rows for which a condition holds, in order."""
        if not 0 <= condition < len(self.counts) or not self.counts[condition]:
            raise KeyError(condition)
        return self._rows[self._ends[condition] : self._ends[condition + 1]]

    def __iter__(self) -> Iterator[int]:
        """Yield the conditions that hold for some event."""
        yield from np.flatnonzero(self.counts).tolist()

    def __len__(self) -> int:
        """Return how many these are."""
        return int(np.count_nonzero(self.counts))


@attrs.frozen(eq=False)
class _Asked:
    """Which of some rules ask for which conditions."""

    ends: Ints  # By condition, where its rules end
    rules: Rows  # The place of each among the rules
    bits: Ints  # That the rule knows the condition by

    @classmethod
    def of(cls, rules: Sequence[WantingRule]) -> _Asked:
        """Return it for rules."""
        wants = [rule.wants for rule in rules]
        conditions = np.asarray([n for own in wants for n in own.conditions], np.int64)
        bits = np.asarray([bit for own in wants for bit in own.bits], np.int64)
        owners = np.repeat(np.arange(len(rules)), [len(own.conditions) for own in wants])
        order = np.argsort(conditions, kind="stable")
        ends = np.r_[0, np.cumsum(np.bincount(conditions))]
        return cls(ends, owners[order].astype(np.int32), bits[order])

    def between(self, first: int, until: int) -> _Asked:
        """Return it for some of the rules."""
        own = (self.rules >= first) & (self.rules < until)
        before = np.r_[0, np.cumsum(own)]
        return _Asked(before[self.ends], self.rules[own] - np.int32(first), self.bits[own])

    def up_to(self, conditions: int) -> _Asked:
        """Return it for so many conditions, of which nobody may ask for the last."""
        missing = conditions + 1 - len(self.ends)
        if missing <= 0:
            return self
        ends = np.append(self.ends, np.full(missing, self.ends[-1]))
        return attrs.evolve(self, ends=ends)


@attrs.frozen(eq=False, slots=False)
class AlikePatterns:
    """Such patterns, whose events have one key."""

    numbers: Sequence[int]  # Those of the rules
    rules: Sequence[WantingRule]

    @classmethod
    def among(cls, rules: Iterable[tuple[int, WantingRule, int]]) -> list[AlikePatterns]:
        """Return such patterns among rules, given with numbers and routes."""
        alike: dict[Any, list[tuple[int, WantingRule]]] = {}
        for number, rule, route in rules:
            form = None if rule.pattern is None else rule.pattern.form
            if form is not None:
                alike.setdefault((route, rule.rule.key, form), []).append((number, rule))
        return [cls(*zip(*own, strict=True)) for own in alike.values()]

    def found(
        self, events: SharedEvents, told: ToldConditions | None = None
    ) -> Iterable[tuple[int, FoundByRule]]:
        """Return the matches of each rule that may have some, with its number."""
        module = compiled_module()
        if module is not None:
            try:
                known = told
                if known is None:
                    asked = (n for rule in self.rules for n in rule.wants.conditions)
                    known = ToldConditions.of(events, asked)
                if known is not None:
                    return self._together(module, events, known)
            except (CepError, MemoryError):
                pass  # the rule that it comes from is known when it is alone
        return [
            (number, rule.found(events))
            for number, rule in zip(self.numbers, self.rules, strict=True)
            if told is None or any(condition in told for condition in rule.wants.conditions)
        ]

    def _together(
        self, module: CompiledModule, events: SharedEvents, told: ToldConditions
    ) -> list[tuple[int, FoundByRule]]:
        first = self.rules[0].pattern
        assert first is not None
        nfa = first.nfa
        route = events.route(self.rules[0].rule.key)
        matcher = make_matcher(nfa, Wanted(by_windows=True), None)
        looks = Unbranched.of(nfa, known_bits(nfa.atoms)) is None  # those do it faster
        parts: list[Found] = []
        owners: list[Ints] = []
        for work in self._work(module, route, told):
            needed = np.ones(len(work.bounds) - 1, bool)
            if looks:
                needed[:-1] = needed_stretches(
                    CepOperator(nfa), work.events.bits, work.bounds[:-2], first.needs
                )
            # A last stretch without events ends the others.
            windows = np.append(self._windows[work.owners], 0)
            stretches = Stretches(work.events, work.bounds, needed, _no_key, windows)
            for found in matcher.run(stretches, True, None):
                if len(found):
                    own = np.searchsorted(work.bounds, found.handles[found.firsts], "right") - 1
                    owners.append(work.owners[own])
                    parts.append(attrs.evolve(found, handles=work.rows[found.handles]))
        return self._by_rule(parts, owners)

    def _by_rule(self, parts: list[Found], owners: list[Ints]) -> list[tuple[int, FoundByRule]]:
        """Return what is found, rule by rule."""
        if not parts:
            return []
        found, of_match = Found.concat(parts), np.concatenate(owners)
        if (of_match[1:] < of_match[:-1]).any():
            order = np.argsort(of_match, kind="stable")
            found, of_match = found.taken(order), of_match[order]
        bounds = np.searchsorted(of_match, np.arange(len(self.rules) + 1)).tolist()
        matches: list[tuple[int, FoundByRule]] = []
        for place in np.unique(of_match).tolist():
            rule = self.rules[place]
            assert rule.pattern is not None
            own = found.between(bounds[place], bounds[place + 1])
            named = attrs.evolve(own, stages=rule.pattern.stages)
            matches.append((self.numbers[place], FoundByRule(rule.rule, named, rule.rule.select)))
        return matches

    @cached_property
    def _windows(self) -> Ints:
        """The lengths of windows of rules."""
        patterns = [rule.pattern for rule in self.rules]
        return np.asarray([0 if own is None else own.window for own in patterns], np.int64)

    @cached_property
    def _asked(self) -> _Asked:
        return _Asked.of(self.rules)

    def _work(self, module: CompiledModule, route: Route, told: ToldConditions) -> Iterator[_Work]:
        """Yield the events of rules: those of some keys, and of a large key those of some rules."""
        asked = self._asked.up_to(len(told.counts))
        size = len(route.rows)
        every = int((np.diff(asked.ends)[: len(told.counts)] * told.counts).sum())
        each = max(every / max(size, 1), 1)  # The rules that want an event, about
        bounds = np.append(np.flatnonzero(np.diff(route.groups, prepend=-1)), size)
        key = 0
        while key < len(bounds) - 1:
            begin = int(bounds[key])
            most = int(np.searchsorted(bounds, begin + _AT_ONCE / each, "right")) - 1
            key = max(most, key + 1)
            end = int(bounds[key])
            portions = min(max(int((end - begin) * each / _AT_ONCE), 1), len(self.rules))
            cuts = np.linspace(0, len(self.rules), portions + 1).astype(np.int64).tolist()
            for first, until in pairwise(cuts):
                own = asked if portions == 1 else asked.between(first, until)
                yield _Work.of(module, route, told, slice(begin, end), own, (first, until))


def _no_key(number: int) -> None:
    """Return no key of a stretch: an error comes again from the rule alone."""


@attrs.frozen(eq=False)
class _Work:
    """Some of the events that rules want."""

    events: Events
    bounds: Ints  # Where those of a rule and key begin, and twice where the last ones end
    owners: Ints  # The rule of each of these
    rows: Ints  # The row of each event

    @classmethod
    def of(
        cls,
        module: CompiledModule,
        route: Route,
        told: ToldConditions,
        some: slice,
        asked: _Asked,
        rules: tuple[int, int],
    ) -> _Work:
        """Return the events of some places that rules, from one to another, want."""
        first, until = rules
        rows = route.rows[some]
        found = module.wanted(
            told.offsets,
            told.numbers,
            told.numbers.itemsize,
            rows,
            route.groups[some],
            asked.ends,
            asked.rules,
            asked.bits,
            until - first,
        )
        kinds = (np.int32, np.int64, np.int64, np.int32)
        places, bits, begins, owners = map(np.frombuffer, found, kinds)
        events = Events(route.times[some].take(places), None, 0, bits)
        bounds = np.r_[begins, len(places), len(places)]
        return cls(events, bounds, owners + np.int64(first), rows.take(places).astype(np.int64))


def number_type(count: int) -> type[np.uint16 | np.int32]:
    """Return the type of the numbers of some conditions, and of one more."""
    return np.uint16 if count < 1 << 16 else np.int32


def listed(held: Sequence[Rows], size: int, codes: Ints | None) -> pa.ListArray:
    """Return for each event the conditions that hold for it: their codes, or else their numbers."""
    known = np.arange(len(held), dtype=number_type(len(held))) if codes is None else codes
    sizes = np.asarray(list(map(len, held)), np.int64)
    ends, cuts = np.cumsum(sizes), [0]
    while cuts[-1] < len(held):  # many rows at a time, but not all of them once more
        first = cuts[-1]
        most = ends[first] - sizes[first] + _AT_ONCE
        cuts.append(max(int(np.searchsorted(ends, most, "right")), first + 1))
    counts = np.zeros(size, np.int64)
    for begin, end in pairwise(cuts):
        counts += np.bincount(np.concatenate(held[begin:end]), minlength=size)
    offsets = np.r_[0, np.cumsum(counts)].astype(np.int32)
    module = compiled_module()
    if module is None:
        rows = np.concatenate([_NOTHING, *held])
        numbers = np.repeat(known, sizes)[np.argsort(rows, kind="stable")]
    else:
        numbers, starts = np.empty(offsets[-1], known.dtype), offsets[:-1].copy()
        for begin, end in pairwise(cuts):
            own = np.repeat(known[begin:end], sizes[begin:end])
            module.scatter(np.concatenate(held[begin:end]), starts, (own,), numbers, (0,), 0)
    return pa.ListArray.from_arrays(integers(offsets), integers(numbers))
