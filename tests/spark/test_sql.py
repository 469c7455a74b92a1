# SPDX-License-Identifier: Apache-2.0
"""MATCH_RECOGNIZE on Spark: recorded answers, bounded and as streams, and the statement around."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from pyflinkcep import CEP, Pattern, matchRecognize
from pyflinkcep.errors import CepError
from pyflinkcep.spark.plan.clauses import job
from pyflinkcep.spark.plan.engine import Engine
from tests.conformance.cases import Case
from tests.conformance.sql_cases import flink_cases, problem, problem_with_error, standard_cases
from tests.spark.logins import CLAUSE, logins
from tests.spark.support import configured, in_one_job
from tests.unit.tables.test_recognize import (
    GUARDED_BY_MATCH,
    GUARDED_CLAUSE,
    LATE_CLAUSE,
    LATE_MEASURES,
)

pytestmark = pytest.mark.spark

_TYPES = {"TIMESTAMP(3)": "timestamp", "DECIMAL(10, 2)": "decimal(10,2)"}
_NAMED = (
    "itcase-star-offsets.batch", "itcase-aggregates-nulls.batch", "decimal-sum.batch",
    "order-by-desc-nulls.batch", "match-of-matches.batch", "two-in-one-query.batch",
    "select-list-and-where.batch", "unknown-column.batch", "condition-not-boolean.batch",
    "order-by-other-column.batch", "held-back-window-end-plain.batch", "null-key.batch",
    "skip A{2}|TO FIRST A.batch",
)  # fmt: skip


def _type(flink: str) -> str:
    return _TYPES.get(flink, flink.lower())


def _python(flink: str, value: Any) -> Any:
    if value is None:
        return None
    if flink.startswith("TIMESTAMP"):
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=value)
    if flink == "DATE":
        return date(1970, 1, 1) + timedelta(days=value)
    if flink.startswith("DECIMAL"):
        return Decimal(str(value))
    return float(value) if flink == "DOUBLE" else value


def _rows(case: Case) -> list[tuple[Any, ...]]:
    types = [type_ for _, type_ in case["columns"]]
    return [tuple(map(_python, types, item)) for item in case["items"] if isinstance(item, list)]


def case_frame(spark: SparkSession, case: Case) -> DataFrame:
    """Return the rows of a recorded case."""
    schema = ", ".join(f"`{name}` {_type(type_)}" for name, type_ in case["columns"])
    return spark.createDataFrame(_rows(case), schema).coalesce(1)


_BOUNDED = [
    case
    for at, case in enumerate([*flink_cases(), *standard_cases()])
    if case["id"] in _NAMED or (case["mode"] == "batch" and at % 90 == 0)
]


@pytest.mark.parametrize("case", _BOUNDED, ids=lambda case: case["id"])
def test_recorded_answers(spark: SparkSession, case: Case) -> None:
    """A bounded statement gives the recorded rows, or the recorded error."""
    case_frame(spark, case).createOrReplaceTempView("events")
    try:
        result = CEP.sql(spark, case["sql"], dialect=case.get("dialect", "flink"))
        found = problem(case, result.columns, [list(row) for row in result.collect()])
    except Exception as raised:
        found = problem_with_error(case, raised)

    assert found is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT 1", "no MATCH_RECOGNIZE ( in the statement"),
        (
            "SELECT * FROM (SELECT *, ts AS Ts FROM logins) MATCH_RECOGNIZE (ORDER BY time "
            "MEASURES 1 AS one PATTERN (A) DEFINE A AS ts > 1)",
            "the input of MATCH_RECOGNIZE has two columns named 'ts'",
        ),
        ("SELECT * FROM nothing MATCH_RECOGNIZE (CLAUSE)", "Spark refuses the input of"),
        ("SELECT nothing FROM logins MATCH_RECOGNIZE (CLAUSE)", "Spark refuses the statement"),
        (
            "SELECT * FROM logins MATCH_RECOGNIZE (ORDER BY time MEASURES stddev(A.ts) AS s "
            "PATTERN (A) DEFINE A AS ts > 1)",
            "STDDEV: Flink's dialect has COUNT, SUM, AVG, MIN, MAX",
        ),
        (
            "SELECT * FROM logins MATCH_RECOGNIZE (ORDER BY time MEASURES MIN(struct(A.ts)) AS s "
            "PATTERN (A) DEFINE A AS ts > 1)",
            "measure s: MIN of struct(ts), which is struct<ts:bigint>",
        ),
    ],
)
def test_refusals_come_before_a_job(
    spark: SparkSession, tmp_path: Path, text: str, message: str
) -> None:
    """What Spark cannot do with a statement is refused when it is planned, with its place."""
    logins(tmp_path).bounded(spark).createOrReplaceTempView("logins")

    with pytest.raises(CepError) as raised:
        CEP.sql(spark, text.replace("CLAUSE", CLAUSE))

    assert message in raised.value.message
    assert "line 1, column" in raised.value.message


@pytest.mark.parametrize("dialect", ["flink", "standard"])
def test_averages_of_wide_decimals_and_differences_of_times(
    spark: SparkSession, dialect: str
) -> None:
    """
    Both dialects average decimals of up to 38 digits, to the last one that AVG has, and take
    differences of times in DEFINE.

    Whole numbers are averaged as doubles, in MEASURES and DEFINE, also beside other aggregates.
    """
    mean = 2.0**53 / 3  # of 2**53, 1 and 1, which are added as doubles
    others = "" if dialect == "flink" else "AND stddev(C.n) > 1"
    text = f"""SELECT mean, fine, gap, whole FROM (
          SELECT cast(d AS decimal(38, 9)) AS w, timestamp_seconds(s) AS ts, n,
            cast(if(s < 2, 1.000000BD, 1.000001BD) AS decimal(28, 6)) AS f
          FROM (VALUES (1, 99999999999999999999.9BD, 0L), (3, 1.1BD, 0L), (4, NULL, {2**53}),
            (5, NULL, 1L), (6, NULL, 1L), (7, NULL, 9L)) AS v(s, d, n))
        MATCH_RECOGNIZE (ORDER BY ts MEASURES AVG(w) AS mean, AVG(f) AS fine, LAST(B.ts) - A.ts AS gap,
        AVG(C.n) AS whole AFTER MATCH SKIP PAST LAST ROW PATTERN (A B C{{3}} D)
        DEFINE B AS timestampdiff(SECOND, A.ts, B.ts) = 2 AND B.ts > A.ts
        AND second(A.ts) = 1 AND round(A.w) > B.w, D AS AVG(C.n) = {mean} {others}) AS m"""
    (row,) = CEP.sql(spark, text, dialect=dialect).collect()

    fine = Decimal("1.0000008333")  # of one that is 0.000001 less than the other five
    assert tuple(row) == (Decimal("50000000000000000000.5"), fine, timedelta(seconds=2), mean)


def test_an_engine_that_does_not_keep_the_order_of_rows(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the worker sorts, with Spark's order of values: NaN last, -0.0 as 0.0, nulls as said."""
    monkeypatch.setattr(job, "engine_of", lambda _: Engine("another", keeps_order=False))
    values = "(1, 'NaN'), (2, '0.0'), (3, '-0.0'), (4, NULL), (5, '-1.5'), (6, '0.0')"
    rows = f"(SELECT id, cast(x AS double) AS X, id % 2 = 0 AS k FROM VALUES {values} AS v(id, x))"
    found = {}
    for name, order in {"up": "x", "down": "x DESC NULLS FIRST", "two": "x IS NULL"}.items():
        events = f"(SELECT *, {order} AS y FROM {rows})" if name == "two" else rows
        by = "y, id DESC" if name == "two" else order
        for part in ("", "PARTITION BY k "):
            clause = (
                f"{part}ORDER BY {by} MEASURES ARRAY_AGG(A.id) AS ids PATTERN (A+) DEFINE A AS true"
            )
            text = f"SELECT array_join(ids, ' ') FROM {events} MATCH_RECOGNIZE ({clause}) AS m"
            found[name + part] = CEP.sql(spark, text, dialect="standard").toDF()
    key = "PARTITION BY k "

    assert {name: sorted(rows) for name, rows in in_one_job(found).items()} == {
        "up": ["4 5 2 3 6 1"],
        f"up{key}": ["4 2 6", "5 3 1"],
        "down": ["4 1 2 3 6 5"],
        f"down{key}": ["1 3 5", "4 2 6"],
        "two": ["6 5 3 2 1 4"],
        f"two{key}": ["5 3 1", "6 2 4"],
    }


