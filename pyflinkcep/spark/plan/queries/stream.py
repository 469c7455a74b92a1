# SPDX-License-Identifier: Apache-2.0
"""A query on an unbounded DataFrame."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
from pyspark.sql import functions as F

from pyflinkcep.sase.text import stored_text
from pyflinkcep.spark.arrow.columns import BITS
from pyflinkcep.spark.arrow.layout import Layout
from pyflinkcep.spark.matching.ending_rows import EndingRows
from pyflinkcep.spark.plan.held_back import HeldBack
from pyflinkcep.spark.plan.job import Prepared
from pyflinkcep.spark.plan.queries.job import QueryJob
from pyflinkcep.spark.plan.settings import StreamSettings
from pyflinkcep.spark.plan.stream import StreamJob, StreamOutput
from pyflinkcep.spark.state.fingerprint import layout_facts
from pyflinkcep.spark.state.key_groups import KeyGroups
from pyflinkcep.spark.worker.consumers import Consumer
from pyflinkcep.spark.worker.query_stream import QUERY, UNUSABLE, USABLE, QueryMatching
from pyflinkcep.spark.worker.unpack import RowsTask

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
        The outputs for events left out; see :class:`StreamOutput`.
    """
    layout = job.layout(job.source, always_hash=True)
    held_back = HeldBack.by_query(job.query, job.output)
    variables = job.query.variables
    output = StreamOutput.of_matches(layout, variables, consumer, held_back, sides)
    return _job(job, settings, layout, output)


def query_endings_job(job: QueryJob, rows: EndingRows, settings: StreamSettings) -> StreamJob:
    """Prepare a query on a stream with a row for each event that completes matches."""
    layout = job.layout(job.source, always_hash=True)
    held_back = HeldBack.by_query(job.query, job.output, compressed=True)
    output = StreamOutput(RowsTask(), rows.schema, held_back, what=rows.what)
    return _job(job, settings, layout, output, rows)


def _job(
    job: QueryJob,
    settings: StreamSettings,
    layout: Layout,
    output: StreamOutput,
    rows: EndingRows | None = None,
) -> StreamJob:
    """Add the columns that the operator needs to the events; `rows` summarize matches."""
    source = job.source
    added = {**source.key_hash(always=True), **job.computed()}
    usable = job.needed()
    is_filtered = usable is not None and not output.shows_events
    if is_filtered:
        added[BITS] = F.when(F.expr(str(usable)), 1).otherwise(0).cast("bigint")
    matching = QueryMatching(
        query=job.query,
        columns=job.columns(layout),
        evaluation=job.evaluation,
        output=job.output,
        runs=job.runs,
        rows=rows,
    )
    fingerprint = _fingerprint(job, layout, usable, settings.groups)
    if rows is not None:
        fingerprint["output"] = "all matches of an event"
    return StreamJob.of(
        source,
        attrs.evolve(settings, allows_null_keys=True),
        Prepared(source.prepare(added), layout),
        matching,
        fingerprint,
        output,
        UNUSABLE if is_filtered else frozenset(),
    )


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
