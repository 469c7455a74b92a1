# SPDX-License-Identifier: Apache-2.0
"""Decimals in queries: the values and digits of Spark's own operators and aggregates, in every place."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pyflinkcep import CEP
from pyflinkcep.sase import parse
from pyflinkcep.spark.plan.queries.returns import returned
from pyflinkcep.testing import matchSase
from tests.query_decimals import CALCULATIONS, COMPARISONS, TYPES, as_table, groups, pairs
from tests.spark.support import QUICK_FOR_MANY_PLANS, configured

EVALUATIONS = ("nfa", "backtracking", "eventLists")
CONDITIONS = (*COMPARISONS, *CALCULATIONS)
JOBS = ("b.p < a.p", "b.p - a.p = 0", "b.q * 1.05 > a.p")
"""The conditions that are also run as jobs."""

ROUNDING = ("-b.p", "abs(")
"""Spark itself rounds these to 34 digits, and fails."""


@pytest.mark.parametrize("digits", TYPES, ids=str)
def test_conditions_have_sparks_values(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, digits: tuple[int, int]
) -> None:
    """Of random values of a type: in memory, in C and without, and as jobs."""
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
            for evaluation in EVALUATIONS:
                found = matchSase(query.format(text), table, evaluation=evaluation)
                keys = {match["a"][0]["k"] for match in found}
                assert (text, evaluation, keys) == (text, evaluation, expected[text])
    numbers = pa.array(range(len(table)), pa.int64())
    events = spark.createDataFrame(table.append_column("ts", numbers))
    for text, evaluation in zip(JOBS, EVALUATIONS, strict=True):
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
