# SPDX-License-Identifier: Apache-2.0
"""Queries on streams: bad input, restarts, state, late events, order and settings."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pyflinkcep import CEP, OutputTag, Pattern, keyBy
from pyflinkcep.errors import InputError, InvalidArgumentError
from pyflinkcep.monitor import Monitor
from pyflinkcep.show.query_history import reason_of
from tests.spark.streams import FileSource, Finished, failure, heard, run
from tests.spark.support import configured

pytestmark = pytest.mark.usefixtures("one_task")

Rows = list[tuple[Any, ...]]
PAIR = "user string, a int, b int"

_IS_SPARK_40 = pyspark.__version__.startswith("4.0.")


def a_to_b(window_ms: int | None = 20, condition_of_b: Any = "name = 'b'") -> Pattern:
    """Return the pattern: a, some time after it b."""
    pattern = Pattern.begin("a").where("name = 'a'").followedBy("b").where(condition_of_b)
    return pattern if window_ms is None else pattern.within(timedelta(milliseconds=window_ms))


def on(table: DataFrame, pattern: Pattern, **more: Any) -> Any:
    """Apply a pattern to each user's events."""
    return CEP.pattern(keyBy(table, "user"), pattern, **more)


def pairs(stream: Any) -> Any:
    """Return each match as (user, id of a, id of b)."""
    return stream.select(lambda m: (m["a"][0].user, m["a"][0].id, m["b"][0].id), PAIR)


def plain(rows: list[Any]) -> Rows:
    """Return rows as tuples."""
    return [tuple(row) for row in rows]


# --- bad input


def test_after_bad_input_is_mended_nothing_is_lost(
    spark: SparkSession, source: FileSource, tmp_path: Path
) -> None:
    """
    A null time, a null key, then a failing condition stop the query; mended, it goes on.

    The live page has the reason.
    """
    files: list[Rows] = [
        [("u", 10 * n, "a", 10 * n), ("v", 10 * n + 1, "ab"[n % 2], 10 * n + 1), ("u", 10 * n + 2, "b", 10 * n + 2)]
        for n in range(1, 8)
    ]  # fmt: skip
    source.add(*files)
    source.replace(1, [files[1][0], ("v", None, "b", 21), files[1][2]])
    source.replace(2, [files[2][0], (None, 31, "a", 31), files[2][2]])
    finished, checkpoint = Finished(), tmp_path / "checkpoint"

    def result(fails_at: int | None) -> Any:
        def is_b(event: Any) -> bool:
            return event.name == "b" and (event.id != fails_at or event.nothing)

        return pairs(on(source.stream(spark), a_to_b(condition_of_b=is_b)))

    null_time = failure(result(72), checkpoint, finished)
    source.replace(1, files[1])
    null_key = failure(result(72), checkpoint, finished)
    source.replace(2, files[2])
    before = dict(finished.batches)
    with Monitor(spark, port=0) as monitor:
        raised = failure(result(62), checkpoint, finished)
        failed = heard(monitor, 0, "failed")
    run(result(None), checkpoint, finished)
    rest = result(None).flush(str(checkpoint)).collect()
    batch = pairs(on(source.bounded(spark), a_to_b()).inEventTime("time")).collect()

    assert null_time.startswith(
        "InputError: pattern a → b: null event time in column 'time' at key {'user': 'v'}"
    )
    assert null_key.startswith(
        "InputError: pattern a → b: null key {'user': None}, event time 31 ms"
    )
    assert "(pattern a → b, stage 'b', key {'user': 'u'}, event time 62 ms)" in raised
    assert raised.startswith("ConditionError: ")
    assert f"pyflinkcep.errors.{raised.strip()}" in reason_of(failed.error or "")
    assert (len(before), len(finished.batches)) == (2, 8)
    assert sorted(plain(finished.rows) + plain(rest)) == sorted(plain(batch))
    assert len(batch) == 10


