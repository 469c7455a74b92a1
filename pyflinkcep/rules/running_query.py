# SPDX-License-Identifier: Apache-2.0
"""A SASE+ query among the rules on a stream: the keys with events, or whose time came."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from pyflinkcep.engines.streamed_queries import StreamedQuery
from pyflinkcep.matching.columns import PREFIX, Ints, integers
from pyflinkcep.matching.event_store import EventStore
from pyflinkcep.matching.layout import Layout
from pyflinkcep.matching.matcher import NO_DEADLINE, Items
from pyflinkcep.matching.queries import QueryColumns
from pyflinkcep.matching.query_pages import QueryMatcher
from pyflinkcep.matching.results import Found
from pyflinkcep.matching.stretches import Events
from pyflinkcep.rules.page_events import PageEvents
from pyflinkcep.rules.query_rules import having, query_plan, typed
from pyflinkcep.rules.rule_states import (
    Kept,
    PageStates,
    RuleStates,
    changes,
    kept_of,
    positions_of,
)
from pyflinkcep.rules.shared_events import SharedEvents
from pyflinkcep.rules.stream_rules import StreamRules
from pyflinkcep.sase import SaseQuery
from pyflinkcep.sase.returns import Returns
from pyflinkcep.tables.event_list import attribute_of
from pyflinkcep.tables.events import Record
from pyflinkcep.tables.query_match import partition_names, query_kinds
from pyflinkcep.tables.records import records

_TIME = f"{PREFIX}time"


@attrs.frozen(eq=False)
class RunningQuery:
    """Runs a query for keys of pages."""

    # The numbers of a key's state are its deadline, and what a stream of this rule alone stores.

    matcher: QueryMatcher
    key: Sequence[str]  # The columns of the key
    code: int  # The number of the rule
    columns: QueryColumns  # What it reads
    returns: Returns

    @classmethod
    def of(cls, rules: StreamRules, number: int, events: SharedEvents) -> RunningQuery:
        """Compile the query of a rule, on events with these columns."""
        rule = rules.routed.rules[number].rule.rule
        query = rule.definition
        assert isinstance(query, SaseQuery)
        asked, plan = query_plan(query, events)
        kinds = query_kinds(typed(events.table.slice(0, 0)), events.type, asked)
        assert kinds is not None  # or it is refused before
        layout = Layout(rule.name, None, (), (), (), (), _TIME, None, ())
        columns = QueryColumns(layout, events.type, kinds[0])
        return cls(
            QueryMatcher(StreamedQuery(plan), columns),
            partition_names(asked, rule.key),
            int(rules.codes[number]),
            columns,
            Returns(asked, attribute_of, events.sql.types),
        )

    def run(self, run: PageEvents, number: int, states: RuleStates) -> tuple[list[Kept], Found]:
        """Match the events that the rule wants; return what is kept, and matches."""
        due, _ = run.wanted(number)
        owners, keys = run.owner_of(due), run.keys(self.key)[due]
        order = np.lexsort([keys, owners])
        due, owners, keys = due[order], owners[order], keys[order]
        firsts = np.flatnonzero(changes(owners, keys))
        owners, keys = owners[firsts], keys[firsts]
        positions = positions_of((states.keys, states.items), (keys, owners))
        known = positions >= 0
        deadlines = states.numbers[np.cumsum(states.lengths) - states.lengths]
        has_events = np.zeros(len(states), bool)
        has_events[positions[known]] = True
        is_over = ~has_events & (deadlines <= run.watermark) & (deadlines != NO_DEADLINE)
        waiting = np.flatnonzero(is_over)
        rests = ~has_events & ~is_over
        kept: list[Kept] = [(states.only(rests), deadlines[rests])] if rests.any() else []
        if not len(firsts) and not len(waiting):
            return kept, self.matcher.take()
        own = states.take(np.r_[positions[known], waiting])
        positions[known] = np.arange(np.count_nonzero(known))
        positions = np.r_[positions, len(own) - len(waiting) + np.arange(len(waiting))]
        rows = np.concatenate([own.handles, due])
        owners, keys = np.r_[owners, states.items[waiting]], np.r_[keys, states.keys[waiting]]
        bounds, nothing = np.r_[firsts, len(due)], np.zeros(len(waiting), np.int64)
        starts, ends = np.r_[bounds[:-1], nothing], np.r_[bounds[1:], nothing]

        def key_of(item: int) -> Any:
            is_due = item < len(firsts)
            at = due[starts[item]] if is_due else own.take(positions[[item]]).handles[0]
            table = run.shared.table
            return {name: table.column(name)[int(at)].as_py() for name in self.key} or None

        items = Items(positions, starts, ends, key_of)
        self.matcher.set_events(self._store(run, rows))
        events = Events(run.shared.ms[due], None, len(own.handles), None)
        written = self.matcher.run_page(events, items, PageStates.of(own), 0, run.watermark)
        found = self.matcher.take()
        found = attrs.evolve(found, handles=rows[found.handles])
        found = having(self.returns, found, lambda rows: _events_of(run, rows))
        codes = np.full(len(owners), self.code, np.int64)
        return [*kept, kept_of(written, owners, codes, keys, rows)], found

    def _store(self, run: PageEvents, rows: Ints) -> EventStore:
        """Return some events as the matcher sees them."""
        own = [name for name in self.columns.names if name != _TIME]
        shown = typed(run.shared.table.select(own).take(integers(rows)))
        shown = shown.append_column(_TIME, integers(run.shared.ms[rows]))
        store = EventStore(run.shared.reader, shown.schema)
        store.add(shown.combine_chunks())
        return store


def _events_of(run: PageEvents, rows: Ints) -> dict[int, Record]:
    distinct = np.unique(rows)
    return dict(zip(distinct.tolist(), records(run.shared.table, distinct), strict=True))
