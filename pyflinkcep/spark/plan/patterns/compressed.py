# SPDX-License-Identifier: Apache-2.0
"""The compressed matches of a pattern."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from pyspark.sql import DataFrame

from pyflinkcep.engines.compressed.matches import TimeWindows
from pyflinkcep.engines.compressed.patterns import refuse_incompressible
from pyflinkcep.errors import NotSupportedError
from pyflinkcep.matching.layout import taking_stages
from pyflinkcep.spark.plan.job import Prepared
from pyflinkcep.spark.plan.outputs import match_rows
from pyflinkcep.spark.plan.patterns.job import PatternJob
from pyflinkcep.spark.plan.source import EventSource
from pyflinkcep.spark.plan.stream import StreamJob
from pyflinkcep.spark.worker.compressed_pattern import PatternEndingsTask, PatternListTask
from pyflinkcep.spark.worker.consumers import ColumnConsumer, output_schema
from pyflinkcep.spark.worker.endings import EndingRows


@attrs.frozen(eq=False)
class CompressedPattern:
    """A pattern whose partial matches are merged."""

    job: PatternJob  # The pattern on its events

    @classmethod
    def of(cls, job: PatternJob) -> CompressedPattern:
        """Return the compressed matches of a job."""
        refuse_incompressible(job.nfa)
        if job.source.time_column is None or job.comparator is not None:
            raise NotSupportedError(
                "compressed() needs event time and no comparator",
                "write inEventTime('column'): events of equal time keep their order",
            )
        return cls(job)

    @property
    def source(self) -> EventSource:
        """The events."""
        return self.job.source

    @property
    def variables(self) -> Sequence[str]:
        """The stages that take events."""
        return taking_stages(self.job.pattern, self.job.nfa)

    def in_windows(self, windows: TimeWindows) -> CompressedPattern:
        """Refuse windows: streams keep the partial matches of patterns, not events."""
        raise NotSupportedError(
            "aggregate(window=...) is not available for a pattern",
            "write it as a query: parse('PATTERN SEQ(...)')",
        )

    def endings(self, rows: EndingRows) -> DataFrame:
        """Return a row for each event that completes matches."""
        prepared = self._prepared()
        variables = tuple(self.variables)
        task = PatternEndingsTask(self.job.pattern, prepared.layout, rows, variables)
        return self.job.job.run(prepared, task.run, rows.schema)

    def matches(self, limit: int | None) -> DataFrame:
        """Return the matches as rows, at most `limit` for each key."""
        prepared, consumer = self._prepared(), self._consumer()
        task = PatternListTask(self.job.pattern, prepared.layout, consumer, limit)
        return self.job.job.run(prepared, task.run, output_schema(consumer))

    def _prepared(self) -> Prepared:
        return self.job.prepared(self.job.job, positions=True)

    def _consumer(self) -> ColumnConsumer:
        return match_rows(self.source, self.variables)

    def stream_of_endings(self, rows: EndingRows) -> StreamJob:
        """Return the job that makes a row for each event that completes matches."""
        return self.job.stream_of_endings(rows, self.variables)

    def stream_of_matches(self) -> StreamJob:
        """Return the job that makes a row from each match."""
        return self.job.stream(self._consumer(), {})
