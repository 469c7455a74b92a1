# SPDX-License-Identifier: Apache-2.0
"""Bounded jobs: shuffle by key; each worker sorts its partition and matches key by key."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pyflinkcep.spark.arrow.columns import POSITION, quoted
from pyflinkcep.spark.plan.arrow_map import map_in_arrow
from pyflinkcep.spark.plan.job import Job
from pyflinkcep.spark.plan.prefilter import EventFilter
from pyflinkcep.spark.worker.batch import BatchTask
from pyflinkcep.spark.worker.consumers import Consumer, output_schema

__all__ = ["run_batch"]


def run_batch(job: Job, consumer: Consumer) -> DataFrame:
    """
    Run a job on a bounded DataFrame.

    Parameters
    ----------
    job : Job
        The job.
    consumer : Consumer
        What becomes of the matches.

    Returns
    -------
    DataFrame
        The main output alone, or all outputs tagged; see :func:`output_schema`.
    """
    wanted = EventFilter.of(job, consumer)
    position = {POSITION: F.monotonically_increasing_id()}
    prepared = job.prepare(wanted.before(), position)
    events, layout = wanted.after(prepared), prepared.layout
    key = [F.col(quoted(name)) for name in layout.key_signature]
    shuffled = events.repartition(key[0]) if key else events.coalesce(1)
    task = BatchTask(job.pattern, layout, job.comparator, consumer, job.limit)
    return map_in_arrow(shuffled, task.run, output_schema(consumer), job.name)
