# SPDX-License-Identifier: Apache-2.0
"""What a stream's checkpoint holds of a pattern, as a DataFrame."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from pyflinkcep.matching.stages import taking_stages
from pyflinkcep.spark.arrow.internals import arrow_schema
from pyflinkcep.spark.plan.arrow_map import map_in_arrow
from pyflinkcep.spark.plan.flush import by_bucket, stored_state
from pyflinkcep.spark.plan.outputs import match_rows
from pyflinkcep.spark.plan.patterns.job import PatternJob
from pyflinkcep.spark.worker.waiting import WaitingTask

__all__ = ["waiting"]

_FACTS = StructType(
    [
        StructField("what", StringType(), False),
        StructField("after", StringType()),
        StructField("waitsFor", StringType()),
        StructField("events", LongType(), False),
        StructField("began", LongType()),
        StructField("ends", LongType()),
        StructField("watermark", LongType()),
    ]
)
_TIMES = ("began", "ends", "watermark")


def waiting(job: PatternJob, checkpoint: str, operator_id: int) -> DataFrame:
    """
    Return what the state of a stream holds, oldest first.

    Parameters
    ----------
    job : PatternJob
        The pattern on the stream.
    checkpoint : str
        The stream's checkpoint; it is read, not changed.
    operator_id : int
        Which of the query's stateful operators the pattern is, counted from the sink.

    Raises
    ------
    InputError
        If the checkpoint has no state of the pattern.
    """
    source = job.source
    stages = taking_stages(job.pattern, job.nfa)
    plan = job.stream(match_rows(source, stages, None, job.nfa, of_query=False), {}).plan
    keys = [StructField(key.name, key.type) for key in source.keys]
    schema = StructType([*keys, *_FACTS])
    session = source.dataframe.sparkSession
    state = by_bucket(stored_state(session, plan, checkpoint, operator_id), None)
    name = f"{job.job.name} (waiting)"
    task = WaitingTask(plan, arrow_schema(schema))
    rows = map_in_arrow(state, task.run, schema, name).orderBy("began", "what")
    if source.time_column is None:
        return rows
    if not isinstance(source.dataframe.schema[source.time_column].dataType, TimestampType):
        return rows
    return rows.withColumns({time: F.timestamp_millis(time) for time in _TIMES})
