# SPDX-License-Identifier: Apache-2.0
"""A clause with Flink's meaning on a DataFrame: a pattern's job whose results are measures."""

from __future__ import annotations

from pyspark.sql import DataFrame

from pyflinkcep.engines.flink.operator import PartialMatchLimit
from pyflinkcep.match_recognize.names import Names
from pyflinkcep.match_recognize.tree import Clause
from pyflinkcep.spark.plan.batch import run_batch
from pyflinkcep.spark.plan.clauses.flink_job import FlinkJob
from pyflinkcep.spark.plan.clauses.matched import Matched
from pyflinkcep.spark.plan.settings import StreamSettings
from pyflinkcep.spark.plan.unbounded import pattern_stream_job

__all__ = ["flink_clause"]


def flink_clause(
    dataframe: DataFrame,
    clause: Clause,
    names: Names,
    settings: StreamSettings,
    limit: PartialMatchLimit | None,
) -> Matched:
    """
    Plan a clause.

    Parameters
    ----------
    dataframe : DataFrame
        The input, bounded or not.
    clause : Clause
        The clause.
    names : Names
        Its names.
    settings : StreamSettings
        The user's settings for a stream.
    limit : PartialMatchLimit or None
        How many partial matches a key may have.

    Raises
    ------
    CepError
        If Flink refuses the clause, or Spark cannot compute something in it.
    """
    own = FlinkJob.analyse(dataframe, clause, names, limit, settings)
    job, consumer = own.job, own.consumer()
    about = (job.name, own.read.pattern, own.events, own.keys, own.time)
    if not dataframe.isStreaming:
        return Matched(own.output(run_batch(job, consumer)), *about)
    stream = pattern_stream_job(job, consumer, settings, {}, own.arguments.sql)

    def flush(checkpoint: str, operator: int) -> DataFrame:
        return own.output(stream.flush(checkpoint, operator))

    def behind(milliseconds: int) -> DataFrame:
        return own.output(stream.behind(milliseconds).run())

    held_ms = stream.output.held_back.events_ms
    return Matched(own.output(stream.run()), *about, flush, behind, held_ms, stream.delay_ms)
