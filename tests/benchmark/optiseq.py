# SPDX-License-Identifier: Apache-2.0
"""
OptiSeq's experiments: event lists beside the automaton, the pattern, Flink CEP and Siddhi.

The stream is that of the SASE generator: one event a second, types and prices by the 48-bit
generator of ``java.util.Random``; 20 types, so that two minutes hold six of each. Event lists, the
query's own automaton (nfa), and the same query as a pattern of followedByAny with conditions in SQL
over stages all run on the kernel, start from columns in memory, types as numbers, and give the
positions of every match; the counts must agree. Flink CEP and Siddhi run in a Java virtual machine that is warm, from arrays in memory.

usage: python -m tests.benchmark.optiseq [--events N] [--flink-jars FOLDER] [--siddhi-jars FOLDER]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pyflinkcep.conditions import ExpressionCondition
from pyflinkcep.engines.flink.bridge import make_kernel
from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.engines.queries import compressed_matches, list_frames, match_arrays, query_matches
from pyflinkcep.engines.table import Coded, EventTable
from pyflinkcep.expressions.compiler import compiled
from pyflinkcep.expressions.program import Kind
from pyflinkcep.expressions.tree import MatchExpression
from pyflinkcep.sase import parse

TYPES = "ABCDEFGHIJKLMNOPQRST"
END = (1 << 63) - 1
SEED = 11
PEERS = Path(__file__).parent / "peer"
OPEN = ("lang", "util", "util.concurrent", "time", "io", "net")
QUIET = ("-Dlog4j2.level=OFF", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off")
RISING = "WHERE skip_till_any_match(a, b[], c) { b[i].price > b[i-1].price } WITHIN 1000"
COUNTED = [
    ("no clause, no window", "PATTERN SEQ(A a, B b, C c)", 1_000_000, 100),
    ("a constant clause", "PATTERN SEQ(A a, B b, C c) WHERE b.price > 50", 1_000_000, 100),
    ("window of 1,000 events", "PATTERN SEQ(A a, B b, C c) WITHIN 1000", 300_000, 100),
    ("rising, 100 prices", f"PATTERN SEQ(A a, B+ b[], C c) {RISING}", 100_000, 100),
    ("rising, many prices", f"PATTERN SEQ(A a, B+ b[], C c) {RISING}", 100_000, 10**9),
    ("rising, every event", f"PATTERN SEQ(X a, X+ b[], X c) {RISING}", 20_000, 10**9),
]
"""What is counted: its name, the query, how many events, and of how many prices."""
MULTIPLIER, ADDEND, MASK = 0x5DEECE66D, 0xB, (1 << 48) - 1

CONDITIONS = {
    "PAPER": "a.price > 50 AND a.price > (1+38%)*b.price AND c.price < (1-40%)*d.price",
    "TEN": "b.price > a.price AND c.price > b.price AND d.price < c.price - 23",
    "ONE": "b.price > a.price + 30 AND c.price > b.price + 20 AND d.price < c.price - 10",
    "CHAIN": "b.price > a.price + 10 AND c.price > b.price + 10",
}
EXPERIMENTS = [
    ("1 the paper's", 4, "PAPER", 120),
    ("1 about 10 %", 4, "TEN", 120),
    ("1 about 1 %", 4, "ONE", 120),
    *(("2 length", length, "CHAIN", 120) for length in (3, 4, 5, 6)),
    *(("3 window", 4, "CHAIN", seconds) for seconds in (60, 120, 180, 240, 300)),
]
QUERY_3 = (
    "PATTERN SEQ(S+ a[], S b) WHERE skip_till_next_match(a[], b) {{ {} a[1].volume > 1000 "
    "AND a[i].price > avg(a[..i-1].price) AND b.volume < 80% * a[LEN].volume }} WITHIN 1 hour"
)
NEXT = (
    "PATTERN SEQ(A a, B b, C c, D d) WHERE skip_till_next_match(a, b, c, d) {{ {} }} "
    "WITHIN 2 minutes"
)
SEARCHED = [
    ("Query 3, one key", QUERY_3.format("")),
    ("Query 3, 100 symbols", QUERY_3.format("[symbol] AND")),
    ("Query 3, strict", QUERY_3.replace("skip_till_next_match", "strict_contiguity").format("")),
    ("next match", NEXT.format("")),
    ("next match, rising", NEXT.format("b.price > a.price AND c.price > b.price")),
    ("any match, 1 %", NEXT.replace("_next_", "_any_").format(CONDITIONS["ONE"])),
]
"""What is searched for by backtracking: its name and the query."""
RARE = "B"
"""The type that is a hundred times rarer than the others in the skewed stream."""


def randoms(seed: int) -> Iterator[int]:
    """The 31-bit numbers of java.util.Random."""
    state = (seed ^ MULTIPLIER) & MASK
    while True:
        state = (state * MULTIPLIER + ADDEND) & MASK
        yield state >> 17


def stream(events: int, seed: int = SEED) -> tuple[np.ndarray, np.ndarray]:
    """The types and prices of events a second apart."""
    numbers = np.fromiter(randoms(seed), np.int64, 2 * events)
    return numbers[::2] % len(TYPES), numbers[1::2] % 100 + 1


def skewed(types: np.ndarray) -> np.ndarray:
    """The same types, but 99 of 100 events of one are of a type that no query names."""
    own = np.flatnonzero(types == TYPES.index(RARE))
    types = types.copy()
    types[own[np.arange(len(own)) % 100 > 0]] = len(TYPES) - 1
    return types


def text(length: int, conditions: str, seconds: int) -> str:
    variables = TYPES[:length].lower()
    pattern = ", ".join(f"{v.upper()} {v}" for v in variables)
    return f"PATTERN SEQ({pattern}) WHERE {CONDITIONS[conditions]} WITHIN {seconds} seconds"


def by_event_lists(query: str, types: np.ndarray, prices: np.ndarray) -> tuple[float, int]:
    begin = time.process_time()
    count = sum(frame.size for frame in list_frames(parse(query), table_of(types, prices)))
    return time.process_time() - begin, count


def by_nfa(query: str, types: np.ndarray, prices: np.ndarray) -> tuple[float, int]:
    begin = time.process_time()
    found = match_arrays(parse(query), table_of(types, prices), "nfa", "all")
    if found is None:
        raise SystemExit("there is no compiled kernel here")
    count = sum(map(len, found))
    return time.process_time() - begin, count


def table_of(types: np.ndarray, prices: np.ndarray) -> EventTable:
    coded = Coded(types.astype(np.int32), TYPES)
    times = np.arange(len(types)) * 1000
    return EventTable(times, coded, {"price": prices}, {"price": Kind.BIGINT})


def by_kernel(query: str, types: np.ndarray, prices: np.ndarray) -> tuple[float, int]:
    nfa = NFACompiler.compile(parse(query).asPattern())
    asked = [(a.stage, a.condition) for a in nfa.atoms if isinstance(a.condition, MatchExpression)]
    parts = {sql for _, condition in asked for sql in condition.event_parts()}
    kinds = {sql: Kind.DOUBLE if "." in sql else Kind.BIGINT for sql in parts}
    values = compiled(asked, kinds, False)
    simple = [a for a in nfa.atoms if isinstance(a.condition, ExpressionCondition)]
    kernel = make_kernel(nfa, sum(a.bit for a in simple), expressions=values, sets_timers=False)
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


def jars_in(folder: Path) -> list[Path]:
    """The jars that a peer needs: those of Flink's tables are not among them."""
    return [jar for jar in sorted(folder.glob("*.jar")) if "table" not in jar.name]


