# SPDX-License-Identifier: Apache-2.0
"""The compressed matches of a pattern."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pyflinkcep.engines.compressed.pattern_runs import refuse_incompressible
from pyflinkcep.errors import NotSupportedError
from pyflinkcep.spark.arrow.columns import POSITION
from pyflinkcep.spark.arrow.layout import Layout
from pyflinkcep.spark.matching.ending_rows import EndingRows
from pyflinkcep.spark.plan.arrow_map import map_in_arrow
from pyflinkcep.spark.plan.job import Job
from pyflinkcep.spark.plan.outputs import match_rows, taking_stages
from pyflinkcep.spark.plan.shuffle import shuffled
from pyflinkcep.spark.plan.source import EventSource
from pyflinkcep.spark.plan.stream import StreamJob, StreamSettings
from pyflinkcep.spark.plan.unbounded import pattern_endings_job, pattern_stream_job
from pyflinkcep.spark.worker.compressed_pattern import PatternEndingsTask, PatternListTask
from pyflinkcep.spark.worker.consumers import ColumnConsumer, output_schema

__all__ = ["CompressedPattern"]


@attrs.frozen(eq=False)
class CompressedPattern:
    """
    A pattern whose partial matches are merged.

    Attributes
    ----------
    job : Job
        The pattern on its events.
    settings : StreamSettings
        For streams: the number of key groups, and the policy for another pattern's checkpoint.
    """

    job: Job
    settings: StreamSettings

    @classmethod
    def of(cls, job: Job, settings: StreamSettings) -> CompressedPattern:
        """
        Return the compressed matches of a job.

        Raises
        ------
        NotSupportedError
            If the pattern has a skip strategy or a condition that is a function of the context,
            or the events have a comparator or no event time.
        """
        refuse_incompressible(job.nfa)
        if job.source.time_column is None or job.comparator is not None:
            raise NotSupportedError(
                "compressed matches in processing time, or with a comparator",
                "write inEventTime('column'): events of equal time keep their order",
            )
        return cls(job, settings)

    @property
    def source(self) -> EventSource:
        """The events."""
        return self.job.source

    @property
    def variables(self) -> Sequence[str]:
        """The stages that take events."""
        return taking_stages(self.job.pattern, self.job.nfa)

    def endings(self, rows: EndingRows) -> DataFrame:
        """Return a row for each event that completes matches."""
        events, layout = self._prepared()
        task = PatternEndingsTask(self.job.pattern, layout, rows, tuple(self.variables))
        return map_in_arrow(events, task.run, rows.schema, self.job.name, layout)

    def matches(self, limit: int | None) -> DataFrame:
        """Return the matches as rows, at most `limit` for each key."""
        events, layout = self._prepared()
        consumer = self._consumer()
        task = PatternListTask(self.job.pattern, layout, consumer, limit)
        return map_in_arrow(events, task.run, output_schema(consumer), self.job.name, layout)

    def _prepared(self) -> tuple[DataFrame, Layout]:
        prepared = self.job.prepare(self.source, {POSITION: F.monotonically_increasing_id()})
        return shuffled(prepared.events, prepared.layout), prepared.layout

    def _consumer(self) -> ColumnConsumer:
        return match_rows(self.source, self.variables)

    def stream_of_endings(self, rows: EndingRows) -> StreamJob:
        """Return the job that makes a row for each event that completes matches."""
        return pattern_endings_job(self.job, rows, self.variables, self.settings)

    def stream_of_matches(self) -> StreamJob:
        """Return the job that makes a row from each match."""
        return pattern_stream_job(self.job, self._consumer(), self.settings, {})
