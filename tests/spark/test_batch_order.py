# SPDX-License-Identifier: Apache-2.0
"""The order of events: time first, then the comparator or the place in the source; sorting in little memory."""

from __future__ import annotations

import os
import resource
from datetime import timedelta
from functools import partial
from glob import glob
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from pyflinkcep import Pattern
from pyflinkcep.spark.worker.batch import BatchTask
from tests.spark.support import configured, events, ids, in_one_job, on


def all_in_order() -> Pattern:
    """Return a pattern that takes every event, as far as the event at 99."""
    pattern = Pattern.begin("all").where("ts < 99").oneOrMore().greedy().consecutive()
    return pattern.next("end").where(lambda e: e.ts == 99)


def order(matches: Any) -> Any:
    """Return the names of the longest match's events, which are the events in order."""
    return "".join(event.name for event in matches["all"])


def longest(texts: list[str]) -> str:
    """Return the longest of the texts."""
    return max(texts, key=len)


@pytest.mark.parametrize("keys", [(), ("user",)])
def test_equal_times_keep_their_place(spark: SparkSession, keys: tuple[str, ...]) -> None:
    """Events of equal time come by source partition, then by position in it."""
    text = "u:d@5 u:a@7 u:b@3 u:c@7 u:x@3 u:d@7 u:z@1 u:e@7 u:f@7 u:y@3 u:g@7 u:!@99".replace(
        "!", "h"
    )
    jobs = {
        str(count): on(events(spark, text, count), all_in_order(), *keys)
        .select(order, "text string")
        .toDF()
        for count in (1, 3, 7)
    }
    found = {count: longest(texts) for count, texts in in_one_job(jobs).items()}

    assert found == dict.fromkeys(("1", "3", "7"), "zbxydacdefg")


def test_time_is_told_to_the_microsecond(spark: SparkSession) -> None:
    """Without a comparator microseconds count, though matches tell milliseconds."""
    frame = events(spark, "u:a u:b u:c").withColumn(
        "at", F.expr("timestamp_micros(1000000 - ts * 100)")
    )
    pattern = Pattern.begin("c").where("name = 'c'").next("b").next("a")
    found = (
        on(frame, pattern, "user", time="at")
        .toDF()
        .selectExpr(
            "unix_micros(matchTimestamp) AS at", "c[0].name || b[0].name || a[0].name AS names"
        )
    )

    assert found.collect() == [Row(at=999000, names="cba")]


def ids_and_files(match: Any) -> tuple[int, int, int]:
    """Return a match, and how many files the sorts of these workers have at the moment."""
    folders = os.environ["SPARK_LOCAL_DIRS"].split(",")
    # Another task may remove its folder meanwhile, which Path.glob does not forgive.
    files = [file for folder in folders for file in glob(f"{folder}/pyflinkcep-*/*")]
    return match["a"][0].id, match["b"][0].id, len(files)


def test_partitions_that_are_sorted_on_disk(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where memory does not do, the matches and their order are the same, ties and all."""
    frame = spark.range(5000, numPartitions=3).selectExpr(
        "'u' || id * 7919 % 20 AS user", "id", "id * 104729 % 500 AS ts", "id % 7 AS kind"
    )
    pattern = Pattern.begin("a").where("kind = 1").followedBy("b").where(lambda e: e.kind == 5)
    stream = on(frame, pattern, "user", comparator=lambda e: -e.kind)
    schema = "a bigint, b bigint, files int"
    in_memory = stream.select(ids_and_files, schema).collect()
    small = partial(BatchTask, sort_bytes=10_000)
    monkeypatch.setattr("pyflinkcep.spark.plan.patterns.job.BatchTask", small)
    with configured(spark, {"spark.sql.execution.arrow.maxRecordsPerBatch": "100"}):
        on_disk = stream.select(ids_and_files, schema).collect()

    assert [(row.a, row.b) for row in on_disk] == [(row.a, row.b) for row in in_memory]
    assert len(in_memory) > 500
    assert {row.files for row in in_memory} == {0}
    assert max(row.files for row in on_disk) > 3


def rank(event: Any) -> Any:
    """Order events by price: a sort key."""
    return event.price


def downwards(one: Any, other: Any) -> float:
    """Order events by price, the dearest first: a function of two."""
    return other.price - one.price  # type: ignore[no-any-return]


class Downwards:
    """An object as Flink's EventComparator is."""

    def compare(self, one: Any, other: Any) -> float:
        """Compare prices, the dearest first."""
        return downwards(one, other)


@pytest.mark.parametrize("batch", ["1", "2", "3", "10000"])
def test_comparators(spark: SparkSession, batch: str) -> None:
    """Equal times are ordered by the comparator, stably, wherever Arrow batches cut them."""
    text = "u:a2@7 u:b1@7 u:c3@7 v:a1@7 u:d1@7 v:b2@7 u:e9@3 u:f4@7 v:c3@7 u:g0@99 v:g0@99"
    frame = events(spark, text)
    comparators = {"key": rank, "cmp": downwards, "object": Downwards()}
    with configured(spark, {"spark.sql.execution.arrow.maxRecordsPerBatch": batch}):
        jobs = {
            f"{name} {user}": on(
                frame.where(f"user = '{user}'"), all_in_order(), "user", comparator=comparator
            )
            .select(order, "text string")
            .toDF()
            for name, comparator in comparators.items()
            for user in "uv"
        }
        found = {name: longest(texts) for name, texts in in_one_job(jobs).items()}

    assert found == {
        "key u": "ebdacf",
        "key v": "abc",
        "cmp u": "efcabd",
        "cmp v": "cba",
        "object u": "efcabd",
        "object v": "cba",
    }


def test_a_comparator_orders_within_a_millisecond(spark: SparkSession) -> None:
    """With a comparator, events of one millisecond are ties, whatever their microseconds."""
    frame = events(spark, "u:a3 u:b2 u:c1").withColumn("at", F.expr("timestamp_micros(5000 + ts)"))
    pattern = Pattern.begin("c").where("name = 'c'").next("b").next("a")
    found = on(frame, pattern, "user", time="at", comparator=rank).select(ids, "text string")

    assert [row.text for row in found.collect()] == ["c=3 b=2 a=1"]


def test_a_comparator_is_asked_about_ties_only(spark: SparkSession) -> None:
    """As in Flink, events of different times are not shown to the comparator."""
    frame = events(spark, "u:a1@1 u:b1@2 u:c1@3 u:d0@99")

    def refuse(event: Any) -> Any:
        raise AssertionError(f"asked about {event}")

    found = on(frame, all_in_order(), "user", comparator=refuse).select(order, "text string")

    assert longest([row.text for row in found.collect()]) == "abc"


# --- a key with half a million events needs no half a million events in memory


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
