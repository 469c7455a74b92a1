# SPDX-License-Identifier: Apache-2.0
"""Keys of every type, several at once, computed ones, none at all."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pyflinkcep import CEP, InputError, Pattern, Time, keyBy, parse
from pyflinkcep.matching.spark_hash import is_hashed, spark_hash
from tests.spark.support import a_then_b, configured, events, ids, in_one_job, on

# Six events; those of one key are a match of (a, b). A dash separates keys, so that a key which
# is told apart wrongly loses or gains a match.
INPUT = "x:a x:a x:a x:b x:b x:b"

KEYS: dict[str, tuple[str, ...]] = {
    "string": ("'a'", "'b'", "''"),
    "string with nulls": ("'null'", "null", "''"),
    "boolean": ("true", "false", "null"),
    "tinyint": ("1Y", "-1Y", "null"),
    "int": ("1", "-2147483648", "null"),
    "bigint": ("0L", "9223372036854775807L", "null"),
    "decimal": ("1.10BD", "-1.10BD", "cast(null as decimal(3,2))"),
    "float": ("float(1.5)", "float('NaN')", "null"),
    "double": ("1e-300", "double('-Infinity')", "null"),
    "date": ("date'2024-02-29'", "date'0001-01-01'", "null"),
    "timestamp": (
        "timestamp'2024-01-01 00:00:00.000001'",
        "timestamp'2024-01-01 00:00:00.000002'",
        "null",
    ),
    "timestamp_ntz": (
        "timestamp_ntz'2024-01-01 00:00:00.000001'",
        "timestamp_ntz'2024-01-01 00:00:00.000002'",
        "null",
    ),
    "interval": ("interval '1' day", "interval '1 01' day to hour", "null"),
    "binary": ("X'00'", "X'0000'", "null"),
    "array": ("array(1, null)", "array(null, 1)", "null"),
    "array of strings": ("array('a,b')", "array('a', 'b')", "array()"),
    "struct": (
        "named_struct('a', 1, 'b', cast(null as int))",
        "named_struct('a', cast(null as int), 'b', 1)",
        "null",
    ),
    "struct of times": (
        "named_struct('a', array(timestamp'2024-01-01 00:00:00.000001'))",
        "named_struct('a', array(timestamp'2024-01-01 00:00:00.000002'))",
        "named_struct('a', null)",
    ),
    "struct of ntz times": (
        "named_struct('a', timestamp_ntz'2024-01-01 00:00:00.000001')",
        "named_struct('a', timestamp_ntz'2024-01-01 00:00:00.000002')",
        "named_struct('a', null)",
    ),
    "array of binary": ("array(X'00')", "array(X'0000')", "array(X'')"),
    "struct of doubles": (
        "named_struct('a', array(1e0))",
        "named_struct('a', array(double('NaN')))",
        "named_struct('a', array(null))",
    ),
}
"""Three different keys of each type."""


def with_key(spark: SparkSession, first: str, second: str, third: str) -> DataFrame:
    """Return two rounds of one event for each of three keys: ``a`` at 1, 2, 3 and ``b`` at 4, 5, 6."""
    key = f"CASE ts % 3 WHEN 1 THEN {first} WHEN 2 THEN {second} ELSE {third} END"
    return events(spark, INPUT).withColumn("k", F.expr(key))


def matched(frame: DataFrame, *keys: Any) -> DataFrame:
    """Return the times of each match of (a, b)."""
    return on(frame, a_then_b(), *keys).select(ids, "text string").toDF()


def test_keys_of_every_type(spark: SparkSession) -> None:
    """Different keys never mix, null is a key like any other."""
    jobs = {name: matched(with_key(spark, *keys), "k") for name, keys in KEYS.items()}
    found = {name: sorted(texts) for name, texts in in_one_job(jobs).items()}

    assert found == {name: ["a=1 b=4", "a=2 b=5", "a=3 b=6"] for name in KEYS}


ONE_KEY = {
    "zeros": ("0e0", "-0e0", "0e0"),
    "float zeros": ("float('0')", "float('-0')", "float('0')"),
    "NaN": ("double('NaN')", "double('NaN')", "double('NaN')"),
    "zeros inside": (
        "named_struct('a', array(0e0))",
        "named_struct('a', array(-0e0))",
        "named_struct('a', array(0e0))",
    ),
    "nothing but null": ("null", "null", "null"),
    "decimals": ("1.10BD", "1.1BD", "1.100BD"),
}


def test_equal_keys_are_one(spark: SparkSession) -> None:
    """What Spark's groupBy takes for one value is one key: 0.0 and -0.0, every NaN."""
    jobs = {name: matched(with_key(spark, *keys), "k") for name, keys in ONE_KEY.items()}
    found = in_one_job(jobs)

    assert found == {name: ["a=3 b=4"] for name in ONE_KEY}


