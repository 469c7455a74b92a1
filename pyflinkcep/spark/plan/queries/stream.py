# SPDX-License-Identifier: Apache-2.0
"""A query on an unbounded DataFrame."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pyflinkcep.sase.text import stored_text
from pyflinkcep.spark.arrow.columns import BITS
from pyflinkcep.spark.arrow.layout import Layout
from pyflinkcep.spark.matching.ending_rows import EndingRows
from pyflinkcep.spark.plan.held_back import HeldBack
from pyflinkcep.spark.plan.queries.job import QueryJob
from pyflinkcep.spark.plan.stream import StreamJob, StreamSettings, packed_schema, watermark_of
from pyflinkcep.spark.state.fingerprint import layout_facts
from pyflinkcep.spark.state.key_groups import KeyGroups
from pyflinkcep.spark.worker.consumers import Consumer, output_schema
from pyflinkcep.spark.worker.query_stream import QUERY, UNUSABLE, USABLE, QueryStreamPlan
from pyflinkcep.spark.worker.unpack import RowsTask, UnpackTask

__all__ = ["query_endings_job", "query_stream_job"]


def query_stream_job(
    job: QueryJob, consumer: Consumer, settings: StreamSettings, sides: Mapping[str, str]
) -> StreamJob:
    """
    Prepare a query on a stream.

    Parameters
    ----------
    job : QueryJob
        The query and its events.
    consumer : Consumer
        Turns matches into rows.
    settings : StreamSettings
        The number of key groups, and the policy for a checkpoint of another query.
    sides : mapping of str to str
        The outputs for events left out; see :class:`StreamJob`.
    """
    events, plan = _prepared(job, settings, drops_late=not sides)
    unpack = UnpackTask(plan.layout, job.query.variables, consumer, sides)
    name = job.source.job_name
    held_back = HeldBack.by_query(job.query, job.output)
    delay_ms = job.source.watermark_delay_ms
    return StreamJob(
        name, unpack, output_schema(consumer), sides, events, plan, held_back, delay_ms,
        is_named=job.source.name is not None,
    )  # fmt: skip


def query_endings_job(job: QueryJob, rows: EndingRows, settings: StreamSettings) -> StreamJob:
    """Prepare a query on a stream with a row for each event that completes matches."""
    events, plan = _prepared(job, settings, drops_late=True)
    fingerprint = {**plan.fingerprint, "output": "all matches of an event"}
    plan = attrs.evolve(plan, rows=rows, fingerprint=fingerprint)
    name = f"{job.source.job_name} ({rows.what})"
    held_back = HeldBack.by_query(job.query, job.output, compressed=True)
    delay_ms = job.source.watermark_delay_ms
    return StreamJob(
        name, RowsTask(), rows.schema, {}, events, plan, held_back, delay_ms,
        is_named=job.source.name is not None,
    )  # fmt: skip


def _prepared(
    job: QueryJob, settings: StreamSettings, *, drops_late: bool
) -> tuple[DataFrame, QueryStreamPlan]:
    """Return the events with the columns that the operator needs, and its settings."""
    source = job.source
    layout = job.layout(source, always_hash=True)
    added = {**source.key_hash(always=True), **job.computed()}
    usable = job.needed()
    is_filtered = usable is not None and drops_late
    if is_filtered:
        added[BITS] = F.when(F.expr(str(usable)), 1).otherwise(0).cast("bigint")
    events = source.prepare(added)
    watermark = watermark_of(source)
    plan = QueryStreamPlan(
        query=job.query,
        columns=job.columns(layout),
        evaluation=job.evaluation,
        output=job.output,
        runs=job.runs,
        layout=layout,
        schema=packed_schema(events, layout),
        key_groups=settings.groups,
        processing_time=False,
        fingerprint=_fingerprint(job, layout, usable, settings.groups),
        on_pattern_change=settings.on_pattern_change,
        dropped=UNUSABLE if is_filtered else frozenset(),
        delay_ms=watermark.delay_ms,
        is_downstream=watermark.is_downstream,
        clock=watermark.clock,
        max_ahead_ms=settings.max_ahead_ms,
        allows_null_keys=True,
    )
    return events, plan


def _fingerprint(
    job: QueryJob, layout: Layout, usable: str | None, key_groups: KeyGroups
) -> dict[str, str]:
    """
    Return what must stay the same for stored state to be reused.

    State is events, so it fits every evaluation and every output.
    """
    return {
        QUERY: stored_text(job.query),
        USABLE: usable or "all",
        "output": job.output,
        "type column": job.type_column,
        **layout_facts(layout, key_groups),
    }
