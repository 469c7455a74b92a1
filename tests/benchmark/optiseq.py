# SPDX-License-Identifier: Apache-2.0
"""
OptiSeq's experiments on our own engines: event lists beside the automaton on the kernel.

The stream is that of the SASE generator: one event a second, types and prices by the 48-bit
generator of ``java.util.Random``; 20 types, so that two minutes hold six of each. The automaton
runs the same query as a pattern of followedByAny with conditions in SQL over stages. Both start
from columns in memory and give the positions of every match; the counts must agree.

usage: python -m tests.benchmark.optiseq [--events N]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from pyflinkcep.conditions import ExpressionCondition
from pyflinkcep.evaluation import list_frames
from pyflinkcep.expressions.compiler import compiled
from pyflinkcep.expressions.program import Kind
from pyflinkcep.expressions.tree import MatchExpression
from pyflinkcep.kernel import make_kernel
from pyflinkcep.nfa import NFACompiler
from pyflinkcep.sase import parse
from pyflinkcep.sase.table import Coded, EventTable

TYPES = "ABCDEFGHIJKLMNOPQRST"
END = (1 << 63) - 1
MULTIPLIER, ADDEND, MASK = 0x5DEECE66D, 0xB, (1 << 48) - 1

PAPER = "a.price > 50 AND a.price > (1+38%)*b.price AND c.price < (1-40%)*d.price"
TEN = "b.price > a.price AND c.price > b.price AND d.price < c.price - 23"
ONE = "b.price > a.price + 30 AND c.price > b.price + 20 AND d.price < c.price - 10"
CHAIN = "b.price > a.price + 10 AND c.price > b.price + 10"
EXPERIMENTS = [
    ("1 the paper's", 4, PAPER, 120),
    ("1 about 10 %", 4, TEN, 120),
    ("1 about 1 %", 4, ONE, 120),
    *(("2 length", length, CHAIN, 120) for length in (3, 4, 5, 6)),
    *(("3 window", 4, CHAIN, seconds) for seconds in (60, 120, 180, 240, 300)),
]


def randoms(seed: int) -> Iterator[int]:
    """The 31-bit numbers of java.util.Random."""
    state = (seed ^ MULTIPLIER) & MASK
    while True:
        state = (state * MULTIPLIER + ADDEND) & MASK
        yield state >> 17


def stream(events: int, seed: int = 11) -> tuple[np.ndarray, np.ndarray]:
    """The types and prices of events a second apart."""
    numbers = np.fromiter(randoms(seed), np.int64, 2 * events)
    return numbers[::2] % len(TYPES), numbers[1::2] % 100 + 1


def text(length: int, where: str, seconds: int) -> str:
    variables = TYPES[:length].lower()
    pattern = ", ".join(f"{v.upper()} {v}" for v in variables)
    return f"PATTERN SEQ({pattern}) WHERE {where} WITHIN {seconds} seconds"


def by_event_lists(query: str, types: np.ndarray, prices: np.ndarray) -> tuple[float, int]:
    times = np.arange(len(types)) * 1000
    codes = types.astype(np.int32)
    begin = time.process_time()
    table = EventTable(times, Coded(codes, TYPES), {"price": prices}, {"price": Kind.BIGINT})
    count = sum(frame.size for frame in list_frames(parse(query), table))
    return time.process_time() - begin, count


def by_kernel(query: str, types: np.ndarray, prices: np.ndarray) -> tuple[float, int]:
    nfa = NFACompiler.compile(parse(query).asPattern())
    asked = [(a.stage, a.condition) for a in nfa.atoms if isinstance(a.condition, MatchExpression)]
    parts = {sql for _, condition in asked for sql in condition.event_parts()}
    kinds = {sql: Kind.DOUBLE if "." in sql else Kind.BIGINT for sql in parts}
    values = compiled(asked, kinds, False)
    simple = [a for a in nfa.atoms if isinstance(a.condition, ExpressionCondition)]
    kernel = make_kernel(nfa, sum(a.bit for a in simple), values=values, sets_timers=False)
    if kernel is None:
        raise SystemExit("there is no compiled kernel here")
    times = np.arange(len(types), dtype=np.int64) * 1000
    bounds, needed = np.array([0, len(types)]), np.ones(1, bool)
    begin = time.process_time()
    bits = np.zeros(len(types), np.int64)
    for atom in simple:  # what Spark or another engine would have asked beforehand
        bits |= np.where(_holding(atom.condition.text, types, prices), atom.bit, 0)
    fields = tuple(
        (_value(field.sql, prices), None, field.kind is Kind.DOUBLE) for field in values.fields
    )
    kernel.set_events([None].__getitem__, 0, len(types), fields)
    key: Any = None
    at = row = count = 0
    while at < 1:
        at, row, key = kernel.run(key, times, None, 0, bits, bounds, needed, at, row, 4096)
        count += len(kernel.take_found()[0])
    kernel.advance(key, END)
    count += len(kernel.take_found()[0])
    return time.process_time() - begin, count


def _holding(sql: str, types: np.ndarray, prices: np.ndarray) -> np.ndarray:
    """The conditions on one event that these queries have: the type, perhaps a least price."""
    parts = sql.split(" AND ")
    held = types == TYPES.index(parts[0].split("'")[1])
    for part in parts[1:]:
        held &= prices > int(part.strip("()").rsplit(" ", 1)[1])
    return held


def _value(sql: str, prices: np.ndarray) -> np.ndarray:
    """What a part about one event gives: these queries compute with the price and numbers."""
    value: np.ndarray = eval(sql.replace("`price`", "price").replace("D", ""), {"price": prices})
    return np.ascontiguousarray(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    events = parser.parse_args().events
    types, prices = stream(events)
    print(f"{'experiment':16} {'matches':>9} {'lists':>8} {'kernel':>8} {'ratio':>6}")
    for name, length, where, seconds in EXPERIMENTS:
        query = text(length, where, seconds)
        lists, count = by_event_lists(query, types, prices)
        automaton, other = by_kernel(query, types, prices)
        assert count == other, (query, count, other)
        label = f"{name} {length if '2' in name else seconds if '3' in name else ''}"
        print(f"{label:16} {count:9} {lists:7.2f}s {automaton:7.2f}s {automaton / lists:6.1f}")


if __name__ == "__main__":
    main()
