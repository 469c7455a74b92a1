# SPDX-License-Identifier: Apache-2.0
"""Queries of SASE+ and OptiSeq's form on bounded DataFrames."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from statistics import pstdev
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pyflinkcep import CEP, AfterMatchSkipStrategy, Pattern, keyBy
from pyflinkcep.errors import InputError, InvalidArgumentError, NotSupportedError
from pyflinkcep.sase import analysis, parse
from pyflinkcep.sase.model import Query
from pyflinkcep.sase.placement import Placement, placed
from pyflinkcep.spark.plan import job as jobs
from pyflinkcep.testing import matchSase
from tests.conformance.test_sase import cases
from tests.spark.support import QUICK_FOR_MANY_PLANS, configured

TRADES = [(100, 1010), (120, 990), (120, 1005), (121, 999), (120, 999), (125, 750), (120, 950), (120, 700)]  # fmt: skip
QUERY_3 = """
    PATTERN SEQ(Stock+ a[ ], Stock b)
    WHERE skip_till_next_match(a[ ], b) {
         [symbol]
     and a[1].volume > 1000
     and a[i].price > avg(a[..i-1].price)
     and b.volume < 80%*a[a.LEN].volume }
    WITHIN 1 hour
"""
SCHEMA = "id bigint, ts bigint, kind string, symbol string, price bigint, volume bigint"


def trades(spark: SparkSession) -> DataFrame:
    """The stream of the paper's example, for two symbols; events of one of them match."""
    rows = []
    for n, (price, volume) in enumerate(TRADES, 1):
        rows.append((n, n * 60_000, "Stock", "GOOG", price, volume))
        rows.append((n + 100, n * 60_000, "Stock", "AAPL", 1, 5))
        rows.append((n + 200, n * 60_000, "Stock", None, price, volume))
    return spark.createDataFrame(rows, SCHEMA)


def found(rows: Iterable[Any], variables: Iterable[str]) -> Counter[str]:
    names = list(variables)
    return Counter(json.dumps({v: [e["id"] for e in row[v]] for v in names}) for row in rows)


@pytest.mark.spark
@pytest.mark.parametrize("evaluation", ["auto", "nfa", "backtracking"])
def test_the_papers_query_3(spark: SparkSession, evaluation: str) -> None:
    """R1, R2 and R3 are found, keyed by [symbol]; events whose symbol is null match nothing."""
    stream = CEP.pattern(trades(spark), parse(QUERY_3), type="kind", evaluation=evaluation)
    rows = stream.inEventTime("ts").toDF()
    assert rows.columns == ["symbol", "matchTimestamp", "a", "b"]
    got = {tuple(e.id for e in (*row.a, *row.b)) for row in rows.collect()}
    assert got == {(1, 2, 3, 4, 5, 6), (3, 4, 6), (1, 2, 3, 4, 5, 6, 7, 8)}


@pytest.mark.spark
@pytest.mark.parametrize("name", ["shout", "symbol"])
def test_a_computed_key_beside_an_attribute(spark: SparkSession, name: str) -> None:
    """A key may be a Column, whatever its name; events of a match still share [symbol] too."""
    frame = trades(spark).where("id < 200")
    keys = keyBy(frame, F.upper("symbol").alias(name))
    query = parse("PATTERN SEQ(Stock a, Stock b) WHERE [symbol] WITHIN 1 min")
    if name == "symbol":
        with pytest.raises(InputError, match="names a column twice"):
            CEP.pattern(keys, query, type="kind").inEventTime("ts").toDF()
        return
    rows = CEP.pattern(keys, query, type="kind").inEventTime("ts").toDF()

    assert rows.columns[:2] == [name, "symbol"]
    assert Counter(row.symbol for row in rows.collect()) == {"GOOG": 7, "AAPL": 7}


