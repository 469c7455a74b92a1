# SPDX-License-Identifier: Apache-2.0
"""The results of jobs: of a bounded one, and of a stream while it runs and once it has stopped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from pyflinkcep.spark.cep_dataframe import CepDataFrame, Result
from pyflinkcep.spark.handed_on import HandedOn
from pyflinkcep.spark.plan.job import Job
from pyflinkcep.spark.plan.outputs import MATCH_TIME, STAGE_TIME, tagged_events
from pyflinkcep.spark.plan.stream import StreamJob
from pyflinkcep.spark.worker.consumers import ColumnConsumer, Consumer
from pyflinkcep.spark.worker.reached import ReachedConsumer
from pyflinkcep.spark.worker.unpack import NULLS

__all__ = ["AnalysedJob", "result_of", "stream_result"]


class AnalysedJob(Protocol):
    """A pattern or a query on its events."""

    @property
    def job(self) -> Job:
        """The events and the user's settings."""

    def run(self, consumer: Consumer) -> DataFrame:
        """Run the job on bounded events."""

    def stream(self, consumer: Consumer, sides: Mapping[str, str]) -> StreamJob:
        """Return the job on unbounded events."""


def result_of(analysed: AnalysedJob, consumer: Consumer, sides: Mapping[str, str]) -> CepDataFrame:
    """
    Plan a job.

    Parameters
    ----------
    analysed : AnalysedJob
        The job.
    consumer : Consumer
        Turns matches into rows.
    sides : mapping of str to str
        The outputs for events left out, by their columns in a stream's job.
    """
    job, schemas = analysed.job, consumer.schemas
    if job.is_stream:
        stream = analysed.stream(consumer, sides)
        is_reached = isinstance(consumer, ReachedConsumer)
        is_match = isinstance(consumer, ColumnConsumer)
        time = MATCH_TIME if is_match else STAGE_TIME if is_reached else None
        return stream_result(stream, schemas, time)
    rows = analysed.run(consumer)
    if NULLS in sides:
        nulls = job.given.where(job.source.is_null(job.settings.allows_null_keys))
        rows = rows.unionAll(tagged_events(nulls, sides[NULLS], rows.schema))
    return CepDataFrame(Result(tagged=rows, schemas=schemas, description=job.name))


def stream_result(
    job: StreamJob, schemas: Mapping[str, StructType], time: str | None = None
) -> CepDataFrame:
    """
    Start a job on a stream.

    Parameters
    ----------
    job : StreamJob
        The job.
    schemas : mapping of str to StructType
        Its outputs, the main one first.
    time : str or None
        The column of the main output with the time of matches, or of stages reached.
    """

    def flush(checkpoint: str, operator_id: int) -> CepDataFrame:
        rows = job.flush(checkpoint, operator_id)
        return CepDataFrame(Result(tagged=rows, schemas=schemas, description=job.name))

    held_back = job.output.held_back
    handed_on = HandedOn(
        lambda milliseconds: job.behind(milliseconds).run(),
        job.delay_ms,
        held_back.events_ms,
        {} if time is None else {time: held_back.time_ms},
        is_guarded=job.plan.max_ahead_ms is not None,
    )
    result = CepDataFrame(
        Result(
            tagged=job.run(),
            schemas=schemas,
            description=job.name,
            flush=flush,
            handed_on=handed_on,
        )
    )
    # With a watermark further behind only where it is asked for: other operators would wait too.
    if time is None or held_back.time_ms != 0 or handed_on.is_guarded:
        return result
    return result.withEventTime(time)
