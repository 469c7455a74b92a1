# SPDX-License-Identifier: Apache-2.0
"""The result of a job on a stream, while it runs and once it has stopped."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.types import StructType

from pyflinkcep.spark.cep_dataframe import CepDataFrame, Result
from pyflinkcep.spark.handed_on import HandedOn
from pyflinkcep.spark.plan.outputs import MATCH_TIME
from pyflinkcep.spark.plan.stream import StreamJob

__all__ = ["stream_result"]


def stream_result(
    job: StreamJob, schemas: Mapping[str, StructType], has_match_time: bool = False
) -> CepDataFrame:
    """
    Start a job on a stream.

    Parameters
    ----------
    job : StreamJob
        The job.
    schemas : mapping of str to StructType
        Its outputs, the main one first.
    has_match_time : bool
        Whether the column ``matchTimestamp`` of the main output is the time of matches.
    """

    def flush(checkpoint: str, operator_id: int) -> CepDataFrame:
        rows = job.flush(checkpoint, operator_id)
        return CepDataFrame(Result(tagged=rows, schemas=schemas, description=job.name))

    held_back = job.output.held_back
    handed_on = HandedOn(
        lambda milliseconds: job.behind(milliseconds).run(),
        job.delay_ms,
        held_back.events_ms,
        {MATCH_TIME: held_back.time_ms} if has_match_time else {},
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
    is_marked = handed_on.lags.get(MATCH_TIME) == 0 and not handed_on.is_guarded
    return result.withEventTime(MATCH_TIME) if is_marked else result
