# SPDX-License-Identifier: Apache-2.0
"""What queries on bounded DataFrames refuse, bound and fold, in the words of lists."""

from __future__ import annotations

import json
import random
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pyflinkcep import CEP, Pattern, keyBy
from pyflinkcep.errors import InputError, InvalidArgumentError, NotSupportedError
from pyflinkcep.sase import parse
from pyflinkcep.testing import matchSase
from tests.spark.support import QUICK_FOR_MANY_PLANS, configured
from tests.spark.test_queries import found, trades


@pytest.mark.spark
def test_types_and_constants_are_those_of_lists(spark: SparkSession) -> None:
    """Types are refused in the words of matchSase, in every evaluation; constants are folded."""
    rows = [(1, 1, "A", "x", 1), (2, 2, "B", "y", 2)]
    frame = spark.createDataFrame(rows, "id int, ts bigint, kind string, s string, x bigint")
    frame = frame.selectExpr("*", "x > 1 AS flag", "DATE'2024-01-01' + id AS day")
    events = [row.asDict() for row in frame.collect()]
    for text in ("WHERE a.s > 3", "WHERE b.flag = 1 WITHIN 5", "HAVING a.s < b.x", "RETURN -a.s"):
        query = parse(f"PATTERN SEQ(A a, B b) {text}")
        with pytest.raises(InputError) as wanted:
            matchSase(query, events, type="kind")
        for evaluation in ("auto", "nfa", "backtracking", "eventLists"):
            stream = CEP.pattern(frame, query, type="kind", evaluation=evaluation)
            with pytest.raises(InputError) as raised:
                stream.inEventTime("ts").toDF()
            assert str(raised.value) == str(wanted.value)
    query = parse("PATTERN SEQ(A a, B b) WHERE (1 = 1 AND b.x > 1) AND (NULL = 1 OR a.x < 2)")
    for evaluation in ("nfa", "backtracking", "eventLists", "auto"):
        stream = CEP.pattern(frame, query, type="kind", evaluation=evaluation).inEventTime("ts")
        assert stream.toDF().count() == 1
        never = CEP.pattern(frame, query.where("(1 = 2 AND a.x = 1)"), type="kind")
        assert never.inEventTime("ts").toDF().count() == 0
    compressed = stream.compressed()
    for text in ("sum(a.s)", "avg(b.flag)", "sum(b.day)", "min(a.matchTimestamp)"):
        with pytest.raises(InputError, match=r"expected numbers|is not a column"):
            compressed.aggregate(text)
    row = compressed.aggregate("min(a.s)", "max(b.day)", "min(b.flag)", "max(a.id)").collect()[0]
    assert list(row)[-4:] == ["x", events[1]["day"], True, 1]


@pytest.mark.spark
def test_columns_that_cannot_be_what_they_are_asked_for(spark: SparkSession) -> None:
    """Texts with a collation, of which Spark calls others equal, and columns that are not there."""
    frame = spark.range(1).selectExpr("id AS ts", "'A' AS type", "'x' COLLATE UTF8_LCASE AS s")

    def stream(text: str, type: str = "type") -> Any:
        return CEP.pattern(frame, parse(f"PATTERN {text}"), type=type).inEventTime("ts")

    for text in (
        "SEQ(A a, A b) WHERE a.s = 'X'",
        "A a;A b WHERE [s = 'X']",
        "SEQ(A a, A b) WHERE [s]",
    ):
        with pytest.raises(InputError, match=r"COLLATE|collate"):
            stream(text).toDF()
    with pytest.raises(InputError, match="expected the type column 's' to be string, got string c"):
        stream("SEQ(A a)", type="s").toDF()
    with pytest.raises(InputError, match="expected numbers, texts"):
        stream("SEQ(A a)").compressed().aggregate("max(a.s)")
    for text in ("RETURN a.z", "RETURN upper(a.z)", "WITHIN 5 SLIDE 5 GROUP BY z RETURN count(*)"):
        with pytest.raises(InputError, match="z"):
            stream(f"SEQ(A a) {text}").toDF()
    frame = frame.selectExpr("*", "map(1, s) AS m")
    with pytest.raises(InputError, match=r"HAVING or RETURN cannot be evaluated: .*MAP"):
        stream("SEQ(A+ a[]) RETURN max(a[].m)").toDF()
    for name in ("ts", "COUNT", "count_log10"):
        with pytest.raises(InvalidArgumentError, match="two columns"):
            stream(f"SEQ(A a) WHERE [ts] WITHIN 5 SLIDE 5 RETURN min(a.ts) AS {name}").toDF()


