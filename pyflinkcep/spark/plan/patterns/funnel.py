# SPDX-License-Identifier: Apache-2.0
"""The stages that partial matches reach as rows, and the funnel that these are counted into."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from pyflinkcep.errors import InputError, NotSupportedError, did_you_mean
from pyflinkcep.matching.columns import PREFIX, quoted
from pyflinkcep.spark.plan.outputs import STAGE_TIME, check_distinct, match_times
from pyflinkcep.spark.plan.patterns.job import PatternJob
from pyflinkcep.spark.worker.consumers import MAIN
from pyflinkcep.spark.worker.reached import ReachedConsumer
from pyflinkcep.trace.funnel import FunnelSettings, FunnelStep

__all__ = ["funnel_of", "reached_rows"]


_NEW_IN_GROUP, _NEW_KEY = f"{PREFIX}newInGroup", f"{PREFIX}newKey"
_BEGAN, _FOUND = f"{PREFIX}began", f"{PREFIX}found"


def reached_rows(
    job: PatternJob, by: Sequence[str], steps: Sequence[FunnelStep], *, marks_keys: bool = False
) -> ReachedConsumer:
    """
    Return what makes a row of each stage that a partial match reaches.

    With `marks_keys` two columns more, for :func:`funnel_of`; on bounded input only, where all
    events of a key are in one task.

    Raises
    ------
    NotSupportedError
        In processing time, where events have no times to compare.
    InputError
        If `by` names an unknown column, or the key has the name of a column of the result.
    """
    source = job.source
    if source.time_column is None:
        raise NotSupportedError(
            "a funnel needs event time: in processing time events have no times of their own",
            "write inEventTime('column')",
        )
    events = source.dataframe.schema
    keys = {key.name: key for key in source.keys}
    known = source.event_columns
    for name in by:
        if name not in keys and name not in known:
            raise InputError(
                f"pattern {source.pattern}: by names {name!r}, which is no column of the events",
                did_you_mean(name, known, f"the columns are {', '.join(known)}"),
            )
    added = [name for name in by if name not in keys]
    fields = [StructField(key.name, key.type) for key in source.keys]
    fields += [StructField(name, events[name].dataType) for name in added]
    fields += [
        StructField("stage", StringType(), False),
        StructField("step", IntegerType(), False),
        StructField(STAGE_TIME, events[source.time_column].dataType),
        StructField("sincePrevious", LongType()),
        StructField("sinceFirst", LongType(), False),
    ]
    if marks_keys:
        fields += [StructField(name, BooleanType(), False) for name in (_NEW_IN_GROUP, _NEW_KEY)]
    check_distinct(fields, f"pattern {source.pattern}: a funnel")
    columns = [*(key.column for key in source.keys), *added]
    return ReachedConsumer(
        {MAIN: StructType(fields)},
        columns,
        [step.stage for step in steps],
        match_times(source, None),
        len(keys) if marks_keys else None,
    )


def funnel_of(
    rows: DataFrame, has_key: bool, settings: FunnelSettings, steps: Sequence[FunnelStep]
) -> DataFrame:
    """
    Return the funnel of what partial matches reached.

    Parameters
    ----------
    rows : DataFrame
        A row for each stage that a partial match reached, with keys marked.
    has_key : bool
        Whether shares are of keys; otherwise they are of partial matches.
    settings : FunnelSettings
        What the user asks.
    steps : sequence of FunnelStep
        The stages.

    Notes
    -----
    One pass over the rows, which Spark sums up before the shuffle: distinct keys are those marked.
    """
    by = [F.col(quoted(name)) for name in settings.by]
    since = F.col("sincePrevious")
    counted = rows.groupBy(*by, "step").agg(
        F.count_if(_NEW_KEY).alias("keys"),
        F.count(F.lit(1)).alias("partialMatches"),
        F.count_if(_NEW_IN_GROUP if has_key else since.isNull()).alias(_BEGAN),
        *(F.percentile(since, F.lit(at)).alias(name) for name, at in settings.quantiles.items()),
    )
    facts = F.struct("keys", "partialMatches", *settings.quantiles)
    entries = F.collect_list(F.struct("step", facts))
    found = counted.groupBy(*by).agg(
        F.map_from_entries(entries).alias(_FOUND), F.sum(_BEGAN).alias(_BEGAN)
    )
    stages = F.array(*(_row(step, has_key, list(settings.quantiles)) for step in steps))
    return found.select(*by, F.inline(stages)).orderBy(*by, "step")


def _row(step: FunnelStep, has_key: bool, quantiles: Sequence[str]) -> Column:
    unit = "keys" if has_key else "partialMatches"
    nothing = F.lit(0).cast("bigint")

    def of(number: int, name: str) -> Column:
        return F.try_element_at(_FOUND, F.lit(number)).getField(name)

    def size(number: int, name: str = unit) -> Column:
        return F.coalesce(of(number, name) if number else F.col(_BEGAN), nothing)

    own = size(step.number)
    columns = {
        "stage": F.lit(step.stage),
        "step": F.lit(step.number),
        "keys": size(step.number, "keys"),
        "partialMatches": size(step.number, "partialMatches"),
        "ofFirst": own / F.nullif(size(0), nothing),
        "ofPrevious": own / F.nullif(size(step.previous), nothing),
        "dropOff": size(step.previous) - own,
        **{name: of(step.number, name) for name in quantiles},
    }
    return F.struct(*(column.alias(name) for name, column in columns.items()))
