# SPDX-License-Identifier: Apache-2.0
"""What each sub-command runs, one measurement after the other."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
from pyspark.sql import DataFrame, SparkSession

from tests.benchmark import batch, clauses, latency, peers, stream
from tests.benchmark.clauses import CLAUSES, HARD, KEYED, LOOP, Clause
from tests.benchmark.events import EventSource, PendingEvents, RandomEvents
from tests.benchmark.measurement import Measurement
from tests.benchmark.workloads import PENDING, VARIANTS, WORKLOADS, Workload, any_within, chain

_GROWTH = (1, 4, 16)
_KEYS = (1, 100, 10_000, 500_000)
_WINDOWS_S = (5, 20, 80)
_LENGTHS = (2, 4, 8)
_LATENCY_BATCHES = 50
_OTHERS_PER_PARTIAL = 5
_LOOPS = (10_000, 100_000, 1_000_000)
_HARD_ROWS = (250_000, 1_000_000)


@attrs.frozen
class Settings:
    """What the command line says; see its help."""

    events: int
    keys: tuple[int, ...]
    types: int
    seed: int
    workloads: tuple[str, ...]
    variants: tuple[str, ...]
    cores: int
    micro_batch: int
    sink: str
    small_batch: int
    warm_up: int
    repeat: int
    partials: tuple[int, ...]
    flink: str | None
    flink_jars: Path | None
    cache: Path

    def source(self, keys: int, events: int | None = None) -> RandomEvents:
        """Return the stream with so many keys."""
        return RandomEvents(events or self.events, keys, self.types, self.seed)


class Suites:
    """The sub-commands; each gives its measurements as they are made."""

    def __init__(self, spark: SparkSession, settings: Settings) -> None:
        self._spark = spark
        self._settings = settings

    def everything(self) -> Iterator[Measurement]:
        """Run all of the others; engines take turns, so that they meet the same machine."""
        for keys in self._settings.keys:
            for workload in self._chosen():
                yield from self._flink(workload, keys)
                yield from self._batch(workload, keys)
                yield from self._stream(workload, keys)
        yield from self.latency()
        yield from self.scaling()
        yield from self.pending()

    def batch(self) -> Iterator[Measurement]:
        """Run the bounded jobs, and Flink where it is at hand."""
        for keys in self._settings.keys:
            for workload in self._chosen():
                yield from self._flink(workload, keys)
                yield from self._batch(workload, keys)

    def stream(self) -> Iterator[Measurement]:
        """Run the unbounded jobs, and Flink where it is at hand."""
        for keys in self._settings.keys:
            for workload in self._chosen():
                yield from self._flink(workload, keys)
                yield from self._stream(workload, keys)

    def latency(self) -> Iterator[Measurement]:
        """Measure the time to an alert in small micro-batches, and that of an empty query."""
        settings = self._settings
        for keys in settings.keys:
            source = settings.source(keys, settings.small_batch * _LATENCY_BATCHES)
            yield latency.measure_nothing(
                self._spark, source, keys, settings.cache, settings.small_batch
            )
            for workload in self._chosen():
                yield latency.measure_latency(
                    self._spark,
                    source,
                    keys,
                    workload,
                    VARIANTS[0],
                    settings.cache,
                    settings.small_batch,
                )

    def scaling(self) -> Iterator[Measurement]:
        """Let events, keys, windows and patterns grow, one at a time."""
        settings = self._settings
        relaxed = WORKLOADS["relaxed"]
        for factor in _GROWTH:
            source = settings.source(1_000, settings.events // 4 * factor)
            yield from self._scaled(relaxed, source, "events")
        for keys in _KEYS:
            yield from self._scaled(relaxed, settings.source(keys), "keys")
        for window in _WINDOWS_S:
            yield from self._scaled(any_within(window), settings.source(1_000), "window")
        for length in _LENGTHS:
            yield from self._scaled(chain(length), settings.source(1_000), "length")

    def pending(self) -> Iterator[Measurement]:
        """Let partial matches on one key grow."""
        for partials in self._settings.partials:
            source = PendingEvents(partials, partials // _OTHERS_PER_PARTIAL)
            if self._settings.flink_jars is not None:
                yield peers.measure_flink_pending(self._settings.flink_jars, source)
            for variant in self._settings.variants:
                self._warm_up_batch(PENDING, variant)
                yield batch.measure_batch(self._read(source), source, 1, PENDING, variant)

    def sql(self) -> Iterator[Measurement]:
        """Run MATCH_RECOGNIZE beside the same patterns in the fluent API, and Flink SQL."""
        settings = self._settings
        for keys in settings.keys:
            source = settings.source(keys)
            for clause in CLAUSES:
                yield from self._flink_sql(clause, source)
                for measure in (clauses.measure_clause, clauses.measure_pattern):
                    self._warm_up(functools.partial(measure, clause=clause))
                events = self._read(source)
                for _ in range(settings.repeat):  # in turns, so that both meet the same machine
                    yield clauses.measure_clause(events, source, keys, clause)
                    yield clauses.measure_pattern(events, source, keys, clause)
            for clause in KEYED:
                yield from self._clause(clause, source, keys)
        for rows in _LOOPS:
            loop = PendingEvents(1, rows)
            if rows == _LOOPS[0]:
                yield from self._flink_sql(LOOP, loop)
            yield from self._clause(LOOP, loop)
        for clause in HARD:
            for rows in _HARD_ROWS:
                yield from self._clause(clause, settings.source(1, rows))

    def _clause(self, clause: Clause, source: EventSource, keys: int = 1) -> Iterator[Measurement]:
        self._warm_up(functools.partial(clauses.measure_clause, clause=clause))
        for _ in range(self._settings.repeat):
            yield clauses.measure_clause(self._read(source), source, keys, clause)

    def _flink_sql(
        self, clause: Clause, source: RandomEvents | PendingEvents
    ) -> Iterator[Measurement]:
        jars = self._settings.flink_jars
        if jars is not None:
            yield peers.measure_flink_sql(jars, source, clause, self._settings.cores)

    # --- helpers

    def _chosen(self) -> list[Workload]:
        return [WORKLOADS[name] for name in self._settings.workloads]

    def _read(self, source: EventSource) -> DataFrame:
        return batch.read(self._spark, source, self._settings.cache)

    def _flink(self, workload: Workload, keys: int) -> Iterator[Measurement]:
        settings = self._settings
        if settings.flink is not None:
            for _ in range(settings.repeat):
                source = settings.source(keys)
                yield peers.measure_flink(settings.flink, source, workload.name, settings.cores)

    def _batch(self, workload: Workload, keys: int) -> Iterator[Measurement]:
        source = self._settings.source(keys)
        events = self._read(source)
        for variant in self._settings.variants:
            self._warm_up_batch(workload, variant)
            for _ in range(self._settings.repeat):
                yield batch.measure_batch(events, source, keys, workload, variant)

    def _stream(self, workload: Workload, keys: int) -> Iterator[Measurement]:
        settings = self._settings

        def run(variant: str, source: RandomEvents, micro_batch: int) -> Measurement:
            return stream.measure_stream(
                self._spark,
                source,
                source.keys,
                workload,
                variant,
                settings.cache,
                micro_batch,
                settings.sink,
            )

        for variant in settings.variants:
            if settings.warm_up:
                run(variant, settings.source(keys, settings.warm_up), settings.micro_batch)
            for _ in range(settings.repeat):
                yield run(variant, settings.source(keys), settings.micro_batch)

    def _scaled(
        self, workload: Workload, source: RandomEvents, dimension: str
    ) -> Iterator[Measurement]:
        variant = VARIANTS[0]
        self._warm_up_batch(workload, variant)
        measured = batch.measure_batch(self._read(source), source, source.keys, workload, variant)
        yield attrs.evolve(measured, details={**measured.details, "grows": dimension})

    def _warm_up_batch(self, workload: Workload, variant: str) -> None:
        self._warm_up(functools.partial(batch.measure_batch, workload=workload, variant=variant))

    def _warm_up(self, run: Callable[[DataFrame, EventSource, int], Measurement]) -> None:
        if self._settings.warm_up:
            source = self._settings.source(1_000, self._settings.warm_up)
            run(self._read(source), source, 1_000)