def _random_columns(size: int) -> pa.Table:
    """Return columns of the types whose numbers are known, over all of their range, with NULLs."""
    rng = np.random.default_rng(1)
    wide = rng.integers(-(2**63), 2**63 - 1, size) >> rng.integers(0, 64, size)
    texts = [rng.bytes(int(length)) for length in rng.integers(0, 70, size)]
    days, micros = wide % 700_000 - 350_000, wide % 10**17 - 5 * 10**16
    decimals = [Decimal(n % 10**18 - 10**17).scaleb(-3) for n in wide.tolist()]
    columns = {
        "flag": pa.array(wide % 2 == 0),
        "byte": pa.array(wide.astype(np.int8)),
        "short": pa.array(wide.astype(np.int16)),
        "int": pa.array(wide.astype(np.int32)),
        "long": pa.array(wide),
        "date": pa.array(days.astype(np.int32)).cast(pa.date32()),
        "timestamp": pa.array(micros).cast(pa.timestamp("us", "UTC")),
        "ntz": pa.array(micros).cast(pa.timestamp("us")),
        "text": pa.array([text.decode("utf-8", "ignore") for text in texts]),
        "binary": pa.array(texts),
        "decimal": pa.array(decimals, pa.decimal128(18, 3)),
    }
    return pa.table(
        {
            name: pc.if_else(pa.array(rng.random(size) < 0.9), column, None)
            for name, column in columns.items()
        }
    )


def test_numbers_of_keys(spark: SparkSession) -> None:
    """A worker's numbers for columns are those of Spark's ``xxhash64``, for each type and chained."""
    table = _random_columns(500)
    names = table.column_names
    asked = [[name] for name in names] + [names, names[::-1], ["text", "long"], ["byte", "binary"]]
    hashed = [F.xxhash64(*own).alias(f"hash {number}") for number, own in enumerate(asked)]
    answers = spark.createDataFrame(table).select("*", *hashed).toArrow()

    for number, own in enumerate(asked):
        columns = [answers[name] for name in own]
        assert all(is_hashed(column.type) for column in columns)
        assert spark_hash(columns).tolist() == answers[f"hash {number}"].to_pylist(), own


def test_keys_of_several_columns(spark: SparkSession) -> None:
    """All columns together are the key; names may be dotted, quoted, or of another case."""
    frame = (
        events(spark, INPUT)
        .withColumn("a.b", F.expr("CASE WHEN ts % 3 = 1 THEN 'x' ELSE 'y' END"))
        .withColumn("s", F.expr("named_struct('t', CASE WHEN ts % 3 = 2 THEN 1e0 END)"))
    )
    jobs = {
        "one": matched(frame, "a.b"),
        "both": matched(frame, "a.b", "s"),
        "quoted": matched(frame, "`a.b`", "S"),
        "field": matched(frame, "a.b", "s.t"),
        "expressions": matched(frame, F.col("`a.b`") == "x", F.expr("ts % 3 = 2")),
        "mixed": matched(frame, F.lit(1), "a.b", F.col("ts") % 3),
        "none": matched(frame),
    }
    found = {name: sorted(texts) for name, texts in in_one_job(jobs).items()}
    apart = ["a=1 b=4", "a=2 b=5", "a=3 b=6"]

    assert found == {
        "one": ["a=1 b=4", "a=3 b=5"],
        "both": apart,
        "quoted": apart,
        "field": apart,
        "expressions": apart,
        "mixed": apart,
        "none": ["a=3 b=4"],
    }


def test_key_columns_of_the_result(spark: SparkSession) -> None:
    """toDF() begins with the key: a column under its name, a field under its own, or an alias."""
    frame = events(spark, "u:a u:b").withColumn("s", F.struct(F.lit(1).alias("t")))
    keys = ["user", "s.t", (F.col("price") + 1).alias("more"), F.upper("user")]
    found = on(frame, a_then_b(), *keys).toDF().drop("a", "b")

    assert found.columns == ["user", "t", "more", "upper(user)", "matchTimestamp"]
    assert [tuple(row) for row in found.collect()] == [("u", 1, 1.0, "U", 2)]


