# SPDX-License-Identifier: Apache-2.0
"""A SASE+ query among the rules on a stream: the events that its keys still need."""

from __future__ import annotations

import attrs
import numpy as np

from pyflinkcep.engines.streamed_queries import StreamedQuery
from pyflinkcep.matching.columns import PREFIX, Flags, Ints, integers
from pyflinkcep.matching.event_store import EventStore
from pyflinkcep.matching.layout import Layout
from pyflinkcep.matching.queries import QueryColumns
from pyflinkcep.matching.query_pages import QueryMatcher
from pyflinkcep.matching.results import Found
from pyflinkcep.rules.page_events import PageEvents
from pyflinkcep.rules.query_rules import having, query_plan, typed
from pyflinkcep.rules.rule_states import Kept, RuleStates
from pyflinkcep.rules.running_keys import DueKeys, RunningKeys
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
class RunningQuery(RunningKeys):
    """Runs a query for keys of pages."""

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

    def may_begin(self, due: DueKeys) -> Flags:
        """Return for each key whether its events may begin a match."""
        return np.ones(len(due.owners), bool)

    def store(self, run: PageEvents, rows: Ints) -> EventStore:
        """Return some events as the matcher sees them."""
        own = [name for name in self.columns.names if name != _TIME]
        shown = typed(run.shared.table.select(own).take(integers(rows)))
        shown = shown.append_column(_TIME, integers(run.shared.ms[rows]))
        store = EventStore(run.shared.reader, shown.schema)
        store.add(shown.combine_chunks())
        return store

    def run(self, run: PageEvents, number: int, states: RuleStates) -> tuple[list[Kept], Found]:
        """Match the events that the rule wants; return what is kept, and matches."""
        kept, found = super().run(run, number, states)

        def events_of(rows: Ints) -> dict[int, Record]:
            distinct = np.unique(rows)
            shown = records(run.shared.table, distinct)
            return dict(zip(distinct.tolist(), shown, strict=True))

        return kept, having(self.returns, found, events_of)
