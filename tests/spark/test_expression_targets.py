# SPDX-License-Identifier: Apache-2.0
"""One table of rules: each operator has in every target the value that Spark gives it."""

from __future__ import annotations

import math
import random
import re
from decimal import Decimal
from itertools import zip_longest
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pyflinkcep.errors import InputError
from pyflinkcep.expressions.aggregates import AGGREGATES
from pyflinkcep.expressions.arrays import TextRanks, Values, computed
from pyflinkcep.expressions.numbers import NUMBER_FUNCTIONS
from pyflinkcep.expressions.program import CASTS, Cast, Op
from pyflinkcep.expressions.program import OPERATORS as RULE_OPERATORS
from pyflinkcep.expressions.sql_types import cast_type
from pyflinkcep.expressions.tree import Operation, parts, spark_sql
from pyflinkcep.sase import parse
from pyflinkcep.sase.returns import Returns
from pyflinkcep.spark.plan.queries.returns import returned
from pyflinkcep.testing import matchSase
from tests.expression_rules import (
    CASES,
    CAST_TYPES,
    CAST_VALUES,
    DECIMAL_CASES,
    DECIMALS,
    ERROR,
    OVERFLOWS,
    VALUES,
)
from tests.spark.support import QUICK_FOR_MANY_PLANS, configured
from tests.unit.expressions.test_rules import cast_in_memory, same, tree_of

NAN, BIG = math.nan, 2**62
FLOATS = (None, 0.0, -0.0, 2.5, -0.15, NAN, math.inf, -math.inf, 1e300, -1.0)
INTS = (None, 0, 1, -7, 3, BIG, 2**63 - 1, -(2**63))
TEXTS = (None, "", "a", "ab", "abc", "b", "ä", "\ufffd", "\U0001f600")

RULES = (
    "b.v < a.v", "b.v <= a.v", "b.v > a.v", "b.v >= a.v", "b.v = a.v", "b.v <> a.v",
    "b.n < a.n", "b.n = a.n", "b.n >= a.v", "b.s < a.s", "b.s = a.s", "b.s <> 'ab'",
    "b.v + a.v > 1", "b.v - a.v = 0", "b.v * a.v >= 0", "b.v / a.v > 1", "b.v % a.v < 1",
    "b.n + a.n > 0", "b.n - a.n > 0", "b.n * a.n > 0", "b.n / a.n > 1", "b.n % a.n > 0",
    "b.n + a.v > 0", "-b.n < a.n", "-(b.v + a.v) < 1", "b.v + a.v IS NULL", "b.n / a.n IS NOT NULL",
    "b.n = NULL", "(b.v > a.v OR b.n > a.n)", "NOT (b.v > a.v AND b.n > a.n)",
    "NOT (b.v = a.v OR b.n / a.n > 0)", "b.n IN (a.n, 1, 3)", "b.v BETWEEN a.v AND 3",
    "round(b.v + a.v, 1) > 0", "round(b.v * a.n) = round(a.v * b.n)", "round(b.v / a.v, -1) >= 10",
    "round(b.n + a.n) > 0", "floor(b.v * a.v) >= 6", "ceil(b.v + a.v) > a.n", "floor(b.v + a.v) < 0",
    "floor(b.n + a.n) > 4", "sqrt(b.v + a.v) > 1", "sqrt(b.n * a.n) >= 1", "power(b.v, a.v) > 1",
    "power(b.v, a.n) <= 1", "power(b.n, a.n) < 1", "pmod(b.v, a.v) >= 0", "pmod(b.n, a.n) > 0",
    "pmod(b.n, a.v) > 1", "sign(b.v - a.v) = sign(b.n - a.n)", "sign(b.n * a.v) > 0", "exp(b.v - a.v) > 1", "ln(b.v * a.v) > 0", "log10(b.n + a.n) >= 0", "log2(b.v - a.v) < 3", "startswith(b.s, a.s)", "NOT startswith(b.s, a.s)",
    "(startswith(b.s, a.s) OR b.v > a.v)", "abs(b.v - a.v) > 1", "abs(b.n + a.n) > 0",
    "coalesce(b.v, a.v, 1) > 0", "coalesce(b.s, a.s) <= 'ab'", "greatest(b.v, a.v) > 2",
    "greatest(b.n, a.v) >= 3", "greatest(b.s, a.s) = 'ab'", "least(b.n, a.n, 3) > 0",
    "least(b.v, a.v) < 0", "b.s || a.s = 'ab'", "if(b.v > a.v, b.n, a.n) > 0",
    "nullif(b.n, a.n) > 0", "nullif(b.v, a.v) IS NULL",
    "CASE WHEN b.v > a.v THEN b.n WHEN a.n / b.n > 1 THEN a.n ELSE 0 - b.n END > 1",
    "CASE WHEN b.s = a.s THEN a.s WHEN b.n > 0 THEN b.s END > 'a'",
    "coalesce(b.v, a.v) / coalesce(b.n, a.n) > 1", "mod(b.n, a.n) > 0", "equal_null(b.s, a.s)",
    "ifnull(b.n, a.n) > 0", "isnull(b.v + a.v)", "iff(b.v > a.v, b.n, a.n) > 0",
)  # fmt: skip
OPERATORS = {*RULE_OPERATORS, "case", "coalesce"} - {"<=>", "div", "like", "truncate"}
"""Those that queries have and Spark has."""


