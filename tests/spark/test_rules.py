# SPDX-License-Identifier: Apache-2.0
"""Many rules on Spark in one pass: the matches of memory, conditions of Spark's own, and refusals."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from pyflinkcep import CEP, Eql, Pattern, Time, keyBy, matchId, matchMany, parse, suppress
from pyflinkcep.errors import CepError, InputError, InvalidArgumentError, NotSupportedError
from pyflinkcep.rules import Rule, SigmaCorrelation
from tests.property.test_rule_sets import (
    ROWS,
    RULES_OF_ALL_KINDS,
    arriving,
    events_of,
    has_few_matches,
    named,
)
from tests.property.test_rule_sets import SCHEMA as OF_EVENTS
from tests.spark.support import configured

SCHEMA = (
    "at bigint, type string, user string, host string, n int, x double, tags array<string>, "
    "`a.b` string, p struct<q: string>"
)


def _frame(spark: SparkSession, seed: int, count: int = 400) -> DataFrame:
    rng = random.Random(seed)
    users = [None, "u1", "u2", "u3"]
    rows = [
        (
            number * 1000 // 3,
            rng.choice("abc"),
            rng.choice(users),
            rng.choice(["h1", "h2"]),
            rng.randrange(10),
            rng.choice([0.5, -0.0, 0.0, None]),
            rng.choice([None, ["u1"], ["u2", "u1", "u2"], []]),
            rng.choice(users),
            rng.choice([None, (None,), ("u1",), ("u2",)]),
        )
        for number in range(count)
    ]
    return spark.createDataFrame(rows, SCHEMA)


PERIOD = Time.milliseconds(5)


def _low(key: str | None = None) -> Rule:
    pattern = Pattern.begin("low").where("n < 3").followedBy("high").where("n > 7")
    return Rule("", pattern, () if key is None else (key,))


def _counted(*group: str) -> SigmaCorrelation:
    more = {"rules": ["big"], "timespan": "2s", "condition": {"gte": 2}}
    return SigmaCorrelation({"type": "event_count", "group-by": [*group], **more}, {"big": "n > 6"})


RULES: dict[str, Any] = {
    "user": _low("user"),
    "host": Rule(
        "",
        Pattern.begin("a")
        .where("type = 'a'")
        .next("b")
        .where(lambda event: event.n > 5)
        .followedBy("c")
        .where("n > last(a.n)"),
        ("host",),
    ),
    "several": Rule("", Pattern.begin("a").where("n > 5").next("b").where("n > 5"), ("x", "host")),
    "of Spark": Rule("", Pattern.begin("a").where("n + 1 > 8").next("b").where("n < 5"), ("x",)),
    "dots": _low("a.b"),
    "lists": _low("tags"),
    "no key": _low(),
    "never": Rule("", Pattern.begin("a").where("n > 99").next("b").where("n > 98"), ("user",)),
    "sequence": Eql("sequence by user [a where n > 2] [b where n < 9] [c where true]"),
    "other fields": Eql("sequence [a where n > 2] by user [b where n < 9] by a.b"),
    "arrays": Eql("sequence by tags, host [a where n > 2] [b where n < 9]"),
    "array or not": Eql("sequence [a where n > 2] by user [b where n < 9] by tags"),
    "zeros": Eql("sequence by x [a where n > 2] [b where n < 9]"),
    "missing": Eql(
        "sequence by ?user, host with maxspan=5s [a where n > 2] ![c where n > 8] [b where n < 9]"
    ),
    "no such field": Eql("sequence by ?type.none [a where n > 7] [b where n < 9]"),
    "until": Eql("sequence by user [a where true] [b where true] until [c where n > 5]"),
    "first": Eql("sequence by host [a where n > 2] [b where n < 9] | head 3"),
    "single": Eql('a where n > 8 and tags : "U*"'),
    "query": parse("PATTERN SEQ(a x, b y) WHERE [host] AND x.n > y.n WITHIN 3 seconds"),
    "runs": Rule(
        "",
        parse("PATTERN SEQ(a x, b+ y[], c z) WHERE skip_till_any_match AND x.n > z.n WITHIN 2 s"),
        ("user",),
    ),
    "strict": parse("PATTERN SEQ(a x, b y) WHERE strict_contiguity AND [user]"),
    "in a struct": _counted("p.q"),
    "all": _counted(),
    "counted": _counted("user"),
    "by the calendar": SigmaCorrelation(
        {
            "type": "value_avg",
            "rules": ["big"],
            "group-by": ["a.b", "host"],
            "timespan": "5s",
            "condition": {"field": "n", "lt": 9},
        },
        {"big": "n > 6"},
    ),
    "together": SigmaCorrelation(
        {"type": "temporal", "rules": ["tagged", "big"], "group-by": ["tags"], "timespan": "2s"},
        {"tagged": "exists(tags, tag -> tag = 'u1')", "big": "n > 7"},
    ),
}


@pytest.mark.parametrize("seed", [1, 2])
def test_the_matches_of_memory(spark: SparkSession, seed: int) -> None:
    """Rules of all languages with random keys have the matches, and ids, that they have in memory."""
    frame = _frame(spark, seed).repartition(3, "n").sortWithinPartitions("at")
    rng = random.Random(seed)
    rules = dict(rng.sample(sorted(RULES.items()), len(RULES)))
    with configured(spark, {"spark.sql.shuffle.partitions": "3"}):
        rows = CEP.patterns(frame, rules, timestamp="at").toDF().toArrow().to_pylist()
    memory = matchMany(rules, frame.toArrow().sort_by("at"), timestamp="at").toArrow().to_pylist()

    assert sorted(rows, key=str) == sorted(memory, key=str)
    assert {row["rule"] for row in rows} == {*RULES} - {"never"}


@settings(
    max_examples=2,
    phases=[Phase.generate],
    deadline=None,
    suppress_health_check=[*HealthCheck],
)
@given(data=st.data())
def test_random_rules_of_all_kinds(spark: SparkSession, data: st.DataObject) -> None:
    """Random rules, Sigma correlations too, have the matches and ids of memory."""
    few = RULES_OF_ALL_KINDS.filter(lambda drawn: has_few_matches(drawn[0]))
    rules = named(data.draw(st.lists(few, min_size=40, max_size=60)))
    rows = data.draw(st.lists(ROWS, min_size=8, max_size=8))
    events = arriving(events_of([row for own in rows for row in own]), len(rules))
    berlin = {"spark.sql.session.timeZone": "Europe/Berlin"}
    with configured(spark, {"spark.sql.shuffle.partitions": "2", **berlin}):
        own = [tuple(event.values()) for event in events]
        frame = spark.createDataFrame(own, from_arrow_schema(OF_EVENTS))
        stream = CEP.patterns(frame, rules, timestamp="t", type="name")
        found = stream.toDF()
        id_of_row = matchId("rule", "version", "key", "events").alias("id")
        shown = found.select("*", id_of_row).toArrow().to_pylist()
        long = stream.toLong().toArrow().to_pylist()
        alerts = CEP.suppress(found, PERIOD).toDF().toArrow().to_pylist()
        table = frame.toArrow()
    ids = [(row.pop("id"), row["matchId"]) for row in shown]
    memory = matchMany(rules, table, timestamp="t", type="name").toArrow()

    assert sorted(map(str, shown)) == sorted(map(str, memory.to_pylist()))
    assert sorted(map(str, alerts)) == sorted(map(str, suppress(memory, PERIOD).to_pylist()))
    events_of_rows = Counter(
        f"{row['matchId']} {stage} {position} {event}"
        for row in shown
        for stage, every in row["events"]
        for position, event in enumerate(every)
    )
    assert events_of_rows == Counter(
        f"{row['matchId']} {row['stage']} {row['position']} {row['event']}" for row in long
    )
    assert len({*ids}) == len({one for one, _ in ids}) == len({one for _, one in ids})


def test_columns_that_are_nested_or_always_null(spark: SparkSession) -> None:
    """Null structs of what is NOT NULL, structs in lists and maps, and void columns are carried."""
    strict = F.struct(F.struct(F.lit(1).alias("y")).alias("x"), F.lit(None).alias("nothing"))
    some = F.when(F.col("n") > 4, strict)
    frame = _frame(spark, 6, 60).withColumns(
        {
            "void": F.lit(None),
            "some": some,
            "list": F.array(some),
            "map": F.create_map("type", some),
        }
    )
    rules = {name: RULES[name] for name in ("user", "sequence", "query", "counted")}
    rows = CEP.patterns(frame, rules, timestamp="at").toDF().collect()
    plain = frame.drop("void", "some", "list", "map")
    alone = CEP.patterns(plain, rules, timestamp="at").toDF().collect()

    found = [row.asDict(recursive=True) for row in rows]
    for event in (event for row in found for events in row["events"].values() for event in events):
        own = None if event["n"] <= 4 else {"x": {"y": 1}, "nothing": None}
        shown = [event.pop(name) for name in ("void", "some", "list", "map")]
        assert shown == [None, own, [own], {event["type"]: own}]
    known = [row.asDict(recursive=True) for row in alone]
    for row in (*found, *known):
        row.pop("matchId")
    assert {row["rule"] for row in found} == {*rules}
    assert sorted(found, key=str) == sorted(known, key=str)


def test_equal_times(spark: SparkSession) -> None:
    """Events of equal time are matched in the order of their source, whoever sends them."""
    rows = [(number // 3_000, number % 7, number * 7919 % 1_000) for number in range(6_000)]
    events = spark.createDataFrame(rows, "at bigint, user bigint, n bigint")
    low = Pattern.begin("low").where("n < 500").next("high").where("n >= 500")
    rules = [Rule("by user", low, ("user",)), Rule("of all", low)]

    found = CEP.patterns(events, rules, timestamp="at").toDF().collect()

    expected = matchMany(rules, events.toArrow(), timestamp="at")
    assert len(expected.of("by user")) > 1_000
    assert sorted(row.matchId for row in found) == sorted(match.matchId for match in expected)


def test_ids_in_another_time_zone(spark: SparkSession) -> None:
    """Ids of matches are those of memory, whatever the session's time zone."""
    frame = _frame(spark, 4, 50).withColumn("at", F.timestamp_millis("at"))
    rules = {"user": RULES["user"], "sequence": RULES["sequence"]}
    table = frame.toArrow()
    memory = {match.matchId for match in matchMany(rules, table, timestamp="at")}
    with configured(spark, {"spark.sql.session.timeZone": "Asia/Tokyo"}):
        rows = CEP.patterns(frame, rules, timestamp="at").toDF().collect()

    assert memory
    assert {row["matchId"] for row in rows} == memory