def test_matches_of_which_no_column_is_read(spark: SparkSession) -> None:
    """A match is a row even if its measures read nothing, in both dialects and without columns."""
    rows = "(VALUES (1L, 1), (2L, 5), (3L, 2), (4L, 7)) AS t(ts, v)"
    clause = "ORDER BY ts MEASURES 1 AS one PATTERN (A B) DEFINE B AS B.v > A.v"
    text = f"SELECT one FROM {rows} MATCH_RECOGNIZE ({clause}) AS m"
    bare = spark.range(2).select()
    every = "ALL ROWS PER MATCH PATTERN (A)"
    found = in_one_job(
        {
            "flink": CEP.sql(spark, text).toDF(),
            "standard": CEP.sql(spark, text, dialect="standard").toDF(),
            "no columns": matchRecognize(bare, every, dialect="standard").selectExpr("1"),
            "no measures": matchRecognize(bare, "PATTERN (A)", dialect="standard").selectExpr("1"),
        }
    )

    assert list(found) == ["flink", "standard", "no columns", "no measures"]
    assert all(rows == [1, 1] for rows in found.values())


def test_any_aggregate_and_functions_of_several_rows(spark: SparkSession) -> None:
    """Spark computes aggregates over a match's rows, and DEFINE has what Python or it can say."""
    rows = """(VALUES ('p', 1, 10, 1.5BD), ('p', 2, 8, 2.5BD), ('p', 3, 6, 3.25BD),
        ('q', 4, 9, NULL), ('q', 5, 12, 5.0BD)) AS t(k, id, v, d)"""

    def found(clause: str, args: Any = None) -> DataFrame:
        text = f"SELECT * FROM {rows} MATCH_RECOGNIZE ({clause}) AS m"
        return CEP.sql(spark, text, dialect="standard", args=args).toDF()

    folds = """PARTITION BY t.k ORDER BY t.id MEASURES count(DISTINCT A.v % 2) AS a,
        max_by(id, v) FILTER (WHERE v < 11) AS b, collect_list(A.d) AS c, bool_or(v > 11) AS d,
        listagg(B.k, '-') WITHIN GROUP (ORDER BY B.v) AS e, sum(MATCH_NUMBER() * 100) AS f,
        percentile(v, 0.5) AS g, any_value(B.id) AS h, array_agg(MATCH_NUMBER() = 1) AS i,
        (SELECT max(v) FROM VALUES (7) AS o(v)) + LAST(id) AS j PATTERN (A+ B?)"""
    running = """ORDER BY id MEASURES RUNNING median(v) AS r, FINAL median(v) AS f,
        MATCH_NUMBER() AS n ALL ROWS PER MATCH WITH UNMATCHED ROWS
        PATTERN (A B) DEFINE B AS date_format(make_date(2026, B.id, 1), 'MM') > '02'
        AND concat_ws('-', B.k, PREV(B.k)) = 'p-p'"""
    mixed = """ORDER BY id MEASURES A.id AS a, B.id AS b AFTER MATCH SKIP TO NEXT ROW
        PATTERN (A C*? B) DEFINE B AS upper(A.k || B.k) = :keys AND (B.d - A.d) / A.d > 0.6
        AND stddev(B.v) IS NULL AND 6 IN (SELECT 6)"""
    results = {
        "folds": found(folds),
        "running": found(running).select("id", "r", "f", "n"),
        "mixed": found(mixed, {"keys": "PP"}),
    }
    answers = {
        name: sorted(texts)
        for name, texts in in_one_job(
            {name: frame.selectExpr("to_json(struct(*))") for name, frame in results.items()}
        ).items()
    }

    assert answers == {
        "folds": [
            '{"k":"p","a":1,"b":1,"c":[1.50,2.50,3.25],"d":false,"f":300,"g":8.0,'
            '"i":[true,true,true],"j":10}',
            '{"k":"q","a":2,"b":4,"c":[5.00],"d":true,"f":200,"g":10.5,"i":[true,true],"j":12}',
        ],
        "running": [
            '{"id":1}',
            '{"id":2,"r":8.0,"f":7.0,"n":1}',
            '{"id":3,"r":7.0,"f":7.0,"n":1}',
            '{"id":4}',
            '{"id":5}',
        ],
        "mixed": ['{"a":1,"b":2}'],
    }


