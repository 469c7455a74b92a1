# SPDX-License-Identifier: Apache-2.0
"""The output of a clause, in either dialect."""

from __future__ import annotations

from typing import Protocol

import attrs
from pyspark.sql import DataFrame

from pyflinkcep.spark.plan.job import Job
from pyflinkcep.spark.plan.stream import StreamJob

__all__ = ["ClauseJob", "Matched"]


class ClauseJob(Protocol):
    """A clause on its rows, analysed."""

    @property
    def job(self) -> Job:
        """The rows and the user's settings."""

    def run(self) -> DataFrame:
        """Return what workers take from the matches of bounded rows."""

    def stream(self) -> StreamJob:
        """Return the job on unbounded rows."""

    def output(self, result: DataFrame) -> DataFrame:
        """Return the clause's output from that of the workers."""

    def explained(self, statement: str, /) -> str:
        """Return how the clause of a statement will run."""


@attrs.frozen(eq=False)
class Matched:
    """
    The output of a clause.

    Attributes
    ----------
    frame : DataFrame
        The output.
    clause : ClauseJob
        The clause.
    stream : StreamJob or None
        Its job, for streams.
    """

    frame: DataFrame
    clause: ClauseJob
    stream: StreamJob | None

    @classmethod
    def of(cls, clause: ClauseJob) -> Matched:
        """
        Run a clause.

        Raises
        ------
        CepError
            If Spark cannot compute something in it.
        """
        if not clause.job.is_stream:
            return cls(clause.output(clause.run()), clause, None)
        stream = clause.stream()
        return cls(clause.output(stream.run()), clause, stream)

    def flush(self, checkpoint: str, operator: int) -> DataFrame:
        """Return the output of a final watermark, for a stream."""
        assert self.stream is not None
        return self.clause.output(self.stream.flush(checkpoint, operator))

    def behind(self, milliseconds: int) -> DataFrame:
        """Return the output for a watermark that is further behind, for a stream."""
        assert self.stream is not None
        return self.clause.output(self.stream.behind(milliseconds).run())