def test_groups_of_correlations_are_keys(spark: SparkSession) -> None:
    """Correlations by a field that no event has go on, and groups are on all cores."""
    frame = _frame(spark, 5).withColumn("p", F.lit(None).cast("struct<q: string>"))
    rules = {"in a struct": _counted("p.q"), "counted": _counted("user")}
    with configured(spark, {"spark.sql.shuffle.partitions": "3"}):
        rows = CEP.patterns(frame, rules, timestamp="at").toDF()
        parts = rows.select("rule", "key", F.spark_partition_id().alias("part")).collect()
    memory = matchMany(rules, frame.toArrow().sort_by("at"), timestamp="at")

    assert len(parts) == len(memory) > 0
    assert len({row["part"] for row in parts}) > 1


def test_conditions_of_spark(spark: SparkSession) -> None:
    """Columns and SQL that may fail are computed by Spark, as in a job of one pattern."""
    frame = _frame(spark, 3)
    low = Pattern.begin("low").where(F.col("n") < 3).followedBy("high").where("10 / (n + 1) < 1.2")
    rows = CEP.patterns(frame, {"low": Rule("", low, ("user",))}, "at").toLong().collect()
    alone = CEP.pattern(keyBy(frame, "user"), low).inEventTime("at").toDF().collect()

    assert {row["stage"] for row in rows} == {"low", "high"}
    assert sorted(row["event"]["at"] for row in rows if row["stage"] == "low") == sorted(
        row["low"][0]["at"] for row in alone
    )


