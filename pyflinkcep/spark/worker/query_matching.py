# SPDX-License-Identifier: Apache-2.0
"""The settings that the workers of a query's stream need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs
import pyarrow as pa

from pyflinkcep.engines.sequences.limit import RunLimit
from pyflinkcep.engines.streamed import StreamedQuery
from pyflinkcep.errors import PatternChangedError
from pyflinkcep.matching.query_table import QueryColumns
from pyflinkcep.runtime import RuntimeContext
from pyflinkcep.sase.model import Query
from pyflinkcep.spark.matching.ending_rows import EndingRows
from pyflinkcep.spark.matching.query_matcher import (
    QueryEndingPages,
    QueryMatcher,
    QueryPages,
    QueryWindowPages,
)
from pyflinkcep.spark.matching.window_rows import WindowRows
from pyflinkcep.spark.worker.bucket_task import BucketPlan, BucketTask, Matching

__all__ = ["QUERY", "UNUSABLE", "USABLE", "QueryMatching", "QueryStreamTask"]

QUERY, USABLE = "query", "usable events"
"""The entries of the fingerprint of a query's state: its text, and which events it receives."""

UNUSABLE = frozenset({0})
"""The bits of events that a query cannot use: its only condition fails."""


@attrs.frozen(eq=False, kw_only=True)
class QueryMatching(Matching):
    """
    A query on a stream; see :class:`BucketPlan`.

    Attributes
    ----------
    query : Query
        The query; compiled on each worker.
    columns : QueryColumns
        What it reads from events.
    evaluation : str
        How matches are found.
    output : str
        Which of them are requested.
    rows : EndingRows or None
        Summarizes the matches that an event completes; None if they are listed.
    runs : RunLimit or None
        A bound on the runs of a key.
    """

    query: Query
    columns: QueryColumns
    evaluation: str
    output: str
    rows: EndingRows | None = None
    runs: RunLimit | None = None

    def task(self, plan: BucketPlan, context: RuntimeContext) -> QueryStreamTask:
        """Return the plan ready to run."""
        return QueryStreamTask(plan, self)


class QueryStreamTask(BucketTask):
    """
    A plan of :class:`QueryMatching` ready to run on a worker.

    Parameters
    ----------
    plan : BucketPlan
        The settings of the stream.
    matching : QueryMatching
        Those of the query.
    """

    def __init__(self, plan: BucketPlan, matching: QueryMatching) -> None:
        super().__init__(plan)
        streamed = StreamedQuery(
            matching.query, matching.evaluation, matching.output, matching.runs
        )
        self.matcher = _pages(streamed, matching)

    def requeued(self, table: pa.Table, fingerprint: Mapping[str, str]) -> pa.Table:
        """Return queued events without the answers for another pattern."""
        return table.select(self.schema.names)

    def still_droppable(self, dropped: Iterable[int], fingerprint: Mapping[str, str]) -> list[int]:
        """Return the bits of dropped events; refuse it if this query can use others."""
        if fingerprint.get(USABLE) != self.fingerprint[USABLE]:
            raise PatternChangedError(
                "events that the new query needs were dropped while others were buffered",
                "run the old query with sideOutputLateData(), which keeps every event, until the "
                "watermark has passed the buffered ones; or start from a new checkpoint",
            )
        return sorted(dropped)

    def close(self) -> None:
        """End the task; a query has no rich conditions."""


def _pages(streamed: StreamedQuery, matching: QueryMatching) -> QueryPages:
    """Return what makes the requested results."""
    rows = matching.rows
    if rows is None:
        return QueryMatcher(streamed, matching.columns)
    if isinstance(rows, WindowRows):
        return QueryWindowPages(streamed, matching.columns, rows)
    return QueryEndingPages(streamed, matching.columns, rows)
