# SPDX-License-Identifier: Apache-2.0
"""Rules on a stream: what a micro-batch costs with many of them, and one that brings a change."""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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

_WARM, _ROUNDS = 3, 2
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
    """Run some micro-batches, and if rules may change, one with a change between each two."""
    begun: list[dict[str, Any]] = []
    quiet: list[dict[str, Any]] = []
    changed: list[tuple[str, dict[str, Any]]] = []
    with PeakMemory() as memory, live_stream(spark, settings) as stream:
        begun += (stream.batch() for _ in range(_WARM))
        for turn in range(_ROUNDS):
            for kind, change in _changes(stream.log, settings.rules, turn):
                quiet.append(stream.batch())
                if settings.is_dynamic:
                    change()
                    changed.append((kind, stream.batch()))
        quiet.append(stream.batch())
        every = list(map(dict, stream.query.recentProgress))
    states = [m for p in quiet for n, m in p["observedMetrics"].items() if n != _MATCHES]
    return Measurement(
        "live" if settings.is_dynamic else "fixed",
        f"{settings.what}, {len(settings.rules):,} rules, {settings.partitions} partitions",
        "",
        settings.source.name,
        settings.micro_batch,
        settings.source.keys,
        _median(map(trigger_seconds, quiet)),
        details={
            "rules": len(settings.rules),
            "partitions": settings.partitions,
            "first_s": trigger_seconds(begun[0]),
            "cpu_s": _median(map(_cpu, quiet)),
            **_of_changes(quiet, changed),
            "matches": sum(
                p["observedMetrics"].get(_MATCHES, {"matches": 0})["matches"] for p in every
            ),
            "state_bytes_read": _median(m["stateBytesRead"] for m in states),
            "state_bytes_written": _median(m["stateBytesWritten"] for m in states),
            "store_bytes": every[-1]["stateOperators"][0]["memoryUsedBytes"],
            "store_rows": every[-1]["stateOperators"][0]["numRowsTotal"],
            "parts_s": _parts(quiet),
            "peak_mib": memory.peaks,
        },
    )


def _of_changes(
    quiet: Sequence[dict[str, Any]], changed: Sequence[tuple[str, dict[str, Any]]]
) -> dict[str, Any]:
    """Return what micro-batches with a change take, and how much more than those beside them."""
    # A publication may be seen before the events beside it, and is a micro-batch of its own then.
    own = [
        (kind, one, quiet[at : at + 2]) for at, (kind, one) in enumerate(changed) if _rows(one, 1)
    ]
    if not own:
        return {}
    more = [(kind, _beyond(trigger_seconds, one, beside)) for kind, one, beside in own]
    return {
        "changed_s": _median(trigger_seconds(one) for _, one, _ in own),
        "changed_cpu_s": _median(_cpu(one) for _, one, _ in own),
        "change_s": _median(taken for _, taken in more),
        "change_cpu_s": _median(_beyond(_cpu, one, beside) for _, one, beside in own),
        "change_by_kind_s": {
            kind: _median(taken for name, taken in more if name == kind) for kind, _ in more
        },
        "changed_parts_s": _parts([one for _, one, _ in own]),
    }


def _beyond(
    measure: Callable[[dict[str, Any]], float],
    one: dict[str, Any],
    beside: Sequence[dict[str, Any]],
) -> float:
    return measure(one) - statistics.mean(map(measure, beside))


def _cpu(progress: Mapping[str, Any]) -> float:
    return float(progress["cpu_s"])


def _parts(done: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Return the parts of micro-batches, as Spark reports them."""
    return {
        name: _median(p["durationMs"].get(name, 0) / 1000 for p in done)
        for name in done[-1]["durationMs"]
    }


def _median(numbers: Iterable[float]) -> float:
    return statistics.median(numbers)


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
