# SPDX-License-Identifier: Apache-2.0
"""Aggregates over the matches of sliding and tumbling windows, held to lists of all matches."""

from __future__ import annotations

import json
import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pyflinkcep import CEP, Pattern
from pyflinkcep.errors import InvalidArgumentError, NotSupportedError
from pyflinkcep.sase import parse
from pyflinkcep.testing import matchSase
from tests.spark.streams import FileSource, Finished, run
from tests.spark.support import configured, in_one_task

SCHEMA = "id bigint, ts bigint, kind string, k string, x bigint, y double"
QUERIES = [
    # a loop keyed by [k]; windows that overlap, whose slide does not divide them; no WITHIN
    ("PATTERN SEQ(A a, B+ b[]) WHERE [k] AND b[i].x > b[i-1].x", 50, 20),
    # one window after another, no key; the window of the query is shorter
    ("PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match WITHIN 30 ms", 100, None),
    # a condition on the events between; a window that counts events
    ("PATTERN SEQ(A a, ~(C c), B b) WHERE skip_till_any_match AND [k] WITHIN 4 EVENTS", 40, 40),
    ("PATTERN SEQ(A a, A b) WHERE strict_contiguity", 20, 3),
    # joined as lists, and a closure between
    ("PATTERN A a;C^1 c;B b WHERE a.x <= b.x AND [k] WITHIN 60 ms", 70, 30),
    ("PATTERN SEQ(A a, (B b | C c)) WHERE [k]", 25, 10),
]  # fmt: skip


def rows() -> list[tuple[Any, ...]]:
    """Events before and after the epoch, up to 8 ms out of order."""
    choose = random.Random(7)
    made = [
        (n, 3 * n - 200, choose.choice("AABBCD"), choose.choice(["p", "q", None]), choose.randrange(9), choose.choice([0.1, 0.3, 1e17]))
        for n in range(160)
    ]  # fmt: skip
    return sorted(made, key=lambda row: row[1] + choose.randrange(8))


def starts_of(first: int, last: int, length: int, slide: int) -> Iterator[int]:
    """Every start of a window that has two times, by trying all near them."""
    return (s for s in range(first - length - slide, last + 1)
            if s % slide == 0 and s <= first and last < s + length)  # fmt: skip


def expected(number: int) -> Counter[str]:
    """The rows of a query, from the list of its matches."""
    text, length, slide = QUERIES[number]
    names = SCHEMA.replace(",", "").split()[::2]
    events = [dict(zip(names, row, strict=True)) for row in sorted(rows(), key=lambda r: r[1])]
    windows: dict[Any, list[Any]] = defaultdict(list)
    keyed = "[k]" in text
    for match in matchSase(text, events, "ts", type="kind"):
        taken = sorted((e for own in match.values() for e in own), key=lambda e: e["ts"])
        first, last = taken[0]["ts"], taken[-1]["ts"]
        for start in starts_of(first, last, length, slide or length):
            windows[(taken[0]["k"] if keyed else None, start)].append(match)
    found = Counter[str]()
    for (key, start), matches in windows.items():
        own = [e for match in matches for e in match.get("a", [])]
        row = {"n": number, **({"k": key} if keyed else {}), "windowStart": start, "windowEnd": start + length,
               "count": len(matches), "total": sum(e["x"] for e in own), "low": min(e["x"] for e in own),
               "exact": math.fsum(e["y"] for e in own)}  # fmt: skip
        found[json.dumps(row, sort_keys=True)] += 1
    return found


def windows_of(events: DataFrame, number: int) -> Any:
    text, length, slide = QUERIES[number]
    query = CEP.pattern(events, parse(text), type="kind", keyGroups=8).inEventTime("ts")
    return query.compressed().aggregate(
        "sum(a.x) AS total", "min(a.x) AS low", "sum(a.y) AS exact", window=f"{length} milliseconds",
        slide=None if slide is None else f"{slide} milliseconds",
    )  # fmt: skip


def windows_in_text(events: DataFrame, number: int) -> Any:
    """The same as the text of one query, whose GROUP BY keys it."""
    text, length, slide = QUERIES[number]
    return (
        CEP.pattern(events, parse(in_text(text, length, slide)), type="kind", keyGroups=8)
        .inEventTime("ts")
        .toDF()
    )


def in_text(text: str, length: int, slide: int | None) -> str:
    groups = " GROUP BY k" if "[k]" in text else ""
    within = "" if "WITHIN" not in text else text[text.index(" WITHIN") :]
    bare = text.removesuffix(within)
    return (f"{bare} WITHIN {length} ms SLIDE {slide or length} ms{groups} "
            "RETURN sum(a[].x) AS total, min(a.x) AS low, sum(a.y) AS exact")  # fmt: skip


IN_TEXT = [n for n, (text, length, _) in enumerate(QUERIES)
           if "EVENTS" not in text and "WITHIN" not in text]  # fmt: skip
"""The queries without a window of their own, in whose place the text has that of the totals."""


def shown(frame: Any, number: int) -> DataFrame:
    return frame.drop("count_log10").selectExpr(f"to_json(struct({number} AS n, *)) AS found")


def counted(found: Any) -> Counter[str]:
    return Counter(json.dumps(json.loads(row.found), sort_keys=True) for row in found)