def test_events_without_key_or_time_stop_no_stream_if_they_may_be_dropped(
    spark: SparkSession, source: FileSource, tmp_path: Path
) -> None:
    """With onNullKey="drop" they are counted and in a side output, as on bounded input."""
    bad = [("v", None, "b", 21), (None, 11, "a", 31), (None, None, "a", 41)]
    source.add([("u", 10, "a", 10), bad[0]], bad[1:], [("u", 20, "b", 20), ("u", 90, "b", 90)])
    tag = OutputTag("bad")

    def result(frame: Any, tag: OutputTag | None) -> Any:
        stream = CEP.pattern(keyBy(frame, "user"), a_to_b(), onNullKey="drop").inEventTime("time")
        return pairs(stream if tag is None else stream.sideOutputNullData(tag))

    plain_run = run(result(source.stream(spark), None), tmp_path / "dropped")
    given = result(source.stream(spark), tag)
    tagged = run(given.tagged(), tmp_path / "kept")
    bounded = result(source.bounded(spark), tag)
    found = {
        name: [row[name] for row in tagged.rows if row.tag == name] for name in ("main", "bad")
    }

    assert plain(plain_run.rows) == plain(found["main"]) == plain(bounded.collect())
    assert plain(bounded.collect()) == plain(result(source.bounded(spark), None).collect())
    assert plain_run.metrics("numNullRecordsDropped") == [1, 2, 0, 0]
    assert sorted(row.id for row in found["bad"]) == [21, 31, 41]
    assert sorted(row.id for row in bounded.getSideOutput(tag).collect()) == [21, 31, 41]
    with pytest.raises(InvalidArgumentError, match='onNullKey="fail"'):
        on(source.bounded(spark), a_to_b()).sideOutputNullData(tag)
    with pytest.raises(InvalidArgumentError, match="onNullKey: expected 'fail' or 'drop'"):
        CEP.pattern(source.bounded(spark), a_to_b(), onNullKey="skip")


def test_a_stream_without_a_watermark_is_refused(spark: SparkSession, source: FileSource) -> None:
    """Event time on a stream needs withWatermark: refused before the query, with what to write."""
    table = source.raw(spark).withColumn("time", F.timestamp_millis("ts"))

    with pytest.raises(InputError, match=r"no watermark[\s\S]*withWatermark"):
        pairs(on(table, a_to_b()).inEventTime("time"))
    watermarked = table.withWatermark("time", "5 milliseconds").drop("time")
    assert pairs(on(watermarked, a_to_b()).inEventTime("ts")).isStreaming


def test_another_state_store_is_refused(spark: SparkSession, source: FileSource) -> None:
    """A session that keeps state elsewhere than in RocksDB is told so before the query."""
    provider = "spark.sql.streaming.stateStore.providerClass"
    other = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"

    with (
        configured(spark, {provider: other}),
        pytest.raises(InputError, match="state store RocksDB"),
    ):
        pairs(on(source.stream(spark), a_to_b()))


# --- restarts and state


def test_restarts_with_something_else(
    spark: SparkSession, source: FileSource, tmp_path: Path
) -> None:
    """Another window, key groups or columns are refused; a restart forgets partial matches only."""
    checkpoint = tmp_path / "checkpoint"
    source.add(
        [("u", 10, "a", 1), ("u", 50, "c", 2)],
        [("u", 57, "a", 3), ("u", 58, "b", 4), ("u", 61, "c", 5)],
    )

    def begun(event: Any) -> bool:
        return event.name == "a"

    def result(window_ms: int = 100, table: Any = None, **more: Any) -> Any:
        pattern = Pattern.begin("a").where(begun).followedBy("b").where(lambda e: e.name == "b")
        table = source.stream(spark) if table is None else table
        return pairs(on(table, pattern.within(timedelta(milliseconds=window_ms)), **more))

    # PySpark 4.0 cannot list timers: there, fewer key groups are refused when one expires.
    groups, said = (256, "key groups: '128'") if _IS_SPARK_40 else (8, "more key groups than 8")
    first = run(result(), checkpoint)
    source.add([("u", 300, "c", 6)])
    wide = source.stream(spark).withColumn("more", F.lit(1))
    refused = [
        failure(result(window_ms=90), checkpoint),
        failure(result(keyGroups=256), checkpoint),
        failure(result(keyGroups=groups, onPatternChange="restart"), checkpoint),
        failure(result(table=wide, onPatternChange="restart"), checkpoint),
    ]
    second = run(result(window_ms=90, onPatternChange="restart"), checkpoint)

    assert plain(first.rows) == []
    assert all(text.startswith("PatternChangedError: the checkpoint holds ") for text in refused)
    assert [part in text for part, text in zip(
        ["window: '100 ms' is now '90 ms'", "key groups: '128' is now '256'", said, "columns: "],
        refused, strict=True,
    )] == [True] * 4  # fmt: skip
    assert plain(second.rows) == [("u", 3, 4)]


