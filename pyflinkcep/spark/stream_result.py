# SPDX-License-Identifier: Apache-2.0
"""The result of a job on a stream, while it runs and once it has stopped."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.types import StructType

from pyflinkcep.spark.cep_dataframe import CepDataFrame
from pyflinkcep.spark.plan.stream import StreamJob

__all__ = ["stream_result"]


def stream_result(
    job: StreamJob, schemas: Mapping[str, StructType], delay_ms: int = 0
) -> CepDataFrame:
    """
    Start a job on a stream.

    Parameters
    ----------
    job : StreamJob
        The job.
    schemas : mapping of str to StructType
        Its outputs, the main one first.
    delay_ms : int, milliseconds
        The delay of the watermark on the time column.
    """

    def flush(checkpoint: str, operator_id: int) -> CepDataFrame:
        return CepDataFrame(job.flush(checkpoint, operator_id), schemas, job.name)

    return CepDataFrame(job.run(), schemas, job.name, flush, delayMs=delay_ms)
