# SPDX-License-Identifier: Apache-2.0
"""A pattern on an unbounded DataFrame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from pyflinkcep.spark.matching.ending_rows import EndingRows
from pyflinkcep.spark.matching.order import OrderColumns
from pyflinkcep.spark.plan.held_back import HeldBack
from pyflinkcep.spark.plan.job import Job, Prepared
from pyflinkcep.spark.plan.prefilter import droppable_events
from pyflinkcep.spark.plan.settings import StreamSettings
from pyflinkcep.spark.plan.stream import StreamJob, StreamOutput
from pyflinkcep.spark.state.fingerprint import fingerprint
from pyflinkcep.spark.worker.consumers import ColumnConsumer, Consumer
from pyflinkcep.spark.worker.pattern_stream import Endings, PatternMatching
from pyflinkcep.spark.worker.unpack import RowsTask

__all__ = ["pattern_endings_job", "pattern_stream_job"]


def pattern_stream_job(
    job: Job,
    consumer: Consumer,
    settings: StreamSettings,
    sides: Mapping[str, str],
    computed: Mapping[str, str] | None = None,
) -> StreamJob:
    """
    Prepare a pattern on a stream.

    Parameters
    ----------
    job : Job
        The pattern and its events.
    consumer : Consumer
        Turns matches into rows.
    settings : StreamSettings
        The user's settings.
    sides : mapping of str to str
        The outputs for events left out; see :class:`StreamOutput`.
    computed : mapping of str to str, optional
        The SQL of columns added to the user's, which stored events include.
    """
    prepared = job.prepare(job.source, {}, always_hash=True)
    droppable = droppable_events(job, consumer.shows_time)
    matching = PatternMatching(
        pattern=job.pattern,
        comparator=job.comparator,
        wants_timeouts=consumer.wants_timeouts,
        limit=job.limit,
        droppable=droppable,
    )
    of_query = isinstance(consumer, ColumnConsumer) and consumer.times.is_last
    held_back = HeldBack.by_pattern(job.nfa, of_query=of_query)
    layout = prepared.layout
    output = StreamOutput.of_matches(layout, job.nfa.stages, consumer, held_back, sides)
    order = str(job.comparator) if isinstance(job.comparator, OrderColumns) else ""
    facts = fingerprint(job.nfa, layout, settings.groups, order, computed)
    return StreamJob.of(job.source, settings, prepared, matching, facts, output, droppable)


def pattern_endings_job(
    job: Job, rows: EndingRows, variables: Sequence[str], settings: StreamSettings
) -> StreamJob:
    """
    Prepare a pattern on a stream with a row for each event that completes matches.

    Parameters
    ----------
    job : Job
        The pattern and its events.
    rows : EndingRows
        Summarizes the matches that an event completes.
    variables : sequence of str
        The stages that take events.
    settings : StreamSettings
        The user's settings.
    """
    prepared = job.prepare(job.source, {}, always_hash=True)
    layout = prepared.layout
    facts = fingerprint(job.nfa, layout, settings.groups)
    # Stored events keep their answers, since they are processed again.
    layout = attrs.evolve(layout, payload=(*layout.payload, *layout.bit_columns))
    droppable = droppable_events(job, shows_time=True)
    matching = PatternMatching(
        pattern=job.pattern,
        comparator=job.comparator,
        wants_timeouts=False,
        limit=job.limit,
        droppable=droppable,
        endings=Endings(rows, tuple(variables)),
    )
    output = StreamOutput(RowsTask(), rows.schema, HeldBack.by_pattern(job.nfa), what=rows.what)
    return StreamJob.of(
        job.source,
        settings,
        Prepared(prepared.events, layout),
        matching,
        {**facts, "output": "all matches of an event"},
        output,
        droppable,
    )
