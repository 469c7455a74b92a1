# SPDX-License-Identifier: Apache-2.0
"""A task that estimates, or finds out, what evaluating a query on bounded events takes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import attrs
import pyarrow as pa

from pyflinkcep.engines.by_data import estimate, resolved
from pyflinkcep.engines.observed import observed
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
    runs : bool
        Whether to evaluate it, or only to estimate what that would cost.
    """

    query: Query
    columns: QueryColumns
    evaluation: str
    output: str
    runs: bool = True

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield what became of the tables of a partition."""
        with running(self.columns.layout.pattern):
            for _, table in keyed_tables(batches, self.columns):
                if len(table.times):
                    yield pa.RecordBatch.from_pydict({"analysis": [json.dumps(self._of(table))]})

    def _of(self, table: EventTable) -> dict[str, Any]:
        how = resolved(self.query, table, self.evaluation, self.output)
        own = estimate(self.query, table, self.output)
        told: dict[str, Any] = {"events": len(table.times), "evaluation": how}
        if self.runs:
            told |= attrs.asdict(observed(self.query, table, how, self.output))
        return told | ({} if own is None else {"estimate": attrs.asdict(own)})
