# SPDX-License-Identifier: Apache-2.0
"""The compressed matches of a query."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from pyspark.sql import DataFrame

from pyflinkcep.spark.matching.ending_rows import EndingRows
from pyflinkcep.spark.plan.arrow_map import map_in_arrow
from pyflinkcep.spark.plan.outputs import match_rows
from pyflinkcep.spark.plan.queries.job import QueryJob
from pyflinkcep.spark.plan.queries.stream import query_endings_job, query_stream_job
from pyflinkcep.spark.plan.source import EventSource
from pyflinkcep.spark.plan.stream import StreamJob, StreamSettings
from pyflinkcep.spark.worker.compressed_query import EndingsTask

__all__ = ["CompressedQuery"]


@attrs.frozen(eq=False)
class CompressedQuery:
    """
    A query whose equal runs are merged.

    Attributes
    ----------
    job : QueryJob
        The query on its events.
    settings : StreamSettings
        For streams: the number of key groups, and the policy for another query's checkpoint.
    """

    job: QueryJob
    settings: StreamSettings

    @property
    def source(self) -> EventSource:
        """The events."""
        return self.job.source

    @property
    def variables(self) -> Sequence[str]:
        """The variables that take events."""
        return self.job.query.variables

    def endings(self, rows: EndingRows) -> DataFrame:
        """Return a row for each event that completes matches; for bounded events."""
        events, layout = self.job.prepared(by_end=True)
        task = EndingsTask(self.job.query, self.job.columns(layout), rows)
        return map_in_arrow(events, task.run, rows.schema, self.source.job_name, layout)

    def matches(self, limit: int | None) -> DataFrame:
        """Return the matches as rows, at most `limit` from each task; for bounded events."""
        return self.job.run(match_rows(self.source, self.variables), limit)

    def stream_of_endings(self, rows: EndingRows) -> StreamJob:
        """Return the job that makes a row for each event that completes matches."""
        return query_endings_job(self.job, rows, self.settings)

    def stream_of_matches(self) -> StreamJob:
        """Return the job that makes a row from each match."""
        return query_stream_job(
            self.job, match_rows(self.source, self.variables), self.settings, {}
        )