@pytest.mark.parametrize(
    ("define", "message", "hint"),
    [
        ("regexp_replace(A.k || B.k, 'p', '') = ''", "regexp_replace() can only be", "subquery"),
        ("corr(A.v, A.id) > 0.5", "CORR with 2 arguments in DEFINE", "the aggregates of DEFINE"),
        ("upper(A.k || B.k)", "not a condition: expected boolean, got string", "compare it"),
        ("nothing(A.v, B.v) > 1", "Cannot resolve routine `nothing`", "a function that Spark has"),
        ("upper(A.k || B.k) = 'PP'", "rules of spark.sql.ansi.enabled", "to true"),
        ("B.v > (SELECT max(x) FROM nowhere)", "TABLE_OR_VIEW_NOT_FOUND", "subqueries read"),
        ("B.d - A.d <= 2", '"INTERVAL DAY" and "INT"', "datediff(later, earlier)"),
    ],
)
def test_conditions_that_nothing_computes(
    spark: SparkSession, define: str, message: str, hint: str
) -> None:
    """They are refused in the words of the statement, with what exists."""
    frame = spark.createDataFrame([], "k string, id int, v int, d date")
    clause = f"ORDER BY id MEASURES id AS i PATTERN (A B) DEFINE B AS {define}"
    ansi = {"spark.sql.ansi.enabled": str("ansi" not in message).lower()}
    with configured(spark, ansi), pytest.raises(CepError) as raised:
        matchRecognize(frame, clause, dialect="standard")

    assert message in raised.value.message
    assert "__cep" not in raised.value.message
    assert hint in (raised.value.hint or "")


