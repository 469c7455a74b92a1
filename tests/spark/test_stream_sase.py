# SPDX-License-Identifier: Apache-2.0
"""Queries of SASE+ and OptiSeq's form on streams give what they give on bounded DataFrames."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from pyflinkcep import CEP, OutputTag, Pattern, keyBy
from pyflinkcep.errors import NotSupportedError
from pyflinkcep.sase import parse
from pyflinkcep.testing import matchSase
from tests.spark.streams import FileSource, Finished, failure, run
from tests.spark.support import configured, in_one_task

SCHEMA = "id bigint, ts bigint, kind string, k string, x bigint"
QUERIES = [
    # negation after a loop, keyed by [k]
    ("PATTERN SEQ(A+ a[], ~(C c), B b) WHERE skip_till_next_match(a[], b) { [k] } WITHIN 60 ms", "all"),
    # a closure at the end, which waits for its window; no key
    ("PATTERN A;!D;B;C^2 WHERE a.x < b.x AND levenshtein(b.kind, 'A') = 1 WITHIN 40 ms", "all"),
    # negation before the first event; one match after another
    ("PATTERN SEQ(~(D d), A a, B b) WHERE [k] AND abs(b.x) > abs(a.x) WITHIN 50 ms", "nonOverlapping"),
    # take and begin overlap, so that no pattern has the matches
    ("PATTERN SEQ(A+ a[], A b) WHERE skip_till_next_match(a[], b) { [k] and a[i].x > a[i-1].x } WITHIN 45 ms", "all"),
    # alternatives, any order, and counts, whose last component may wait for its window; negations
    ("PATTERN SEQ(A a, (B b | SEQ(C{1,2} c[], ~(SEQ(D n, A o))))?, AND(D d, ~(A m), B e)) WHERE skip_till_next_match AND [k] AND e.x > a.x WITHIN 60 ms", "all"),
    # a window that counts events of any type, at whose end a negated component is decided
    ("PATTERN SEQ(SEQ(A a, (B b | C c)){1,2}, ~(SEQ(D d, D e))) WHERE skip_till_any_match AND [k] WITHIN 5 EVENTS", "all"),
]  # fmt: skip


def rows() -> list[tuple[Any, ...]]:
    """Events, up to 8 ms out of order."""
    choose = random.Random(4)
    made = [
        (n, 1000 + 3 * n, choose.choice("AABBCD"), choose.choice(["p", "q", None]), choose.randrange(9))
        for n in range(240)
    ]  # fmt: skip
    return sorted(made, key=lambda row: row[1] + choose.randrange(8))


def stream_of(events: DataFrame, number: int, **more: Any) -> Any:
    text, output = QUERIES[number]
    query = CEP.pattern(events, parse(text), type="kind", output=output, keyGroups=8, **more)
    return query.inEventTime("time")


def listed(events: DataFrame, number: int) -> Any:
    """Return each match as a text."""

    def ids(match: dict[str, list[Any]]) -> tuple[str]:
        own = {name: [event.id for event in taken] for name, taken in match.items()}
        return (json.dumps([number, own], sort_keys=True),)

    return stream_of(events, number).select(ids, "found string")


def counted(found: Any) -> Counter[str]:
    return Counter(row.found for row in found)


def in_json(frame: DataFrame) -> DataFrame:
    """Return each row as a text."""
    return frame.selectExpr("to_json(struct(*)) AS found")


def flushed(
    results: list[Any],
    checkpoint: Path,
    shown: Callable[[Any], DataFrame] = lambda rest: rest.toDF(),
) -> Counter[str]:
    """Return what the results of a query still hold; in one job."""
    rests = [shown(result.flush(str(checkpoint), n)) for n, result in enumerate(results)]
    return counted(in_one_task(reduce(DataFrame.unionAll, rests)).collect())


@pytest.fixture
def source(tmp_path: Path) -> FileSource:
    """Return an empty source."""
    return FileSource(tmp_path / "source", SCHEMA)


def test_stream_and_flush_give_what_the_bounded_job_gives(
    spark: SparkSession, source: FileSource, tmp_path: Path
) -> None:
    """Queries that no pattern has, stopped and started again; what is left comes with flush."""
    events, finished, checkpoint = rows(), Finished(), tmp_path / "checkpoint"
    with configured(spark, {"spark.sql.shuffle.partitions": 1}):
        for files in ([events[:60], events[60:120]], [events[120:]]):
            source.add(*files)
            streams = [listed(source.stream(spark, 10), number) for number in range(len(QUERIES))]
            run(reduce(DataFrame.unionAll, [s.toDF() for s in streams]), checkpoint, finished)
        found = counted(finished.rows) + flushed(streams, checkpoint)
    bounded = [listed(source.bounded(spark), number).toDF() for number in range(len(QUERIES))]
    expected = counted(in_one_task(reduce(DataFrame.unionAll, bounded)).collect())
    assert found == expected
    assert {json.loads(text)[0] for text in expected} == set(range(len(QUERIES)))
    assert sum(expected.values()) > 100


def test_columns_late_events_and_another_query(
    spark: SparkSession, source: FileSource, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """RETURN works on streams and in flush; late events are counted; the state has a name."""
    source.add(
        [(1, 100, "A", "p", 1), (2, 110, "A", "p", 2)],
        [(3, 130, "A", "p", 3), (4, 105, "A", "p", 9), (5, 125, "C", "p", 0)],
        [(6, 200, "D", "q", 0), (7, 190, "A", "p", 7)],
    )
    text = QUERIES[3][0] + " RETURN count(a[]) AS n, b.x"
    with configured(spark, {"spark.sql.shuffle.partitions": 1}):
        stream = CEP.pattern(source.stream(spark, 5), parse(text), type="kind", keyGroups=8)
        result = stream.inEventTime("time").toDF()
        finished = run(result, tmp_path / "checkpoint")
        assert sorted(map(tuple, finished.rows)) == [(1, 2), (1, 3), (2, 3)]
        assert sum(finished.metrics("numLateRecordsDropped")) == 1
        assert result.flush(str(tmp_path / "checkpoint")).columns == ["n", "b_x"]
        source.add([(8, 300, "A", "p", 1)])
        other = stream_of(source.stream(spark, 5), 0).toDF()
        assert "holds partial matches of another pattern: query" in failure(
            other, tmp_path / "checkpoint"
        )
        stream.explain()
        assert "watermark: 5 ms behind" in capsys.readouterr().out
        late = OutputTag("late")
        tagged = stream_of(source.stream(spark, 5), 3).sideOutputLateData(late).toDF()
        assert tagged.outputs == ["main", "late"]


def test_compressed_matches_are_counted_and_stored(
    spark: SparkSession, source: FileSource, tmp_path: Path
) -> None:
    """What a stream and its flush count and pack is what a bounded job does."""
    events, checkpoint = rows(), tmp_path / "checkpoint"
    source.add(*(events[n : n + 120] for n in range(0, 240, 120)))
    both = {}
    with configured(spark, {"spark.sql.shuffle.partitions": 1}):
        for kind, frame in (("stream", source.stream(spark, 10)), ("batch", source.bounded(spark))):
            numbers = (0, 1)
            made = [stream_of(frame, number).compressed() for number in numbers]
            results = [
                made[n].aggregate("count(*)", "sum(b.x) AS total", "max(a.x)", "stddev(b.x)")
                for n in numbers
            ]
            results += [made[n].toDF() for n in numbers]
            shown = list(map(in_json, results))
            if kind == "stream":
                got = counted(run(reduce(DataFrame.unionAll, shown), checkpoint).rows)
                both[kind] = got + flushed(results, checkpoint, in_json)
            else:
                both[kind] = counted(in_one_task(reduce(DataFrame.unionAll, shown)).collect())
    assert both["stream"] == both["batch"]
    assert sum(both["batch"].values()) > 90
    with pytest.raises(NotSupportedError, match="never ends"):
        stream_of(source.stream(spark, 10), 0).compressed().count()


def test_patterns_are_counted_and_stored_on_streams(
    spark: SparkSession, source: FileSource, tmp_path: Path
) -> None:
    """As many matches as a bounded job counts: loops, SQL over stages and Python conditions."""
    events, checkpoint = rows(), tmp_path / "checkpoint"
    source.add(*(events[n : n + 120] for n in range(0, 240, 120)))
    pattern = (
        Pattern.begin("a").where("kind = 'A'").oneOrMore().allowCombinations()
        .where("x >= coalesce(max(a.x), 0)")
        .followedByAny("b").where(lambda event: event.kind == "B").within(timedelta(milliseconds=60))
    )  # fmt: skip

    def results(frame: DataFrame) -> list[Any]:
        found = CEP.pattern(keyBy(frame.where("k IS NOT NULL"), "k"), pattern, keyGroups=8)
        made = found.inEventTime("time").compressed()
        return [made.aggregate("count(*)", "sum(a.x) AS total"), made.toDF()]

    with configured(spark, {"spark.sql.shuffle.partitions": 1}):
        streams = results(source.stream(spark, 10))
        shown = list(map(in_json, streams))
        got = counted(run(shown[0].unionAll(shown[1]), checkpoint).rows)
        got += flushed(streams, checkpoint, in_json)
    bounded = list(map(in_json, results(source.bounded(spark))))
    expected = counted(bounded[0].unionAll(bounded[1]).collect())
    assert got == expected
    assert sum(expected.values()) > 40


NULL_KEYS = [
    "PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) { [k] } WITHIN 60 ms",
    "PATTERN SEQ(A+ a[]) WHERE partition_contiguity(a[]) { [k] } WITHIN 60 ms",
    "PATTERN SEQ(A a, B b) WHERE strict_contiguity(a, b) { [k] } WITHIN 60 ms",
    "PATTERN A a;B b WHERE [k] WITHIN 60 ms",
]


def test_a_null_attribute_equals_nothing_and_stops_no_stream(
    spark: SparkSession, source: FileSource, tmp_path: Path
) -> None:
    """Under auto, when a query runs as a pattern, as in other evaluations; keys may be null too."""
    rows = [(n, 1000 + 3 * n, "AAB"[n % 3], [None, "p", "p", None][n % 4], n) for n in range(24)]
    names = SCHEMA.replace(" bigint", "").replace(" string", "").split(", ")
    given = [dict(zip(names, row, strict=True)) for row in rows]
    source.add(rows[:12], rows[12:])

    def shown(number: int) -> Any:
        return lambda m: (json.dumps([number, {v: [e["id"] for e in m[v]] for v in m}]),)

    asked = [(text, "auto", False) for text in NULL_KEYS]
    asked += [(NULL_KEYS[0], "auto", True), (NULL_KEYS[2], "backtracking", True)]
    streams, expected = [], Counter[str]()
    for number, (text, evaluation, is_keyed) in enumerate(asked):
        events = source.stream(spark, 10)
        keyed = keyBy(events, "k") if is_keyed else events
        stream = CEP.pattern(keyed, parse(text), type="kind", evaluation=evaluation, keyGroups=8)
        streams.append(stream.inEventTime("time").select(shown(number), "found string"))
        groups = [[e for e in given if e["k"] == k] for k in ("p", None)] if is_keyed else [given]
        matches = (match for group in groups for match in matchSase(text, group, "ts", "kind"))
        expected.update(shown(number)(match)[0] for match in matches)
    with configured(spark, {"spark.sql.shuffle.partitions": 1}):
        together = reduce(DataFrame.unionAll, [stream.toDF() for stream in streams])
        found = counted(run(together, tmp_path / "checkpoint").rows)
        found += flushed(streams, tmp_path / "checkpoint")
    assert found == expected
    assert {json.loads(text)[0] for text in expected} == {0, 1, 2, 3, 4, 5}
