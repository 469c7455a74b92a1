# SPDX-License-Identifier: Apache-2.0
"""Random rules that change at random while a query runs, stops and starts again."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

from pyflinkcep import CEP, OutputTag
from pyflinkcep.rules import RuleLog
from pyflinkcep.spark.plan.rules import live_job
from pyflinkcep.time import MIN_WATERMARK
from tests.spark.streams import FileSource, Finished, start
from tests.spark.support import configured
from tests.unit.spark.worker.changing_rules import ChangingRules, Event, events

SCHEMA = "id bigint, t bigint, name string, k string, x bigint"
TOLD = OutputTag("rules")
LOGS = int(os.environ.get("RULE_LOGS", "2"))
END: Event = {"id": 10**6, "t": 10**6, "name": "Z", "k": None, "x": None}
"""An event that moves the watermark past all others."""


def files_read(checkpoint: Path) -> Iterator[tuple[list[int], list[int]]]:
    """Yield for each micro-batch the numbers of the files that it reads, of all its sources."""
    own = [sorted(_files(checkpoint / "sources" / name)) for name in ("0", "1")]
    before = [-1, -1]
    for path in sorted((checkpoint / "offsets").glob("[0-9]*"), key=lambda one: int(one.name)):
        offsets = path.read_text().splitlines()[2:]
        reached = [-1 if one == "-" else json.loads(one)["logOffset"] for one in offsets]
        first, second = (
            [file for entry, file in files if low < entry <= high]
            for files, low, high in zip(own, before, reached, strict=True)
        )
        before = reached
        yield first, second


def _files(folder: Path) -> set[tuple[int, int]]:
    """Return the files of a source, each with the number of its entry in Spark's log."""
    lines = (line for path in folder.glob("[0-9]*") for line in path.read_text().splitlines()[1:])
    entries = map(json.loads, lines)
    return {(entry["batchId"], int(Path(entry["path"]).stem)) for entry in entries}


@attrs.define(eq=False)
class RunningQuery:
    """A query that is started again and again from its checkpoint."""

    spark: SparkSession
    folder: Path
    log: RuleLog
    delay_ms: int
    source: FileSource = attrs.field(init=False)
    finished: Finished = attrs.field(factory=Finished)
    running: StreamingQuery | None = None

    def __attrs_post_init__(self) -> None:
        self.source = FileSource(self.folder / "in", SCHEMA)

    def add(self, batch: Sequence[Event]) -> None:
        """Add a file."""
        self.source.add([tuple(event.values()) for event in batch])

    def begin(self) -> StreamingQuery:
        """Start the query unless it runs."""
        if self.running is None:
            timed = self.source.raw(self.spark).withColumn("time", F.timestamp_millis("t"))
            given = timed.withWatermark("time", f"{self.delay_ms} milliseconds")
            found = CEP.dynamicPatterns(given, self.log, type="name", keys=["k"], keyGroups=8)
            frame, checkpoint = found.toDF(TOLD).tagged(), self.folder / "checkpoint"
            self.running = start(frame, checkpoint, self.finished, goes_on=True)
        return self.running

    def stop(self) -> None:
        """Stop it, whatever it does."""
        if self.running is not None:
            self.running.stop()
            self.running = None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(LOGS))
def test_each_version_has_the_matches_of_its_micro_batches(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """
    Whenever rules change and the query stops, each version finds what it has on its own events.

    These are the events of the micro-batches, as the checkpoint tells, in which it is in force:
    those that are not late, and are before or after the times from which versions are valid.
    """
    choose = random.Random(seed)
    delay, spread = choose.choice([(10, 8), (10, 30), (4, 8), (0, 20)])
    given = events(choose, 0, choose.randrange(60, 160), spread)
    cuts = sorted(choose.sample(range(1, len(given)), choose.randrange(3, 8)))
    batches = [given[i:j] for i, j in zip([0, *cuts], [*cuts, len(given)], strict=True)]
    log = RuleLog(tmp_path / "log")
    rules = ChangingRules(log, choose)
    query = RunningQuery(spark, tmp_path, log, delay)
    with configured(spark, {"spark.sql.shuffle.partitions": choose.choice(["1", "2"])}):
        for batch in batches:
            if choose.randrange(3):
                rules.change(batch[0]["t"] - delay, batch[-1]["t"] + 50)
            query.add(batch)
            if query.running is None and choose.randrange(3):
                is_read = choose.choice([True, False])
                monkeypatch.setattr(live_job, "is_local", lambda _, is_read=is_read: is_read)
                query.begin()
            if query.running is not None and choose.randrange(2):
                query.running.processAllAvailable()
            if not choose.randrange(3):
                query.stop()
        query.add([END])
        query.begin().processAllAvailable()
        query.stop()
    reached, files = MIN_WATERMARK, [*batches, [END]]
    for read, published in files_read(tmp_path / "checkpoint"):
        rules.apply(max([rules.applied, *published]))
        arrived = [_with_time(event) for number in read for event in files[number]]
        rules.take([event for event in arrived if event["t"] > reached])
        reached = max([reached, *(event["t"] - delay for event in arrived)])
    rows = query.finished.rows
    told = [(one.publication, one.rule, one.version, one.change) for one in _of(rows, "rules")]
    assert rules.applied == log.number
    assert sorted(map(str, told)) == sorted(map(str, rules.told))
    assert sorted(one.matchId for one in _of(rows, "main")) == sorted(
        rules.expected("time").elements()
    )


def _with_time(event: Event) -> Event:
    return {**event, "time": datetime.fromtimestamp(event["t"] / 1000, UTC)}


def _of(rows: Sequence[Any], tag: str) -> list[Any]:
    return [row[tag] for row in rows if row.tag == tag]