@pytest.mark.spark
def test_return_having_and_functions(spark: SparkSession) -> None:
    """RETURN gives columns, HAVING filters, and functions get a dict of Rows."""
    text = (
        QUERY_3
        + "HAVING count(a[]) > 2 RETURN a[1].symbol AS symbol, count(a[]) AS n, avg(a[].price), b.price"
    )
    rows = CEP.pattern(trades(spark), parse(text), type="kind").inEventTime("ts").toDF()
    assert sorted(map(tuple, rows.collect())) == [
        ("GOOG", 5, 581 / 5, 125),
        ("GOOG", 7, 826 / 7, 120),
    ]
    assert rows.columns == ["symbol", "n", "_3", "b_price"]
    stream = CEP.pattern(trades(spark), parse(QUERY_3), type="kind").inEventTime("ts")
    selected = stream.select(lambda m: (len(m["a"]), m["b"][0].price), "rises int, price bigint")
    assert sorted(map(tuple, selected.collect())) == [(2, 125), (5, 125), (7, 120)]


@pytest.mark.spark
@pytest.mark.parametrize("slices", [1, 8])
def test_recorded_answers_do_not_depend_on_slices(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, slices: int
) -> None:
    """Without a key, time is cut into slices of a window or more; every match is found once."""
    monkeypatch.setattr(jobs, "_SLICE_WINDOWS", slices)
    chosen = [c for c in cases() if "matches" in c["expect"] and "WITHIN" in c["query"]]
    with configured(spark, QUICK_FOR_MANY_PLANS):
        for case in [c for c in chosen if "[" not in c["query"] and "x" in c["schema"]][slices::18]:
            check(spark, case)


@pytest.mark.spark
def test_recorded_answers(spark: SparkSession) -> None:
    """Keyed by [attr], whole, and by backtracking, the recorded matches are found."""
    chosen = [c for c in cases() if "matches" in c["expect"] and "x" in c["schema"]]
    with configured(spark, QUICK_FOR_MANY_PLANS):
        for case in chosen[::50]:
            check(spark, case)


def check(spark: SparkSession, case: dict[str, Any]) -> None:
    query = parse(case["query"])
    schema = ", ".join(f"{name} {kind}" for name, kind in case["schema"].items())
    frame = spark.createDataFrame([tuple(row) for row in case["events"]], schema)
    stream = CEP.pattern(frame, query, type="kind", output=case["output"]).inEventTime("ts")
    names = [part.variable for part in query.positive]
    want = Counter(json.dumps({v: m[v] for v in names}) for m in case["expect"]["matches"])
    assert found(stream.toDF().collect(), names) == want, case["id"]


@pytest.mark.spark
def test_compressed_matches(spark: SparkSession) -> None:
    """2⁶⁰ - 1 matches are counted, aggregated by the event that ends them, and a few unpacked."""
    rows = [(n, n, t, n % 7) for n, t in enumerate("A" + "B" * 60 + "C")]
    frame = spark.createDataFrame(rows, "id bigint, ts bigint, kind string, x bigint")
    query = parse("PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_any_match")
    compressed = CEP.pattern(frame, query, type="kind").inEventTime("ts").compressed()
    assert compressed.count() == 2**60 - 1
    texts = "sum(b.x) AS total", "count(b)", "max(b.x)", "stddev(b.x)"
    row = compressed.aggregate(*texts).collect()[0]
    total = sum(n % 7 for n in range(1, 61))
    assert (row.matchTimestamp, int(row["count"])) == (61, 2**60 - 1)
    assert int(row.total) == total * 2**59
    assert int(row["count(b)"]) == 60 * 2**59
    assert row["max(b.x)"] == 6
    assert row["stddev(b.x)"] == pytest.approx(pstdev(n % 7 for n in range(1, 61)), rel=1e-15)
    assert len(found(compressed.unpack(5).collect(), "abc")) == 5
    for limit in (-1, 1 << 31):
        with pytest.raises(InvalidArgumentError, match="unpack"):
            compressed.unpack(limit)


