# SPDX-License-Identifier: Apache-2.0
"""The compressed matches of a query."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from pyspark.sql import DataFrame

from pyflinkcep.engines.choice import Evaluation, chosen_for_compressed
from pyflinkcep.engines.compressed.matches import TimeWindows, refuse_outside
from pyflinkcep.engines.compressed.patterns import refuse_incompressible
from pyflinkcep.engines.flink.operator.cep_operator import compressed_with_limit
from pyflinkcep.errors import InvalidArgumentError, NotSupportedError
from pyflinkcep.matching.layout import taking_stages
from pyflinkcep.sase.model import Query
from pyflinkcep.spark.plan.job import Prepared
from pyflinkcep.spark.plan.outputs import match_rows
from pyflinkcep.spark.plan.patterns.job import PatternJob
from pyflinkcep.spark.plan.queries.job import QueryJob
from pyflinkcep.spark.plan.settings import JobSettings
from pyflinkcep.spark.plan.source import EventSource
from pyflinkcep.spark.plan.stream import StreamJob
from pyflinkcep.spark.worker.consumers import ColumnConsumer, output_schema
from pyflinkcep.spark.worker.endings import EndingRows, PatternEndingsTask, PatternListTask
from pyflinkcep.spark.worker.query_task import EndingsTask


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


@attrs.frozen(eq=False)
class CompressedQuery:
    """A query whose equal runs are merged."""

    job: QueryJob  # The query on its events

    @property
    def source(self) -> EventSource:
        """The events."""
        return self.job.source

    @property
    def variables(self) -> Sequence[str]:
        """The variables that take events."""
        return self.job.query.variables

    def in_windows(self, windows: TimeWindows) -> CompressedQuery:
        """Return the matches in each of some windows."""
        refuse_outside(self.job.query)
        return CompressedQuery(attrs.evolve(self.job, windows=windows, slice_ms=None))

    def endings(self, rows: EndingRows) -> DataFrame:
        """Return a row for each event that completes matches; for bounded events."""
        prepared = self.job.prepared(by_end=True)
        task = EndingsTask(self.job.query, self.job.columns(prepared.layout), rows)
        return self.job.job.run(prepared, task.run, rows.schema)

    def matches(self, limit: int | None) -> DataFrame:
        """Return the matches as rows, at most `limit` from each task; for bounded events."""
        return self.job.run(match_rows(self.source, self.variables), limit)

    def stream_of_endings(self, rows: EndingRows) -> StreamJob:
        """Return the job that makes a row for each event that completes matches."""
        return self.job.stream_of_endings(rows)

    def stream_of_matches(self) -> StreamJob:
        """Return the job that makes a row from each match."""
        return self.job.stream(match_rows(self.source, self.variables), {})


def how_compressed(query: Query, settings: JobSettings) -> Evaluation:
    """Return how matches are found without listing them."""
    if query.having is not None or settings.output != "all":
        raise InvalidArgumentError(
            "compressed matches with HAVING or an output other than all",
            'leave HAVING out, use output="all", and filter what unpack() returns',
        )
    if settings.limit is not None:
        raise compressed_with_limit()
    return chosen_for_compressed(query, settings.evaluation)


def refuse_totals(query: Query, what: str) -> None:
    """Refuse what is about single matches, of a query whose matches are totalled."""
    if query.totals is not None:
        raise InvalidArgumentError(
            f"{what} of a query with SLIDE, which totals its matches",
            "use toDF(), or leave SLIDE out",
        )