@pytest.mark.parametrize(
    ("rules", "error", "message"),
    [
        ({"r": Rule("", RULES["user"].definition, ("who",))}, InputError, "no column 'who'"),
        ({"r": Rule("", RULES["user"].definition, ("p",))}, InputError, "compared, got struct<q"),
        ({"r": Pattern.begin("a").where("m > 1")}, CepError, "no column 'm'"),
        ({"r": Eql("a where m > 1")}, InputError, "no field m"),
        ({"r": _counted("usr")}, InputError, "no event has the field 'usr'"),
        ({"r": _counted("p")}, InputError, "the field 'p': .* can be compared, got struct<q"),
        (
            {"r": Pattern.begin("a").where("n > 3").next("b").where("p = last(a.p)")},
            InputError,
            "'p': expected a number, boolean, string or time, got struct<q",
        ),
        ({"r": "x"}, InvalidArgumentError, "CEP.patterns: rule 'r': expected a Pattern"),
        (
            {"r": parse("PATTERN SEQ(A a, B b) WITHIN 2 minutes SLIDE 1 minute RETURN count(*)")},
            NotSupportedError,
            "THEN, SLIDE and RETURN EVENT",
        ),
    ],
)
def test_rules_that_are_refused(
    spark: SparkSession, rules: Any, error: type[CepError], message: str
) -> None:
    """What events lack, and what makes no matches, is refused before the job starts."""
    with pytest.raises(error, match=message):
        CEP.patterns(_frame(spark, 1, 3), rules, timestamp="at").toDF()


