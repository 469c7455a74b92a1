# SPDX-License-Identifier: Apache-2.0
"""The matches of a query as rows."""

from __future__ import annotations

from pyflinkcep.spark.plan.outputs import match_schema
from pyflinkcep.spark.plan.queries.job import QueryJob
from pyflinkcep.spark.worker.consumers import MAIN, ColumnConsumer

__all__ = ["match_rows"]


def match_rows(job: QueryJob) -> ColumnConsumer:
    """Return the consumer of matches as rows: key, time, and an array for each variable."""
    source = job.source
    variables = [part.variable for part in job.query.positive]
    return ColumnConsumer(
        {MAIN: match_schema(source, variables, "matchTimestamp")},
        [key.column for key in source.keys],
        variables,
        source.event_columns,
        source.time_unit,
    )