@pytest.mark.spark
def test_counts_beyond_38_digits(spark: SparkSession) -> None:
    """Beyond decimal(38,0) a row has null, its logarithm tells how many; count() is exact."""
    rows = [(n, n, t) for n, t in enumerate("A" + "B" * 200 + "C")]
    frame = spark.createDataFrame(rows, "id bigint, ts bigint, kind string")
    query = parse("PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_any_match")
    compressed = CEP.pattern(frame, query, type="kind").inEventTime("ts").compressed()
    assert compressed.count() == 2**200 - 1
    row = compressed.aggregate("count(*)").collect()[0]
    assert row["count"] is None
    assert row["count(*)"] is None
    assert row.count_log10 == pytest.approx(60.2059991)


def packed_ways(row: Any, variables: Iterable[str]) -> Counter[str]:
    """The matches of a row in packed form, as its documentation says how to read it."""
    ways, waiting = Counter[str](), [(root, ()) for root in row.roots]
    while waiting:
        number, taken = waiting.pop()
        node = row.nodes[number]
        assert all(n < number for n in node.next)
        if node.stage >= 0:
            taken = ((node.stage, row.events[node.event].id), *taken)
        if node.stage >= 0 and not node.next:
            match = {v: [e for stage, e in taken if stage == n] for n, v in enumerate(variables)}
            ways[json.dumps(match)] += 1
        waiting += [(n, taken) for n in node.next]
    assert sum(ways.values()) == row["count"]
    assert len({e.id for e in row.events}) == len(row.events)
    return ways


