# SPDX-License-Identifier: Apache-2.0
"""Rules that change while a stream runs: each version sees the events of its micro-batches."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

from pyflinkcep import CEP, Eql, OutputTag, Pattern, Time, matchMany, parse
from pyflinkcep.rules import Rule, RuleLog, SigmaCorrelation
from pyflinkcep.rules.rule_lives import StoredLives
from pyflinkcep.spark.plan.rules import live_job
from tests.spark.streams import FileSource, Finished, run, start
from tests.spark.support import configured

SCHEMA = "id bigint, ts bigint, kind string, k string, x bigint"
TOLD = OutputTag("rules")
END = (999, 100_000, "Z", None, None)
"""An event that moves the watermark past all others."""


def rise(most: int, version: int = 1) -> Rule:
    """Return a rule with SQL over stages."""
    low = Pattern.begin("a").where(f"x < {most}")
    pattern = low.followedBy("b").where("x > 1 + last(a.x)").within(Time.milliseconds(50))
    return Rule("rise", pattern, ("k",), version)


def fall(version: int = 1) -> Rule:
    """Return a rule that wants all events of a key, since they have to be next to each other."""
    return Rule("fall", Pattern.begin("a").where("x > 5").next("b").where("x < 5"), ("k",), version)


def runs(kind: str, version: int = 1) -> Rule:
    """Return a query of EQL."""
    query = f"sequence by k with maxspan=60ms [{kind} where x > 2] [any where x < 7]"
    return Rule("runs", Eql(query), version=version)


def single(version: int = 1) -> Rule:
    """Return a query about single events."""
    return Rule("single", Eql("D where x > 6"), version=version)


def often(least: int, version: int = 1) -> Rule:
    """Return a correlation."""
    count = {"type": "event_count", "rules": ["high"], "group-by": ["k"], "timespan": "1s"}
    sigma = SigmaCorrelation({**count, "condition": {"gte": least}}, {"high": "x > 4"})
    return Rule("often", sigma, (), version)


def rising(version: int = 1) -> Rule:
    """Return a query of SASE+."""
    query = "PATTERN SEQ(A a, B+ b[]) WHERE a.x > 2 AND b[i].x > b[i-1].x WITHIN 40 milliseconds"
    return Rule("rising", parse(query), ("k",), version)


def events(count: int, seed: int = 5) -> list[tuple[Any, ...]]:
    """Return events, up to 8 ms out of order."""
    choose = random.Random(seed)
    made = [
        (n, 1000 + 3 * n, choose.choice("AABBCD"), choose.choice("pqrs"), choose.randrange(9))
        for n in range(count)
    ]
    return sorted(made, key=lambda row: row[1] + choose.randrange(8))


def expected(rule: Rule, batches: Iterable[Sequence[tuple[Any, ...]]]) -> Counter[Any]:
    """Return the matches of a rule on the events of some micro-batches."""
    names = [column.split()[0] for column in SCHEMA.split(", ")]
    rows = [dict(zip(names, row, strict=True)) for batch in batches for row in batch]
    found = matchMany([rule], rows, timestamp="ts", type="kind")
    return Counter(
        (m.rule, m.version, stage, event["id"])
        for m in found
        for stage, own in m.events.items()
        for event in own
    )


def counted(rows: Iterable[Any]) -> Counter[Any]:
    """Return the same of the matches of a stream."""
    return Counter(
        (row.main.rule, row.main.version, stage, event.id)
        for row in rows
        if row.tag == "main"
        for stage, own in row.main.events.items()
        for event in own
    )


def told(rows: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Return what became of changes."""
    own = [row.rules for row in rows if row.tag == "rules"]
    return [(one.publication, one.rule, one.version, one.change, one.problem) for one in own]


def changed(log: RuleLog) -> list[Callable[[], Any]]:
    """Return what is published before each of five micro-batches."""
    return [
        lambda: log.publish([rise(3), fall(), runs("A"), single(), often(3), rising()]),
        lambda: log.publish([rise(5, 2), runs("B", 2), often(4, 2)]),
        lambda: (log.pause("fall", "rising"), log.remove("single")),
        lambda: (log.resume("fall", "rising"), log.publish([rise(3, 3)])),
        lambda: None,
    ]