def test_the_state_store_is_empty_after_the_last_window(
    spark: SparkSession, source: FileSource, tmp_path: Path
) -> None:
    """
    Keys are cleaned when their windows end, a batch of one key leaves the others' pages, and the
    progress tells what the operator did, beside an observation of the user's own.
    """
    checkpoint = tmp_path / "checkpoint"
    source.add(
        [(f"u{key}", 10, "a", key) for key in range(5000)] + [("u1", 11, "c", 0)],
        [("u7", 13, "b", 0)],
        [("u7", 40, "c", 0)],
    )
    result = pairs(on(source.stream(spark, delay_ms=0), a_to_b())).observe(
        "own", F.count("*").alias("rows")
    )
    with Monitor(spark, port=0) as monitor:
        finished = run(result, checkpoint)
        shown = heard(monitor, 4)
    kept = {
        variable: spark.read.format("statestore").option("path", str(checkpoint))
        .option("stateVarName", variable).load().count()
        for variable in ("index", "pages", "segments")
    }  # fmt: skip
    rows = [sum(o.numRowsTotal for o in p.stateOperators) for p in finished.progress]
    metrics = [progress.observedMetrics for progress in finished.progress]
    told = [row for own in metrics for name, row in own.items() if name != "own"]
    read, written = (
        [row[name] for row in told] for name in ("stateBytesRead", "stateBytesWritten")
    )

    assert plain(finished.rows) == [("u7", 7, 0)]
    assert [row["partialMatches"] for row in told] == [
        {"a": 5000, "b": 0}, {"a": 4999, "b": 0}, {"a": 0, "b": 0}, {"a": 0, "b": 0}
    ]  # fmt: skip
    names = (
        "numMatches",
        "numKeys",
        "largestKey",
        "oldestPartialMatch",
        "watermark",
        "endedByWindow",
    )
    assert [tuple(row[name] for name in names) for row in told] == [
        (0, 5000, 1, 10, 11, 0), (1, 4999, 1, 10, 13, 0), (0, 0, 0, None, 40, 4999), (0, 0, 0, None, 40, 0)
    ]  # fmt: skip
    assert all(told[0][name] > 0 for name in ("unpackingMs", "matchingMs", "stateMs"))
    assert [row["own"]["rows"] for row in metrics] == [0, 1, 0, 0]
    (totals,), (last,) = shown.totals.values(), shown.points[1].patterns.values()
    assert (totals["numMatches"], totals["endedByWindow"]) == (1, 4999)
    assert (last.stages, last.gauges["watermark"]) == ({"a": 4999, "b": 0}, 13)
    assert max(rows) > 16
    assert rows[-1] == 0
    assert kept == {"index": 0, "pages": 0, "segments": 0}
    assert 0 < read[1] < written[0] / 3  # one key's page, and what is in the pages
    assert 0 < written[1] < written[0] / 3


# --- time


def test_late_events_are_counted_or_given(
    spark: SparkSession, source: FileSource, tmp_path: Path
) -> None:
    """An event at or before the watermark is late: counted without a tag, and a row with one."""
    source.add(
        [("u", 10, "a", 1), ("u", 30, "c", 2)],
        [("u", 25, "b", 3), ("u", 24, "b", 4), ("v", 26, "a", 5), ("w", 25, "c", 7)],
        [("u", 90, "c", 6)],
    )
    late = OutputTag("late")
    stream = on(source.stream(spark), a_to_b())
    counted = run(pairs(stream), tmp_path / "counted")
    given = run(pairs(stream.sideOutputLateData(late)).getSideOutput(late), tmp_path / "given")

    assert counted.watermarks[1:] == [25, 25, 85]
    assert counted.metrics("numLateRecordsDropped") == [0, 3, 0, 0]
    assert given.metrics("numLateRecordsDropped") == [0, 0, 0, 0]
    assert sorted((row.user, row.ts, row.id) for row in given.rows) == [
        ("u", 24, 4), ("u", 25, 3), ("w", 25, 7),
    ]  # fmt: skip


def test_a_filtered_stream_counts_and_keeps_less(
    spark: SparkSession, source: FileSource, tmp_path: Path
) -> None:
    """Events that no stage can use count for the watermark and for lateness, and are not kept."""
    rows = [("u", 10 * n, "abcc"[n % 4], n) for n in range(1, 200)]
    source.add(rows[:100], rows[100:], [("v", 1300, "c", 0), ("u", 5000, "c", 0)])
    late = OutputTag("late")
    stream = on(source.stream(spark, delay_ms=600), a_to_b(), keyGroups=8)
    filtered = run(pairs(stream), tmp_path / "filtered")
    whole = run(pairs(stream.sideOutputLateData(late)).tagged(), tmp_path / "whole")

    assert filtered.watermarks == whole.watermarks
    assert filtered.watermarks[-1] == 4400
    assert plain(filtered.rows) == [tuple(row.main) for row in whole.rows if row.tag == "main"]
    assert len(filtered.rows) == 49
    assert sum(filtered.metrics("numLateRecordsDropped")) == 1
    assert [row.late.user for row in whole.rows if row.tag == "late"] == ["v"]
    # Bytes do not tell: what is kept is compressed, and these events are much alike.
    assert filtered.metrics("numEventsQueued") == [30, 30, 0, 0]
    assert whole.metrics("numEventsQueued") == [60, 60, 1, 0]