@pytest.mark.spark
def test_packed_matches(spark: SparkSession) -> None:
    """The packed form holds the matches of toDF(), in little room however many there are."""
    rows = [(n, n // 2, "ABBC"[n * 7 % 4], n % 3, "pq"[n % 5 == 0]) for n in range(44)]
    frame = spark.createDataFrame(rows, "id bigint, ts bigint, kind string, x bigint, k string")
    for text in (
        "PATTERN SEQ(A a, B+ b[], C c) WHERE [k] AND b[i].x >= b[i-1].x WITHIN 8",
        "PATTERN A a;B^2 b;C c WHERE a.x <= c.x WITHIN 9",
    ):
        stream = CEP.pattern(frame, parse(text), type="kind").inEventTime("ts")
        listed = found(stream.toDF().collect(), "abc")
        assert sum(listed.values()) > 20
        packed = stream.compressed().toDF().collect()
        assert sum((packed_ways(row, "abc") for row in packed), Counter()) == listed
        ends = [(row.matchTimestamp, row.events[-1].id) for row in packed]
        assert len(set(ends)) == len(ends)  # whatever slice the first events are in
    many = spark.createDataFrame(
        [(n, n, t) for n, t in enumerate("A" + "B" * 100 + "C")],
        "id bigint, ts bigint, kind string",
    )
    query = parse("PATTERN SEQ(A a, B+ b[], C c)")
    row = CEP.pattern(many, query, type="kind").inEventTime("ts").compressed().toDF().collect()[0]
    assert int(row["count"]) == 2**100 - 1
    assert len(row.nodes) < 4 * 102
    assert len(row.events) == 102


@pytest.mark.spark
def test_compressed_matches_of_patterns(spark: SparkSession) -> None:
    """As many, and the same, as toDF() has: keys, windows, loops, SQL over stages, NOT at the end."""
    frame = spark.createDataFrame(
        [(n, n % 2, "ab"[n % 3 == 2], (n * 7) % 10) for n in range(40)],
        "id bigint, user bigint, name string, price bigint",
    ).selectExpr("*", "id AS ts")
    looping = (
        Pattern.begin("a").where("name = 'a'").oneOrMore().allowCombinations()
        .where("price > coalesce(avg(a.price), -1)")
        .followedByAny("b").where("name = 'b'").within(timedelta(milliseconds=14))
    )  # fmt: skip
    waiting = (
        Pattern.begin("a").where(lambda event: event.name == "a")
        .notFollowedBy("b").where("price > 7").within(timedelta(milliseconds=4))
    )  # fmt: skip
    for pattern in (looping, waiting):
        stream = CEP.pattern(keyBy(frame, "user"), pattern).inEventTime("ts")
        names = [name for name in ("a", "b") if name in stream.toDF().columns]
        listed = found(stream.toDF().collect(), names)
        compressed = stream.compressed()
        assert sum(listed.values()) > 5
        assert compressed.count() == sum(listed.values())
        assert found(compressed.unpack().collect(), names) == listed
        assert compressed.unpack(3).count() == 3
        packed = compressed.toDF().collect()
        assert sum((packed_ways(row, names) for row in packed), Counter()) == listed
        total = sum(sum(e.price for e in row.a) for row in stream.toDF().collect())
        rows = compressed.aggregate("sum(a.price) AS total").collect()
        assert sum(int(row.total) for row in rows) == total
    failing = Pattern.begin("a").where("name = 'a'").next("b").where(lambda event: event.id / 0 > 1)
    with pytest.raises(
        Exception, match=r"division by zero.*stage 'b', key \{'user': [01]\}, event"
    ):
        CEP.pattern(keyBy(frame, "user"), failing).inEventTime("ts").compressed().count()
    skipping = Pattern.begin("a", AfterMatchSkipStrategy.skipToNext()).where("name = 'a'")
    with pytest.raises(NotSupportedError, match="skip strategy"):
        CEP.pattern(frame, skipping).inEventTime("ts").compressed()
    with pytest.raises(
        NotSupportedError, match="compressed matches do not support maxPartialMatches"
    ):
        CEP.pattern(frame, failing, maxPartialMatches=9).inEventTime("ts").compressed()


@pytest.mark.spark
def test_functions_of_spark_in_conditions(spark: SparkSession) -> None:
    """What looks at one event may be any SQL of Spark, asked only of events of its type."""
    frame = spark.createDataFrame(
        [
            (1, 1, "A", "12"),
            (2, 2, "B", "x"),
            (3, 3, "B", "xx"),
            (4, 4, "A", "7"),
            (5, 5, "B", "xxx"),
        ],
        "id bigint, ts bigint, kind string, s string",
    )
    text = "levenshtein(b.s, 'xx') <= 1 AND cast(a.s AS int) > 9 WITHIN 100"
    for pattern in ("SEQ(A a, B b)", "SEQ(~(C c), A a, B b)", "A a;B b"):
        query = parse(f"PATTERN {pattern} WHERE {text}")
        rows = CEP.pattern(frame, query, type="kind").inEventTime("ts").toDF()
        assert {(r.a[0].id, r.b[0].id) for r in rows.collect()} == {(1, 2), (1, 3), (1, 5)}
        assert "__cep" not in rows.schema.simpleString()
    misspelt = parse("PATTERN A;B WHERE levenshteen(b.s, 'x') < 1 WITHIN 5")
    stream = CEP.pattern(frame, misspelt, type="kind").inEventTime("ts")
    with pytest.raises(InputError, match="levenshteen"):
        stream.toDF()


@pytest.mark.spark
def test_explain_says_what_was_chosen(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    """The evaluation and why, the key, what is shuffled, and where conditions are asked."""
    stream = CEP.pattern(trades(spark), parse(QUERY_3), type="kind").inEventTime("ts")
    stream.explain()
    text = capsys.readouterr().out
    assert "evaluation: nfa (loops" in text
    assert "key: symbol" in text
    assert "a take: a[i].price > avg(a[..i-1].price)" in text
    chain = parse("PATTERN A;B WHERE a.price < b.price WITHIN 5")
    CEP.pattern(trades(spark), chain, type="kind").inEventTime("ts").explain()
    text = capsys.readouterr().out
    assert "eventLists" in text
    assert "slices of 40 ms" in text
    assert "window: 5 ms from the first event to the last, inclusive" in text
    loop = parse("PATTERN SEQ(A a, B+ b[]) WITHIN 5 seconds")
    CEP.pattern(trades(spark), loop, type="kind").inEventTime("ts").explain()
    text = capsys.readouterr().out
    assert "a partition within 5 s make up to 2ⁿ matches" in text
    assert "Conditions" not in text  # it has none
    CEP.pattern(trades(spark), parse("PATTERN SEQ(A a)"), type="kind").inEventTime("ts").explain()
    assert not {"Conditions", "Runs distinguished by"} & {*capsys.readouterr().out.splitlines()}
    pair = parse("PATTERN SEQ(Stock a, Stock b) WITHIN 5 seconds")
    twice = CEP.pattern(trades(spark), pair, type="kind").inEventTime("ts")
    twice.explain(analyze=True, sample=5)
    text = capsys.readouterr().out
    assert "where events say that it costs less: nfa" in text
    assert f"nfa: {twice.toDF().count()} matches in" in text
    sample, happened = text.partition("What the first 5 events say")[2].split("What happened")
    for told in ("events of its types", "estimated counts: a", "order, the rarest first: a, b"):
        assert told in sample
    assert "estimated pairs tested, weighed: eventLists" in sample
    assert "nfa would run on" in sample
    for told in ("live runs at most: a", "live runs on average: a", "runs merged: a"):
        assert f"nfa: {told}" in happened
    with pytest.raises(InvalidArgumentError, match="number of events as sample, got -1"):
        twice.explain(sample=-1)


@pytest.mark.spark
@pytest.mark.parametrize("evaluation", ["auto", "backtracking"])
def test_a_query_is_analysed_once(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, evaluation: str
) -> None:
    """All copies of a stream share one analysis, whether or not it runs as a pattern."""
    asked: list[Query] = []

    def counted(query: Query) -> Placement:
        asked.append(query)
        return placed(query)

    monkeypatch.setattr(analysis, "placed", counted)
    query = parse("PATTERN SEQ(A a, B b) WHERE b.price > a.price")
    stream = CEP.pattern(trades(spark), query, type="kind", evaluation=evaluation)
    stream.inEventTime("ts").explain()
    stream.inEventTime("ts").toDF()
    assert asked == [query]


@pytest.mark.spark
def test_what_cannot_run_is_refused(spark: SparkSession) -> None:
    """Unknown attributes and types, HAVING compressed, and FROM beside a DataFrame."""
    frame = trades(spark)

    def run(text: str, **more: Any) -> DataFrame:
        return CEP.pattern(frame, parse(text), type="kind", **more).inEventTime("ts").toDF()

    with pytest.raises(InputError, match="did you mean 'price'"):
        run("PATTERN SEQ(Stock a) WHERE a.prise > 1")
    with pytest.raises(InputError, match="type column"):
        CEP.pattern(frame, parse("PATTERN SEQ(Stock a)")).inEventTime("ts").toDF()
    with pytest.raises(InvalidArgumentError, match="FROM"):
        run("FROM t PATTERN SEQ(Stock a)")
    with pytest.raises(InvalidArgumentError, match="HAVING"):
        CEP.pattern(frame, parse("PATTERN SEQ(A a) HAVING a.price > 1"), type="kind").compressed()


@pytest.mark.spark
def test_a_table_of_the_session(spark: SparkSession) -> None:
    """CEP.sase takes the table after FROM."""
    trades(spark).createOrReplaceTempView("trades")
    rows = CEP.sase(spark, f"FROM trades {QUERY_3}", type="kind").inEventTime("ts").toDF()
    assert rows.count() == 3
    assert len(matchSase(QUERY_3, [r.asDict() for r in trades(spark).collect()], "ts", "kind")) == 3
