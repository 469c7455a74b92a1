# SPDX-License-Identifier: Apache-2.0
"""The matches of a query as rows."""

from __future__ import annotations

from pyspark.sql import DataFrame

from pyflinkcep.spark.plan.outputs import match_schema
from pyflinkcep.spark.plan.query_job import QueryJob
from pyflinkcep.spark.worker.consumers import MAIN, ColumnConsumer

__all__ = ["match_rows"]


def match_rows(job: QueryJob, limit: int | None = None) -> DataFrame:
    """
    Return the matches of a job as rows: the key, the time, and an array for each variable.

    Parameters
    ----------
    job : QueryJob
        The job.
    limit : int or None
        How many matches a task gives at most.
    """
    source = job.source
    variables = [part.variable for part in job.query.positive]
    consumer = ColumnConsumer(
        {MAIN: match_schema(source, variables, "matchTimestamp")},
        [key.column for key in source.keys],
        variables,
        source.event_columns,
        source.time_unit,
    )
    return job.run(consumer, limit)