def wanted_of(parts: Sequence[Sequence[tuple[Any, ...]]]) -> Counter[Any]:
    """Return what each version finds in the micro-batches that it sees."""
    lives = [
        (rise(3), [0]), (rise(5, 2), [1, 2]), (rise(3, 3), [3, 4]), (fall(), [0, 1]),
        (fall(), [3, 4]), (runs("A"), [0]), (runs("B", 2), [1, 2, 3, 4]), (single(), [0, 1]),
        (often(3), [0]), (often(4, 2), [1, 2, 3, 4]), (rising(), [0, 1]), (rising(), [3, 4]),
    ]  # fmt: skip
    wanted: Counter[Any] = Counter()
    for rule, numbers in lives:
        wanted += expected(rule, [parts[number] for number in numbers])
    assert {name for name, *_ in wanted} == {"rise", "fall", "runs", "single", "often", "rising"}
    return wanted


TOLD_OF_CHANGES = [
    *((1, name, 1, "publish", None) for name in ("rise", "fall", "runs", "single", "often")),
    (1, "rising", 1, "publish", None),
    (2, "rise", 2, "publish", None), (2, "runs", 2, "publish", None),
    (2, "often", 2, "publish", None),
    (3, "fall", 1, "pause", None), (3, "rising", 1, "pause", None),
    (4, "single", 1, "remove", None),
    (5, "fall", 1, "resume", None), (5, "rising", 1, "resume", None),
    (6, "rise", 3, "publish", None),
]  # fmt: skip


@pytest.mark.spark
def test_versions_see_the_events_of_their_micro_batches(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Rules added, replaced, paused, resumed and removed give what each gives on its own events."""
    source, checkpoint = FileSource(tmp_path / "in", SCHEMA), tmp_path / "checkpoint"
    log, finished, given = RuleLog(tmp_path / "log"), Finished(), events(300)
    parts = [given[begin : begin + 60] for begin in range(0, 300, 60)]
    with configured(spark, {"spark.sql.shuffle.partitions": "1"}):
        for number, (change, part) in enumerate(zip(changed(log), parts, strict=True)):
            change()
            source.add(part, *([[END]] if number == 4 else []))
            # A column that is NOT NULL, as of literals, is one like any other.
            stream = source.stream(spark, delay_ms=10).withColumn("origin", F.lit("here"))
            frame = CEP.dynamicPatterns(stream, log, "time", "kind", keys=["k"], keyGroups=8)
            run(frame.toDF(TOLD).tagged(), checkpoint, finished)
    assert counted(finished.rows) == wanted_of(parts)
    assert told(finished.rows) == TOLD_OF_CHANGES


@pytest.mark.spark
@pytest.mark.parametrize("is_read", [True, False])
def test_events_stay_behind_with_the_same_answers(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_read: bool
) -> None:
    """
    Rules that change while a query runs, and when it starts again, find what they would alone.

    So they do if workers read the log and keep back what no rule wants, and if they do not.
    """
    notes = tmp_path / "notes"
    notes.mkdir()
    monkeypatch.setattr(live_job, "mkdtemp", lambda **_: str(notes))
    monkeypatch.setattr(live_job, "is_local", lambda _: is_read)
    source, checkpoint = FileSource(tmp_path / "in", SCHEMA), tmp_path / "checkpoint"
    log, finished, given = RuleLog(tmp_path / "log"), Finished(), events(300)
    parts = [given[begin : begin + 60] for begin in range(0, 300, 60)]
    with configured(spark, {"spark.sql.shuffle.partitions": "1"}):
        before: StreamingQuery | None = None
        for number, (change, part) in enumerate(zip(changed(log), parts, strict=True)):
            if before is not None and number == 3:
                before.stop()
                before = None
            change()
            source.add(part, *([[END]] if number == 4 else []))
            if before is None:
                frame = CEP.dynamicPatterns(
                    source.stream(spark, delay_ms=10), log, "time", "kind", keys=["k"], keyGroups=8
                )
                before = start(frame.toDF(TOLD).tagged(), checkpoint, finished, goes_on=True)
            before.processAllAvailable()
        assert before is not None
        before.stop()
    assert counted(finished.rows) == wanted_of(parts)
    assert told(finished.rows) == TOLD_OF_CHANGES
    stored = [StoredLives.of(note.read_bytes()) for note in notes.glob("*/*")]
    assert sorted(one.applied[0] for one in stored) == ([4, 6] if is_read else [])
