# SPDX-License-Identifier: Apache-2.0
"""Jobs whose workers read files themselves give what they give of rows that Spark reads."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pyflinkcep import CEP, Eql, OutputTag, Pattern, Time, keyBy
from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.rules import Rule, RuleLog
from pyflinkcep.spark.arrow.internals import analysed_plan
from pyflinkcep.spark.plan.conditions import bit_columns, field_columns
from pyflinkcep.spark.plan.file_scan import plain_relation
from pyflinkcep.spark.plan.job import Job, map_in_arrow
from pyflinkcep.spark.plan.patterns.job import PatternJob
from pyflinkcep.spark.plan.settings import JobSettings
from pyflinkcep.spark.plan.source import EventSource
from pyflinkcep.spark.worker.file_reader import CHUNK, READ_FILES
from tests.spark.streams import Finished, failure, run
from tests.spark.support import configured, in_one_job

DDL = (
    "user string, ts timestamp, kind string, n int, price double, cost decimal(9,2), day date, "
    "big bigint, ok boolean, tags array<string>"
)
START = dt.datetime(2024, 2, 29, tzinfo=dt.UTC)
EVENTS = 3_000


def table(seed: int, size: int = EVENTS, begin: int = 0) -> pa.Table:
    """Return random events of several keys, up to 40 ms out of order; some values are missing."""
    choose = Random(seed)
    places = sorted(range(begin, begin + size), key=lambda at: 3 * at + choose.randrange(40))

    def maybe(value: Any) -> Any:
        return None if choose.random() < 0.05 else value

    columns = {
        "user": pa.array([choose.choice(["ann", "bob", "üwe", ""]) for _ in places]),
        "ts": pa.array([START + dt.timedelta(milliseconds=3 * at) for at in places], pa.timestamp("us", "UTC")),
        "kind": pa.array([maybe(choose.choice("AABBCD")) for _ in places]),
        "n": pa.array([maybe(choose.randrange(9)) for _ in places], pa.int32()),
        "price": pa.array([maybe(choose.choice([0.5, 1.5, 7.0, -0.0, float("nan")])) for _ in places]),
        "cost": pa.array([maybe(Decimal(choose.randrange(999)) / 100) for _ in places], pa.decimal128(9, 2)),
        "day": pa.array([maybe(START.date() + dt.timedelta(choose.randrange(3))) for _ in places]),
        "big": pa.array([maybe(choose.choice([0, 2**62, -5])) for _ in places], pa.int64()),
        "ok": pa.array([maybe(choose.random() < 0.5) for _ in places]),
        "tags": pa.array([maybe([maybe(one) for one in "xyz"[choose.randrange(4):]]) for _ in places]),
    }  # fmt: skip
    return pa.table(columns)


def two(a: Any, b: Any) -> Pattern:
    """Return the pattern: a, then b within 30 ms."""
    return Pattern.begin("a").where(a).followedBy("b").where(b).within(Time.milliseconds(30))


PATTERNS: dict[str, Pattern] = {
    "texts": two("kind = 'A'", "kind = 'B' AND user <> 'bob'"),
    "strict": Pattern.begin("a").where("kind = 'A'").next("b").where("n > 3").next("c"),
    "not": two("kind = 'A'", "kind = 'C'").notFollowedBy("c").where("kind = 'D'"),
    "numbers": two("n BETWEEN 2 AND 5 OR price > 1", "big > 5 AND n % 2 = 0"),
    "truths": two("ok AND user LIKE '%n%'", "NOT ok AND kind IS NOT NULL"),
    "stages": two("kind = 'A'", "price > last(a.price) AND n >= count(a) AND kind = last(a.kind)"),
    "sums": Pattern.begin("a").where("kind = 'A'").followedBy("b").oneOrMore()
    .where("n > 1 AND n < coalesce(sum(b.n), 0) + 9").followedBy("c").where("big >= last(b.big) AND kind = 'C'")
    .within(Time.milliseconds(40)),
    "python": two(lambda e: e.kind == "A" and e.n == 3, "kind = 'B'"),
    "all": Pattern.begin("a").next("b").times(3),
}  # fmt: skip


@pytest.fixture
def files(tmp_path: Path) -> Callable[..., str]:
    """Return a function that writes events to a folder of files, some with small row groups."""
    numbers = count()

    def written(events: pa.Table, folder: str = "events", parts: int = 3) -> str:
        size = -(-events.num_rows // parts)
        (tmp_path / folder).mkdir(exist_ok=True)
        for begin in range(0, events.num_rows, size):
            number = next(numbers)
            path = tmp_path / folder / f"part {number:03}.parquet"
            pq.write_table(
                events.slice(begin, size), path, row_group_size=[700, 10_000][number % 2]
            )
        return str(tmp_path / folder)

    return written


def is_read_by_workers(frame: Any) -> bool:
    """Whether workers read the files of a job."""
    plan = analysed_plan(frame if isinstance(frame, DataFrame) else frame.toDF())
    return "row_index" in str(plan.toString())


def counted(frame: DataFrame) -> Counter[str]:
    """Return the rows of a DataFrame, each as a text."""
    return Counter(row[0] for row in as_texts(frame).collect())


def as_texts(frame: DataFrame) -> DataFrame:
    """Return the rows of a DataFrame as one column of texts."""
    return frame.select(F.to_json(F.struct("*")))


def _analysed(frame: DataFrame, pattern: Pattern, keys: tuple[str, ...]) -> PatternJob:
    job = Job.of(EventSource.of(frame, keys, "ts", "pattern"), JobSettings())
    return PatternJob.analyse(job, pattern, NFACompiler.compile(pattern), None)


KEYS = [("n",), ("user", "n"), ("day",), ("ok", "big"), ("cost",), ("ts", "kind"), ()]


def test_what_workers_compute_of_events(spark: SparkSession, files: Any) -> None:
    """Workers make of an event what Spark does: answers of conditions, fields, the key's number."""
    folder = files(table(3))
    frame = spark.read.parquet(folder)
    parts = frame.select(F.col("_metadata.file_path").alias("file"), "_metadata.row_index")
    parts = parts.toDF("file", "row").where(f"row % {CHUNK} = 0")
    ours, theirs = {}, {}
    cases = [*((pattern, ("user",)) for pattern in PATTERNS.values())]
    cases += [(PATTERNS["texts"], key) for key in KEYS]
    for number, (pattern, keys) in enumerate(cases):
        own = _analysed(_stream(spark, folder), pattern, keys)
        read = own.prepared(own.job).files
        assert read is not None
        of_spark = _analysed(frame, pattern, keys)
        bits = bit_columns(of_spark.asked)
        fields = field_columns(of_spark.expressions, frame, of_spark.nfa)
        prepared = of_spark.job.prepared({**fields, **bits}, always_hash=True).events
        found = map_in_arrow(parts, iter, prepared.schema, "read", None, read.events)
        ours[str(number)], theirs[str(number)] = as_texts(found), as_texts(prepared)

    found = [
        {name: sorted(rows) for name, rows in in_one_job(one).items()} for one in (ours, theirs)
    ]
    assert found[0] == found[1]
    assert {len(rows) for rows in found[0].values()} == {EVENTS}


