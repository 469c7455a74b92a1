# SPDX-License-Identifier: Apache-2.0
"""Bounded jobs: shuffle by key; each worker sorts its partition and matches key by key."""

from __future__ import annotations

import attrs
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pyflinkcep.spark.arrow.columns import POSITION, SLICE
from pyflinkcep.spark.arrow.layout import Layout
from pyflinkcep.spark.plan.arrow_map import map_in_arrow
from pyflinkcep.spark.plan.job import Job
from pyflinkcep.spark.plan.prefilter import EventFilter
from pyflinkcep.spark.plan.shuffle import shuffled
from pyflinkcep.spark.plan.slices import slice_length, sliced
from pyflinkcep.spark.worker.batch import BatchTask
from pyflinkcep.spark.worker.chain_task import ChainTask
from pyflinkcep.spark.worker.consumers import Consumer, output_schema

__all__ = ["run_batch", "run_lists", "slice_ms"]


def run_batch(job: Job, consumer: Consumer) -> DataFrame:
    """
    Run a job on a bounded DataFrame.

    Parameters
    ----------
    job : Job
        The job.
    consumer : Consumer
        Turns matches into rows.

    Returns
    -------
    DataFrame
        The main output alone, or all outputs tagged; see :func:`output_schema`.
    """
    events, layout = _prepared(job, consumer)
    task = BatchTask(job.pattern, layout, job.comparator, consumer, job.limit)
    return map_in_arrow(
        shuffled(events, layout), task.run, output_schema(consumer), job.name, layout
    )


def run_lists(job: Job, consumer: Consumer) -> DataFrame:
    """
    Run a job on a bounded DataFrame by ordered event lists; see :func:`run_batch`.

    Without a key, but with a window, time is cut into slices, so that all cores work.
    """
    events, layout = _prepared(job, consumer)
    length = slice_ms(job)
    if length is not None:
        events = sliced(events, job.source, length, 0, job.nfa.window_time - 1)
        layout = attrs.evolve(layout, key_signature=(SLICE,))
    task = ChainTask(job.pattern, layout, consumer)
    return map_in_arrow(
        shuffled(events, layout), task.run, output_schema(consumer), job.name, layout
    )


def slice_ms(job: Job) -> int | None:
    """Return the length of the time slices for lists, in milliseconds; None without slices."""
    if job.source.keys or job.nfa.window_time <= 0:
        return None
    return slice_length(job.nfa.window_time)


def _prepared(job: Job, consumer: Consumer) -> tuple[DataFrame, Layout]:
    wanted = EventFilter.of(job, consumer)
    prepared = job.prepare(wanted.before(), {POSITION: F.monotonically_increasing_id()})
    return wanted.after(prepared), prepared.layout
