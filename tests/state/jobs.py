# SPDX-License-Identifier: Apache-2.0
"""
The stream whose checkpoint is kept for each state format, and recorded cases as operator snapshots.

Only public names are used here and in :mod:`tests.state.write`, so that both run on any release.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Sequence
from datetime import timedelta
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pyflinkcep import (
    CEP,
    AfterMatchSkipStrategy,
    OutputTag,
    Pattern,
    PatternProcessFunction,
    TimedOutPartialMatchHandler,
    keyBy,
)

SCHEMA = "user string, region int, ts bigint, name string, price double, tags array<string>, id int"
ROW = "user string, region int, at bigint, match string"
TIMEOUTS = OutputTag("timeouts", ROW)
LATE = OutputTag("late")

FILES = 6
FILES_BEFORE = 4
"""How many files the kept checkpoint has read."""


def _ms(milliseconds: int) -> timedelta:
    return timedelta(milliseconds=milliseconds)


def patterns() -> dict[str, Pattern]:
    """Return patterns with different kinds of state: loops, aggregates, text, timers, groups."""
    held = AfterMatchSkipStrategy.skipToFirst("a")
    repeated = Pattern.begin("x").where("name = 'a'").followedByAny("y").where("name = 'b'")
    return {
        "loop": Pattern.begin("a", held).where("name = 'a'").followedBy("b")
        .where(lambda e: e.name == "b").oneOrMore().followedBy("c").where("name = 'c'").within(_ms(60)),
        "rising": Pattern.begin("up").where("price > coalesce(avg(up.price), 0)").oneOrMore()
        .next("down").where("price < first(up.price) AND count(up) < 9").within(_ms(200)),
        "text": Pattern.begin("a").where("name <> 'c'").followedBy("b").where("name > last(a.name)")
        .times(2).within(_ms(80)),
        "absent": Pattern.begin("p").where(lambda e: e.name == "a" and "odd" in e.tags)
        .notFollowedBy("q").where("name = 'b'").within(_ms(40)),
        "group": Pattern.begin(repeated).times(2).allowCombinations().followedBy("z")
        .where("name = 'c'").optional().within(_ms(70)),
        "single": Pattern.begin("m").where(
            lambda e, ctx: sum(x.price for x in ctx.getEventsForPattern("m")) < 9
        ).oneOrMore().greedy().consecutive().next("n").where("price >= 4").within(_ms(30)),
    }  # fmt: skip


def events() -> list[list[tuple[Any, ...]]]:
    """Return the events of each file: three users in two regions, up to 12 ms out of order."""
    choose = random.Random(20)
    times = sorted(range(1000, 1000 + 3 * 180, 3), key=lambda ts: ts + choose.randrange(12))
    rows = [
        (
            f"user {choose.randrange(3)}", choose.randrange(2), ts, choose.choice("abc"),
            float(choose.randrange(1, 6)), ["odd" if number % 2 else "even"], number,
        )
        for number, ts in enumerate(times)
    ]  # fmt: skip
    size = len(rows) // FILES
    return [rows[at : at + size] for at in range(0, len(rows), size)]


def write_files(folder: Path, numbers: Sequence[int]) -> None:
    """Write the files of these numbers, each as one JSON row a line."""
    folder.mkdir(exist_ok=True)
    names = [column.split()[0] for column in SCHEMA.split(", ")]
    for number in numbers:
        lines = (json.dumps(dict(zip(names, row, strict=True))) for row in events()[number])
        file = folder / f"{number:04d}.json"
        file.write_text("\n".join(lines), encoding="utf-8")
        os.utime(file, (1_000_000 + number, 1_000_000 + number))  # a stream reads by age


class _Everything(PatternProcessFunction, TimedOutPartialMatchHandler):
    """Writes each match and each timeout as a row of text."""

    outputTags = (TIMEOUTS,)

    def processMatch(self, match: Any, ctx: Any, out: Any) -> None:
        out.collect(self._row(match, ctx))

    def processTimedOutMatch(self, match: Any, ctx: Any) -> None:
        ctx.output(TIMEOUTS, self._row(match, ctx))

    def _row(self, match: Any, ctx: Any) -> tuple[Any, ...]:
        first = next(iter(match.values()))[0]
        ids = [[stage, *(event.id for event in found)] for stage, found in match.items()]
        return (first.user, first.region, ctx.timestamp(), json.dumps(ids))


def results(table: DataFrame) -> dict[str, Any]:
    """Apply each pattern; half of them also collect late events, so that nothing is dropped."""
    found = {}
    for number, (name, pattern) in enumerate(patterns().items()):
        keyed = table if name == "single" else keyBy(table, "user", "region")
        stream = CEP.pattern(keyed, pattern, keyGroups=3).inEventTime("time")
        if number % 2:
            stream = stream.sideOutputLateData(LATE)
        found[name] = stream.process(_Everything(), ROW)
    return found


def in_one(found: dict[str, Any]) -> DataFrame:
    """Return the matches and timeouts of several results as one DataFrame."""
    parts = [
        result.tagged()
        .select(F.lit(name).alias("pattern"), "tag", F.coalesce("main", "timeouts").alias("row"))
        .where("tag <> 'late'")
        for name, result in found.items()
    ]
    return reduce(DataFrame.union, parts)


def streamed(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Return the results on a stream of the files, one file a micro-batch."""
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    timed = reader.json(str(folder)).withColumn("time", F.timestamp_millis("ts"))
    return results(timed.withWatermark("time", "12 milliseconds"))


def bounded(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Return the results on all files as a bounded DataFrame."""
    table = spark.read.schema(SCHEMA).json(str(folder))
    return results(table.withColumn("time", F.timestamp_millis("ts")))


def answers(rows: Sequence[Any]) -> dict[str, list[list[Any]]]:
    """Group rows of :func:`in_one` by pattern, tag and key: only the order within one counts."""
    found: dict[str, list[list[Any]]] = {}
    for pattern, tag, row in rows:
        key = "" if pattern == "single" else f" {row.user} {row.region}"
        found.setdefault(f"{pattern} {tag}{key}", []).append([row.at, row.match])
    return dict(sorted(found.items()))
