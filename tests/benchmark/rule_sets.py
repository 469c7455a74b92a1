# SPDX-License-Identifier: Apache-2.0
"""
Many rules in one job, beside one rule, a job for each, and Flink with an operator for each.

From the checkout: python -m tests.benchmark rules --events 2000000 --flink-jars FOLDER --published
FOLDER, of which the second has eql.jsonl (id, query), sigma.jsonl (id, yaml) and events, Parquet
with ts, type and the fields of the rules.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pyflinkcep import CEP, Eql, Pattern, keyBy
from pyflinkcep.engines.latest.columns import Offers, latest_rules
from pyflinkcep.engines.latest.machine import LatestRule, step_codes
from pyflinkcep.rules import Rule
from pyflinkcep.sigma import sigmaRules
from pyflinkcep.spark.rule_stream import RuleStream
from tests.benchmark import batch
from tests.benchmark.events import RandomEvents
from tests.benchmark.live_rules import LiveSettings, measure_live
from tests.benchmark.measurement import Measurement
from tests.benchmark.memory import PeakMemory, cpu_seconds
from tests.benchmark.peers import measure_flink_rules
from tests.benchmark.session import answer_columns
from tests.benchmark.workloads import WORKLOADS, Workload, seconds

TYPES = 100
WINDOW_S = 1
_COUNTS = (1, 10, 100, 1_000)
_MANY = 10_000
_LIVE = ((1, 2, True), (1_000, 2, True), (1_000, 2, False), (1_000, 8, True))
"""How many rules run on a stream with how many partitions, and whether they may change."""

_KEYS_OF_THEIR_OWN = 20
_ASKED_ALONE = 8
"""How many rules of a set are run by themselves, spread over it."""

_VOLUMES, _WIDTH = 2_000, 20


def selective_rule(number: int, key: str = "key") -> Rule:
    """Return a rule that wants an event in fifty: a type, then a range of volumes."""
    low = number * 37 % (_VOLUMES - _WIDTH)
    begun = Pattern.begin("a").where(f"type = {number % TYPES}")
    then = begun.followedBy("b").where(f"volume >= {low} AND volume < {low + _WIDTH}")
    return Rule(f"r{number}", then.within(seconds(WINDOW_S)), (key,))


def no_events_rule(number: int) -> Rule:
    """Return a rule that wants no event."""
    begun = Pattern.begin("a").where(f"type = {TYPES + number}")
    then = begun.followedBy("b").where(f"volume = {_VOLUMES + number}")
    return Rule(f"none{number}", then.within(seconds(WINDOW_S)), ("key",))


def dense_rule(number: int) -> Rule:
    """Return a rule that wants all events of three types: a workload, types in turn, a window."""
    workload = [*WORKLOADS.values()][number % len(WORKLOADS)]
    turn = number // len(WORKLOADS)
    return Rule(f"{workload.name} {turn}", _turned(workload, turn), ("key",))


def _turned(workload: Workload, turn: int) -> Pattern:
    sql = {stage: both[0] for stage, both in workload.conditions.items()}
    types = (f"type = {(turn + place) % 3}" for place in range(3))
    if workload.name != "stock":
        sql = dict(zip(sql, types, strict=False))
    window = seconds((10 if workload.name == "absence" else 1) + turn / 100)
    return workload.build(sql).within(window)


@attrs.frozen
class RuleSets:
    """What the sub-command runs."""

    spark: SparkSession
    events: int
    keys: int
    seed: int
    cores: int
    cache: Path
    flink_jars: Path | None
    flink_events: int
    published: Path | None
    micro_batch: int
    parts: Sequence[str]

    def measured(self) -> Iterator[Measurement]:
        """Run all parts."""
        for part in self.parts:
            yield from PARTS[part](self)

    def core(self) -> Iterator[Measurement]:
        """Offer events to rules of two steps, of which an event is wanted by a tenth."""
        for count in (1, 100):
            yield _core(count)

    def selective(self) -> Iterator[Measurement]:
        """Run rules that want an event in fifty."""
        source = RandomEvents(self.events, self.keys, TYPES, self.seed)
        events = batch.read(self.spark, source, self.cache)
        run = Runs("selective", source.name, self.events, self.keys)
        warm = [selective_rule(number) for number in range(10)]
        run.warm_up(events, warm)
        for count in _COUNTS:
            rules = [selective_rule(number) for number in range(count)]
            yield from run.with_some_alone(events, rules)
        rules = [selective_rule(number) for number in range(100)]
        more = [*rules, *(no_events_rule(number) for number in range(100))]
        yield run.set(CEP.patterns(events, more, timestamp="ts"), "100 and 100 that want none")
        if self.flink_jars is not None:
            few = attrs.evolve(source, events=self.flink_events)
            yield measure_flink_rules(self.flink_jars, few, self.cores, 100, WINDOW_S)
            few_events = batch.read(self.spark, few, self.cache)
            own = Runs("selective", few.name, few.events, few.keys)
            yield own.set(CEP.patterns(few_events, rules, timestamp="ts"), "100 rules")
        hot = F.when(F.col("volume") < 0.8 * _VOLUMES, 0).otherwise(F.col("key"))
        skewed = events.withColumn("key", hot.cast("int"))
        yield run.set(CEP.patterns(skewed, rules, timestamp="ts"), "100 rules, a key has 80 %")
        names = [f"key{number}" for number in range(_KEYS_OF_THEIR_OWN)]
        keyed = events.select(
            "*", *((F.col("key") * (n + 1) % self.keys).alias(name) for n, name in enumerate(names))
        )
        for what, own_names in (
            ("a key in common", names[:1] * len(names)),
            ("each with its own key", names),
        ):
            rules = [selective_rule(number, name) for number, name in enumerate(own_names)]
            stream = CEP.patterns(keyed, rules, timestamp="ts")
            yield run.set(stream, f"{len(rules)} rules, {what}")
        few = attrs.evolve(source, events=self.events // 20)
        run = Runs("selective", few.name, few.events, few.keys)
        rules = [selective_rule(number) for number in range(_MANY)]
        few_events = batch.read(self.spark, few, self.cache)
        yield run.set(CEP.patterns(few_events, rules, timestamp="ts"), f"{_MANY:,} rules")

    def live(self) -> Iterator[Measurement]:
        """Run selective rules on a stream, fixed ones beside those that may change."""
        source = RandomEvents(self.events, self.keys, TYPES, self.seed)
        for count, partitions, is_dynamic in _LIVE:
            rules = [selective_rule(number) for number in range(count)]
            settings = LiveSettings(
                source, rules, ["key"], self.micro_batch, partitions, is_dynamic
            )
            yield measure_live(self.spark, settings)

    def dense(self) -> Iterator[Measurement]:
        """Run rules that want all events."""
        source = RandomEvents(self.events, self.keys, 3, self.seed)
        events = batch.read(self.spark, source, self.cache)
        run = Runs("dense", source.name, self.events, self.keys)
        run.warm_up(events, [dense_rule(number) for number in range(6)])
        for count in (1, 6, 100):
            yield from run.with_some_alone(events, [dense_rule(n) for n in range(count)], 14)

    def eql(self) -> Iterator[Measurement]:
        """Run rules of EQL, and those that are likely to be the dearest by themselves."""
        folder = self.published
        if folder is None:
            return
        events = self.spark.read.parquet(str(folder / "events"))
        size = events.count()
        lines = (folder / "eql.jsonl").read_text(encoding="utf-8").splitlines()
        rules = [Rule(one["id"], Eql(one["query"])) for one in map(json.loads, lines)]
        run = Runs("EQL", "published", size, 0)
        run.warm_up(events, rules[:20])
        yield run.set(CEP.patterns(events, rules, timestamp="ts"), f"{len(rules)} rules")
        found = run.by_rule
        likely = sorted(rules, key=lambda rule: -found.get(rule.name, (0, 0))[0])[:3]
        likely += sorted(rules, key=lambda rule: -len(rule.definition.text))[:3]
        for rule in likely:
            yield run.alone(events, rule)

    def sigma(self) -> Iterator[Measurement]:
        """Run rules of Sigma."""
        folder = self.published
        if folder is None:
            return
        events = self.spark.read.parquet(str(folder / "events"))
        size = events.count()
        lines = (folder / "sigma.jsonl").read_text(encoding="utf-8").splitlines()
        with PeakMemory() as memory:
            begin, cpu = time.perf_counter(), cpu_seconds()
            texts = [json.loads(line)["yaml"] for line in lines]
            rules = sigmaRules(texts, logsources="ignore", missing="null")
            read = time.perf_counter() - begin
            times = F.sum(F.unix_millis("event.ts"))
            row = CEP.sigma(events, rules).agg(F.count(F.lit(1)), times).collect()[0]
            taken = time.perf_counter() - begin
        details = {"read_s": read, "cpu_s": cpu_seconds() - cpu, "peak_mib": memory.peaks}
        yield Measurement(
            "sigma", f"{len(texts)} rules", "", "published", size, 0, taken, row[0], row[1], details
        )


@attrs.define
class Runs:
    """Jobs over the same events."""

    what: str
    source: str
    events: int
    keys: int
    by_rule: dict[str, tuple[int, int]] = attrs.field(factory=dict)

    def warm_up(self, events: DataFrame, rules: Sequence[Rule]) -> None:
        """Run rules on few events."""
        few = events.limit(20_000)
        self.set(CEP.patterns(few, rules, timestamp="ts"))
        self.alone(few, rules[0])

    def with_some_alone(
        self, events: DataFrame, rules: Sequence[Rule], asked: int = _ASKED_ALONE
    ) -> Iterator[Measurement]:
        """Run a set of rules, and some of them by themselves."""
        yield self.set(CEP.patterns(events, rules, timestamp="ts"), f"{len(rules)} rules")
        if len(rules) <= 100:
            for rule in rules[:: max(len(rules) // asked, 1)][:asked]:
                yield self.alone(events, rule)

    def set(self, rules: RuleStream, workload: str = "") -> Measurement:
        """Run a set of rules."""
        planned: list[float] = []

        def job() -> list[Any]:
            begin = time.perf_counter()
            matches = rules.toDF()
            planned.append(time.perf_counter() - begin)
            every = F.flatten(F.map_values("events"))
            times = F.aggregate(
                every, F.lit(0).cast("bigint"), lambda total, e: total + F.unix_millis(e["ts"])
            )
            return matches.groupBy("rule").agg(F.count(F.lit(1)), F.sum(times)).collect()

        return self._run(job, f"{self.what}, {workload}", len(rules._rules), planned)

    def alone(self, events: DataFrame, rule: Rule) -> Measurement:
        """Run a rule by itself."""

        def job() -> list[Any]:
            if isinstance(rule.definition, Eql):
                matches = CEP.eql(events, rule.definition, timestamp="ts").toDF()
                return [(rule.name, matches.agg(F.count(F.lit(1))).collect()[0][0], None)]
            matches = (
                CEP.pattern(keyBy(events, *rule.key), rule.definition).inEventTime("ts").toDF()
            )
            return [(rule.name, *matches.agg(*answer_columns(matches)).collect()[0])]

        return self._run(job, f"{self.what}, {rule.name} alone", 1, planned=[])

    def _run(
        self, job: Callable[[], list[Any]], workload: str, count: int, planned: list[float]
    ) -> Measurement:
        with PeakMemory() as memory:
            begin, cpu = time.perf_counter(), cpu_seconds()
            rows = job()
            taken = time.perf_counter() - begin
        details = {
            "set": self.what,
            "rules": count,
            "cpu_s": cpu_seconds() - cpu,
            "peak_mib": memory.peaks,
        }
        if planned:
            details["plan_s"] = planned[0]
        matches, checksum = sum(row[1] for row in rows), sum(row[2] or 0 for row in rows)
        engine = "rules" if planned else "job"
        if engine == "job":
            known = self.by_rule.get(rows[0][0], (0, 0))
            details["in_the_set"] = list(known if rows[0][2] is not None else (known[0], 0))
        else:
            self.by_rule = {row[0]: (row[1], row[2]) for row in rows}
        return Measurement(
            engine, workload, "", self.source, self.events, self.keys, taken, matches, checksum,
            details,
        )  # fmt: skip


def _core(count: int, events: int = 1_000_000, keys: int = 1_000) -> Measurement:
    """Offer events in order to rules in the core alone; the fastest of five."""
    rng = np.random.default_rng(7)
    each = max(count // 10, 1)  # rules that want an event
    rules = [LatestRule.of(2, maxspan=1_000 + number) for number in range(count)]
    wanting = (rng.integers(0, count, (events, 1)) + 7 * np.arange(each)) % count
    steps = np.asarray(step_codes(rules))[wanting] + rng.integers(0, 2, (events, 1))
    offers = Offers(
        np.repeat(np.arange(events, dtype=np.int32), each),
        steps.reshape(-1).astype(np.int32),
        np.repeat(rng.integers(0, keys, events), each),
    )
    times = np.arange(events, dtype=np.int64)
    best, matches = float("inf"), 0
    for _ in range(5):
        running = latest_rules(rules)
        begin = time.process_time()
        matches = len(running.process(times, offers, is_last=True).rules)
        best = min(best, time.process_time() - begin)
    details = {"ns_an_offer": best / len(offers.events) * 1e9}
    what = f"latest, {count} rules"
    return Measurement(
        "core", what, "", "latest", events, keys, best, matches, None, details
    )  # fmt: skip


PARTS = {
    "core": RuleSets.core,
    "selective": RuleSets.selective,
    "live": RuleSets.live,
    "dense": RuleSets.dense,
    "eql": RuleSets.eql,
    "sigma": RuleSets.sigma,
}
"""What is measured, in turn."""