def _matches(frame: DataFrame, pattern: Pattern, *keys: str, **settings: Any) -> DataFrame:
    stream = CEP.pattern(keyBy(frame, *(keys or ("user",))), pattern, **settings)
    return stream.inEventTime("ts").toDF()


def _stream(spark: SparkSession, folder: str) -> DataFrame:
    reader = spark.readStream.schema(DDL).option("maxFilesPerTrigger", 1)
    return reader.parquet(folder).withWatermark("ts", "45 milliseconds")


UNREAD: dict[str, Callable[[DataFrame], DataFrame]] = {
    "a filter": lambda frame: frame.where("n > 1"),
    "a computed column": lambda frame: frame.withColumn("n", F.col("n") + 1),
    "a union": lambda frame: frame.union(frame),
    "a nested column": lambda frame: frame.withColumn("both", F.struct("n", "big")),
    "rows in memory": lambda frame: frame.limit(9),
}
READ: dict[str, Callable[[DataFrame], DataFrame]] = {
    "as it is": lambda frame: frame,
    "some columns": lambda frame: frame.select("kind", "ts", "user"),
    "without a column": lambda frame: frame.drop("big"),
    "an alias": lambda frame: frame.alias("e"),
}


def test_what_is_not_plainly_files_is_sparks_to_read(spark: SparkSession, files: Any) -> None:
    """Only the rows of files, as they are, are read by workers."""
    folder = files(table(6, 50))
    for frame in (_stream(spark, folder), spark.read.parquet(folder)):
        found = {
            name: plain_relation(made(frame)) is not None
            for name, made in {**UNREAD, **READ}.items()
        }
        assert found == {**dict.fromkeys(UNREAD, False), **dict.fromkeys(READ, True)}
    assert not is_read_by_workers(_matches(frame, PATTERNS["texts"]))  # which gains nothing by it


