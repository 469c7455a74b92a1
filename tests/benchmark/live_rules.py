# SPDX-License-Identifier: Apache-2.0
"""Rules on a stream: what a micro-batch costs with many of them, and one that brings a change."""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import attrs
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

from pyflinkcep import CEP
from pyflinkcep.rules import Rule, RuleLog
from tests.benchmark.events import SCHEMA, RandomEvents
from tests.benchmark.measurement import Measurement
from tests.benchmark.memory import PeakMemory, cpu_seconds
from tests.benchmark.stream import trigger_seconds

_WARM, _ROUNDS = 4, 3
_MATCHES = "answer"


@attrs.frozen
class LiveSettings:
    """A stream of rules, and how it runs."""

    source: RandomEvents
    rules: Sequence[Rule]
    keys: Sequence[str]  # By which events of rules that change are sent
    micro_batch: int
    partitions: int
    is_dynamic: bool
    what: str = "selective"
    more: Mapping[str, str] = attrs.field(factory=dict)  # Columns of events, in SQL


@attrs.define(eq=False)
class LiveStream:
    """A query that is given micro-batches one by one, each with a change or without one."""

    settings: LiveSettings
    query: StreamingQuery
    events: Path
    log: RuleLog
    published: RuleLog  # What the query reads: publications are put there with events
    given: int = 0  # How many micro-batches there were

    def batch(self) -> dict[str, Any]:
        """Add the next events and what is published; return what Spark reports, and CPU time."""
        own = self.settings
        hidden = self.events / f".{self.given}"
        begin = self.given * own.micro_batch
        pq.write_table(own.source.part(begin, begin + own.micro_batch), hidden)
        before = cpu_seconds()
        for number in range(self.published.number + 1, self.log.number + 1):
            name = f"{number:010d}.json"
            os.link(self.log.path / name, self.published.path / name)
        hidden.rename(self.events / f"{self.given:06d}.parquet")
        self.given += 1
        done: list[dict[str, Any]] = []
        while sum(_rows(one, 0) for one in done) < self.given * own.micro_batch:
            self.query.processAllAvailable()
            done = [dict(one) for one in self.query.recentProgress]
        (found,) = [one for one in done if _rows(one, 0)][-1:]
        return {**found, "cpu_s": cpu_seconds() - before}


def _rows(progress: Mapping[str, Any], source: int) -> int:
    """Return how many rows a micro-batch had of events, 0, or of publications, 1."""
    sources = progress["sources"]
    return int(sources[source]["numInputRows"]) if source < len(sources) else 0


@contextmanager
def live_stream(spark: SparkSession, settings: LiveSettings) -> Iterator[LiveStream]:
    """Start a query, and stop it at the end."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for name in ("events", "log", "published"):
            (folder / name).mkdir()
        log, published = RuleLog(folder / "log"), RuleLog(folder / "published")
        name = "spark.sql.shuffle.partitions"
        stack.callback(spark.conf.set, name, spark.conf.get(name))
        spark.conf.set(name, settings.partitions)
        reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        events = reader.parquet(str(folder / "events")).withWatermark("ts", "100 milliseconds")
        events = events.withColumns({own: F.expr(sql) for own, sql in settings.more.items()})
        if settings.is_dynamic:
            log.publish(settings.rules)
            rules = CEP.dynamicPatterns(events, published, "ts", keys=settings.keys).toDF()
        else:
            rules = CEP.patterns(events, settings.rules, timestamp="ts").toDF()
        writer = rules.observe(_MATCHES, F.count(F.lit(1)).alias("matches")).writeStream
        writer = writer.format("noop").option("checkpointLocation", str(folder / "checkpoint"))
        query = writer.start()
        stack.callback(query.stop)
        yield LiveStream(settings, query, folder / "events", log, published)


def measure_live(spark: SparkSession, settings: LiveSettings) -> Measurement:
    """Run some micro-batches, and if rules may change, a few with a change each in between."""
    begun: list[dict[str, Any]] = []
    quiet: list[dict[str, Any]] = []
    changed: dict[str, list[dict[str, Any]]] = {}
    with PeakMemory() as memory, live_stream(spark, settings) as stream:
        begun += (stream.batch() for _ in range(_WARM))
        for turn in range(_ROUNDS):
            for kind, change in _changes(stream.log, settings.rules, turn):
                quiet.append(stream.batch())
                if settings.is_dynamic:
                    change()
                    changed.setdefault(kind, []).append(stream.batch())
        every = list(map(dict, stream.query.recentProgress))
    seconds = _median(quiet)
    own = {kind: _median([p for p in done if _rows(p, 1)]) for kind, done in changed.items()}
    states = [m for p in quiet for n, m in p["observedMetrics"].items() if n != _MATCHES]
    return Measurement(
        "live" if settings.is_dynamic else "fixed",
        f"{settings.what}, {len(settings.rules):,} rules, {settings.partitions} partitions",
        "",
        settings.source.name,
        settings.micro_batch,
        settings.source.keys,
        seconds,
        details={
            "rules": len(settings.rules),
            "first_s": trigger_seconds(begun[0]),
            "cpu_s": statistics.median(p["cpu_s"] for p in quiet),
            "change_s": {kind: taken - seconds for kind, taken in own.items() if taken},
            "change_cpu_s": {
                kind: statistics.median(p["cpu_s"] for p in done)
                - statistics.median(p["cpu_s"] for p in quiet)
                for kind, done in changed.items()
            },
            "matches": sum(
                p["observedMetrics"].get(_MATCHES, {"matches": 0})["matches"] for p in every
            ),
            "state_bytes_read": statistics.median(m["stateBytesRead"] for m in states),
            "state_bytes_written": statistics.median(m["stateBytesWritten"] for m in states),
            "store_bytes": every[-1]["stateOperators"][0]["memoryUsedBytes"],
            "store_rows": every[-1]["stateOperators"][0]["numRowsTotal"],
            "parts_s": {
                name: statistics.median(p["durationMs"].get(name, 0) / 1000 for p in quiet)
                for name in quiet[-1]["durationMs"]
            },
            "peak_mib": memory.peaks,
        },
    )


def _median(done: Sequence[dict[str, Any]]) -> float:
    return statistics.median(map(trigger_seconds, done)) if done else 0.0


def _changes(log: RuleLog, rules: Sequence[Rule], turn: int) -> Iterator[tuple[str, Any]]:
    """Yield changes of a rule, by kind, each as what does it."""
    rule = rules[turn % len(rules)]
    other = rules[(turn + len(rules) // 2) % len(rules)]
    newer = attrs.evolve(other, name=rule.name, version=turn + 2)
    yield "replace", lambda: log.publish([newer])
    yield "pause", lambda: log.pause(rule.name)
    yield "resume", lambda: log.resume(rule.name)
    yield "remove", lambda: log.remove(rule.name)
    yield "add", lambda: log.publish([attrs.evolve(rule, name=f"{rule.name} again")])
