# SPDX-License-Identifier: Apache-2.0
"""
Events per second of the matching core alone: one process, no Spark.

Six patterns run over a made-up stream, key after key, as an engine hands the events over:
sorted by key and time, as integer handles. Variants:

known      conditions of one event are bits, computed beforehand; the default
filtered   as known, without the events that match no condition (relaxed patterns only)
callables  conditions are Python functions of a Row-like tuple
kernel     as known, matched by the compiled kernel instead of the plain path

usage: python -m tests.benchmark.core [--events N] [--keys N] [--workloads W ...]
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc

from pyflinkcep import IterativeCondition, Pattern
from pyflinkcep.engines.flink.bridge import make_kernel
from pyflinkcep.engines.flink.nfa import NFA, NFACompiler
from pyflinkcep.engines.flink.operator import CepOperator
from tests.benchmark.events import RandomEvents
from tests.benchmark.workloads import WORKLOADS

FILTERED = ("relaxed", "any", "kleene", "absence")
DTYPES = (np.int64, np.int64, np.float64, np.int64, np.int64)
VARIANTS = ("known", "filtered", "callables", "kernel")
FINAL_WATERMARK = (1 << 63) - 1


Run = tuple[int, int, int]
"""A key and the bounds of its events in the stream."""


class Event(NamedTuple):
    key: int
    type: int
    price: float
    volume: int
    ts: int


def pattern(workload: str, answered: bool) -> Pattern:
    """Return the pattern of a workload; if answered, conditions of one event are SQL."""
    whole = WORKLOADS[workload]
    if not answered:
        return whole.pattern("python")
    return whole.build(
        {
            stage: function if isinstance(function, IterativeCondition) else sql
            for stage, (sql, function) in whole.conditions.items()
        }
    )


class Stream(NamedTuple):
    """The events, sorted by key and time."""

    key: np.ndarray
    type: np.ndarray
    price: np.ndarray
    volume: np.ndarray
    ts: np.ndarray

    def rows(self) -> list[Event]:
        return list(map(Event, *(column.tolist() for column in self)))

    def only(self, wanted: np.ndarray) -> Stream:
        return Stream(*(column[wanted] for column in self))

    def runs(self) -> Iterator[Run]:
        """Return each key with the bounds of its events."""
        starts = np.flatnonzero(np.diff(self.key, prepend=-1))
        bounds = [*starts.tolist(), len(self.key)]
        yield from zip(self.key[starts].tolist(), bounds, bounds[1:], strict=False)


def make_stream(events: int, keys: int, types: int, seed: int) -> Stream:
    """Return the events of the benchmark, sorted by key and time."""
    made = RandomEvents(events, keys, types, seed).part(0, events)
    made = made.set_column(4, "ts", pc.divide(made["ts"].cast("int64"), 1000))
    order = np.argsort(made["key"].to_numpy(), kind="stable")
    return Stream(
        *(
            column.to_numpy()[order].astype(kind)
            for column, kind in zip(made.columns, DTYPES, strict=True)
        )
    )


class Found:
    """Receives matches."""

    def __init__(self) -> None:
        self.matches: list[dict[str, list[int]]] = []

    def match(self, key: int, timestamp: int, match: dict[str, list[int]]) -> None:
        self.matches.append(match)

    def timeout(self, key: int, timestamp: int, match: dict[str, list[int]]) -> None:
        pass


class Result(NamedTuple):
    events: int
    seconds: float
    matches: int
    checksum: int

    @property
    def rate(self) -> float:
        return self.events / self.seconds


def measure(workload: str, variant: str, stream: Stream) -> Result:
    """Run a workload; the time is the processor's for matching alone, every event counts."""
    events = len(stream.key)
    holds = {name: stream.type == number for number, name in enumerate("abc")}
    if workload == "stock":
        holds = {"a": stream.volume > 1900}
    if variant == "filtered":
        wanted = np.logical_or.reduce(
            [holds[name] for name in ("ab" if workload == "absence" else "abc")]
        )
        stream = stream.only(wanted)
        holds = {name: answers[wanted] for name, answers in holds.items()}
    if variant == "callables":
        nfa = NFACompiler.compile(pattern(workload, answered=False))
        known, values = 0, None
    else:
        nfa = NFACompiler.compile(pattern(workload, answered=True))
        bits = {atom.stage: atom.bit for atom in nfa.atoms if atom.bit}
        known = sum(bits.values())
        values = sum(holds[stage] * bit for stage, bit in bits.items()).tolist()
    if variant == "kernel":
        return measure_kernel(nfa, known, stream, np.asarray(values))
    rows = stream.rows() if workload == "stock" or variant == "callables" else None
    operator = CepOperator(nfa, None if rows is None else rows.__getitem__)
    times = stream.ts.tolist()
    seconds, matches, checksum = 0.0, 0, 0
    gc.collect()
    gc.freeze()
    for runs in batches(stream.runs(), 10_000):
        found = Found()
        begin = time.process_time()
        for key, start, end in runs:
            state = operator.new_key()
            bits = None if values is None else values[start:end]
            handles = range(start, end)
            operator.process_events(key, state, times[start:end], handles, found, known, bits)
            operator.advance_time(key, state, FINAL_WATERMARK, found)
        seconds += time.process_time() - begin
        matches += len(found.matches)
        checksum += sum(times[i] for match in found.matches for s in match.values() for i in s)
    gc.unfreeze()
    return Result(events, seconds, matches, checksum)


