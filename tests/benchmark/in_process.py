# SPDX-License-Identifier: Apache-2.0
"""
Patterns on a file, beside the engines that run in a process too: ClickHouse, DuckDB and polars.

From the path to the answer, in turns on the same machine. The others are asked as their manuals
would: window functions, ASOF joins, ``sequenceCount`` and ``windowFunnel``. Windows grow with the
number of keys, so that a key has as many events in one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.parquet as pq

from pyflinkcep import Pattern, funnel, match
from tests.benchmark.events import RandomEvents
from tests.benchmark.measurement import Measurement

_ROWS = 1 << 20  # in a row group
_TIMESTAMP, _KEY = "ts", "key"
_PER_WINDOW = 1_000  # keys for which windows are those of the workloads
_SLOW_S = 20.0  # from when on a run is not repeated

Answer = tuple[int, int]
"""Matches, and the sum of their times in ms; of a funnel the keys at its end, and at all steps."""
Query = Callable[[str, "Line"], Answer]


@attrs.frozen
class Line:
    """A question."""

    name: str
    pattern: Pattern
    window_s: int

    @property
    def window_us(self) -> int:
        """The window in microseconds."""
        return self.window_s * 1_000_000


def lines(keys: int) -> list[Line]:
    """Return the questions; only the first three can be put to all."""
    factor = max(keys // _PER_WINDOW, 1)

    def within(name: str, pattern: Pattern, seconds: int) -> Line:
        window = seconds * factor
        return Line(name, pattern.within(timedelta(seconds=window)), window)

    a = Pattern.begin("a").where("type = 0")
    relaxed = a.followedBy("b").where("type = 1").followedBy("c").where("type = 2")
    any_ = a.followedByAny("b").where("type = 1").followedByAny("c").where("type = 2")
    loop = a.followedBy("b").where("type = 1").oneOrMore().followedBy("c").where("type = 2")
    up = Pattern.begin("a").where("volume > 1900").followedBy("up")
    stock = up.where("price > avg(match.price)").oneOrMore()
    return [
        within("strict", a.next("b").where("type = 1").next("c").where("type = 2"), 1000),
        within("relaxed", relaxed, 60),
        within("funnel", relaxed, 60),
        within("any", any_, 20),
        within("kleene", loop, 20),
        within("stock", stock.followedBy("b").where("volume < 0.8 * last(up.volume)"), 5),
    ]


# --- the engines


def _ours(path: str, line: Line) -> Answer:
    if line.name == "funnel":
        counted = funnel(line.pattern, path, _TIMESTAMP, _KEY, quantiles=())
        return _of_keys(*(row["keys"] for row in counted.rows))
    found = match(line.pattern, path, _TIMESTAMP, _KEY)
    matches = found._lookup.found  # its times are no column that the user asked for
    return len(found), int(matches.times.sum())


def _of_keys(*keys: int) -> Answer:
    return keys[-1], sum(keys)


def clickhouse(cores: int) -> dict[str, Query]:
    """Return what to ask of ClickHouse."""
    chdb = import_module("chdb")
    at = "toUInt64(toUnixTimestamp64Micro(ts))"

    def rows(sql: str, path: str) -> list[int]:
        text = sql.format(path=path, at=at)
        found = chdb.query(f"{text} SETTINGS max_threads = {cores}", "CSV").data()
        return [int(number) for number in found.strip().split(",")]

    def strict(path: str, line: Line) -> Answer:
        counted = (
            "SELECT sum(n) FROM (SELECT key, sequenceCount('(?1)(?2)(?3)')"
            "({at}, type = 0, type = 1, type = 2, type > 2) AS n FROM file('{path}') GROUP BY key)"
        )
        return rows(counted, path)[0], -1  # it only counts

    def relaxed(path: str, line: Line) -> Answer:
        a, b, c = (f"(SELECT key, ts FROM file('{{path}}') WHERE type = {n})" for n in range(3))
        found = rows(
            "SELECT count(), sum(intDiv(toUnixTimestamp64Micro(t2), 1000)) FROM "
            f"(SELECT a.key AS key, a.ts AS t0, b.ts AS t1 FROM {a} AS a ASOF JOIN {b} AS b "
            "ON a.key = b.key AND a.ts < b.ts) AS x ASOF JOIN "
            f"(SELECT key, ts AS t2 FROM {c}) AS y ON x.key = y.key AND x.t1 < y.t2 "
            f"WHERE t2 < t0 + toIntervalMicrosecond({line.window_us})",
            path,
        )
        return found[0], found[1]

    def funnelled(path: str, line: Line) -> Answer:
        counted = rows(
            "SELECT countIf(n >= 1), countIf(n >= 2), countIf(n >= 3) FROM "
            f"(SELECT key, windowFunnel({line.window_us - 1})({{at}}, type = 0, type = 1, type = 2)"
            " AS n FROM file('{path}') GROUP BY key)",
            path,
        )
        return _of_keys(*counted)

    return {"strict": strict, "relaxed": relaxed, "funnel": funnelled}


def duckdb(cores: int) -> dict[str, Query]:
    """Return what to ask of DuckDB."""
    connection = import_module("duckdb").connect(config={"threads": cores})
    connection.execute("SET preserve_insertion_order = false")

    def row(sql: str) -> list[int]:
        return [int(number or 0) for number in connection.execute(sql).fetchone()]

    def strict(path: str, line: Line) -> Answer:
        found = row(
            "SELECT count(*), sum(epoch_ms(t3)) FROM (SELECT type, ts, lead(type) OVER w AS k2, "
            f"lead(type, 2) OVER w AS k3, lead(ts, 2) OVER w AS t3 FROM '{path}' "
            "WINDOW w AS (PARTITION BY key ORDER BY ts)) WHERE type = 0 AND k2 = 1 AND k3 = 2 "
            f"AND t3 < ts + INTERVAL '{line.window_us} microseconds'"
        )
        return found[0], found[1]

    def joined(path: str, kind: str) -> str:
        own = ", ".join(
            f"{name} AS (SELECT key, ts FROM '{path}' WHERE type = {number})"
            for number, name in enumerate("abc")
        )
        return (
            f"WITH {own} SELECT {{what}} FROM a ASOF {kind} b ON a.key = b.key AND a.ts < b.ts "
            f"ASOF {kind} c ON b.key = c.key AND b.ts < c.ts"
        )

    def ends(line: Line) -> str:
        return f"a.ts + INTERVAL '{line.window_us} microseconds'"

    def relaxed(path: str, line: Line) -> Answer:
        sql = joined(path, "JOIN").format(what="count(*), sum(epoch_ms(c.ts))")
        found = row(f"{sql} WHERE c.ts < {ends(line)}")
        return found[0], found[1]

    def funnelled(path: str, line: Line) -> Answer:
        counts = ", ".join(
            f"count(DISTINCT CASE WHEN {step}.ts < {ends(line)} THEN a.key END)" for step in "abc"
        )
        return _of_keys(*row(joined(path, "LEFT JOIN").format(what=counts)))

    return {"strict": strict, "relaxed": relaxed, "funnel": funnelled}


def polars(cores: int) -> dict[str, Query]:
    """Return what to ask of polars."""
    os.environ["POLARS_MAX_THREADS"] = str(cores)  # read when it is loaded
    pl: Any = import_module("polars")

    def strict(path: str, line: Line) -> Answer:
        events = pl.scan_parquet(path).select("key", "type", "ts").sort("key", "ts")
        moved = events.with_columns(
            k2=pl.col("type").shift(-1),
            k3=pl.col("type").shift(-2),
            key3=pl.col("key").shift(-2),
            t3=pl.col("ts").shift(-2),
        )
        is_match = (
            (pl.col("type") == 0)
            & (pl.col("k2") == 1)
            & (pl.col("k3") == 2)
            & (pl.col("key") == pl.col("key3"))
            & (pl.col("t3") - pl.col("ts") < pl.duration(microseconds=line.window_us))
        )
        found = moved.filter(is_match).select(pl.len(), pl.col("t3").dt.epoch("ms").sum())
        count, times = found.collect().row(0)
        return count, times

    def joined(path: str) -> Any:
        events = pl.scan_parquet(path).select("key", "type", "ts").filter(pl.col("type") < 3)
        read = events.collect()
        a, b, c = (
            read.filter(pl.col("type") == n).select("key", "ts", pl.col("ts").alias(f"t{n}"))
            for n in range(3)
        )
        how = {"on": "ts", "by": "key", "strategy": "forward", "allow_exact_matches": False}
        later = b.join_asof(c, check_sortedness=False, **how)
        return a.join_asof(later, check_sortedness=False, **how)

    def ends(line: Line) -> Any:
        return pl.col("t0") + pl.duration(microseconds=line.window_us)

    def relaxed(path: str, line: Line) -> Answer:
        found = joined(path).filter(pl.col("t2") < ends(line))
        count, times = found.select(pl.len(), pl.col("t2").dt.epoch("ms").sum()).row(0)
        return count, times

    def funnelled(path: str, line: Line) -> Answer:
        reached = (
            pl.col("key").filter(pl.col(f"t{n}") < ends(line)).n_unique().alias(f"{n}")
            for n in range(3)
        )
        return _of_keys(*joined(path).select(*reached).row(0))

    return {"strict": strict, "relaxed": relaxed, "funnel": funnelled}


PEERS: dict[str, Callable[[int], dict[str, Query]]] = {
    "clickhouse": clickhouse,
    "duckdb": duckdb,
    "polars": polars,
}


# --- a run


def measured(
    source: RandomEvents, cores: int, repeat: int, cache: Path, peers: list[str]
) -> Iterator[Measurement]:
    """Put the questions to all, in turns; give the fastest run of each."""
    pa.set_cpu_count(cores)
    path = str(write_file(source, cache))
    others = {name: PEERS[name](cores) for name in peers}
    for line in lines(source.keys):
        queries = {"match": _ours}
        queries |= {name: own[line.name] for name, own in others.items() if line.name in own}
        seconds: dict[str, list[float]] = {name: [] for name in queries}
        answers: dict[str, Answer] = {}
        for _ in range(repeat):
            for name, query in queries.items():
                if seconds[name] and min(seconds[name]) > _SLOW_S:
                    continue
                begun = time.perf_counter()
                answers[name] = query(path, line)
                seconds[name].append(time.perf_counter() - begun)
        for name, (matches, checksum) in answers.items():
            if checksum < 0:
                checksum = answers["match"][1]
            yield Measurement(
                name,
                line.name,
                "",
                source.name,
                source.events,
                source.keys,
                min(seconds[name]),
                matches,
                checksum,
            )


def write_file(source: RandomEvents, cache: Path) -> Path:
    """Write events as one file of Parquet, unless a run before has."""
    path = cache / f"{source.name}.parquet"
    if path.exists():
        return path
    cache.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    with pq.ParquetWriter(unfinished, source.part(0, 1).schema) as writer:
        for start in range(0, source.events, _ROWS):
            writer.write_table(source.part(start, min(start + _ROWS, source.events)))
    unfinished.rename(path)
    return path
