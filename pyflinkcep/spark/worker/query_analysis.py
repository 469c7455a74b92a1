# SPDX-License-Identifier: Apache-2.0
"""A task that evaluates a query on bounded events, and returns what that took."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import attrs
import pyarrow as pa

from pyflinkcep.engines.by_data import estimate, resolved
from pyflinkcep.engines.observed import Observed, observed
from pyflinkcep.engines.queries import query_matches
from pyflinkcep.engines.table import EventTable
from pyflinkcep.matching.query_table import QueryColumns
from pyflinkcep.sase.model import Query
from pyflinkcep.spark.worker.query_task import keyed_tables
from pyflinkcep.spark.worker.runtime import running

__all__ = ["AnalysisTask"]


@attrs.frozen(eq=False)
class AnalysisTask:
    """
    The work on one partition: a row of JSON for each table of whole keys.

    Attributes
    ----------
    query : Query
        The query.
    columns : QueryColumns
        What it reads from events.
    evaluation, output : str
        As of :class:`~pyflinkcep.spark.worker.query_task.QueryTask`.
    """

    query: Query
    columns: QueryColumns
    evaluation: str
    output: str

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield what became of the tables of a partition."""
        with running(self.columns.layout.pattern):
            for _, table in keyed_tables(batches, self.columns):
                if len(table.times):
                    yield pa.RecordBatch.from_pydict({"analysis": [json.dumps(self._of(table))]})

    def _of(self, table: EventTable) -> dict[str, Any]:
        how = resolved(self.query, table, self.evaluation, self.output)
        found = attrs.asdict(self._observed(table, how))
        own = estimate(self.query, table, self.output)
        facts = {}
        if own is not None:
            names = self.query.variables
            facts = {
                "counts": own.facts.counts,
                "alone": {v: edge.alone for v, edge in zip(names, own.edges, strict=True)},
                "joint": {v: edge.joint for v, edge in zip(names, own.edges, strict=True)},
                "partial": dict(zip(names, own.costs.partial, strict=True)),
                "costs": own.costs.milliseconds,
            }
        return {"events": len(table.times), **found, **facts}

    def _observed(self, table: EventTable, how: str) -> Observed:
        query = self.query
        if not query.is_composed and query.most_events is None:
            return observed(query, table, how, self.output)
        begin = time.process_time()
        matches = sum(1 for _ in query_matches(query, table, how, self.output))
        return Observed(how, matches, (time.process_time() - begin) * 1e3, {})
