# SPDX-License-Identifier: Apache-2.0
"""The task that asks events the conditions of many Sigma rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.matching.columns import Ints
from pyflinkcep.spark.worker.runtime import errors_in, large_tables
from pyflinkcep.tables.field_values import EventFields
from pyflinkcep.tables.rule_rows import RuleTests

_ROWS = 1 << 16
"""How many events are asked together: each time costs something for each rule."""

_MOST_ALERTS = 1 << 14


@attrs.frozen(eq=False)
class SigmaTask:
    """The work on one partition."""

    name: str  # Of the job, for errors
    tests: RuleTests  # The conditions, by number of the rule
    facts: pa.Table  # What alerts say of their rule, by number
    sources: Sequence[str | None]  # By rule the column that says whether an event is of its source
    columns: Sequence[str]  # Those of an event

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield an alert for each event and rule."""
        with errors_in(self.name):
            for events in large_tables(batches, _ROWS):
                yield from self._alerts(events)

    def _alerts(self, events: pa.Table) -> Iterator[pa.RecordBatch]:
        own = events.select(self.columns)
        asked = self.tests.on(EventFields.of_table(own))
        of_source = {
            name: events.column(name).to_numpy() for name in {*self.sources} if name is not None
        }
        rules: list[int] = []
        found: list[Ints] = []
        for number, source in enumerate(self.sources):
            rows = asked.rows(number)
            if source is not None and len(rows):
                rows = rows[of_source[source][rows]]
            if len(rows):
                rules.append(number)
                found.append(rows)
        if not found:
            return
        numbers, every = np.repeat(rules, [*map(len, found)]), np.concatenate(found)
        for low in range(0, len(every), _MOST_ALERTS):
            part = slice(low, low + _MOST_ALERTS)
            taken = own.take(every[part]).combine_chunks()
            columns = [column.chunk(0) for column in taken.columns]
            event = pa.StructArray.from_arrays(columns, fields=[*own.schema])
            facts = self.facts.take(numbers[part]).combine_chunks()
            arrays = [*(column.chunk(0) for column in facts.columns), event]
            yield pa.RecordBatch.from_arrays(arrays, [*facts.column_names, "event"])
