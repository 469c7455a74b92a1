# SPDX-License-Identifier: Apache-2.0
"""The compressed matches of a query on a bounded DataFrame."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from pyflinkcep.compact.matches import Measured
from pyflinkcep.spark.plan.arrow_map import map_in_arrow
from pyflinkcep.spark.plan.match_rows import match_rows
from pyflinkcep.spark.plan.query_job import QueryJob
from pyflinkcep.spark.plan.source import EventSource
from pyflinkcep.spark.worker.count_task import CountTask

__all__ = ["CompressedQuery"]


@attrs.frozen(eq=False)
class CompressedQuery:
    """
    A query whose equal runs are merged.

    Attributes
    ----------
    job : QueryJob
        The query on its events.
    """

    job: QueryJob

    @property
    def source(self) -> EventSource:
        """The events."""
        return self.job.source

    @property
    def variables(self) -> Sequence[str]:
        """The variables that take events."""
        return [part.variable for part in self.job.query.positive]

    def totals(self, measured: Sequence[Measured], schema: StructType) -> DataFrame:
        """Return a row of counts and aggregates for each event that completes matches."""
        job = self.job
        events, layout = job.prepared()
        task = CountTask(
            job.query,
            job.columns(layout),
            tuple(measured),
            tuple(key.column for key in job.source.keys),
            schema,
            job.source.time_unit,
        )
        return map_in_arrow(events, task.run, schema, f"CEP: {layout.pattern}")

    def rows(self, limit: int | None) -> DataFrame:
        """Return the matches as rows; `limit` is how many a task gives at most."""
        return self.job.run(match_rows(self.job), limit)