def test_partitions_caches_and_options_are_sparks(spark: SparkSession, files: Any) -> None:
    """Folders that are columns, cached rows, other formats and options of reading are left alone."""
    folder = files(table(6, 50))
    spark.read.parquet(folder).write.partitionBy("kind").parquet(f"{folder} by kind")
    spark.read.parquet(folder).write.json(f"{folder} json")
    named = files(
        table(6, 50).rename_columns(["_metadata", *table(6, 1).column_names[1:]]), "named"
    )
    kept = spark.read.parquet(folder).cache()
    others = {
        "folders": spark.read.parquet(f"{folder} by kind"),
        "folders of a stream": _stream(spark, f"{folder} by kind"),
        "cached": kept,
        "of cached": kept.select("user", "kind", "ts"),
        "json": spark.read.schema(DDL).json(f"{folder} json"),
        "an option": spark.read.option("datetimeRebaseMode", "LEGACY").parquet(folder),
        "a name that Spark uses": spark.read.parquet(named).select("kind", "ts"),
    }
    try:
        found = {name: plain_relation(frame) is not None for name, frame in others.items()}
    finally:
        kept.unpersist()
    assert found == dict.fromkeys(others, False)
    for settings in (
        {"spark.sql.files.ignoreCorruptFiles": True},
        {"spark.sql.ansi.enabled": False},
    ):
        with configured(spark, settings):
            assert plain_relation(spark.read.parquet(folder)) is None


@pytest.mark.parametrize(
    "condition", ["10 / n > 2", "big + 1 > 5", "f(n)", "kind = 'A' AND cast(kind AS int) = 1"]
)
def test_conditions_that_are_sparks(spark: SparkSession, files: Any, condition: str) -> None:
    """Only conditions that workers know, and that no event makes fail, are computed by workers."""
    spark.udf.register("f", lambda n: bool(n), "boolean")
    events = _stream(spark, files(table(6, 50)))
    assert not is_read_by_workers(_matches(events, two(condition, "kind = 'B'")))


def test_missing_times(spark: SparkSession, files: Any, tmp_path: Path) -> None:
    """An event without time is refused with the same words."""
    events = table(7, 200)
    times = events.column("ts").to_pylist()
    times[50] = None
    folder = files(events.set_column(1, "ts", pa.array(times, pa.timestamp("us", "UTC"))), parts=1)
    messages = []
    for reader in ("workers", "spark"):
        with configured(spark, {READ_FILES: reader}):
            job = _matches(_stream(spark, folder), PATTERNS["texts"])
            assert is_read_by_workers(job) == (reader == "workers")
            messages.append(failure(job, tmp_path / reader))
    assert "null event time in column 'ts'" in messages[0]
    assert messages[0].split("Hint")[0] == messages[1].split("Hint")[0]


# --- streams


@pytest.mark.parametrize("name", ["not", "sums"])
def test_streams_that_change_who_reads(
    spark: SparkSession, files: Any, tmp_path: Path, name: str
) -> None:
    """A stream gives the same in each micro-batch, and may change who reads when it starts again."""

    def ran(*readers: str) -> tuple[list[Any], dict[int, Any]]:
        finished, told, name_ = Finished(), list[Any](), " ".join(readers)
        folder = files(table(8, 600), name_, parts=2)
        for reader in readers:
            with configured(spark, {READ_FILES: reader}):
                result = _matches(_stream(spark, folder), PATTERNS[name])
                assert is_read_by_workers(result) == (reader == "workers")
                run(result, tmp_path / f"checkpoint {name_}", finished)
            told += [
                (p.numInputRows, p.eventTime.get("watermark"), _counts(p.observedMetrics))
                for p in finished.progress
            ]
            files(table(9, 300, 700), name_, parts=1)
        return told, {n: Counter(map(str, rows)) for n, rows in finished.batches.items()}

    ours, theirs = ran("workers", "spark", "workers"), ran("spark", "spark", "spark")
    assert ours == theirs
    assert any(ours[1].values())


def _counts(metrics: Any) -> dict[str, Any]:
    (own,) = metrics.values()
    return {name: own[name] for name in ("numMatches", "numLateRecordsDropped", "numKeys")}


