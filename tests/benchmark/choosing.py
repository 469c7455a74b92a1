# SPDX-License-Identifier: Apache-2.0
"""
The choice among evaluations of a query: each of them beside what `auto` chooses by the data.

The experiments of the OptiSeq paper as in :mod:`tests.benchmark.optiseq`, and streams for which the
form of the query alone would choose wrong. Process CPU time, the best of several runs; the numbers
of matches must agree.

usage: python -m tests.benchmark.choosing [--events N] [--runs N] [--only TEXT]
"""

from __future__ import annotations

import argparse
import signal
import time
from collections.abc import Callable
from functools import partial
from types import FrameType

import attrs
import numpy as np

from pyflinkcep.engines.choice import chosen
from pyflinkcep.engines.queries import list_frames, match_arrays, query_matches
from pyflinkcep.engines.table import Coded, EventTable, Numbers
from pyflinkcep.errors import NotSupportedError
from pyflinkcep.expressions.program import Kind
from pyflinkcep.sase import SaseQuery, parse
from tests.benchmark.optiseq import EXPERIMENTS, skewed, stream, table_of, text

EVALUATIONS = ("nfa", "backtracking", "eventLists", "auto")
ENOUGH_SECONDS = 0.1
MOST_SECONDS = 20
"""An evaluation that takes longer is given up."""


@attrs.frozen(eq=False)
class Experiment:
    """A query on a stream; `weights` are those of the types, `keys` how many keys there are."""

    name: str
    query: str
    weights: dict[str, float]
    events: int = 200_000
    values: int = 1000
    keys: int = 0
    output: str = "all"

    def table(self, share: float) -> EventTable:
        """Events a second apart."""
        size = max(20, int(self.events * share)) if self.events > 1000 else self.events
        chance = np.random.default_rng(7)
        names = list(self.weights)
        weights = np.array(list(self.weights.values()))
        codes = chance.choice(len(names), size, p=weights / weights.sum()).astype(np.int32)
        columns = {"k": chance.integers(0, self.values, size), "x": chance.integers(0, 1000, size)}
        keys = Numbers(np.sort(chance.integers(0, self.keys, size))) if self.keys else None
        times = np.arange(size) * 1000
        kinds = dict.fromkeys(columns, Kind.BIGINT)
        return EventTable(Numbers(times), Coded(codes, names), columns, kinds, keys)


EVEN = dict.fromkeys("ABCDEFGHIJ", 1.0)
JOIN = "a.k = b.k AND b.k = c.k"
ABC = "PATTERN SEQ(A a, B b, C c) WHERE"
LOOP = "PATTERN SEQ(A a, B+ b[], C c) WHERE"
RISING = "b[i].x > b[i-1].x + 100"
NEW = [
    Experiment("deep window, many values", f"{ABC} {JOIN} WITHIN 60000 s", EVEN, values=20_000),
    Experiment("deep window, few values", f"{ABC} {JOIN} WITHIN 300 s", EVEN, 50_000, values=5),
    Experiment("deep window, inequality", "PATTERN SEQ(A a, B b) WHERE b.x > a.x + 990 WITHIN 3000 s", EVEN, 50_000),
    Experiment("rare last", f"{ABC} b.x > a.x AND c.x > b.x WITHIN 500 s", {**EVEN, "C": 0.005}),
    Experiment("rare first", f"{ABC} b.x > a.x AND c.x > b.x WITHIN 500 s", {**EVEN, "A": 0.005}),
    Experiment("rare by a clause", f"{ABC} c.x > 998 AND b.x > a.x WITHIN 300 s", EVEN),
    Experiment("skewed", f"{ABC} b.x > 990 AND a.x > c.x WITHIN 60 s", {"A": 1, "B": 50, "C": 2}),
    Experiment("loop, rare end", f"{LOOP} {RISING} WITHIN 100 s", {**EVEN, "C": 0.002}),
    Experiment("next loop, rare end", f"{LOOP} skip_till_next_match(a, b[], c) {{ {RISING} }} WITHIN 500 s", {**EVEN, "C": 0.002}),
    Experiment("unselective clause", f"{ABC} b.x + c.x >= a.x - 999 WITHIN 60 s", EVEN),
    Experiment("strict, long window", f"{ABC} strict_contiguity(a, b, c) {{ b.x > a.x }} WITHIN 50000 s", {"A": 1, "B": 1, "C": 1}),
    Experiment("next, long window", f"{ABC} skip_till_next_match(a, b, c) {{ {JOIN} }} WITHIN 20000 s", EVEN),
    Experiment("no window", f"{ABC} {JOIN}", EVEN, 50_000, values=5_000),
    Experiment("many keys", f"{ABC} b.x > a.x WITHIN 20 s", EVEN, keys=20_000),
    Experiment("few events", f"{ABC} b.x > a.x WITHIN 20 s", EVEN, 100),
    Experiment("onePerStart, chain", f"{ABC} b.x > a.x + 900 AND c.x > b.x WITHIN 600 s", EVEN, output="onePerStart"),
]  # fmt: skip