def pairs() -> list[dict[str, Any]]:
    """Events of a and b by turns, of one key a pair, with all kinds of values."""
    chance = random.Random(7)
    kinds = (("v", FLOATS), ("n", INTS), ("s", TEXTS))
    return [
        {"k": number, "type": type_, **{name: chance.choice(values) for name, values in kinds}}
        for number in range(120)
        for type_ in "AB"
    ]


def program(text: str, events: list[dict[str, Any]], evaluation: str) -> set[int]:
    """Evaluate a condition of matches as a program."""
    query = f"PATTERN SEQ(A a, B b) WHERE [k] AND {text} WITHIN 1000000"
    return {match["a"][0]["k"] for match in matchSase(query, events, evaluation=evaluation)}


def values(text: str, events: list[dict[str, Any]]) -> tuple[set[int], set[int]]:
    """Evaluate a condition on matches in Python; also return the pairs for which it overflows."""
    query = parse(f"PATTERN SEQ(A a, B b) HAVING {text}")
    returns = Returns(query, lambda event, name: event[name])
    holds, fails = set(), set()
    for a, b in zip(events[::2], events[1::2], strict=True):
        try:
            if returns.keeps({"a": [a], "b": [b]}):
                holds.add(a["k"])
        except InputError as error:
            if not isinstance(error.__cause__, ArithmeticError):
                raise
            fails.add(a["k"])
    return holds, fails


def column(leaf: Any) -> str:
    return f"{leaf.variable}.{leaf.sql}"


def literal(leaf: Any) -> str:
    """Return what a case reads as Spark SQL."""
    kind, value = VALUES[leaf.attribute]
    return f"cast({'NULL' if value is None else repr(str(value))} AS {kind.value})"


def casts() -> dict[tuple[str, str], Any]:
    """Return as columns the casts that are not left to Spark; what ANSI refuses is NULL."""
    return {
        (kind, type_): F.expr(f"try_cast(`{kind}` AS {type_})").alias(f"{kind} as {type_}")
        for kind in CAST_VALUES
        for type_ in CAST_TYPES
        if CASTS.get((_kind(kind), _kind(type_)), Cast.BY_SPARK) is not Cast.BY_SPARK
    }


def _kind(type_: str) -> Any:
    known = cast_type(type_)
    assert known is not None
    return known.kind


def check_casts(answers: list[Any]) -> None:
    """Compare the casts of values in memory with Spark's."""
    for kind, type_ in casts():
        for row, value in zip(answers, CAST_VALUES[kind], strict=False):
            answer, found = row[f"{kind} as {type_}"], cast_in_memory(value, type_)
            expected = ERROR if answer is None and value is not None else answer
            assert same(found, expected), (kind, value, type_, found, expected)