def test_progress_and_late_events(spark: SparkSession, files: Any, tmp_path: Path) -> None:
    """Progress counts events and moves its watermark as of rows; late events come out alike."""
    folder = files(table(9, 900), parts=4)
    files(table(10, 100), parts=1)  # all late
    seen = []
    for reader in ("workers", "spark"):
        with configured(spark, {READ_FILES: reader}):
            stream = CEP.pattern(keyBy(_stream(spark, folder), "user"), PATTERNS["texts"])
            stream = stream.inEventTime("ts").sideOutputLateData(OutputTag("late", DDL))
            found = stream.toDF()
            late = found.getSideOutput(OutputTag("late", DDL))
            finished = run(late, tmp_path / reader)
            told = [
                (
                    p.numInputRows,
                    p.eventTime.get("watermark"),
                    p.eventTime.get("max"),
                    len(p.sources),
                )
                for p in finished.progress
            ]
            seen.append((told, Counter(map(str, finished.rows))))
    assert seen[0] == seen[1]
    assert seen[0][1]


def test_two_patterns_of_a_query_read_one_source(
    spark: SparkSession, files: Any, tmp_path: Path
) -> None:
    """Two results of one stream in a query share its source, so that a checkpoint stays readable."""
    folder = files(table(9, 300))
    events = _stream(spark, folder)
    one, other = (_matches(events, PATTERNS[name], name=name) for name in ("texts", "strict"))
    whole = one.select("user").union(other.select("user"))
    finished = run(whole, tmp_path / "checkpoint")
    assert {len(progress.sources) for progress in finished.progress} == {1}


# --- rule sets

RULES: dict[str, Any] = {
    "pattern": Rule("pattern", PATTERNS["texts"], ("user",)),
    "eql": Eql("sequence by user with maxspan=40ms [A where n > 2] [any where price < 7.0]"),
    "single": Eql("D where n > 6"),
}


def test_rule_sets(spark: SparkSession, files: Any, tmp_path: Path) -> None:
    """Many rules in one job give the same matches, bounded and on a stream."""
    folder = files(table(11, 900))
    found = []
    for reader in ("workers", "spark"):
        with configured(spark, {READ_FILES: reader}):
            frames = spark.read.parquet(folder), _stream(spark, folder)
            jobs = [CEP.patterns(f, RULES, timestamp="ts", type="kind").toDF() for f in frames]
            assert [is_read_by_workers(job) for job in jobs] == [reader == "workers"] * 2
            on_stream = run(jobs[1], tmp_path / reader)
            found.append((counted(jobs[0]), Counter(map(str, on_stream.rows))))
    assert found[0] == found[1]
    assert all(found[0])


def test_rules_that_change(spark: SparkSession, files: Any, tmp_path: Path) -> None:
    """Rules of a log on files that workers read."""
    folder = files(table(12, 600))
    log = RuleLog(tmp_path / "log")
    log.publish([RULES["pattern"]])
    found = []
    for reader in ("workers", "spark"):
        with configured(spark, {READ_FILES: reader}):
            job = CEP.dynamicPatterns(
                _stream(spark, folder), log, timestamp="ts", type="kind"
            ).toDF()
            assert is_read_by_workers(job) == (reader == "workers")
            found.append(Counter(map(str, run(job, tmp_path / reader).rows)))
    assert found[0] == found[1]


def test_a_damaged_file_is_named(spark: SparkSession, files: Any) -> None:
    """A file that changed since the job was planned stops it, with the way out."""
    folder = files(table(13, 50), parts=1)
    job = CEP.patterns(spark.read.parquet(folder), RULES, timestamp="ts", type="kind").toDF()
    (path,) = Path(folder).glob("*.parquet")
    pq.write_table(table(13, 50).set_column(0, "user", pa.array([1] * 50)), path)
    with pytest.raises(Exception, match=READ_FILES):
        job.collect()


def test_a_text_that_is_no_text_is_refused(spark: SparkSession, files: Any, tmp_path: Path) -> None:
    """Where a condition reads bytes that are not UTF-8, the error says so, and the way out."""
    events = table(16, 50)
    kinds = pa.array([b"\xff", *[b"A"] * 49], pa.binary())
    folder = files(events.set_column(2, "kind", kinds), parts=1)
    job = _matches(_stream(spark, folder), PATTERNS["texts"])
    message = failure(job, tmp_path / "checkpoint")
    assert "a condition reads a text that is not UTF-8: b'\\xff" in message
    assert READ_FILES in message
