# SPDX-License-Identifier: Apache-2.0
"""Aggregates of queries, and of matches that are not listed, against Spark's own, at random."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pyflinkcep import CEP, InputError, keyBy
from pyflinkcep.sase import parse
from pyflinkcep.spark.plan.queries.returns import returned
from pyflinkcep.testing import matchSase
from tests.query_decimals import CALCULATIONS, COMPARISONS, TYPES, as_table, groups, pairs
from tests.spark.support import QUICK_FOR_MANY_PLANS, configured

FUNCTIONS = ("count", "sum", "avg", "min", "max", "stddev", "median")
_FLOATS = (None, 0.0, -0.0, 0.1, 0.2, 2.5, -1.5, 1e10, math.nan, math.inf, -math.inf)
_INTS = (None, 0, 1, 2, -7, 3, 2**31 - 1, -(2**31))
VALUES: dict[str, tuple[pa.DataType, tuple[Any, ...]]] = {
    "f": (pa.float32(), (None, 0.1, 0.7, -0.25, 3.0, math.nan, math.inf)),
    "v": (pa.float64(), _FLOATS),
    "big": (pa.float64(), (1e308, 1.7e308, -1e308, 1.0, None, math.nan)),
    "i": (pa.int32(), _INTS),
    "n": (pa.int64(), (*_INTS, 2**53 + 1, -(2**62), 2**63 - 1)),
    "d": (pa.decimal128(10, 2), (None, Decimal("0.10"), Decimal("-99999999.99"), Decimal("7.25"))),
    "w": (pa.decimal128(38, 18), (None, Decimal("0.1"), Decimal("-3e-18"), Decimal("12345678901234"))),
}  # fmt: skip
"""By column, its type, and what it may hold."""


def events(seed: int, keys: int, most: int) -> pa.Table:
    """Return for each key A, some B, which may all be NULL or alike, and C."""
    chance = random.Random(seed)
    rows = []
    for key in range(keys):
        pools = {
            name: chance.sample(own, chance.randint(1, 3)) for name, (_, own) in VALUES.items()
        }
        for type_ in ("A", *("B" for _ in range(chance.randint(1, most))), "C"):
            own = {name: chance.choice(pool) for name, pool in pools.items()}
            rows.append({"k": key, "ts": len(rows), "type": type_, **own})
    columns = [("k", pa.int64()), ("ts", pa.int64()), ("type", pa.string())]
    types = [(name, type_) for name, (type_, _) in VALUES.items()]
    return pa.Table.from_pylist(rows, pa.schema([*columns, *types]))


def overflows(values: list[int | None]) -> bool:
    """Whether a sum of whole numbers is out of range on the way."""
    total = 0
    for value in values:
        total += value or 0
        if not -(2**63) <= total < 2**63:
            return True
    return False


def test_what_queries_return_is_what_spark_says(spark: SparkSession) -> None:
    """Of every type, of NULL, NaN, infinities, one value, and of sums out of range."""
    asked = {f"{f}_{name}": (f, name) for name in VALUES for f in FUNCTIONS}
    given = ", ".join(f"{f}(b[].{name}) AS {alias}" for alias, (f, name) in asked.items())
    query = "PATTERN SEQ(A a, B+ b[], C c) WHERE partition_contiguity AND [k] RETURN c.k AS k, "
    table = events(5, 120, 6)
    with configured(spark, {**QUICK_FOR_MANY_PLANS, "spark.sql.ansi.enabled": "false"}):
        frame = spark.createDataFrame(table).coalesce(1)
        own = [F.expr(f"{f}({name})").alias(alias) for alias, (f, name) in asked.items()]
        expected = frame.where("type = 'B'").groupBy("k").agg(*own).orderBy("k")
        array = F.collect_list(F.when(F.col("type") == "B", F.struct(*VALUES)))
        matches = frame.groupBy("k").agg(array.alias("b"), F.array(F.struct("k")).alias("c"))
        on_spark = returned(parse(query + given), matches).orderBy("k").collect()
        wanted = [row.asDict() for row in expected.collect()]
    assert [repr(row.asDict()) for row in on_spark] == [repr(row) for row in wanted]
    rows = table.to_pylist()
    for row in wanted:
        own_rows = [event for event in rows if event["k"] == row["k"]]
        kept = table.filter(pa.compute.equal(table["k"], row["k"]))
        bad = overflows([event["n"] for event in own_rows if event["type"] == "B"])
        columns = given.replace("sum(b[].n) AS sum_n", "sum(b[].i) AS sum_n") if bad else given
        (found,) = matchSase(query + columns, kept, evaluation="nfa")
        assert repr({**found, "sum_n": row["sum_n"] if bad else found["sum_n"]}) == repr(row)
        if bad:
            with pytest.raises(InputError, match="overflow"):
                matchSase(query + "sum(b[].n) AS s", kept, evaluation="nfa")


def alike(found: Any, wanted: Any) -> bool:
    """Whether two totals are equal, but for the order in which doubles are added."""
    if not isinstance(wanted, float) or not isinstance(found, float | int):
        return bool(found == wanted)
    if math.isnan(wanted) or math.isinf(wanted):
        return repr(float(found)) == repr(wanted)
    return math.isclose(found, wanted, rel_tol=1e-9, abs_tol=1e-6)


def test_totals_of_matches_are_those_of_spark(spark: SparkSession) -> None:
    """Over the events of all matches, none of which is listed: in memory and as a job."""
    names = [name for name in VALUES if name != "big"]
    functions = [function for function in FUNCTIONS if function != "median"]
    asked = {f"{f}_{name}": (f, name) for name in names for f in functions}
    table = events(6, 40, 5)
    query = "PATTERN SEQ(A a, B b, B c) WHERE skip_till_any_match AND [k] WITHIN 1 hour"
    texts = [f"{f}(b.{name}) AS {alias}" for alias, (f, name) in asked.items()]
    for part in (table, table.slice(0, 12), table.slice(0, 2)):
        frame = spark.createDataFrame(part).coalesce(1)
        a, b, c = (frame.where(f"type = '{t}'").alias(v) for t, v in zip("ABB", "abc", strict=True))
        pairs = a.join(b, F.expr("a.k = b.k AND a.ts < b.ts"))
        every = pairs.join(c, F.expr("b.k = c.k AND b.ts < c.ts")).selectExpr("b.*", "c.ts AS at")
        whole = dict.fromkeys(("i", "n"), "decimal(38,0)")
        own = [
            F.expr(
                f"{f}(cast({name} AS {whole[name]}))"
                if name in whole and f == "sum"
                else f"{f}({name})"
            ).alias(alias)
            for alias, (f, name) in asked.items()
        ]
        with configured(spark, QUICK_FOR_MANY_PLANS):
            (wanted,) = every.agg(*own).collect()
            job = CEP.pattern(keyBy(frame, "k"), parse(query)).inEventTime("ts").compressed()
            by_key = every.groupBy("k", "at").agg(*own).collect()
            rows = {
                (row["k"], row["matchTimestamp"]): row for row in job.aggregate(*texts).collect()
            }
        found = matchSase(query, part, "ts", compressed=True).aggregate(*texts)
        for alias in asked:
            assert alike(found[alias], wanted[alias]), (alias, found[alias], wanted[alias])
        assert len(by_key) == len(rows)
        for row in by_key:
            ended = rows[row["k"], row["at"]]
            for alias in asked:
                assert alike(ended[alias], row[alias]), (alias, ended[alias], row[alias])


# --- decimals in queries: the values and digits of Spark's own operators and aggregates, in every place


EVALUATIONS = ("nfa", "backtracking", "eventLists")
CONDITIONS = (*COMPARISONS, *CALCULATIONS)
JOBS = ("b.p < a.p", "b.p - a.p = 0", "b.q * 1.05 > a.p")
"""The conditions that are also run as jobs: of each type one, by one evaluation after another."""

ROUNDING = ("-b.p", "abs(")
"""Spark itself rounds these to 34 digits, and fails."""


@pytest.mark.parametrize("digits", TYPES, ids=str)
def test_conditions_have_sparks_values(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, digits: tuple[int, int]
) -> None:
    """Of random values of a type: in memory, in C and without, and as jobs; others calculate alike."""
    table = as_table(pairs(*digits), *digits)
    conditions = [text for text in CONDITIONS if digits[0] < 34 or not text.startswith(ROUNDING)]
    with configured(spark, {**QUICK_FOR_MANY_PLANS, "spark.sql.ansi.enabled": "false"}):
        events = spark.createDataFrame(table)
        every = F.struct("p", "q", "n")
        both = events.groupBy("k").agg(
            *(F.first(F.when(F.col("type") == of, every), True).alias(of) for of in ("A", "B"))
        )
        asked = [F.expr(text.replace("10%", "0.10")).alias(text) for text in conditions]
        answers = both.select("k", *asked).collect()
    expected = {text: {row["k"] for row in answers if row[text]} for text in conditions}
    query = "PATTERN SEQ(A a, B b) WHERE [k] AND {} WITHIN 1000000"
    for switch in ("1", "0"):
        monkeypatch.setenv("PYFLINKCEP_KERNEL", switch)
        for text in conditions:
            found = matchSase(query.format(text), table, evaluation="nfa")
            keys = {match["a"][0]["k"] for match in found}
            assert (text, keys) == (text, expected[text])
    numbers = pa.array(range(len(table)), pa.int64())
    events = spark.createDataFrame(table.append_column("ts", numbers))
    place = TYPES.index(digits)
    text, evaluation = JOBS[place % 3], EVALUATIONS[(place + place // 3) % 3]
    job = CEP.pattern(events, parse(query.format(text) + " RETURN a.k"), evaluation=evaluation)
    keys = {row[0] for row in job.inEventTime("ts").toDF().collect()}
    assert (text, keys) == (text, expected[text])


@pytest.mark.parametrize("digits", TYPES, ids=str)
def test_aggregates_have_sparks_values(spark: SparkSession, digits: tuple[int, int]) -> None:
    """SUM, AVG and the others of random values, to the digit: returned on Spark, and in memory."""
    functions = ("sum", "avg", "min", "max", "count", "stddev", "median")
    query = parse(
        "PATTERN SEQ(A a, B+ b[], C c) WHERE partition_contiguity AND [k] RETURN c.k AS k, "
        + ", ".join(f"{function}(b[].p) AS {function}" for function in functions)
    )
    events = [
        {"k": k, "type": type_, "p": value}
        for k, group in enumerate(groups(*digits))
        for type_, value in (("A", None), *(("B", value) for value in group), ("C", None))
    ]
    types = [pa.int64(), pa.string(), pa.decimal128(*digits)]
    schema = pa.schema(list(zip(("k", "type", "p"), types, strict=True)))
    table = pa.Table.from_pylist(events, schema)
    with configured(spark, QUICK_FOR_MANY_PLANS):
        frame = spark.createDataFrame(table).coalesce(1)
        own = [F.expr(f"{function}(p)").alias(function) for function in functions]
        expected = frame.where("type = 'B'").groupBy("k").agg(*own).orderBy("k")
        array = F.collect_list(F.when(F.col("type") == "B", F.struct("p")))
        matches = frame.groupBy("k").agg(array.alias("b"), F.array(F.struct("k")).alias("c"))
        on_spark = returned(query, matches).orderBy("k")
        wanted = [row.asDict() for row in expected.collect()]
        assert [row.asDict() for row in on_spark.collect()] == wanted
        assert on_spark.dtypes[1:5] == expected.dtypes[1:5]
    assert matchSase(query, table, evaluation="nfa") == wanted