def by_peer(jars: list[Path], name: str, query: Sequence[object], events: int) -> tuple[float, int]:
    """Run a query in a Java virtual machine: the seconds it takes there, and its matches."""
    path = ":".join(map(str, jars))
    with tempfile.TemporaryDirectory() as classes:
        sources = [str(PEERS / f"{source}.java") for source in ("Generator", name)]
        compiler = ["javac", "-nowarn", "-cp", path, "-d", classes, *sources]
        subprocess.run(compiler, check=True, stderr=subprocess.DEVNULL)
        opens = (f"--add-opens=java.base/java.{part}=ALL-UNNAMED" for part in OPEN)
        java = ["java", *opens, "-Xmx8g", *QUIET, "-cp", f"{path}:{classes}", name]
        command = [*java, *map(str, query), str(events), str(SEED)]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    answer = json.loads(printed.splitlines()[-1])
    return answer["seconds"], answer["matches"]


def fastest(run: Callable[[], tuple[float, int]], times: int = 3) -> tuple[float, int]:
    """Run something several times: the shortest time, and the answer, which must be one."""
    runs = [run() for _ in range(times)]
    (count,) = {count for _, count in runs}
    return min(seconds for seconds, _ in runs), count


def compare(events: int, peer_events: int, peers: dict[str, list[Path]]) -> None:
    """Print the experiments, even and skewed, each engine beside event lists."""
    types, prices = stream(events, SEED)
    print(f"{'experiment':24} {'matches':>9} {'lists ms':>9}  nfa  pattern", *peers, sep="  ")
    for name, length, conditions, seconds in EXPERIMENTS:
        query = text(length, conditions, seconds)
        row = f"{name} {length} {seconds} s".ljust(24) + beside_lists(query, types, prices)
        few = types[:peer_events], prices[:peer_events]
        own, count = fastest(lambda: by_event_lists(query, *few))
        for peer, jars in peers.items():
            took, other = by_peer(jars, peer, (conditions, length, seconds), peer_events)
            assert count == other, (query, peer, count, other)
            row += f" {took / own:9.0f}x"
        print(row, flush=True)
    rare = skewed(types)
    for conditions in ("PAPER", "TEN", "CHAIN"):
        query = text(4, conditions, 120)
        print(f"skewed {conditions:17}", beside_lists(query, rare, prices))