def measure_kernel(nfa: NFA, known: int, stream: Stream, values: np.ndarray) -> Result:
    """Run a workload on the compiled kernel."""
    kernel = make_kernel(nfa, known, sets_timers=False)
    if kernel is None:
        raise SystemExit("there is no compiled kernel here")
    rows = stream.rows()
    kernel.set_events(rows.__getitem__, 0, 0, ())
    bounds = np.r_[np.flatnonzero(np.diff(stream.key, prepend=-1)), len(stream.key)]
    needed = np.ones(len(bounds) - 1, bool)
    key, at, row, seconds, matches, checksum = None, 0, 0, 0.0, 0, 0
    while at < len(needed) or key is not None:
        begin = time.process_time()
        if at < len(needed):
            at, row, key = kernel.run(
                key, stream.ts, None, 0, values, bounds, needed, at, row, 4096
            )
        else:
            kernel.advance(key, FINAL_WATERMARK)
            key = None
        kinds, _, _, _, handles, _ = kernel.take_found()
        seconds += time.process_time() - begin
        matches += len(kinds)
        checksum += int(stream.ts[np.frombuffer(handles, np.int64)].sum())
    return Result(len(stream.key), seconds, matches, checksum)


def batches(runs: Iterable[Run], size: int) -> Iterator[list[Run]]:
    """Group the runs of keys until they have so many events, as the batches of an engine do."""
    batch: list[Run] = []
    for run in runs:
        batch.append(run)
        if run[2] - batch[0][1] >= size:
            yield batch
            batch = []
    if batch:
        yield batch


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--keys", type=int, default=1_000)
    parser.add_argument("--types", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workloads", nargs="+", default=WORKLOADS, choices=WORKLOADS)
    parser.add_argument("--variants", nargs="+", default=VARIANTS, choices=VARIANTS)
    args = parser.parse_args()
    stream = make_stream(args.events, args.keys, args.types, args.seed)
    print(f"{'workload':10} {'variant':10} {'events/s':>12} {'matches':>10} {'checksum':>20}")
    for workload in args.workloads:
        for variant in args.variants:
            if variant != "filtered" or workload in FILTERED:
                result = measure(workload, variant, stream)
                print(
                    f"{workload:10} {variant:10} {result.rate:12,.0f} {result.matches:10,} {result.checksum:20}"
                )


if __name__ == "__main__":
    main()