def experiments(events: int) -> list[tuple[str, str, EventTable, str]]:
    """The name, the query, the events, and which matches."""
    types, prices = stream(events)
    rare = skewed(types)
    found = []
    for name, length, conditions, seconds in EXPERIMENTS:
        query = text(length, conditions, seconds)
        found.append((f"{name} {length} {seconds} s", query, table_of(types, prices), "all"))
    for conditions in ("PAPER", "TEN", "CHAIN"):
        query = text(4, conditions, 120)
        found.append((f"rarest 1 : 100, {conditions}", query, table_of(rare, prices), "all"))
    share = events / 200_000
    return found + [(e.name, e.query, e.table(share), e.output) for e in NEW]


def counted(query: SaseQuery, table: EventTable, evaluation: str, output: str) -> int:
    """Return the number of matches, as arrays."""
    arrays = match_arrays(query, table, evaluation, output)
    if arrays is not None:
        return sum(map(len, arrays))
    if any(part.repeats for part in query.positive):
        return sum(1 for _ in query_matches(query, table, evaluation, output))
    return sum(frame.size for frame in list_frames(query, table, output))


class TooLongError(Exception):
    """An evaluation was given up."""


def _give_up(number: int, frame: FrameType | None) -> None:
    raise TooLongError


def once(run: Callable[[], int]) -> int | None:
    """Return the answer; None if it takes too long."""
    signal.alarm(MOST_SECONDS)
    try:
        return run()
    except TooLongError:
        return None
    finally:
        signal.alarm(0)


def rounds(run: Callable[[], int]) -> float:
    """Return the CPU time of a run, over as many as a coarse clock needs."""
    begin, number = time.process_time(), 0
    while (took := time.process_time() - begin) < ENOUGH_SECONDS:
        run()
        number += 1
    return took / number


def compare(events: int, runs: int, only: str) -> None:
    """Print the times of all evaluations."""
    heads = (f"{name:>13}" for name in EVALUATIONS)
    print(f"| {'experiment':26} | {'matches':>9} |", " | ".join(heads), "| auto / best |  |")
    for name, query, table, output in experiments(events):
        if only in name:
            row(name, parse(query), table, output, runs)


def row(name: str, query: SaseQuery, table: EventTable, output: str, runs: int) -> None:
    """Print the times of one query; the table is the same for all."""
    times: dict[str, float] = {}
    counts: dict[str, int] = {}
    runs_of: dict[str, Callable[[], int]] = {}
    for evaluation in EVALUATIONS:
        try:
            chosen(query, evaluation, output)
        except NotSupportedError:
            continue
        runs_of[evaluation] = partial(counted, query, table, evaluation, output)
        count = once(runs_of[evaluation])
        if count is not None:
            counts[evaluation] = count
    for _ in range(runs):  # in turns, since others use the machine
        for evaluation in counts:
            took = rounds(runs_of[evaluation])
            times[evaluation] = min(took, times.get(evaluation, took))
    assert len(set(counts.values())) == 1, (name, counts)
    shown = [f"{times[e] * 1e3:13.2f}" if e in times else f"{'':13}" for e in EVALUATIONS]
    least = min(took for evaluation, took in times.items() if evaluation != "auto")
    ratio = times["auto"] / least
    print(
        f"| {name:26} | {counts['auto']:9} |", " | ".join(shown), f"| {ratio:11.2f} |", flush=True
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="", help="the experiments whose name contains this")
    given = parser.parse_args()
    signal.signal(signal.SIGALRM, _give_up)
    compare(given.events, given.runs, given.only)


if __name__ == "__main__":
    main()
