# SPDX-License-Identifier: Apache-2.0
"""A pattern among the rules on a stream: the automata of keys with events, or whose time came."""

from __future__ import annotations

from contextlib import ExitStack

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.engines.flink.operator import CepOperator
from pyflinkcep.errors import ConditionError
from pyflinkcep.functions import RuntimeContext, opened
from pyflinkcep.matching.columns import Flags, Ints, field_names, integers
from pyflinkcep.matching.event_store import EventStore
from pyflinkcep.matching.matcher import Wanted, make_matcher
from pyflinkcep.matching.stretches import needed_stretches
from pyflinkcep.rules.page_events import PageEvents
from pyflinkcep.rules.running_keys import DueKeys, RunningKeys
from pyflinkcep.rules.stream_rules import StreamRules
from pyflinkcep.tables.column_match import StageSql, as_values
from pyflinkcep.tables.records import ROW
from pyflinkcep.tables.row_sql import OnlyByRow


@attrs.frozen(eq=False)
class RunningPattern(RunningKeys):
    """Runs a pattern for keys of pages."""

    operator: CepOperator
    sql: StageSql | None

    @classmethod
    def of(
        cls, rules: StreamRules, number: int, context: RuntimeContext, stack: ExitStack
    ) -> RunningPattern:
        """Compile the pattern of a rule."""
        own = rules.routed.rules[number].rule
        assert own.pattern is not None
        nfa, sql = own.pattern.nfa, rules.over_stages.get(number)
        stack.enter_context(opened(nfa, context, "a condition"))
        expressions = None if sql is None else sql.expressions
        matcher = make_matcher(nfa, Wanted(by_windows=True), expressions, is_stream=True)
        return cls(matcher, own.rule.key, int(rules.codes[number]), CepOperator(nfa), sql)

    def may_begin(self, due: DueKeys) -> Flags:
        """Return for each key whether its events may begin a match."""
        return needed_stretches(self.operator, due.bits, due.bounds[:-1], None)

    def store(self, run: PageEvents, rows: Ints) -> EventStore:
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