def test_decimals_have_sparks_values_and_digits(spark: SparkSession) -> None:
    """The table of decimals, which each target follows: Spark's answers without ANSI, to the digit."""
    columns = {name: (kind.value, value) for name, (kind, value) in VALUES.items()} | DECIMALS
    schema = ", ".join(f"{name} {type_}" for name, (type_, _) in columns.items())
    with configured(spark, {**QUICK_FOR_MANY_PLANS, "spark.sql.ansi.enabled": "false"}):
        frame = spark.createDataFrame([tuple(value for _, value in columns.values())], schema)
        form = r"if(\1 < 0, ceil(\1, \2), floor(\1, \2))"
        texts = [re.sub(r"trunc\((\S+), (\S+)\)", form, text) for text in DECIMAL_CASES]
        asked = [F.expr(text).alias(f"c{number}") for number, text in enumerate(texts)]
        (answers,) = frame.select(*asked).collect()
    for (text, expected), answer in zip(DECIMAL_CASES.items(), answers, strict=True):
        assert (text, repr(answer)) == (text, repr(expected))


def test_numbers_are_truncated_as_sparks_floor_and_ceil_do(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The nearest number of some digits towards zero, of the type that round() has."""
    numbers = (None, 0.0, 2.55, -2.55, 0.06, -0.04, 1e10 + 0.987654, -99.999, 0.3, 5.0, 1234.5)
    events = [
        {"k": k, "type": kind, "v": v, "n": None if v is None else int(v), "p": p}
        for k, v in enumerate(numbers)
        for p in [None if v is None else Decimal(repr(v)).quantize(Decimal("0.001"))]
        for kind in "AB"
    ]
    asked = {
        f"{name}_{digits % 9}": (f"trunc(a.{name}, {digits})", name, digits)
        for name in "vnp" for digits in (0, 1, 2, -1) if name == "v" or digits >= 0
    }  # fmt: skip
    given = ", ".join(f"{text} AS {name}" for name, (text, *_) in asked.items())
    query = f"PATTERN SEQ(A a, B b) WHERE [k] RETURN a.k AS k, {given}"
    with configured(spark, {**QUICK_FOR_MANY_PLANS, "spark.sql.ansi.enabled": "false"}):
        schema = "k bigint, type string, v double, n bigint, p decimal(14,3)"
        frame = spark.createDataFrame([tuple(event.values()) for event in events], schema)
        matches = frame.where("type = 'A'").groupBy("k")
        matches = matches.agg(F.collect_list(F.struct("k", "v", "n", "p")).alias("a"))
        on_spark = returned(parse(query), matches).orderBy("k")
        types = dict(on_spark.dtypes)
        form = "cast(IF({0} < 0, ceil({0}, {1}), floor({0}, {1})) AS {2})"
        own = [
            F.expr(form.format(name, digits, types[key])).alias(key)
            for key, (_, name, digits) in asked.items()
        ]
        expected = frame.where("type = 'A'").select("k", *own).orderBy("k").collect()
        rounded = frame.selectExpr(*(f"round({x}, {d}) AS {k}" for k, (_, x, d) in asked.items()))
        assert rounded.dtypes == on_spark.dtypes[1:]
    wanted = repr([row.asDict() for row in expected])
    assert repr([row.asDict() for row in on_spark.collect()]) == wanted
    table = pa.Table.from_pylist(events, pa.schema({
        "k": pa.int64(), "type": pa.string(), "v": pa.float64(), "n": pa.int64(),
        "p": pa.decimal128(14, 3),
    }))  # fmt: skip
    assert repr(matchSase(query, table)) == wanted
    for row in expected[1:]:  # the types of a list of NULL alone are not known
        for key, (text, *_) in asked.items():
            if key.startswith("p"):  # lists have no decimals
                continue
            held = [{**e, "w": row[key], "p": 0} for e in events if e["k"] == row["k"]]
            more = text.replace("trunc(", "trunc(b.n * 0 + ")
            test = f"({more} = b.w OR ({more} IS NULL AND b.w IS NULL))"
            for switch in ("1", "0"):
                monkeypatch.setenv("PYFLINKCEP_KERNEL", switch)
                for evaluation in ("nfa", "eventLists"):
                    asks = f"PATTERN SEQ(A a, B b) WHERE [k] AND {test}"
                    assert len(matchSase(asks, held, evaluation=evaluation)) == 1, (text, held)


def test_every_function_of_numbers_has_sparks_value(spark: SparkSession) -> None:
    """Each declared one, for all kinds of numbers, in Python and on columns; C is held to these."""
    numbers = [(a, b) for a in (*FLOATS, 0.7, 710.0) for b in (1.0, -0.5, NAN, None, math.inf)]
    names = {name: ", ".join("ab"[: of.arity]) for name, of in NUMBER_FUNCTIONS.items()}
    frame = spark.createDataFrame(numbers, "a double, b double")
    answers = frame.selectExpr(*(f"{name}({names[name]}) AS {name}" for name in names)).collect()
    for name, function in NUMBER_FUNCTIONS.items():
        given = [pair[: function.arity] for pair in numbers]
        columns = [
            Values(np.asarray([x or 0.0 for x in column]), np.asarray([x is None for x in column]))
            for column in zip(*given, strict=True)
        ]
        code = [(Op.FIELD, place) for place in range(function.arity)]
        ranks = TextRanks({})
        found = computed((*code, (Op[name.upper()], None)), columns.__getitem__, ranks)
        rows = zip(found.data.tolist(), np.broadcast_to(found.nulls, len(given)), strict=True)
        for values_, answer, (number, is_null) in zip(given, answers, rows, strict=True):
            in_python = None if None in values_ else function.value(*values_)
            in_column = None if is_null else number
            for value in (in_python, in_column):
                expected = answer[name]
                is_same = same(value, expected) or (
                    None not in (value, expected) and math.isclose(value, expected, rel_tol=4e-16)
                )
                assert is_same, (name, values_, value, expected)


def test_every_operator_has_sparks_value_in_every_target(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NULL, NaN, overflow, division by zero, mixed types: as Spark says without ANSI; and casts."""
    events = pairs()
    trees = {text: parse(f"PATTERN SEQ(A a, B b) WHERE {text}").conditions[0] for text in RULES}
    used = {o.operator for tree in trees.values() for o in parts(tree) if isinstance(o, Operation)}
    assert used >= OPERATORS
    rows = [
        (a["k"], *((e["v"], e["n"], e["s"]) for e in (a, b)))
        for a, b in zip(events[::2], events[1::2], strict=True)
    ]
    kind = "struct<v: double, n: bigint, s: string>"
    rules = {text: of for text, of in {**CASES, **OVERFLOWS}.items() if "trunc" not in text}
    with configured(spark, {**QUICK_FOR_MANY_PLANS, "spark.sql.ansi.enabled": "false"}):
        values_to_cast = ", ".join(f"`{type_}` {type_}" for type_ in CAST_VALUES)
        padded = zip_longest(*CAST_VALUES.values(), [None] * len(rows))
        frame = spark.createDataFrame(
            [(*row, *held[:-1]) for row, held in zip(rows, padded, strict=True)],
            f"k bigint, a {kind}, b {kind}, {values_to_cast}",
        )
        asked = [
            F.expr(spark_sql(tree, column, zero_is_null=True)).alias(text)
            for text, tree in trees.items()
        ]
        asked += [
            F.expr(spark_sql(tree_of(text), literal, zero_is_null=True)).alias(f"rule {text}")
            for text in rules
        ]
        answers = frame.select("k", *asked, *casts().values()).orderBy("k").collect()
    check_casts(answers)
    for text, wanted in rules.items():
        assert same(answers[0][f"rule {text}"], wanted), (text, answers[0][f"rule {text}"], wanted)
    for text in RULES:
        expected = {row["k"] for row in answers if row[text]}
        assert (text, 0 < len(expected) < len(answers)) == (text, text != "b.n = NULL")
        for switch in ("1", "0"):
            monkeypatch.setenv("PYFLINKCEP_KERNEL", switch)
            for evaluation in ("nfa", "backtracking", "eventLists")[: 2 if "||" in text else 3]:
                where = text, evaluation, switch
                assert (where, program(text, events, evaluation)) == (where, expected)
        holds, fails = values(text, events)
        assert (text, holds) == (text, expected - fails)


GROUPS: tuple[list[tuple[float | None, int | None]], ...] = (
    [(None, None)], [(2.5, 3)], [(2.5, 3), (None, None), (-1.0, 4)], [(NAN, 1), (1.0, None)],
    [(1.0, 4), (NAN, 1)], [(math.inf, 2), (1.0, 2)], [(0.1, 5), (0.2, 7), (0.3, 5)],
    [(-0.0, -7), (0.0, 7)], [(1e300, 1), (-1e300, 2)], [(NAN, 0), (NAN, 0)], [(-0.0, None)],
    [(0.0, 3), (-0.0, 9), (-1.0, 2)], [(-1e308, -1), (1.7e308, 0)], [(-math.inf, 1), (math.inf, 2)],
    [(1e15, 2**53), (1e15 + 1, 2**53 + 2), (1e15 + 3, 2**53 + 1)], [(0.1, -1)] * 3,
)  # fmt: skip


def test_every_aggregate_has_sparks_value_in_every_target(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Aggregates of nothing, of NULL, of NaN and of one value: as Spark's own aggregates."""
    functions = [
        name for name, of in AGGREGATES.items()
        if name not in ("first", "last") and not of.condition
    ]  # fmt: skip
    asked = {
        f"{function}_{name}": f"{function}(b[].{name})" for function in functions for name in "vn"
    }
    asked["if_v"] = "count_if(b[].v > 1)"
    asked["if_both"] = "count_if(b[].n > 2 AND NOT b[].v = 2.5)"
    events = []
    for number, group in enumerate(GROUPS):
        rows = [("A", None, None), *(("B", v, n) for v, n in group), ("C", None, None)]
        events += [{"k": number, "type": kind, "v": v, "n": n} for kind, v, n in rows]
    given = ", ".join(f"{text} AS {name}" for name, text in asked.items())
    query = (
        f"PATTERN SEQ(A a, B+ b[], C c) WHERE partition_contiguity AND [k] RETURN c.k AS k, {given}"
    )
    with configured(spark, {**QUICK_FOR_MANY_PLANS, "spark.sql.ansi.enabled": "false"}):
        schema = "k bigint, type string, v double, n bigint"
        rows = [tuple(event.values()) for event in events]
        frame = spark.createDataFrame(rows, schema).coalesce(1)  # partial sums would be added
        own = [F.expr(text.replace("b[].", "")).alias(name) for name, text in asked.items()]
        expected = frame.where("type = 'B'").groupBy("k").agg(*own).orderBy("k").collect()
        array = F.collect_list(F.when(F.col("type") == "B", F.struct("v", "n")))
        matches = frame.groupBy("k").agg(array.alias("b"), F.array(F.struct("k")).alias("c"))
        on_spark = returned(parse(query), matches).orderBy("k").collect()
    assert repr([row.asDict() for row in on_spark]) == repr([row.asDict() for row in expected])
    found = matchSase(query, events, evaluation="nfa")
    assert repr(found) == repr([row.asDict() for row in expected])
    for row, group in zip(expected, GROUPS, strict=True):
        for name, text in asked.items():
            held = [event for event in events if event["k"] == row["k"]]
            held[-1] = {**held[-1], "w": row[name]}
            test = f"({text} = c.w OR ({text} IS NULL AND c.w IS NULL))"
            for switch in ("1", "0"):
                monkeypatch.setenv("PYFLINKCEP_KERNEL", switch)
                lists = f"PATTERN A a; B^{len(group)} b; C c WHERE {test}"
                loops = f"PATTERN SEQ(A a, B+ b[], C c) WHERE strict_contiguity AND {test}"
                assert len(matchSase(lists, held)) == 1, (name, group)
                assert len(matchSase(loops, held, evaluation="nfa")) == 1, (name, group)
