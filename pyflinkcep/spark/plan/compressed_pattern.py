# SPDX-License-Identifier: Apache-2.0
"""The compressed matches of a pattern on a bounded DataFrame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from pyflinkcep.compact.pattern_runs import refuse_uncompressible
from pyflinkcep.errors import NotSupportedError
from pyflinkcep.spark.arrow.columns import POSITION, quoted
from pyflinkcep.spark.arrow.layout import Layout
from pyflinkcep.spark.matching.ending_rows import EndingRows
from pyflinkcep.spark.plan.arrow_map import map_in_arrow
from pyflinkcep.spark.plan.job import Job
from pyflinkcep.spark.plan.outputs import match_schema, taking_stages
from pyflinkcep.spark.plan.source import EventSource
from pyflinkcep.spark.plan.stream import StreamJob
from pyflinkcep.spark.worker.consumers import MAIN, ColumnConsumer, output_schema
from pyflinkcep.spark.worker.pattern_runs_task import PatternEndingsTask, PatternListTask

__all__ = ["CompressedPattern"]


@attrs.frozen(eq=False)
class CompressedPattern:
    """
    A pattern whose partial matches are merged.

    Attributes
    ----------
    job : Job
        The pattern on its events.
    """

    job: Job

    @classmethod
    def of(cls, job: Job) -> CompressedPattern:
        """
        Return the compressed matches of a job.

        Raises
        ------
        NotSupportedError
            If the pattern has a skip strategy or a condition that is a function of the context,
            or the events are a stream or have a comparator.
        """
        refuse_uncompressible(job.nfa)
        if job.source.dataframe.isStreaming or job.comparator is not None:
            raise NotSupportedError(
                "compressed matches on a stream, or with a comparator",
                "run them on a bounded DataFrame, whose events of equal time keep their order",
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

    def endings(self, rows: EndingRows) -> DataFrame:
        """Return a row for each event that completes matches."""

        def task(layout: Layout) -> Any:
            return PatternEndingsTask(self.job.pattern, layout, rows)

        return self._run(task, rows.schema)

    def matches(self, limit: int | None) -> DataFrame:
        """Return the matches as rows; `limit` is how many a key gives at most."""
        stages = list(self.variables)
        consumer = ColumnConsumer(
            {MAIN: match_schema(self.source, stages, "matchTimestamp")},
            [key.column for key in self.source.keys],
            stages,
            self.source.event_columns,
            self.source.time_unit,
        )

        def task(layout: Layout) -> Any:
            return PatternListTask(self.job.pattern, layout, consumer, limit)

        return self._run(task, output_schema(consumer))

    def stream_of_endings(self, rows: EndingRows) -> StreamJob:
        """Refuse it."""
        raise _no_stream()

    def stream_of_matches(self) -> StreamJob:
        """Refuse it."""
        raise _no_stream()

    def _run(self, task: Callable[[Layout], Any], schema: StructType) -> DataFrame:
        position = {POSITION: F.monotonically_increasing_id()}
        prepared = self.job.prepare(self.source, position)
        key = [F.col(quoted(name)) for name in prepared.layout.key_signature]
        events = prepared.events
        shuffled = events.repartition(key[0]) if key else events.coalesce(1)
        return map_in_arrow(shuffled, task(prepared.layout).run, schema, self.job.name)


def _no_stream() -> NotSupportedError:
    return NotSupportedError(
        "compressed matches of a pattern on a stream",
        "write it as a query: parse('PATTERN SEQ(…)')",
    )
