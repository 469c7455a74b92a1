# SPDX-License-Identifier: Apache-2.0
"""The compressed matches of a query."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from pyspark.sql import DataFrame

from pyflinkcep.errors import NotSupportedError
from pyflinkcep.spark.matching.ending_rows import EndingRows
from pyflinkcep.spark.plan.outputs import match_rows
from pyflinkcep.spark.plan.queries.job import QueryJob
from pyflinkcep.spark.plan.source import EventSource
from pyflinkcep.spark.plan.stream import StreamJob
from pyflinkcep.spark.plan.windows import TimeWindows
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
    """

    job: QueryJob

    @property
    def source(self) -> EventSource:
        """The events."""
        return self.job.source

    @property
    def variables(self) -> Sequence[str]:
        """The variables that take events."""
        return self.job.query.variables

    def in_windows(self, windows: TimeWindows) -> CompressedQuery:
        """
        Return the matches in each of some windows.

        Raises
        ------
        NotSupportedError
            If events outside of a match, and so of its window, decide about it.
        """
        query = self.job.query
        if query.looks_back or query.looks_ahead:
            raise NotSupportedError(
                "windows for a query with a negated component or a closure of a ; query at an "
                "end, about which events outside of the window decide",
                "leave that component out, or aggregate without windows",
            )
        return CompressedQuery(attrs.evolve(self.job, windows=windows, slice_ms=None))

    def endings(self, rows: EndingRows) -> DataFrame:
        """Return a row for each event that completes matches; for bounded events."""
        prepared = self.job.prepared(by_end=True)
        task = EndingsTask(self.job.query, self.job.columns(prepared.layout), rows)
        return self.job.job.run(prepared, task.run, rows.schema)

    def matches(self, limit: int | None) -> DataFrame:
        """Return the matches as rows, at most `limit` from each task; for bounded events."""
        return self.job.run(match_rows(self.source, self.variables), limit)

    def stream_of_endings(self, rows: EndingRows) -> StreamJob:
        """Return the job that makes a row for each event that completes matches."""
        return self.job.stream_of_endings(rows)

    def stream_of_matches(self) -> StreamJob:
        """Return the job that makes a row from each match."""
        return self.job.stream(match_rows(self.source, self.variables), {})