def test_texts_with_a_collation(spark: SparkSession) -> None:
    """Conditions on them are Spark's; all that workers would compare byte by byte is refused."""
    texts = "CASE WHEN id % 3 = 0 THEN 'Ab' ELSE 'aB' END COLLATE UTF8_LCASE"
    frame = spark.range(8).selectExpr("id AS at", "'A' AS type", f"{texts} AS s")
    frame = frame.selectExpr("*", "struct(s) AS p", "array(s) AS l")
    low = Pattern.begin("a").where("s = 'AB' AND p.s = 'ab'").next("b").where("l[0] = 'AB'")
    assert CEP.patterns(frame, {"r": low}, "at").toDF().count() == 7
    last = Pattern.begin("a").next("b")
    refused: list[Any] = [
        *(Rule("", last, (key,)) for key in ("s", "p", "l")),
        *(last.where(f"{sql} = last(a.{sql})") for sql in ("s", "p.s", "l[0]")),
        *(Eql(f'any where {path} == "Ab"') for path in ("s", "p.s", "l")),
        *(Eql(f"sequence by {path} [A where true] [A where true]") for path in ("s", "p.s", "l")),
        *map(_counted, ("s", "p.s", "l")),
        parse("PATTERN SEQ(A a, A b) WHERE [s]"),
        parse("PATTERN SEQ(A a, A b) WHERE a.s = b.s"),
        *(parse(f"PATTERN SEQ(A a, A b) HAVING a.{path} = b.{path}") for path in ("s", "p", "l")),
        parse("PATTERN SEQ(A a, A+ b[]) RETURN max(b[].s) AS m"),
    ]
    for rule in refused:
        with pytest.raises(CepError):
            CEP.patterns(frame, {"r": rule}, "at").toDF()


def test_events_that_are_refused(spark: SparkSession) -> None:
    """Keyed DataFrames, no ANSI mode, and on streams some kinds of rules are refused by name."""
    frame = _frame(spark, 1, 3)
    with pytest.raises(InvalidArgumentError, match="with a keyed DataFrame"):
        CEP.patterns(keyBy(frame, "user"), RULES, timestamp="at")  # type: ignore[arg-type]
    with (
        pytest.raises(NotSupportedError, match="needs Spark's ANSI mode"),
        configured(spark, {"spark.sql.ansi.enabled": "false"}),
    ):
        CEP.patterns(frame, RULES, timestamp="at").toDF()
    stream = spark.readStream.format("rate").load().withWatermark("timestamp", "1 second")
    events = stream.withColumn("type", F.lit("a"))
    with pytest.raises(NotSupportedError, match="rule 'r': head and tail of a stream, which has"):
        CEP.patterns(events, {"r": Eql("any where true | head 3")}, timestamp="timestamp").toDF()
