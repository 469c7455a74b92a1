# SPDX-License-Identifier: Apache-2.0
"""The stages that partial matches reach as rows, and the funnel that these are counted into."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from pyflinkcep.errors import InputError, NotSupportedError, did_you_mean
from pyflinkcep.matching.columns import quoted
from pyflinkcep.spark.plan.outputs import STAGE_TIME, match_times
from pyflinkcep.spark.plan.patterns.job import PatternJob
from pyflinkcep.spark.worker.consumers import MAIN
from pyflinkcep.spark.worker.reached import ReachedConsumer
from pyflinkcep.trace.funnel import FunnelSettings, FunnelStep

__all__ = ["funnel_of", "reached_rows"]


def reached_rows(
    job: PatternJob, by: Sequence[str], steps: Sequence[FunnelStep]
) -> ReachedConsumer:
    """
    Return what makes a row of each stage that a partial match reaches.

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
            "a funnel in processing time, where events have no times of their own",
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
    names = [field.name for field in fields]
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise InputError(
            f"pattern {source.pattern}: a funnel would have two columns named {repeated[0]!r}",
            "rename the key column",
        )
    columns = [*(key.column for key in source.keys), *added]
    return ReachedConsumer(
        {MAIN: StructType(fields)},
        columns,
        [step.stage for step in steps],
        match_times(source, None),
    )


def funnel_of(
    rows: DataFrame, keys: Sequence[str], settings: FunnelSettings, steps: Sequence[FunnelStep]
) -> DataFrame:
    """
    Return the funnel of what partial matches reached.

    Parameters
    ----------
    rows : DataFrame
        A row for each stage that a partial match reached.
    keys : sequence of str
        The columns of the key.
    settings : FunnelSettings
        What the user asks.
    steps : sequence of FunnelStep
        The stages.

    Notes
    -----
    One pass over the rows. What began counts as step 0 too, since shares are of that.
    """
    by = [F.col(quoted(name)) for name in settings.by]
    key = F.struct(*(F.col(quoted(name)) for name in keys)) if keys else F.lit(1)
    began = F.col("sincePrevious").isNull()
    numbers = F.when(began, F.array(F.lit(0), "step")).otherwise(F.array("step"))
    since = F.col("sincePrevious")
    counted = (
        rows.select(*by, key.alias("key"), since, F.explode(numbers).alias("step"))
        .groupBy(*by, "step")
        .agg(
            F.count_distinct("key").alias("keys"),
            F.count(F.lit(1)).alias("partialMatches"),
            *(
                F.percentile(since, F.lit(at)).alias(name)
                for name, at in settings.quantiles.items()
            ),
        )
    )
    facts = F.struct("keys", "partialMatches", *settings.quantiles)
    entries = F.collect_list(F.struct("step", facts))
    found = counted.groupBy(*by).agg(F.map_from_entries(entries).alias("found"))
    stages = F.array(*(_row(step, bool(keys), list(settings.quantiles)) for step in steps))
    return found.select(*by, F.inline(stages)).orderBy(*by, "step")


def _row(step: FunnelStep, has_key: bool, quantiles: Sequence[str]) -> Column:
    unit = "keys" if has_key else "partialMatches"

    def of(number: int, name: str) -> Column:
        return F.try_element_at("found", F.lit(number)).getField(name)

    def size(number: int, name: str = unit) -> Column:
        return F.coalesce(of(number, name), F.lit(0).cast("bigint"))

    own = size(step.number)
    columns = {
        "stage": F.lit(step.stage),
        "step": F.lit(step.number),
        "keys": size(step.number, "keys"),
        "partialMatches": size(step.number, "partialMatches"),
        "ofFirst": own / F.nullif(size(0), F.lit(0)),
        "ofPrevious": own / F.nullif(size(step.previous), F.lit(0)),
        "dropOff": size(step.previous) - own,
        **{name: of(step.number, name) for name in quantiles},
    }
    return F.struct(*(column.alias(name) for name, column in columns.items()))