def beside_lists(query: str, types: np.ndarray, prices: np.ndarray) -> str:
    """The time of event lists, and how many times longer the query and its pattern take."""
    lists, count = fastest(lambda: by_event_lists(query, types, prices))
    row = f" {count:9} {lists * 1e3:9.1f}"
    nfa = fastest(lambda: by_nfa(query, types, prices))
    for took, other in (nfa, by_kernel(query, types, prices)):
        assert count == other, (query, count, other)
        row += f" {took / lists:6.1f}x"
    return row


def more(events: int) -> None:
    """Print what has no automaton beside it: negation, closures, and counting."""
    types, prices = stream(events, SEED)
    chain = CONDITIONS["CHAIN"]
    for query in (
        f"PATTERN SEQ(A a, B b, ~(E e), C c, D d) WHERE {chain} WITHIN 120 seconds",
        f"PATTERN A;B;C^3;D WHERE {chain.replace('c.price', 'd.price')} WITHIN 120 seconds",
    ):
        lists, count = fastest(lambda: by_event_lists(query, types, prices))
        print(f"{query[:40]:42} {count:9} matches {lists * 1e3:7.1f} ms")
    for name, query, size, spread in COUNTED:
        table = counted_table(query, size, spread)
        took, count = fastest(lambda: counted(query, table))
        print(f"{name:42} {len(str(count)):4} digits {size / took:14,.0f} events/s")
    for name, query, size, spread in COUNTED[2:4]:
        table = counted_table(query, size, spread)
        values = table.columns["price"].tolist()
        for function in ("sum", "max"):
            begin = time.process_time()
            compressed_matches(parse(query), table).totals([("b", values, function)])
            took = time.process_time() - begin
            print(f"{function}(b.price), {name:42} {size / took:14,.0f} events/s")

    searches(events)


def searches(events: int) -> None:
    """Print what backtracking does: matches as arrays, one by one, and how much faster these are."""
    print(f"{'backtracking':21} {'output':14} {'matches':>9} {'arrays':>12} {'listed':>12}")
    for name, query in SEARCHED:
        whole, part = searched_table(query, events), searched_table(query, events // 10)
        for output in ("nonOverlapping", "onePerStart"):
            arrays, count = fastest(lambda: searched(query, whole, output, True))
            listed, _ = fastest(lambda: searched(query, whole, output))
            few, found = fastest(lambda: searched(query, part, output))
            os.environ["PYFLINKCEP_KERNEL"] = "0"
            plain, other = searched(query, part, output)
            del os.environ["PYFLINKCEP_KERNEL"]
            assert found == other, (query, output, found, other)
            row = f"{name:21} {output:14} {count:9} {events / arrays:12,.0f}"
            print(f"{row} {events / listed:12,.0f} {plain / few:6.0f}x", flush=True)


def searched_table(query: str, size: int) -> EventTable:
    """Events a second apart: stocks at random, or the stream of the other experiments."""
    chance = np.random.default_rng(SEED)
    times = np.arange(size) * 1000
    if "SEQ(S+" not in query:
        types, prices = stream(size)
        columns, names = {"price": prices}, TYPES
    else:
        types, names = np.zeros(size), "S"
        ranges = {"symbol": (0, 100), "price": (1, 1000), "volume": (500, 1500)}
        columns = {name: chance.integers(*own, size) for name, own in ranges.items()}
    kinds = dict.fromkeys(columns, Kind.BIGINT)
    return EventTable(times, Coded(types.astype(np.int32), names), columns, kinds)


def searched(
    query: str, table: EventTable, output: str, as_arrays: bool = False
) -> tuple[float, int]:
    begin = time.process_time()
    if as_arrays:
        arrays = match_arrays(parse(query), table, "backtracking", output)
        count = sum(map(len, arrays or ()))
    else:
        count = sum(1 for _ in query_matches(parse(query), table, "backtracking", output))
    return time.process_time() - begin, count


def counted_table(query: str, size: int, spread: int) -> EventTable:
    """Events a millisecond apart, of three types or one, with so many prices at random."""
    chance = np.random.default_rng(SEED)
    names = "ABC" if "A a" in query else "X"
    codes = chance.integers(0, len(names), size).astype(np.int32)
    columns = {"price": chance.integers(0, spread, size)}
    return EventTable(np.arange(size), Coded(codes, names), columns, {"price": Kind.BIGINT})


def counted(query: str, table: EventTable) -> tuple[float, int]:
    begin = time.process_time()
    count, _ = compressed_matches(parse(query), table).totals(())
    return time.process_time() - begin, count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--peer-events", type=int, default=100_000)
    parser.add_argument("--flink-jars", type=Path, help="of Flink 2.3.0")
    parser.add_argument("--siddhi-jars", type=Path, help="target/lib in the wheel PySiddhi 5.1.0")
    given = parser.parse_args()
    folders = {"FlinkPeer": given.flink_jars, "SiddhiPeer": given.siddhi_jars}
    peers = {name: jars_in(folder) for name, folder in folders.items() if folder is not None}
    compare(given.events, min(given.events, given.peer_events), peers)
    more(given.events)


if __name__ == "__main__":
    main()
