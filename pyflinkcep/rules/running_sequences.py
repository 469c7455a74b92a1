# SPDX-License-Identifier: Apache-2.0
"""Queries of EQL among the rules on a stream, all at once: the latest engine runs many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from pyflinkcep.engines.latest.columns import (
    FoundRuns,
    KeyStates,
    Offers,
    RunningRules,
    latest_rules,
)
from pyflinkcep.engines.latest.machine import step_codes
from pyflinkcep.eql import Eql
from pyflinkcep.eql.model import Field
from pyflinkcep.matching.columns import Ints
from pyflinkcep.matching.latest import bits_of, rule_of
from pyflinkcep.matching.latest_pages import deadlines_of
from pyflinkcep.matching.matcher import ranges
from pyflinkcep.matching.results import Found
from pyflinkcep.rules.page_events import PageEvents
from pyflinkcep.rules.query_rules import eql_keys
from pyflinkcep.rules.routes import RoutedRule, RoutedRules, number_of
from pyflinkcep.rules.rule_keys import KeyHashes
from pyflinkcep.rules.rule_states import Kept, RuleStates
from pyflinkcep.rules.wanting_rule import FoundByRule, naming
from pyflinkcep.tables.eql_match import Narrowed

_NOTHING: Ints = np.zeros(0, np.int64)


class RunningSequences:
    """Runs queries of EQL."""

    def __init__(self, routed: RoutedRules, codes: Ints) -> None:
        self._routed = routed
        self._codes = codes  # Those of rules, by number
        self._singles: set[int] = set()
        self._numbers: list[int] = []  # Of the rules that are sequences
        for number, one in enumerate(routed.rules):
            definition = one.rule.rule.definition
            if isinstance(definition, Eql):
                is_sequence = definition.model.is_sequence
                self._numbers.append(number) if is_sequence else self._singles.add(number)
        self._queries = [self._query(number) for number in self._numbers]
        self._latest = [rule_of(query.model) for query in self._queries]
        self._begins = step_codes(self._latest)
        self._places = {number: place for place, number in enumerate(self._numbers)}
        self.numbers = self._singles.union(self._numbers)  # Of its rules
        self._place_of = np.full(len(routed.rules), -1, np.int64)
        self._place_of[self._numbers] = np.arange(len(self._numbers))

    @cached_property
    def _machine(self) -> RunningRules:
        return latest_rules(self._latest)

    def _query(self, number: int) -> Eql:
        definition = self._routed.rules[number].rule.rule.definition
        assert isinstance(definition, Eql)
        return definition

    def run(
        self, run: PageEvents, rules: Ints, states: RuleStates
    ) -> tuple[list[Kept], list[FoundByRule]]:
        """Return what is kept, with deadlines, and matches, given the rules of states."""
        wanting = [number for number in run.wanting if number in self._places]
        singles = [self._single(run, n) for n in run.wanting if n in self._singles]
        if not wanting and not len(states):
            return [], singles
        machine = self._machine
        machine.clear()
        offers = list(self._offers(run, wanting))
        order = np.argsort(rules, kind="stable")
        before, places = states.take(order), self._place_of[rules[order]]
        keys = np.concatenate([before.keys, *(own for *_, own in offers)])
        distinct, ranks = np.unique(keys, return_inverse=True)
        items = np.concatenate([before.items, *(own for _, _, own, _ in offers)])
        pairs = items * len(distinct) + ranks.reshape(-1)
        ms = run.shared.ms
        machine.read(
            KeyStates(
                places,
                pairs[: len(before)],
                np.ascontiguousarray(before.numbers),
                np.cumsum(before.lengths),
                np.ascontiguousarray(before.handles),
                np.cumsum(before.counts),
            ),
            ms.__getitem__,
        )
        rank = np.empty(len(run.in_time), np.int32)
        rank[run.in_time] = np.arange(len(rank), dtype=np.int32)
        rows = np.concatenate([_NOTHING, *(own for own, *_ in offers)])
        steps = np.concatenate([np.zeros(0, np.int32), *(own for _, own, *_ in offers)])
        at = rank[rows - run.held]
        order = np.argsort(at, kind="stable")
        offered = Offers(at[order], steps[order], pairs[len(before) :][order])
        times = ms[run.held :][run.in_time]
        every = [machine.process(times, offered, run.size), machine.advance(run.watermark)]
        machine.prune(run.watermark)

        def own(handles: Ints) -> Ints:
            """Return the rows of events: those above all rows are due ones, in time."""
            is_due = handles >= run.size
            found = np.array(handles)
            found[is_due] = run.held + run.in_time[handles[is_due] - run.size]
            return found

        found = [
            match for runs in every for match in self._found(run, runs, own(runs.handles), distinct)
        ]
        return self._kept(machine.written(), own, distinct, ms), [*singles, *found]

    def _single(self, run: PageEvents, number: int) -> FoundByRule:
        """Return the matches of a query about single events."""
        rule = self._routed.rules[number].rule
        rows = run.holding(number, rule.wants.conditions[0])
        size = len(rows)
        ones, ends = np.ones(size, np.uint8), np.arange(1, size + 1)
        found = Found(("1",), ones, run.shared.ms[rows], ends, np.zeros(size, np.int32), rows)
        return FoundByRule(rule.rule, found)

    def _offers(
        self, run: PageEvents, wanting: Iterable[int]
    ) -> Iterator[tuple[Ints, np.ndarray[Any, np.dtype[np.int32]], Ints, Ints]]:
        """Yield rows, the codes of steps that want them, their items, and keys."""
        for number in wanting:
            query, routed = self._query(number), self._routed.rules[number]
            with naming(routed.rule.rule):
                own = self._with_keys(run, query, routed)
            begin = self._begins[self._places[number]]
            for step, which in enumerate(bits_of(query.model)):
                rows, keys = own[which]
                yield rows, np.full(len(rows), begin + step, np.int32), run.owner_of(rows), keys

    def _with_keys(
        self, run: PageEvents, query: Eql, routed: RoutedRule
    ) -> list[tuple[Ints, Ints]]:
        """Return the events that the steps of a query want, and the numbers of their keys."""
        steps = query.model.every
        known = zip(
            steps,
            (run.holding_in(routed.route, one) for one in routed.rule.wants.conditions),
            strict=True,
        )
        if routed.position is not None:
            low = np.r_[np.full(run.held, -1), run.targets & 0xFFFFFFFF]
            narrowed = Narrowed(routed.position, number_of, low)
            hashes = KeyHashes(run.shared.fields, query, narrowed, run.field_hashes)
            return [hashes.of(step.keys, rows) for step, rows in known]
        found: list[tuple[Ints, Ints]] = []
        numbered = run.key_numbers.setdefault(tuple(tuple(step.keys) for step in steps), {})
        for step, rows in known:
            keys = tuple(step.keys)
            if keys not in numbered:
                hashes = KeyHashes(run.shared.fields, query, None, run.field_hashes)
                numbered[keys] = _with_numbers(hashes, keys, np.arange(run.size))
            owners, numbers = numbered[keys]
            if owners is None:
                found.append((rows, numbers[rows]))
                continue
            firsts = np.searchsorted(owners, rows)
            sizes = np.searchsorted(owners, rows, "right") - firsts
            found.append((np.repeat(rows, sizes), numbers[ranges(firsts, sizes)]))
        return found

    def _found(
        self, run: PageEvents, runs: FoundRuns, rows: Ints, distinct: Ints
    ) -> Iterator[FoundByRule]:
        """Yield the matches of each rule."""
        if not len(runs.ends):
            return
        ms = run.shared.ms
        bounds = [0, *(np.flatnonzero(np.diff(runs.rules)) + 1).tolist(), len(runs.rules)]
        for begin, end in pairwise(bounds):
            place = int(runs.rules[begin])
            rule = self._latest[place]
            first = int(runs.ends[begin - 1]) if begin else 0
            ends = runs.ends[begin:end] - first
            own = rows[first : first + int(ends[-1])]
            taking = np.flatnonzero(~np.asarray(rule.missing)).astype(np.int32)
            stages = [f"{number}" for number in range(1, len(rule.missing) + 1)]
            size = end - begin
            found = Found(
                stages,
                np.ones(size, np.uint8),
                ms[own[ends - 1]],
                ends,
                np.tile(taking, size),
                own,
            )
            query = self._query(self._numbers[place])
            keys = distinct[runs.keys[begin:end] % len(distinct)]
            numbers = KeyHashes(run.shared.fields, query, None, run.field_hashes)
            told = eql_keys(query, numbers, own[found.firsts], keys)
            own_rule = self._routed.rules[self._numbers[place]].rule.rule
            yield FoundByRule(own_rule, found, keys=told)

    def _kept(
        self, written: KeyStates, own: Callable[[Ints], Ints], distinct: Ints, ms: Ints
    ) -> list[Kept]:
        """Return the states of rules, with deadlines."""
        places = written.rules
        states = RuleStates(
            written.keys // max(len(distinct), 1),
            self._codes[np.asarray(self._numbers, np.int64)[places]],
            distinct[written.keys % max(len(distinct), 1)] if len(places) else _NOTHING,
            np.diff(written.number_ends, prepend=0),
            np.diff(written.handle_ends, prepend=0),
            written.numbers,
            own(written.handles),
        )
        parts: list[Kept] = []
        for place in np.unique(places).tolist():
            part = states.only(places == place)
            deadlines = deadlines_of(
                self._latest[place], part.numbers, part.lengths, part.handles, part.counts,
                ms.__getitem__,
            )  # fmt: skip
            parts.append((part, deadlines))
        return parts


def _with_numbers(hashes: KeyHashes, keys: Sequence[Field], rows: Ints) -> tuple[Ints | None, Ints]:
    """Return events and the numbers of their keys; no events if each of all has one."""
    owners, numbers = hashes.of(keys, rows)
    return None if np.array_equal(owners, rows) else owners, numbers