def test_order_is_by_microsecond_then_position(
    spark: SparkSession, source: FileSource, tmp_path: Path
) -> None:
    """Events are in the order of their microseconds; of equal ones the order of the source."""
    source.add(
        [
            ("u", 10_700, "b", 1),
            ("u", 10_200, "a", 2),
            ("v", 10_000, "b", 3),
            ("v", 10_000, "a", 4),
        ],
        [("v", 10_000, "b", 5), ("u", 10_900, "b", 6)],
        [("w", 99_000, "c", 7)],
    )

    def result(table: DataFrame) -> Any:
        table = table.withColumn("time", F.timestamp_micros("ts"))
        strict = Pattern.begin("a").where("name = 'a'").next("b").where("name = 'b'")
        return pairs(on(table.withWatermark("time", "5 milliseconds"), strict).inEventTime("time"))

    finished = run(result(source.raw(spark)), tmp_path / "checkpoint")
    batch = result(spark.read.schema(source.schema).json(str(source.folder)).coalesce(1))

    assert sorted(plain(finished.rows)) == [("u", 2, 1), ("v", 4, 5)]
    assert ("u", 2, 1) in plain(batch.collect())


def test_processing_time(spark: SparkSession, source: FileSource, tmp_path: Path) -> None:
    """The clock counts: events match in order of arrival, and a window ends without any event."""
    source.add([("u", 99, "a", 1), ("u", 1, "b", 2), ("v", 5, "a", 3)])
    tag = OutputTag("timeouts", "user string, id int")
    pattern = a_to_b(window_ms=300)
    result = on(source.raw(spark), pattern).inProcessingTime().select(
        tag, lambda m, ts: (m["a"][0].user, m["a"][0].id),
        lambda m: (m["a"][0].user, m["a"][0].id, m["b"][0].id), PAIR,
    )  # fmt: skip
    found: list[Any] = []
    query = (
        result.tagged()
        .writeStream.foreachBatch(lambda batch, number: found.extend(batch.collect()))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    try:
        deadline = time.monotonic() + 120
        while len(found) < 2 and time.monotonic() < deadline:
            query.awaitTermination(0.1)
    finally:
        query.stop()

    assert [(row.tag, tuple(row[row.tag])) for row in found] == [
        ("main", ("u", 1, 2)),
        ("timeouts", ("v", 3)),
    ]


# --- settings


@pytest.mark.parametrize(
    ("partitions", "zone", "rows_per_batch"),
    [(1, "America/St_Johns", 1), (4, "Asia/Kolkata", 10000)],
)
def test_settings_change_no_answer(
    partitions: int,
    zone: str,
    rows_per_batch: int,
    spark: SparkSession,
    source: FileSource,
    tmp_path: Path,
) -> None:
    """Shuffle partitions, time zone and size of Arrow batches change no match and no time."""
    source.add(
        [(f"u{key}", 1000 + key, name, key) for name in "ab" for key in range(5)],
        [("u1", 1030, "b", 9), ("u3", 1500, "c", 9)],
    )  # fmt: skip
    changed = {
        "spark.sql.shuffle.partitions": partitions,
        "spark.sql.session.timeZone": zone,
        "spark.sql.execution.arrow.maxRecordsPerBatch": rows_per_batch,
    }
    with configured(spark, changed):
        table = source.stream(spark).withColumnRenamed("name", "the.name")
        strict = Pattern.begin("a").where("`the.name` = 'a'").followedByAny("b")
        pattern = strict.where(lambda e: e["the.name"] == "b").within(timedelta(milliseconds=50))
        matches = on(table, pattern).toDF().select(
            "user", F.unix_millis("matchTimestamp").alias("ts"), F.col("a")[0]["id"], F.col("b")[0]["time"].cast("long")
        )  # fmt: skip
        finished = run(matches, tmp_path / "checkpoint")

    expected = [(f"u{key}", 1000 + key, key, 1) for key in range(5)]
    assert sorted(plain(finished.rows)) == sorted([*expected, ("u1", 1030, 1, 1)])
