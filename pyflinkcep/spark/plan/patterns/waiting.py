# SPDX-License-Identifier: Apache-2.0
"""What a stream's checkpoint holds of a pattern, as a DataFrame."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from pyflinkcep.matching.stages import taking_stages
from pyflinkcep.spark.arrow.internals import arrow_schema
from pyflinkcep.spark.plan.arrivals import Arrivals
from pyflinkcep.spark.plan.arrow_map import map_in_arrow
from pyflinkcep.spark.plan.flush import by_bucket, stored_state
from pyflinkcep.spark.plan.outputs import check_distinct, match_rows
from pyflinkcep.spark.plan.patterns.job import PatternJob
from pyflinkcep.spark.plan.stream import watermark_of
from pyflinkcep.spark.plan.watermark import StreamWatermark
from pyflinkcep.spark.worker.waiting import QUEUED, WaitingTask

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
    check_distinct(schema, f"pattern {source.pattern}: waiting()")
    session = source.dataframe.sparkSession
    state = by_bucket(stored_state(session, plan, checkpoint, operator_id), None)
    name = f"{job.job.name} (waiting)"
    task = WaitingTask(plan, arrow_schema(schema))
    rows = map_in_arrow(state, task.run, schema, name).orderBy("began", "what")
    if source.time_column is None:
        return rows
    is_moment = isinstance(source.dataframe.schema[source.time_column].dataType, TimestampType)
    watermark = watermark_of(source)
    due = F.col("began") + F.lit(watermark.delay_ms or 0)
    due = (F.timestamp_millis(due) if is_moment else due).cast("string")
    holder = _holder(watermark, Arrivals.read(session, checkpoint))
    queued = F.when(F.col("what") == QUEUED, F.format_string(holder, due))
    times = {time: F.timestamp_millis(time) for time in _TIMES} if is_moment else {}
    return rows.withColumns({"waitsFor": F.coalesce("waitsFor", queued), **times})


def _holder(watermark: StreamWatermark, arrivals: Arrivals | None) -> str:
    """Return what queued events wait for, with a place for the time that they need."""
    newest = None if arrivals is None else arrivals.newest
    came = "" if arrivals is None or newest is None else f"rows came in {arrivals.when(newest)}"
    if watermark.delay_ms is not None:
        return "an event at %s or later" + (f"; the last {came}" if came else "")
    text = f"Spark's watermark at %s or later ({watermark.reason.replace('%', '%%')})"
    if arrivals is None or newest is None:
        return text
    if idle := arrivals.idle():
        return f"{text}; {idle}"
    if len(arrivals.last) == 1:
        return f"{text}; the last {came}, and the next micro-batch follows them"
    return f"{text}; the last {came} from all inputs: that whose times are furthest behind decides"
