# SPDX-License-Identifier: Apache-2.0
"""Patterns whose latest partial matches live, on bounded DataFrames and streams: as in memory."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from pyflinkcep import CEP, NotSupportedError, OutputTag, Pattern, keyBy, match
from pyflinkcep.spark.worker.latest_task import LatestTask
from tests.shorthand import ms
from tests.spark.streams import FileSource, Finished, failure, run
from tests.spark.support import QUICK_FOR_MANY_PLANS, configured

PATTERN = (
    Pattern.begin("a")
    .where("name < 'c'")
    .times(2)
    .notFollowedBy("x")
    .where("name = 'x'")
    .followedBy("b")
    .where("name IN ('b', 'c')")
    .notFollowedBy("y")
    .where("name = 'y'")
    .within(ms(25))
)


def _rows() -> list[dict[str, Any]]:
    choose = random.Random(7)
    return [
        {"id": n, "user": f"u{choose.randrange(4)}", "ts": 1000 + n // 2, "name": choose.choice("abcxy")}
        for n in range(400)
    ]  # fmt: skip


def _frame(spark: SparkSession) -> DataFrame:
    rows = [tuple(row.values()) for row in _rows()]
    events = spark.createDataFrame(rows, "id int, user string, ms long, name string")
    return events.coalesce(1).selectExpr("id", "user", "timestamp_millis(ms) AS ts", "name")


def _ids(matches: Any) -> Counter[str]:
    return Counter(
        str([[event["id"] for event in found[stage]] for stage in ("a", "b")]) for found in matches
    )


@pytest.mark.spark
@pytest.mark.parametrize("key", ["user", None])
def test_the_matches_of_memory(spark: SparkSession, key: str | None) -> None:
    """With keys and without one, rows are the matches of the same events in memory."""
    expected = _ids(match(PATTERN, _rows(), "ts", key, evaluation="latest"))
    with configured(spark, QUICK_FOR_MANY_PLANS):
        events = _frame(spark)
        given = events if key is None else keyBy(events, key)
        found = CEP.pattern(given, PATTERN, evaluation="latest").inEventTime("ts").toDF()

        assert _ids(found.collect()) == expected
    assert expected


@pytest.mark.spark
def test_chunks(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition sorted in many chunks gives each match once: runs go on in the next chunk."""
    stream = CEP.pattern(keyBy(_frame(spark), "user"), PATTERN, evaluation="latest")
    tasks: list[Any] = []
    monkeypatch.setattr(
        "pyflinkcep.spark.plan.job.map_in_arrow",
        lambda shuffled, run, *_: tasks.append((shuffled, run.__self__)) or shuffled,
    )
    stream.inEventTime("ts").toDF()
    shuffled, task = tasks[0]
    assert isinstance(task, LatestTask)
    batches = shuffled.coalesce(1).toArrow().to_batches()
    small = [part.slice(at, 5) for part in batches for at in range(0, part.num_rows, 5)]

    for sort_bytes in (1 << 30, 2000, 500):
        single = LatestTask(task.latest, task.consumer, sort_bytes)
        found = [row for batch in single.run(iter(small)) for row in batch.to_pylist()]
        assert _ids(found) == _ids(match(PATTERN, _rows(), "ts", "user", evaluation="latest"))


@pytest.mark.spark
def test_refusals(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """What needs all partial matches, and the clock, are refused by name; explain() names it."""
    events = _frame(spark)
    CEP.pattern(events, PATTERN, evaluation="latest").explain()
    assert "evaluation: latest (asked for)" in capsys.readouterr().out
    asked = CEP.pattern(events, PATTERN, evaluation="latest").inEventTime("ts")
    with pytest.raises(NotSupportedError, match='"latest": timeouts or a funnel are requested'):
        asked.toDF(OutputTag("late"))
    with pytest.raises(NotSupportedError, match="cannot compress"):
        asked.compressed()
    with pytest.raises(NotSupportedError, match='"latest": maxPartialMatches'):
        CEP.pattern(events, PATTERN, maxPartialMatches=3, evaluation="latest").inEventTime(
            "ts"
        ).toDF()
    ticks = spark.readStream.format("rate").load().selectExpr("timestamp AS ts", "'a' AS name")
    ticks = ticks.withWatermark("ts", "1 second")
    latest = CEP.pattern(ticks, PATTERN, evaluation="latest")
    with pytest.raises(NotSupportedError, match='"latest": processing time is not available'):
        latest.inProcessingTime().toDF()
    with pytest.raises(NotSupportedError, match=r'waiting\(\) with evaluation="latest"'):
        latest.inEventTime("ts").waiting("checkpoint")


@pytest.mark.spark
def test_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    """Out of order, in many micro-batches and restarted, a stream has the matches of memory."""
    source = FileSource(tmp_path / "in", "id int, user string, ts bigint, name string")
    choose, finished = random.Random(3), Finished()
    rows = [tuple(row.values()) for row in _rows()]
    given = sorted(rows, key=lambda row: row[2] + choose.randrange(8))
    for begin in (0, 200):
        source.add(given[begin : begin + 90], given[begin + 90 : begin + 200])
        if begin:
            source.add([(999, "end", 100_000, "z")])
        events = keyBy(source.stream(spark, delay_ms=8), "user")
        stream = CEP.pattern(events, PATTERN, evaluation="latest", keyGroups=8)
        with configured(spark, {"spark.sql.shuffle.partitions": "1"}):
            if begin:
                other = CEP.pattern(events, PATTERN, keyGroups=8).inEventTime("time").toDF()
                message = failure(other, tmp_path / "checkpoint")
                assert "evaluation: 'latest' is now None" in message
            run(stream.inEventTime("time").toDF(), tmp_path / "checkpoint", finished)
    in_time = [dict(zip(("id", "user", "ts", "name"), row, strict=True))
               for row in sorted(given, key=lambda row: row[2])]  # fmt: skip
    expected = match(PATTERN, in_time, "ts", "user", evaluation="latest")

    assert _ids(finished.rows) == _ids(expected)
    assert expected