@pytest.mark.spark
def test_slices_at_the_ends_of_time(spark: SparkSession) -> None:
    """Time slices end with the first and the last time that there are."""
    rows = [
        (n, at, "AB"[n % 2]) for n, at in enumerate([-(2**63), 1 - 2**63, 2**63 - 3, 2**63 - 1])
    ]
    frame = spark.createDataFrame(rows, "id bigint, ts bigint, kind string")
    for text in ("SEQ(A a, B b)", "A a;B b", "SEQ(~N n, A a, B b)"):
        query = parse(f"PATTERN {text} WITHIN 5")
        stream = CEP.pattern(frame, query, type="kind", evaluation="eventLists").inEventTime("ts")
        assert found(stream.toDF().collect(), "ab") == Counter(
            ['{"a": [0], "b": [1]}', '{"a": [2], "b": [3]}']
        )


@pytest.mark.spark
def test_an_evaluation_is_not_replaced_in_silence(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    """explain() names what runs instead; matches that are not listed refuse what lists them."""
    query = parse("PATTERN SEQ(Stock a, Stock b)")
    frame = trades(spark)
    stream = CEP.pattern(frame, query, type="kind", evaluation="nfa", output="onePerStart")
    stream.inEventTime("ts").explain()
    assert "backtracking (nfa was asked for, and searches for" in capsys.readouterr().out
    pattern = Pattern.begin("a").followedByAny("b").within(timedelta(seconds=1))
    for what, more in ((query, {"type": "kind"}), (pattern, {})):
        asked = CEP.pattern(frame, what, evaluation="eventLists", **more).inEventTime("ts")
        with pytest.raises(NotSupportedError, match='evaluation="eventLists" lists matches'):
            asked.compressed()


@pytest.mark.spark
def test_a_bound_on_runs(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """maxPartialMatches bounds queries under nfa, as patterns or not; elsewhere it is refused."""
    frame = spark.createDataFrame(
        [(n, n, "A", n * n) for n in range(20)], "id int, ts bigint, kind string, x int"
    )
    rising = parse("PATTERN SEQ(A+ a[], A b) WHERE a[i].x > avg(a[..i-1].x)")
    pair = parse("PATTERN SEQ(A a, A b) WITHIN 9")

    def stream(query: Any, most: int | None = 50, **more: Any) -> Any:
        found = CEP.pattern(frame, query, type="kind", maxPartialMatches=most, **more)
        return found.inEventTime("ts")

    with pytest.raises(Exception, match="partial matches, maxPartialMatches is 50"):
        stream(rising, evaluation="nfa").toDF().collect()
    with pytest.raises(Exception, match="11 partial matches, maxPartialMatches is 10"):
        stream(parse("PATTERN SEQ(A a, A b)"), 10).toDF().collect()
    assert stream(pair, 100).toDF().count() == stream(pair, None).toDF().count() > 50
    stream(pair).explain()
    assert "evaluation: nfa" in capsys.readouterr().out
    for query, more in (
        (pair, {"evaluation": "eventLists"}),
        (pair, {"evaluation": "backtracking"}),
        (pair, {"output": "onePerStart"}),
        (parse("PATTERN A;B"), {}),
    ):
        with pytest.raises(NotSupportedError, match="which keeps no partial matches"):
            stream(query, **more).toDF()
    with pytest.raises(
        NotSupportedError, match="compressed matches do not support maxPartialMatches"
    ):
        stream(pair).compressed()
    with pytest.raises(InvalidArgumentError, match="maxPartialMatches=0"):
        stream(pair, 0)
    for setting in ({"orderBy": ["id"]}, {"onTooManyPartialMatches": "dropOldest"}):
        with pytest.raises(
            NotSupportedError, match=f"a query does not support .*{next(iter(setting))}"
        ):
            stream(pair, **setting)


# --- names, values and composed patterns of queries on bounded DataFrames, as on lists


@pytest.mark.spark
def test_names_and_values_as_data_has_them(spark: SparkSession) -> None:
    """Quoted names, booleans, fields of structs and maps, CASE and functions: as on lists."""
    rows = [
        ("login-failed", True, 3, "p", {"id": 1}, {"k k": 1}),
        ("login-failed", None, 9, "q", {"id": 1}, {"k k": 1}),
        ("com.foo.Bar", False, 2, "pq", {"id": 1}, {"k k": 2}),
        ("com.foo.Bar", True, 4, None, {"id": 1}, {"k k": 0}),
        ("com.foo.Bar", True, 5, "r", {"id": 2}, None),
    ]
    names = ["type", "flag", "größe", "x y", "user", "props"]
    events = [{"ts": n, **dict(zip(names, row, strict=True))} for n, row in enumerate(rows)]
    schema = "ts bigint, type string, flag boolean, `größe` bigint, `x y` string, user struct<id: bigint>, props map<string, bigint>"
    frame = spark.createDataFrame([tuple(event.values()) for event in events], schema)
    text = (
        "PATTERN SEQ('login-failed' a, com.foo.Bar `b b`) WHERE skip_till_any_match AND (a.flag OR "
        "a.größe > 8) AND a.user.id = `b b`.user.id AND NOT (`b b`.props['k k'] < a.props['k k']) "
        "AND abs(a.größe - `b b`.größe) < 9 AND upper(a.`x y`) <> upper(`b b`.`x y`) "
        "{} WITHIN 1 s HAVING upper(`b b`.`x y`) = 'PQ' RETURN a.größe AS `out put`, `b b`.user.id, "
        "upper(a.`x y`) || `b b`.`x y` AS j, CASE WHEN a.flag THEN 1 ELSE `b b`.größe END AS c"
    )
    choice = "AND coalesce(a.flag, `b b`.flag, TRUE) IS NOT NULL"
    expected = {(3, 1, "Ppq", 1), (9, 1, "Qpq", 2)}
    for added, evaluation in ((choice, "nfa"), (choice, "backtracking"), ("", "eventLists")):
        query = parse(text.format(added))
        found = matchSase(query, events, "ts", evaluation=evaluation)
        assert {tuple(row.values()) for row in found} == expected
        stream = CEP.pattern(frame, query, evaluation=evaluation).inEventTime("ts")
        assert {tuple(row) for row in stream.toDF().collect()} == expected


@pytest.mark.spark
def test_composed_patterns(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """Alternatives, any order, optional and counted components: keyed and in slices, as on lists."""
    chance = random.Random(3)
    schema = "id bigint, ts bigint, kind string, k bigint, x bigint"
    events = [
        {"id": n, "ts": 3 * n, "kind": chance.choice("ABBCD"), "k": n % 2, "x": chance.randrange(9)}
        for n in range(160)
    ]
    frame = spark.createDataFrame([tuple(event.values()) for event in events], schema)
    text = (
        "PATTERN SEQ(A a, (B b | SEQ(C{{1,2}} c[], ~(SEQ(A n, C o))))?, AND(D d, ~(A m), B e)) "
        "WHERE {} AND e.x > a.x AND b.x > 4 AND o.x > n.x AND m.x > d.x WITHIN 40"
    )
    for where in ("skip_till_next_match AND [k]", "skip_till_any_match"):
        query = parse(text.format(where))
        stream = CEP.pattern(frame, query, type="kind").inEventTime("ts")
        matches = matchSase(query, events, "ts", "kind")
        expected = Counter(
            json.dumps({v: [e["id"] for e in m.get(v, ())] for v in query.variables})
            for m in matches
        )
        assert found(stream.toDF().collect(), query.variables) == expected
        assert len({tuple(match) for match in matches}) == 3
        assert stream.compressed().count() == len(matches)
    totalled = stream.compressed().aggregate("sum(c.x) AS c", "count(b) AS b")
    row = totalled.selectExpr("sum(c)", "sum(b)")
    totals = [sum(e["x"] for m in matches for e in m.get("c", ())), sum("b" in m for m in matches)]
    assert [int(value) for value in row.collect()[0]] == totals
    packed = stream.compressed().toDF().selectExpr("explode(nodes.stage) AS stage").distinct()
    assert {row.stage for row in packed.collect()} >= {0, 1, 2, 3, 4}
    counted = parse(
        "PATTERN SEQ(A a, ~(C n), B b)+ WHERE skip_till_any_match AND [k] AND a.x > a[i-1].x "
        "WITHIN 9 EVENTS"
    )
    rows = CEP.pattern(frame, counted, type="kind").inEventTime("ts").toDF().collect()
    own = [
        {v: [e["id"] for e in m[v]] for v in "ab"} for m in matchSase(counted, events, "ts", "kind")
    ]
    assert found(rows, "ab") == Counter(map(json.dumps, own))
    assert max(len(match["a"]) for match in own) > 1
    returning = parse(
        f"{query} HAVING count(c[]) <> 1 RETURN b.x, c[LEN].x AS c, count(b) AS n, e.x AS e"
    )
    rows = CEP.pattern(frame, returning, type="kind").inEventTime("ts").toDF().collect()
    own = matchSase(returning, events, "ts", "kind")
    assert Counter(map(tuple, rows)) == Counter(tuple(row.values()) for row in own)
    stream.explain()
    text = capsys.readouterr().out
    assert "evaluation: nfa" in text
    assert "not a pattern: it is composed, and 'c' repeats" in text


@pytest.mark.spark
def test_literal_times_are_those_of_the_session(spark: SparkSession) -> None:
    """Timestamps without a zone, and differences of times, are by the session's clock, as in Spark."""
    with configured(
        spark, {**QUICK_FOR_MANY_PLANS, "spark.sql.session.timeZone": "America/New_York"}
    ):
        frame = spark.range(40).selectExpr(
            "id", "id AS ts", "IF(id % 2 = 0, 'A', 'B') AS kind",
            "timestamp_seconds(1710048600 + 900 * id) AS at",  # from an hour before a change of clocks
        ).selectExpr("*", "cast(at AS timestamp_ntz) AS clock", "cast(at AS date) AS day")  # fmt: skip
        condition = (
            "b.at - a.at < INTERVAL '75' MINUTE AND b.at > TIMESTAMP '2024-03-10 03:10:00' AND "
            "b.clock < TIMESTAMP '2024-03-10 08:00:00' AND a.at < DATE '2024-03-11' AND "
            "a.clock >= TIMESTAMP '2024-03-10 05:20:00Z' AND a.day = DATE '2024-03-10' AND "
            "datediff(b.day, a.day) = 0 AND b.at > TIMESTAMP '2024-03-10 08:10:00 Europe/Berlin'"
        )
        sql = f"SELECT a.id, b.id FROM {{e}} a JOIN {{e}} b ON a.kind = 'A' AND b.kind = 'B' AND a.id < b.id AND {condition}"
        expected = sorted(map(tuple, spark.sql(sql, e=frame).collect()))
        query = parse(f"PATTERN SEQ(A a, B b) WHERE {condition} AND b.id >= 0 WITHIN 1 s")
        for evaluation in ("nfa", "backtracking", "eventLists"):
            stream = CEP.pattern(frame, query, type="kind", evaluation=evaluation).inEventTime("ts")
            rows = stream.toDF().selectExpr("a[0].id", "b[0].id").collect()
            assert (evaluation, sorted(map(tuple, rows))) == (evaluation, expected)
        assert 10 < len(expected) < 100


@pytest.mark.spark
def test_another_query_reads_the_events_of_matches(spark: SparkSession) -> None:
    """RETURN EVENT and THEN in one text, keyed by [k]: as on lists; refused without the key."""
    chance = random.Random(5)
    events = [{"ts": 3 * n, "kind": "S", "k": n % 2, "x": chance.randrange(9)} for n in range(120)]
    schema = "ts bigint, kind string, k bigint, x bigint"
    frame = spark.createDataFrame([tuple(event.values()) for event in events], schema)
    text = (
        "PATTERN SEQ(S a, S b) WHERE partition_contiguity AND [k] AND b.x > a.x + 1 RETURN EVENT "
        "Rise(a.k AS k, a.x AS low, b.x AS high) THEN PATTERN SEQ(Rise p, Rise q) WHERE [k] AND "
        "q.high >= p.high WITHIN 60 RETURN p.low, q.high, q.matchTimestamp AS at, p.k AS k"
    )
    expected = Counter(tuple(row.values()) for row in matchSase(text, events, "ts", "kind"))
    assert len(expected) > 5
    for given in (frame, keyBy(frame, "k")):
        stream = CEP.pattern(given, parse(text), type="kind").inEventTime("ts")
        assert Counter(map(tuple, stream.toDF().collect())) == expected
    waits = "PATTERN SEQ(S a, ~(S n)) WHERE [k] AND n.x > a.x WITHIN 9 RETURN EVENT Top(a.x AS x)"
    tops = sorted(tuple(row.values()) for row in matchSase(waits, events, "ts", "kind"))
    waiting = CEP.pattern(frame, parse(waits), type="kind").inEventTime("ts").toDF()
    assert sorted(map(tuple, waiting.collect())) == tops
    with pytest.raises(InvalidArgumentError, match="does not return the key"):
        CEP.pattern(keyBy(frame, "kind"), parse(text), type="kind").inEventTime("ts")
    unbounded = spark.readStream.format("rate").load().selectExpr("value AS ts", "'S' AS kind")
    with pytest.raises(NotSupportedError, match="THEN is not available on a stream"):
        CEP.pattern(unbounded, parse(text), type="kind").inEventTime("ts")