def test_measures_that_spark_refuses_are_told_as_written(spark: SparkSession) -> None:
    """Its message names what was written, whichever columns hold the values."""
    frame = spark.createDataFrame([], "id int, v int, d date")
    clause = """ORDER BY id MEASURES B.v AS v, B.d - A.d <= 2 AS m, AVG(B.v) < A.d AS a
        PATTERN (A B)"""
    told = {}
    for name, left_out in (("m", ", AVG(B.v) < A.d AS a"), ("a", ", B.d - A.d <= 2 AS m")):
        with pytest.raises(CepError) as raised:
            matchRecognize(frame, clause.replace(left_out, ""), dialect="standard")
        told[name] = raised.value.message

    assert '"((B.d - A.d) <= 2)"' in told["m"]
    assert '"(AVG(B.v) < A.d)"' in told["a"]


@pytest.mark.usefixtures("compiled_plans")  # lists of tables need them
def test_views_of_matches_and_no_others_stay(spark: SparkSession) -> None:
    """A temporary view, also global or cached, can be read; no view of our own stays behind."""
    matched = """SELECT a FROM (VALUES (1L), (2L), (3L)) AS t(ts) MATCH_RECOGNIZE
        (ORDER BY ts MEASURES A.ts AS a PATTERN (A B) DEFINE A AS ts > 1) AS m"""
    before = {table.name for table in spark.catalog.listTables()}
    CEP.sql(spark, f"CREATE TEMPORARY VIEW kept AS {matched}")
    CEP.sql(spark, f"CREATE OR REPLACE TEMP VIEW kept (b COMMENT 'of A') AS {matched}")
    CEP.sql(spark, f"CREATE OR REPLACE GLOBAL TEMPORARY VIEW kept AS {matched}")
    CEP.sql(spark, f"CACHE LAZY TABLE cached AS {matched}")
    names = {table.name for table in spark.catalog.listTables()}
    kept = [spark.table(name).collect() for name in ("kept", "global_temp.kept", "cached")]
    spark.catalog.dropTempView("kept")
    spark.catalog.dropGlobalTempView("kept")
    spark.catalog.dropTempView("cached")

    assert kept == [[Row(b=2)], [Row(a=2)], [Row(a=2)]]
    assert names == {*before, "kept", "cached"}


def test_columns_order_events_of_equal_time_for_the_fluent_api(spark: SparkSession) -> None:
    """orderBy takes the place of a comparator: the same order, by columns."""
    events = spark.createDataFrame([(1, 2), (1, 3), (1, 1), (2, 9)], "ts bigint, id int").coalesce(
        1
    )
    pattern = Pattern.begin("a").where("id > 0").next("b").where("id > 0")

    def pairs(**order: Any) -> list[tuple[int, int]]:
        found = CEP.pattern(events, pattern, **order).inEventTime("ts").toDF()
        return sorted((row.a[0].id, row.b[0].id) for row in found.collect())

    assert pairs(orderBy=["ID desc"]) == [(1, 9), (2, 1), (3, 2)]
    assert pairs(orderBy=["ID desc"]) == pairs(comparator=lambda row: -row.id)
    with pytest.raises(CepError, match="both a comparator and orderBy"):
        pairs(orderBy=["id"], comparator=lambda row: row.id)
    with pytest.raises(CepError, match="order column 'price' is not among"):
        pairs(orderBy=["price"])


