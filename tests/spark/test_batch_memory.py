# SPDX-License-Identifier: Apache-2.0
"""A key with half a million events needs no half a million events in memory."""

from __future__ import annotations

import resource
from datetime import timedelta
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pyflinkcep import Pattern
from tests.spark.support import on

EVENTS = 500_000
MEGABYTE = 1024  # of ru_maxrss, in kilobytes


def peak_at(event: Any) -> bool:
    """Whether a spike is over; look at few events in Python."""
    return bool(event.value == 0)


def test_one_key_with_half_a_million_events(spark: SparkSession) -> None:
    """The matches are right, and the worker grows by less than the events would take."""
    padding = "x" * 200  # all of these alone are 100 MB as Arrow, and more as Rows
    frame = spark.range(EVENTS, numPartitions=2).select(
        F.lit("k").alias("key"),
        F.col("id").alias("ts"),
        (F.col("id") % 1000).alias("value"),
        F.lit(padding).alias("padding"),
    )
    pattern = (
        Pattern.begin("low").where("value = 998").next("high").where("value = 999")
        .followedBy("over").where("value = 0").where(peak_at).within(timedelta(seconds=10))
    )  # fmt: skip

    def measured(match: Any, ctx: Any, out: Any) -> None:
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        out.collect((match["high"][0].ts, used))

    found = on(frame, pattern, "key").process(measured, "ts bigint, used bigint")
    rows = found.orderBy("ts").collect()
    grown = (rows[-1].used - rows[0].used) / MEGABYTE

    assert [row.ts for row in rows] == list(range(999, EVENTS - 1, 1000))
    assert grown < 60