def test_many_keys_stay_together_in_every_partition(spark: SparkSession) -> None:
    """A thousand keys over all partitions, each in the order of time, each matched once."""
    frame = spark.range(4000).selectExpr(
        "id % 1000 AS k",
        "1000000 - id AS ts",
        "CASE WHEN id < 1000 THEN 'c' WHEN id < 3000 THEN 'b' ELSE 'a' END AS name",
    )
    pattern = Pattern.begin("a").where("name = 'a'").next("b").where("name = 'b'").times(2)
    pattern = pattern.next("c").where("name = 'c'")
    found = (
        on(frame, pattern, "k")
        .toDF()
        .selectExpr(
            "k", "a[0].ts + b[0].ts + b[1].ts + c[0].ts AS total", "b[0].ts < b[1].ts AS ordered"
        )
    )
    totals = found.agg(
        F.count("*"), F.countDistinct("k"), F.sum("total"), F.every("ordered")
    ).first()

    assert tuple(totals) == (1000, 1000, 4000 * 1000000 - sum(range(4000)), True)


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("map('a', 1)", "map<string,int>"),
        ("array(map('a', 1))", "array<map<string,int>>"),
        ("parse_json('1')", "variant"),
    ],
)
def test_keys_that_cannot_be_compared(spark: SparkSession, key: str, kind: str) -> None:
    """A map or variant as key is refused at once, naming pattern, column and type."""
    frame = events(spark, "u:a").withColumn("k", F.expr(key))
    with pytest.raises(InputError) as caught:
        matched(frame, "k")

    assert caught.value.message == (
        f"pattern a ⇒ b: key column 'k' is {kind}, which cannot be compared"
    )


def test_keys_with_a_collation(spark: SparkSession) -> None:
    """Keys are compared byte by byte, so that a collation that says otherwise is refused."""
    frame = events(spark, "u:a").withColumn("k", F.expr("struct(user collate UTF8_LCASE)"))
    with pytest.raises(InputError, match=r"key column 'k' is struct<.*>, and keys are compared"):
        matched(frame, "k")


def test_events_that_are_already_partitioned(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    With ``partitioned=True`` events are not shuffled, and the matches are the same.

    That is so for patterns by automaton and lists, for queries, and for keys of any type. A key in
    two partitions fails every action, whatever it reads of the result.
    """
    frame = with_key(spark, "'x'", "NULL", "'z'")
    together = frame.repartition(3, "k")
    pattern, query = a_then_b(), parse("PATTERN SEQ(a x, b y) WITHIN 9 milliseconds")
    skipping = Pattern.begin("a").where("name = 'a'").followedByAny("b").where("name = 'b'")
    given = keyBy(together, "k", F.col("name") > " ", partitioned=True)
    lists = CEP.pattern(given, skipping.within(Time.seconds(1)), evaluation="eventLists")
    given = keyBy(together, "k", partitioned=True)
    found = CEP.pattern(given, query, type="name").inEventTime("ts").toDF()
    jobs = {
        "automaton": CEP.pattern(given, pattern).inEventTime("ts").select(ids, "text string"),
        "lists": lists.inEventTime("ts").select(ids, "text string"),
        "query": found.selectExpr("concat('a=', x[0].ts, ' b=', y[0].ts) AS text"),
    }
    with configured(spark, {"spark.sql.adaptive.enabled": "false"}):
        jobs["automaton"].explain()
    plan = capsys.readouterr().out
    answers = {name: sorted(rows) for name, rows in in_one_job(jobs).items()}

    assert answers == {name: ["a=1 b=4", "a=2 b=5", "a=3 b=6"] for name in jobs}
    assert plan.index("(check keys)") < plan.index("hashpartitioning(__cep_target")
    assert plan.count("Exchange") == 2  # the test's own, and that of matches
    apart = frame.repartition(2, "name")
    split = CEP.pattern(keyBy(apart, "k", partitioned=True), pattern).inEventTime("ts").toDF()
    for action in (split.collect, split.first):
        with pytest.raises(
            (PythonException, InputError), match="a key has events in two partitions"
        ):
            action()
