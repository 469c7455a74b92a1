# SPDX-License-Identifier: Apache-2.0
"""Many rules on a stream: the states of keys, read and written as pages that they share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.functions import RuntimeContext
from pyflinkcep.matching.columns import table_of
from pyflinkcep.matching.matcher import Items, RowPages, States, Written
from pyflinkcep.matching.stretches import Events
from pyflinkcep.rules.page_events import PageEvents
from pyflinkcep.rules.rule import Definition
from pyflinkcep.rules.rule_matches import RuleMatches
from pyflinkcep.rules.rule_states import RuleStates
from pyflinkcep.rules.running_correlation import RunningCorrelation
from pyflinkcep.rules.running_patterns import RunningPatterns
from pyflinkcep.rules.running_query import RunningQuery
from pyflinkcep.rules.shared_events import SharedEvents
from pyflinkcep.rules.sigma_correlation import SigmaCorrelation
from pyflinkcep.rules.stream_rules import StreamRules
from pyflinkcep.rules.wanting_rule import FoundByRule, naming

_Running = RunningCorrelation | RunningQuery


class RulePages(RowPages):
    """Processes the events of pages' keys with rules."""

    # A key of a page is a place, which is where a route sends an event to. Its state is the states
    # of rules for keys; see `RuleStates`.

    def __init__(
        self,
        rules: StreamRules,
        columns: Sequence[str],
        schema: pa.Schema,
        context: RuntimeContext,
        opened: ExitStack,
    ) -> None:
        super().__init__()
        self._columns = columns  # Those of an event
        self._schema = schema  # Of matches
        self._context = context
        self._opened = opened
        self._begin(rules)

    def use(self, rules: StreamRules) -> None:
        """Go on with other rules: states of those that are not among them are dropped."""
        if rules is not self._rules:
            self._begin(rules)

    def _begin(self, rules: StreamRules) -> None:
        self._rules = rules
        self._patterns = RunningPatterns(rules.patterns, rules.codes, self._context, self._opened)
        self._running: dict[int, _Running] = {}

    def run_page(
        self, events: Events, items: Items, page: States, first_held: int, watermark: int
    ) -> Written:
        """Match events of a page's keys, and advance their time to the watermark."""
        assert items.due is not None
        size = int(page.counts.sum()) + items.due.num_rows
        table = self._store.take(np.arange(first_held, first_held + size), self._columns)
        run = PageEvents.of(self._rules.routed, table, items.due, items, watermark)
        before = RuleStates.of(items, page, 0)
        rules = self._rules.numbers_of(before.codes)
        patterns, sequences = self._rules.patterns, self._rules.sequences
        own = [np.isin(rules, [*numbers]) for numbers in (patterns, sequences.numbers)]
        of_patterns, of_sequences = map(np.flatnonzero, own)
        parts, found = self._patterns.run(run, rules[of_patterns], before.take(of_patterns))
        kept, more = sequences.run(run, rules[of_sequences], before.take(of_sequences))
        others = np.where(own[0] | own[1], -1, rules)
        for number in sorted({*run.wanting, *others[others >= 0].tolist()}):
            if number in patterns or number in sequences.numbers:
                continue  # these run all at once
            rule = self._rules.routed.rules[number].rule.rule
            with naming(rule):
                one = self._one(number, rule.definition, run.shared)
                ours, matches = one.run(run, number, before.only(others == number))
            parts += ours
            found.append(FoundByRule(rule, matches))
        self._add(run.shared, [*found, *more])
        parts += kept
        states = RuleStates.concat([own for own, _ in parts])
        deadlines = np.concatenate([np.zeros(0, np.int64), *(own for _, own in parts)])
        written = states.written(deadlines)
        return attrs.evolve(written, handles=written.handles + first_held)

    def _one(self, number: int, definition: Definition, events: SharedEvents) -> _Running:
        """Return a rule ready to run, compiled when there is work for it."""
        made = self._running.get(number)
        if made is None:
            if isinstance(definition, SigmaCorrelation):
                made = RunningCorrelation.of(self._rules, number)
            else:
                made = RunningQuery.of(self._rules, number, events)
            self._running[number] = made
        return made

    def _add(self, events: SharedEvents, found: Iterable[FoundByRule]) -> None:
        own = [one for one in found if len(one.found)]
        if own:
            self._made.append(table_of(RuleMatches(events, own).toArrow().columns, self._schema))
