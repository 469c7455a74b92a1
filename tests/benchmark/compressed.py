# SPDX-License-Identifier: Apache-2.0
"""
Compressed matches of a pattern: the workload ``any`` with about 1,000 partial matches on a key.

``a followedByAny b followedByAny c`` within 20 s, on events a millisecond apart of ten types and so
few keys that each has 44 of a type in the window: 44 partial matches of one event, and 970 of two.
The core counts from columns in memory, sorted by key, in the kernel and by the plain path; the
counts must agree with Flink's, which lists the matches.

usage: python -m tests.benchmark.compressed [--events N] [--few N] [--keys N] [--flink COMMAND]
                                           [--cores N]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import attrs
import numpy as np

from pyflinkcep import CEP, keyBy
from pyflinkcep.engines.compressed.patterns import (
    CompressiblePattern,
    EventViews,
    KeyedEvents,
    PatternMatches,
)
from pyflinkcep.engines.flink.nfa import NFACompiler
from tests.benchmark.batch import read
from tests.benchmark.core import Stream, make_stream, pattern
from tests.benchmark.events import RandomEvents
from tests.benchmark.optiseq_spark import best
from tests.benchmark.peers import measure_flink
from tests.benchmark.session import benchmark_session
from tests.benchmark.workloads import WORKLOADS

TYPES, SEED = 10, 1
MEASURES = {"count": (), "sum": ("sum",), "max": ("max",)}


def matches_of(stream: Stream, plain: bool) -> PatternMatches:
    """The compressed matches on a stream, the conditions answered beforehand."""
    nfa = NFACompiler.compile(pattern("any", answered=True))
    compressible = CompressiblePattern.of(nfa, None, nfa.stages)
    if plain:
        compressible = attrs.evolve(compressible, counter=None)
    elif compressible.counter is None:
        raise SystemExit("there is no compiled kernel here")
    holding = sum((stream.type == "abc".index(a.stage)) * a.bit for a in nfa.atoms)
    bounds = np.r_[np.flatnonzero(np.diff(stream.key, prepend=-1)), len(stream.key)]
    events = KeyedEvents(stream.ts, np.asarray(holding, np.int64), bounds)
    views = EventViews(int, lambda at: (), (), np.asarray(holding).tolist)  # nothing asks for more
    return PatternMatches(compressible, events, views)


def measure(stream: Stream, functions: Sequence[str], plain: bool = False) -> tuple[float, int]:
    """The processor's seconds, and the number of matches."""
    matches = matches_of(stream, plain)
    volumes = stream.volume.tolist()
    begin = time.process_time()
    measures = [("b", volumes, function) for function in functions]
    count = sum(number for _, number, _ in matches.totals_by_event(measures))
    return time.process_time() - begin, count


def on_spark(source: RandomEvents, cores: int) -> tuple[float, int]:
    """The seconds of a bounded job that counts, from Parquet in a warm session; its matches."""
    pattern = WORKLOADS["any"].pattern("columns")
    with benchmark_session("spark", cores, "2g") as spark, tempfile.TemporaryDirectory() as folder:
        events = read(spark, source, Path(folder))

        def run() -> int:
            return CEP.pattern(keyBy(events, "key"), pattern).inEventTime("ts").compressed().count()

        return best(run)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--few", type=int, default=40_000, help="for the plain path and Flink")
    parser.add_argument("--keys", type=int, default=45)
    parser.add_argument("--flink", help="see README.md")
    parser.add_argument("--cores", type=int, help="measure on Spark too, with so many cores")
    given = parser.parse_args()
    many, few = (make_stream(n, given.keys, TYPES, SEED) for n in (given.events, given.few))
    rates = {}
    for name, functions in MEASURES.items():
        seconds, count = min(measure(many, functions) for _ in range(3))
        rates[name] = given.events / seconds
        print(f"kernel, {name:6} {rates[name]:14,.0f} events/s {count:15,} matches")
    if given.cores:
        seconds, found = on_spark(RandomEvents(given.events, given.keys, TYPES, SEED), given.cores)
        assert found == count, (found, count)
        print(f"on Spark       {given.events / seconds:14,.0f} events/s {seconds:.2f} s")
    seconds, count = measure(few, (), plain=True)
    print(f"plain path     {given.few / seconds:14,.0f} events/s {count:15,} matches")
    assert measure(few, ())[1] == count
    if given.flink:
        source = RandomEvents(given.few, given.keys, TYPES, SEED)
        flink = measure_flink(given.flink, source, "any", 1)
        assert flink.matches == count, (flink.matches, count)
        rate = given.few / flink.seconds
        print(f"Flink          {rate:14,.0f} events/s {flink.matches:15,} matches")
        print(f"kernel, count, beside Flink {rates['count'] / rate:,.0f} x")


if __name__ == "__main__":
    main()
