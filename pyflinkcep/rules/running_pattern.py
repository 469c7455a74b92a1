# SPDX-License-Identifier: Apache-2.0
"""A pattern among the rules on a stream: the automata of keys with events, or whose time came."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.engines.flink.nfa import NFA
from pyflinkcep.engines.flink.operator import CepOperator
from pyflinkcep.errors import ConditionError
from pyflinkcep.functions import RuntimeContext, opened
from pyflinkcep.matching.columns import Ints, field_names, integers
from pyflinkcep.matching.event_store import EventStore
from pyflinkcep.matching.matcher import NO_DEADLINE, Items, PageMatcher, Wanted, make_matcher
from pyflinkcep.matching.results import Found
from pyflinkcep.matching.stretches import Events, needed_stretches
from pyflinkcep.rules.page_events import PageEvents
from pyflinkcep.rules.rule_states import Kept, RuleStates
from pyflinkcep.rules.stream_rules import StreamRules
from pyflinkcep.tables.column_match import StageSql, as_values
from pyflinkcep.tables.records import ROW
from pyflinkcep.tables.row_sql import OnlyByRow


@attrs.define(eq=False)
class _States:
    """See :class:`~pyflinkcep.matching.matcher.States`."""

    lengths: Ints
    counts: Ints
    numbers: Ints


@attrs.frozen(eq=False)
class _Keys:
    """The due events that a pattern wants, key by key."""

    rows: Ints
    bits: Ints | None
    bounds: Ints  # Where those of each key begin, and where the last ones end
    owners: Ints  # The item of each key
    keys: Ints  # The number of each key

    @classmethod
    def of(cls, run: PageEvents, number: int) -> _Keys:
        """Return those of a rule."""
        rows, bits = run.wanted(number)
        owners = run.owner_of(rows)
        keys = run.keys(run.rules.rules[number].rule.rule.key)[rows]
        order = np.lexsort([keys, owners])
        rows, owners, keys = rows[order], owners[order], keys[order]
        is_first = np.r_[True, (owners[1:] != owners[:-1]) | (keys[1:] != keys[:-1])]
        firsts = np.flatnonzero(is_first[: len(rows)])
        own = None if bits is None else bits[order]
        return cls(rows, own, np.r_[firsts, len(rows)], owners[firsts], keys[firsts])

    def positions(self, states: RuleStates) -> Ints:
        """Return the number of each key's state; -1 for a new key."""
        owners = np.concatenate([states.items, self.owners])
        keys = np.concatenate([states.keys, self.keys])
        order = np.lexsort([keys, owners])
        owners, keys = owners[order], keys[order]
        is_new = np.r_[True, (owners[1:] != owners[:-1]) | (keys[1:] != keys[:-1])]
        codes = np.empty(len(order), np.int64)
        codes[order] = np.cumsum(is_new[: len(order)])
        found = np.full(len(order) + 1, -1, np.int64)
        found[codes[: len(states)]] = np.arange(len(states))
        return found[codes[len(states) :]]


@attrs.frozen(eq=False)
class RunningPattern:
    """Runs a pattern for keys of pages."""

    # The numbers of a key's state are its deadline, and what a stream of this pattern alone stores.

    nfa: NFA
    matcher: PageMatcher
    operator: CepOperator
    sql: StageSql | None
    code: int

    @classmethod
    def of(
        cls, rules: StreamRules, number: int, context: RuntimeContext, stack: ExitStack
    ) -> RunningPattern:
        """Compile the pattern of a rule."""
        pattern = rules.routed.rules[number].rule.pattern
        assert pattern is not None
        nfa, sql = pattern.nfa, rules.over_stages.get(number)
        stack.enter_context(opened(nfa, context, "a condition"))
        expressions = None if sql is None else sql.expressions
        matcher = make_matcher(nfa, Wanted(by_windows=True), expressions, is_stream=True)
        return cls(nfa, matcher, CepOperator(nfa), sql, int(rules.codes[number]))

    def run(self, run: PageEvents, number: int, states: RuleStates) -> tuple[list[Kept], Found]:
        """Match the events that the rule wants; return what is kept, and matches."""
        due = _Keys.of(run, number)
        positions = due.positions(states)
        begins = np.cumsum(states.lengths) - states.lengths
        deadlines = states.numbers[begins]
        is_needed = needed_stretches(self.operator, due.bits, due.bounds[:-1], None)
        chosen = np.flatnonzero((positions >= 0) | is_needed)
        positions = positions[chosen]
        has_events = np.zeros(len(states), bool)
        has_events[positions[positions >= 0]] = True
        is_over = ~has_events & (deadlines <= run.watermark) & (deadlines != NO_DEADLINE)
        waiting = np.flatnonzero(is_over)
        rests = ~has_events & ~is_over
        kept: list[Kept] = [(states.only(rests), deadlines[rests])] if rests.any() else []
        if not len(chosen) and not len(waiting):
            return kept, self.matcher.take()
        with_state = positions[positions >= 0]
        own = states.take(np.r_[with_state, waiting])
        positions[positions >= 0] = np.arange(len(with_state))
        positions = np.r_[positions, len(with_state) + np.arange(len(waiting))]
        rows = np.concatenate([own.handles, due.rows])
        owners = np.r_[due.owners[chosen], states.items[waiting]]
        keys = np.r_[due.keys[chosen], states.keys[waiting]]
        nothing = np.zeros(len(waiting), np.int64)
        starts = np.r_[due.bounds[:-1][chosen], nothing]

        def key_of(item: int) -> Any:
            is_due = item < len(chosen)
            at = (
                due.rows[starts[item]]
                if is_due
                else states.take(waiting[[item - len(chosen)]]).handles[0]
            )
            names = run.rules.rules[number].rule.rule.key
            return {name: run.shared.table.column(name)[int(at)].as_py() for name in names} or None

        items = Items(positions, starts, np.r_[due.bounds[1:][chosen], nothing], key_of)
        events = Events(run.shared.ms[due.rows], None, len(own.handles), due.bits)
        self.matcher.set_events(self._store(run, rows))
        firsts = np.cumsum(own.lengths) - own.lengths
        page = _States(own.lengths - 1, own.counts, np.delete(own.numbers, firsts))
        written = self.matcher.run_page(events, items, page, 0, run.watermark)
        found = self.matcher.take()
        places = np.cumsum(written.lengths) - written.lengths
        made = RuleStates(
            owners[written.items],
            np.full(len(written.items), self.code, np.int64),
            keys[written.items],
            written.lengths + 1,
            written.counts,
            np.insert(written.numbers, places, written.deadlines),
            rows[written.handles],
        )
        return [*kept, (made, written.deadlines)], attrs.evolve(found, handles=rows[found.handles])

    def _store(self, run: PageEvents, rows: Ints) -> EventStore:
        """Return some events as conditions see them."""
        columns = {ROW: integers(rows)}
        if self.sql is not None:
            try:
                fields = self.sql.fields(run.shared.table.take(integers(rows)))
            except OnlyByRow as raised:
                raise ConditionError(
                    f"SQL over stages failed on an event: {raised.__cause__}",
                    "write what cannot fail, such as try_cast(x AS int)",
                ) from raised.__cause__
            every = np.arange(len(rows))
            values = (as_values(field, every) for field in fields)
            columns |= zip(field_names(self.sql.expressions), values, strict=True)
        shown = pa.table(columns)
        store = EventStore(run.shared.reader, shown.schema)
        store.add(shown)
        return store