@pytest.mark.spark
def test_windows_have_the_matches_whose_events_they_have(spark: SparkSession) -> None:
    """By key and window: the number of matches, sums and least values, as listing all gives; sums are exact."""
    events = spark.createDataFrame(rows(), SCHEMA)
    made = [shown(windows_of(events, n), n) for n in range(len(QUERIES))]
    timed = windows_of(events.withColumn("ts", F.timestamp_millis("ts")), 0)
    for name in ("windowStart", "windowEnd"):
        timed = timed.withColumn(name, F.unix_millis(name))
    made.append(shown(timed, 0))
    made += [shown(windows_in_text(events, n), n) for n in IN_TEXT]
    found = counted(in_one_task(reduce(DataFrame.unionAll, made)).collect())
    want = sum((expected(n) for n in range(len(QUERIES))), Counter[str]())
    assert found == want + expected(0) + sum((expected(n) for n in IN_TEXT), Counter[str]())
    assert {json.loads(text)["n"] for text in want} == set(range(len(QUERIES)))
    assert len(want) > 100


@pytest.mark.spark
def test_windows_of_streams_are_given_once_when_they_are_over(
    spark: SparkSession, tmp_path: Path
) -> None:
    """What a stream, stopped and started again, and its flush give is what a bounded job does."""
    source, checkpoint = FileSource(tmp_path / "source", SCHEMA), tmp_path / "checkpoint"
    events, numbers, ways = rows(), (0, 1), (windows_in_text, windows_of)
    finished = Finished()
    with configured(spark, {"spark.sql.shuffle.partitions": 1}):
        for at in (0, 80):
            source.add(events[at : at + 80])
            streams = [
                given(source.stream(spark, 10), n) for n, given in zip(numbers, ways, strict=True)
            ]
            made = [shown(s.toDF(), n) for s, n in zip(streams, numbers, strict=True)]
            run(reduce(DataFrame.unionAll, made), checkpoint, finished)
        rests = [
            shown(stream.flush(str(checkpoint), at).toDF(), n)
            for at, (stream, n) in enumerate(zip(streams, numbers, strict=True))
        ]
        rest = counted(in_one_task(reduce(DataFrame.unionAll, rests)).collect())
    given = counted(finished.rows)
    assert given + rest == sum((expected(n) for n in numbers), Counter[str]())
    assert sum(given.values()) > 15
    assert rest


@pytest.mark.spark
def test_keys_that_are_equal_to_spark_share_a_window(spark: SparkSession, tmp_path: Path) -> None:
    """NaN equals NaN and 0.0 equals -0.0, in structs too; matches end at two events."""
    source = FileSource(tmp_path / "source", "ts bigint, type string")
    source.add([(n, kind) for n, kind in enumerate("ABB")], [(99, "C")])
    keys = {
        "nan": "double('NaN')",
        "struct": "struct(double('NaN') AS x, if(ts = 1, -0D, 0D) AS y)",
    }
    query = parse("PATTERN SEQ(A a, B b) WITHIN 8 SLIDE 8 GROUP BY k RETURN count(*) AS n")

    def counted(events: DataFrame) -> DataFrame:
        keyed = ((name, events.withColumn("k", F.expr(sql))) for name, sql in keys.items())
        found = (
            (n, CEP.pattern(rows, query, keyGroups=1).inEventTime("time")) for n, rows in keyed
        )
        shown = (rows.toDF().selectExpr(f"'{n}' AS key", "int(n) AS n") for n, rows in found)
        return reduce(DataFrame.unionAll, shown)

    with configured(spark, {"spark.sql.shuffle.partitions": 1}):
        stream = run(counted(source.stream(spark)), tmp_path / "checkpoint").rows
    for rows in (stream, counted(source.bounded(spark)).collect()):
        assert sorted(map(tuple, rows)) == sorted((name, 2) for name in keys)


@pytest.mark.spark
def test_windows_that_are_refused(spark: SparkSession) -> None:
    """By name, with what to write instead: before anything runs."""
    events = spark.createDataFrame(rows(), SCHEMA)

    def compressed(text: str, keyed: DataFrame = events) -> Any:
        return CEP.pattern(keyed, parse(text), type="kind").inEventTime("ts").compressed()

    plain = compressed("PATTERN SEQ(A a, B b)")
    for given, what in (
        ({"slide": "5 minutes"}, "without a window"),
        ({"window": "5 minutes", "slide": "6 minutes"}, "at most the window"),
        ({"window": "1 day", "slide": "1 second"}, "at most 1440 windows at a time, got 86400"),
        ({"window": "a while"}, "window: expected a timedelta or a text"),
    ):
        with pytest.raises(InvalidArgumentError, match=what):
            plain.aggregate("count(*)", **given)
    for text in ("SEQ(A a, ~(B b))", "SEQ(~(B b), A a)", "A a;B^2 b"):
        with pytest.raises(NotSupportedError, match="about which events outside of the window"):
            compressed(f"PATTERN {text} WITHIN 9 ms").aggregate(window="10 milliseconds")
    named = compressed(
        "PATTERN SEQ(A a, B b) WHERE [windowStart]", events.withColumnRenamed("k", "windowStart")
    )
    with pytest.raises(
        InvalidArgumentError, match="two columns of the result are named 'windowStart'"
    ):
        named.aggregate(window="1 hour")
    pattern = Pattern.begin("a").where("kind = 'A'")
    with pytest.raises(NotSupportedError, match="write it as a query"):
        CEP.pattern(events, pattern).inEventTime("ts").compressed().aggregate(window="1 hour")