def test_columns_whose_names_differ_in_capitals(spark: SparkSession) -> None:
    """Where the session tells them apart, each name is its own column: in measures and orders."""
    clause = """ORDER BY at MEASURES A.v AS small, A.V AS great, SUM(B.v) AS v, SUM(B.V) AS V
        PATTERN (A B) DEFINE A AS v = 1, B AS B.v > LAST(A.v)"""
    with configured(spark, {"spark.sql.caseSensitive": "true"}):
        rows = [(1, 1, 40), (2, 2, 30), (2, 3, 20), (3, 4, 10)]
        events = spark.createDataFrame(rows, "at bigint, v bigint, V bigint").coalesce(1)
        found = [
            matchRecognize(events, clause, dialect).toDF("a", "b", "c", "d")
            for dialect in ("flink", "standard")
        ]
        pattern = Pattern.begin("a").where("at = 1").next("b")
        first = CEP.pattern(events, pattern, orderBy=["V"]).inEventTime("at").toDF()
        union = found[0].unionAll(found[1]).unionAll(first.selectExpr("0L", "b[0].v", "0L", "0L"))
        answers = {tuple(row) for row in union.collect()}

    assert answers == {(1, 40, 2, 30), (0, 3, 0, 0)}


def test_columns_with_names_of_our_own(spark: SparkSession) -> None:
    """A column may have any name but those that begin as ours do, which are refused."""
    clause = """ORDER BY at MEASURES CLASSIFIER() AS is_a ALL ROWS PER MATCH WITH UNMATCHED ROWS
        PATTERN (A) DEFINE A AS Matched = 5"""
    rows = spark.createDataFrame([(1, 5, 7), (2, 6, 8)], "at bigint, Matched int, `argument 0` int")
    found = matchRecognize(rows, clause, "standard").collect()

    assert [tuple(row) for row in sorted(found)] == [(1, "A", 5, 7), (2, None, 6, 8)]
    with pytest.raises(CepError, match=r"'__cep_leaf0'.* begin with"):
        matchRecognize(rows.withColumnRenamed("argument 0", "__cep_leaf0"), clause, "standard")


def test_explain_tells_how_the_pattern_runs(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """explain() of a clause's result prints states and conditions, and with arguments a plan."""
    result = matchRecognize(logins(tmp_path).bounded(spark), CLAUSE)

    result.explain()
    shown = capsys.readouterr().out
    result.explain("simple")

    assert "CEP: F{2,} ⇒ O" in shown
    assert "result = 'fail'" in shown
    assert "Physical Plan" in capsys.readouterr().out


@pytest.mark.parametrize("bound", [None, 5])
def test_explain_tells_whether_a_bound_keeps_all_events(
    bound: int | None, spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With maxPartialMatches no event is dropped before the shuffle, in a clause as elsewhere."""
    clause = """
        PARTITION BY user ORDER BY ts MEASURES O.ts AS at PATTERN (F X*? O)
        DEFINE F AS result = 'fail', X AS result = 'none', O AS result = 'ok'
    """
    matchRecognize(logins(tmp_path).bounded(spark), clause, maxPartialMatches=bound).explain()

    kept = "no event: maxPartialMatches counts" in capsys.readouterr().out
    assert kept == (bound is not None)


@pytest.mark.parametrize("dialect", ["flink", "standard"])
def test_measures_are_computed_for_the_rows_of_their_variable(
    spark: SparkSession, dialect: Any
) -> None:
    """Rows of no match, or of another variable, may have values for which they would fail."""
    rows = [(0, "b", 0, "x"), (1, "a", 2, "1"), (2, "a", 4, "2"), (3, "b", 0, "y")]
    frame = spark.createDataFrame(rows, "t bigint, k string, v int, s string")
    written = ", ".join(f"{text} AS r{at}" for at, text in enumerate(LATE_MEASURES))
    clause = LATE_CLAUSE.replace("{} AS r", written)

    (row,) = matchRecognize(frame, clause, dialect=dialect).collect()

    assert list(row) == list(LATE_MEASURES.values())
    if dialect == "standard":
        each = clause.replace(
            written, "SUM(1 / A.v) AS r0, LAST(1 / A.v) AS r1, COUNT(1 / A.v) AS r2"
        )
        each = each.replace("AFTER", "ALL ROWS PER MATCH AFTER")
        found = matchRecognize(frame, each, dialect=dialect).select("r0", "r1", "r2").collect()
        assert [*map(tuple, found)] == [
            (None, None, 0),
            (0.5, 0.5, 1),
            (0.75, 0.25, 2),
            (0.75, 0.25, 2),
        ]


def test_a_cast_that_the_match_guards_does_not_fail(spark: SparkSession) -> None:
    """What is known of the match keeps texts from a cast, which Spark would compute for all rows."""
    rows = [(1000, 1, "1"), (2000, 0, "x"), (3000, None, None), (4000, 2, "2")]
    frame = spark.createDataFrame(rows, "ts bigint, v int, s string")

    for condition, expected in GUARDED_BY_MATCH:
        found = matchRecognize(frame, GUARDED_CLAUSE.format(condition), dialect="standard")
        assert [row.ts // 1000 for row in found.collect()] == expected, condition
