# SPDX-License-Identifier: Apache-2.0
"""The standard's dialect on lists: names, and what is refused before a row is looked at."""

from __future__ import annotations

import pickle
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from pyflinkcep.engines.rows.matching import PLACE, Matching, Partitions
from pyflinkcep.engines.rows.values import fold_function
from pyflinkcep.errors import CepError, InputError, NotSupportedError
from pyflinkcep.expressions.evaluator import RowTypes
from pyflinkcep.expressions.grammar import parsed
from pyflinkcep.expressions.program import Kind
from pyflinkcep.expressions.sql_types import SqlType
from pyflinkcep.match_recognize.expressions import condition_leaves
from pyflinkcep.match_recognize.leaves import Fold, has_label, labelled
from tests.unit.match_recognize.lists import (
    ListColumns,
    answer,
    condition_arguments,
    plans,
    reading,
)

_COLUMNS = [["id", "INT"], ["k", "STRING"], ["name", "STRING"], ["v", "DOUBLE"]]
_ROWS = [[1, "x", "a", 1.0], [2, "x", "b", 2.0], [3, "y", "a", None], [4, "x", "b", 4.0]]


def _kind(sql: str) -> Kind:
    return Kind.BOOLEAN if ">" in sql else Kind.STRING


def _case(clause: str) -> dict[str, Any]:
    sql = f"SELECT * FROM events MATCH_RECOGNIZE ({clause}) AS m"
    return {"sql": sql, "columns": _COLUMNS, "items": _ROWS}


def test_capitals_make_no_difference_to_variables() -> None:
    """Variables and unions are found however they are written; PATTERN has the last word."""
    clause = """ORDER BY id MEASURES a.id AS i, B.ID AS j, last(classifier(u)) AS c
        AFTER MATCH SKIP TO LAST B PATTERN (a b) SUBSET U = (A, B)
        DEFINE A AS name = 'a' AND A.v IS NOT NULL, b AS B.Name = 'b'"""

    assert answer(None, _case(clause)) == (["i", "j", "c"], [(1, 2, "b")])


@pytest.mark.parametrize(
    ("clause", "message"),
    [
        ("PATTERN (a A)", "the variables a and A differ in capitals only"),
        ("PATTERN (A B) SUBSET u = (A), U = (B)", "the variables u and U differ in capitals only"),
        ("PATTERN (A) SUBSET U = (A, C)", "SUBSET U: C is not a variable"),
        ("AFTER MATCH SKIP TO C PATTERN (A)", "AFTER MATCH SKIP TO C: no such variable"),
        ("PATTERN (DOWN) DEFINE DWON AS v > 1", "DEFINE DWON: PATTERN has no DWON"),
        ("PATTERN (A) DEFINE A AS C.v > 1", "'C.v': C is not a variable of PATTERN"),
        ("MEASURES v AS ID ALL ROWS PER MATCH PATTERN (A)", "measure ID is a column of the input"),
        (f"PATTERN ({' '.join(f'V{n}' for n in range(257))})", "257 variables, more than 256"),
        ("PATTERN (A) DEFINE A AS LAST(A.v, 10001) > 1", "an offset of more than 10000 in DEFINE"),
        ("PATTERN (A{70000})", "steps when quantifiers and PERMUTE are expanded"),
        ("PATTERN (A B{0})", "B{0}: expected at least 1 as the greatest number of times"),
        ("PATTERN (A (B C){,0})", "expected at least 1 as the greatest number of times"),
        ("MEASURES FINAL PREV(id) AS i PATTERN (A)", "FINAL PREV: expected FIRST, LAST or an"),
        ("MEASURES RUNNING v AS i PATTERN (A)", "RUNNING v: expected FIRST, LAST or an aggregate"),
        ("MEASURES FINAL upper(k) AS i PATTERN (A)", "FINAL upper: expected FIRST, LAST or an"),
        ("MEASURES MATCH_NUMBER(A) AS i PATTERN (A)", "MATCH_NUMBER(A) has an argument"),
        ("MEASURES CLASSIFIER(A, A) AS i PATTERN (A)", "CLASSIFIER(A, A) has 2 arguments"),
        ("MEASURES LAST(1) AS i PATTERN (A)", "LAST(1) has no column inside"),
        ('MEASURES PREV("v") AS i PATTERN (A)', '"v" is a text in Spark SQL, and a column has'),
        ('PATTERN (A) DEFINE A AS "V" > 1', '"V" is a text in Spark SQL, and a column has that'),
        ("MEASURES LAG(v, 1, 0) AS i PATTERN (A)", "LAG(v, 1, 0): PREV has no default"),
        ("MEASURES FIRST(MATCH_NUMBER()) AS i PATTERN (A)", "MATCH_NUMBER inside FIRST"),
        (
            "PATTERN (A) DEFINE A AS v IN (SELECT i FROM t MATCH_RECOGNIZE (PATTERN (A)))",
            "inside a clause",
        ),
        ("MEASURES max_by(A.v, B.v) AS i PATTERN (A B)", "is over two variables (A, B)"),
        ("MEASURES stddev(sum(v)) AS i PATTERN (A B)", "an aggregate inside STDDEV"),
        ("MEASURES stddev(LAST(v)) AS i PATTERN (A B)", "LAST inside STDDEV"),
        ("MEASURES sum(v) OVER () AS i PATTERN (A B)", "a window function"),
        ("PATTERN (A B) DEFINE B AS v > avg(v) OVER ()", "a window function"),
    ],
)
def test_what_means_nothing_is_refused_with_its_place(clause: str, message: str) -> None:
    """Names of nothing, names of two things and patterns beyond all bounds are refused."""
    measures = "" if "MEASURES" in clause else "MEASURES id AS i "
    with pytest.raises(CepError) as raised:
        reading(_case(f"ORDER BY id {measures}{clause}"))

    assert message in raised.value.message
    assert "line 1, column " in raised.value.message
    assert raised.value.hint


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("PARTITION BY u.k", "u.k: u is not the table before the clause"),
        ("ORDER BY id, ID DESC", "ORDER BY ID twice: ALL ROWS PER MATCH would show it twice"),
    ],
)
def test_wrong_columns_are_refused(columns: str, message: str) -> None:
    """A column may have the table's name before it, no other, and is named once."""
    with pytest.raises(CepError, match=message):
        reading(_case(f"{columns} ALL ROWS PER MATCH PATTERN (A)"))

    assert reading(_case("PARTITION BY Events.k ORDER BY events.id PATTERN (A)"))


def test_a_text_alone_in_a_subquery_is_no_literal() -> None:
    """Spark reads SELECT 'x' as a literal of the type SELECT where an expression may stand."""
    case = _case("ORDER BY id MEASURES array_agg(k IN (SELECT 'x')) AS m PATTERN (A)")
    (leaf,) = reading(case).measure_leaves()

    assert leaf.argument == "k IN (SELECT ALL 'x')"


def test_subqueries_see_the_named_queries_of_the_statement() -> None:
    """A WITH before the clause goes into its subqueries; places in errors stay those written."""
    case = _case("ORDER BY id MEASURES LAST(v > (SELECT max(n) FROM w)) AS m PATTERN (A)")
    case["sql"] = f"WITH w AS (SELECT 1 AS n) {case['sql']}"
    (leaf,) = reading(case).measure_leaves()

    assert leaf.argument == "v > (WITH w AS (SELECT 1 AS n) SELECT max(n) FROM w)"
    case["sql"] = case["sql"].replace(" AS m PATTERN", " + C.v AS m PATTERN")
    with pytest.raises(CepError) as raised:
        reading(case)

    assert f"line 1, column {case['sql'].index('C.v') + 1}: C.v" in raised.value.message


def test_a_definition_of_an_unknown_variable_names_the_nearest() -> None:
    """A misspelt variable of DEFINE would accept every row; Flink ignores it, the standard not."""
    case = _case("ORDER BY id MEASURES id AS i PATTERN (UP DOWN) DEFINE UP AS v < 1, DWON AS v > 1")
    with pytest.raises(CepError) as raised:
        reading(case)

    assert raised.value.hint == "did you mean 'DOWN'?"
    assert plans(case["sql"], [name for name, _ in _COLUMNS], "flink")


def test_sums_of_decimals_are_exact() -> None:
    """A decimal of 38 digits loses none in a sum."""
    case = _case("ORDER BY id MEASURES SUM(v) AS s PATTERN (A+) DEFINE A AS TRUE")
    case["items"] = [
        [n, "x", "a", Decimal("1234567890123456789012345678901234567.5")] for n in (1, 2)
    ]

    assert answer(None, case)[1] == [(Decimal("2469135780246913578024691357802469135"),)]


@pytest.mark.usefixtures("each_path")
@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("upper(LAST(A.name)) = 'A'", [(1, 2), (3, 4)]),
        ("upper(A.name) < B.name AND upper(B.name) = 'B'", [(1, 2), (3, 4)]),
        ("upper(FIRST(A.name, 1)) IS NULL AND upper(PREV(B.name)) = 'A'", [(1, 2), (3, 4)]),
        ("coalesce(upper(LAST(A.name, 1)), 'none') = 'none' AND A.id = 3", [(3, 4)]),
        ("upper(NEXT(A.k)) = 'Y' OR upper(A.k) = 'Y'", [(3, 4)]),
    ],
)  # fmt: skip
def test_functions_of_a_row_elsewhere(condition: str, rows: list[Any]) -> None:
    """A function of one row's columns is computed at that row, NULL if there is none."""
    clause = f"""ORDER BY id MEASURES A.id AS a, B.id AS b PATTERN (A B)
        DEFINE A AS name = 'a', B AS {condition}"""

    assert answer(None, _case(clause))[1] == rows


@pytest.mark.parametrize(
    ("word", "meaning"),
    [
        ("classifier", "CLASSIFIER()"),
        ("MATCH_NUMBER", "MATCH_NUMBER()"),
        ("count()", "count(*)"),
        ("FINAL count()", "FINAL count(*)"),
        ("MATCH_SEQUENCE_NUMBER()", "count(*)"),
        ("arbitrary(v)", "any_value(v)"),
        ("LAST(events.v)", "LAST(v)"),
    ],
)
def test_words_of_other_systems_are_understood(word: str, meaning: str) -> None:
    """Snowflake's and Trino's names of functions mean the standard's or Spark's."""
    clause = "ORDER BY id MEASURES {} AS m PATTERN (A)"
    if word.startswith("LAST"):
        with pytest.raises(CepError, match="events is the table, not a variable"):
            reading(_case(clause.format(word)))
        return
    found, expected = (reading(_case(clause.format(text))) for text in (word, meaning))

    assert found.measure_leaves() == expected.measure_leaves()


@pytest.mark.usefixtures("each_path")
def test_lag_and_lead_stop_at_the_ends_of_the_match() -> None:
    """As Snowflake's; PREV and NEXT do not, and in DEFINE LAG sees the row before the match."""
    clause = """ORDER BY id MEASURES LAG(A.id) AS a, lead(A.id) AS b, PREV(A.id) AS c,
        LEAD(id) AS d, NEXT(id) AS e, LAG(CLASSIFIER()) AS f
        PATTERN (A B) DEFINE A AS LAG(id) IS NOT NULL"""

    assert answer(None, _case(clause))[1][0] == (None, 3, 1, None, 4, "A")


def test_a_column_named_as_a_function_is_the_column() -> None:
    """CLASSIFIER without brackets is the function only if no column has that name."""
    case = _case("ORDER BY id MEASURES classifier AS m PATTERN (A)")
    case["columns"] = [*_COLUMNS, ["classifier", "STRING"]]
    (leaf,) = reading(case).measure_leaves()

    assert leaf.argument == "classifier"


def test_the_place_of_classifiers_value_is_no_text() -> None:
    """A text that is spelled like CLASSIFIER() stays as it is; functions keep the places."""
    clause = """ORDER BY id MEASURES array_agg(CLASSIFIER() || 'CLASSIFIER()' || k) AS a,
        array_agg(k || 'CLASSIFIER()') AS b PATTERN (A) DEFINE A AS upper(CLASSIFIER()) = 'A'"""
    read = reading(_case(clause))
    labels, plain = (leaf.arguments[0] for leaf in read.measure_leaves())
    (inside,) = condition_leaves(read.conditions["A"])

    assert (has_label(labels), has_label(plain)) == (True, False)
    for copied in (labels, pickle.loads(pickle.dumps(labels))):
        assert labelled(copied, "it's") == r"'it\'s' || 'CLASSIFIER()' || k"
    assert labelled(inside.argument or "", "A") == "upper((('A')))"


def test_what_aggregates_take_from_rows() -> None:
    """Their arguments about one row are computed there, and the aggregate is put around them."""
    clause = """ORDER BY id MEASURES percentile(U.v * 2, 0.5) FILTER (WHERE U.k > 'x') AS a,
        max_by(MATCH_NUMBER() * 100 + id, lower(CLASSIFIER())) AS b, count(DISTINCT A.k) AS c
        PATTERN (A B) SUBSET U = (A, B)"""
    leaves = reading(_case(clause)).measure_leaves()

    assert [(leaf.variable, leaf.arguments) for leaf in leaves] == [
        ("U", ("v * 2", "k > 'x'")),
        (None, ("id", "lower(CLASSIFIER())")),
        ("A", ("k",)),
    ]
    assert [leaf.fold and leaf.fold.rendered(lambda number: f"<{number}>") for leaf in leaves] == [
        "percentile(<0>, 0.5) FILTER (WHERE <1>)",
        "max_by(<-1> * 100 + <0>, <1>)",
        "count(DISTINCT <0>)",
    ]


@pytest.mark.parametrize(
    ("define", "rows"),
    [
        ("X AS array_agg(CLASSIFIER()) = array('C', 'A', 'B', 'X')", [(1, "C A B X")]),
        ("X AS max_by(id, -id) = 1 AND count(DISTINCT name) = 2 AND count(*) > 2", [(1, "A A X")]),
        ("X AS max(id * MATCH_NUMBER()) = 2 AND sum(B.id) = 1", [(1, "B X")]),
        ("X AS stddev(id) > 1 AND min(lower(CLASSIFIER())) = 'b'", [(1, "B B B X")]),
        ("X AS stddev(id) > 1 AND round(abs(X.id - avg(id)) / X.id, 2) > 0.3", [(1, "A A A X")]),
        ("X AS round(X.id / A.id, 1) = 1.5 AND upper(A.name || X.k) = 'BY'", [(1, "A A X")]),
        ("X AS avg(X.v) = 2.0 AND median(A.id) = 1 AND A.id = 1", [(1, "A X")]),
        ("X AS collect_list(B.id) = array(1, 3) AND sum(id) FILTER (WHERE id > 1) = 9",
         [(1, "B A B X")]),
    ],
)  # fmt: skip
def test_conditions_that_no_program_can_say(define: str, rows: list[Any]) -> None:
    """They are evaluated in Python: aggregates of all rows so far, functions of several rows."""
    clause = f"""ORDER BY id MEASURES FIRST(id) AS first, ARRAY_AGG(CLASSIFIER()) AS labels
        PATTERN ((A | B | C)*? X) DEFINE {define}"""
    found = answer(None, _case(clause) | {"evaluated": ["X"]})[1]

    assert [(first, " ".join(labels)) for first, labels in found] == rows


@pytest.mark.parametrize("condition", ["upper(A.name || B.name) = 'X'", "sin(SUM(A.v)) = 1"])
def test_no_program_computes_functions_of_two_rows(condition: str) -> None:
    """What would have to be computed of two rows, or of an aggregate, is refused by programs."""
    clause = f"ORDER BY id MEASURES A.id AS a PATTERN (A B) DEFINE B AS {condition}"

    with pytest.raises(CepError, match=r"next to values of the match|around an aggregate"):
        answer(None, _case(clause))


@pytest.mark.parametrize("offset", [1, 2, 100, 101])
def test_offsets_in_conditions(offset: int) -> None:
    """LAST at an offset is the row so far back, in the kernel and, if that is far, without it."""
    case = _case(
        f"""ORDER BY id MEASURES COUNT(*) AS n PATTERN (A+)
        DEFINE A AS LAST(A.id, {offset}) IS NULL OR LAST(A.id, {offset}) = A.id - {offset}"""
    )
    case["items"] = [[n, "x", "a", 1.0] for n in [*range(150), 1000]]

    assert answer(None, case)[1] == [(150,), (1,)]


@pytest.mark.parametrize("aggregate", ["SUM", "AVG"])
@pytest.mark.parametrize("argument", ["name", "A.name", "U.name || U.k", "CLASSIFIER()", "v > 1"])
def test_only_numbers_are_summed(aggregate: str, argument: str) -> None:
    """SUM and AVG in DEFINE refuse texts, which Python would put together, and booleans."""
    clause = f"""ORDER BY id MEASURES id AS i PATTERN (A) SUBSET U = (A)
        DEFINE A AS {aggregate}({argument}) IS NOT NULL"""
    read = reading(_case(clause))
    kinds = {sql: _kind(sql) for sql in condition_arguments(read)}

    with pytest.raises(InputError, match=f"{aggregate} of .*, which is (string|boolean)"):
        read.plan(kinds, ansi=True).condition("A")


_NTZ = "cast(ts as timestamp_ntz)"


@pytest.mark.usefixtures("each_path")
def test_differences_of_times_are_of_the_local_clock() -> None:
    """TIMESTAMPDIFF and - of timestamps take them as the session's clock shows them, in each row."""
    sql = """SELECT * FROM e MATCH_RECOGNIZE (ORDER BY ts MEASURES COUNT(*) AS n PATTERN (A B)
        DEFINE B AS timestampdiff(HOUR, A.ts, B.ts) = 2 AND B.ts > A.ts
        AND B.ts - LAST(A.ts) < INTERVAL '3' HOUR)"""
    plan = reading({"sql": sql, "columns": [["ts", "TIMESTAMP"]]}).plan(
        {"ts": Kind.TIMESTAMP}, True
    )
    plan = plan.with_casts()
    hour = 3_600_000_000
    times = {"ts": [hour * n for n in (1, 2, 3)], _NTZ: [hour * n for n in (1, 3, 4)]}
    rows = Partitions(np.array([3]), ListColumns(times, plan.kinds), times.__getitem__)
    matching = Matching(plan, plan.compiled(), rows)

    assert plan.kinds == {"ts": Kind.TIMESTAMP, _NTZ: Kind.TIMESTAMP_NTZ}
    (found,) = matching.run(np.zeros((1, PLACE), np.int64))
    assert found.rows.tolist() == [1]


def test_an_aggregate_is_not_one_rows_time() -> None:
    """The clock at one row is needed; the least time of several is refused with the way out."""
    sql = """SELECT * FROM e MATCH_RECOGNIZE (ORDER BY ts MEASURES COUNT(*) AS n PATTERN (A B)
        DEFINE B AS timestampdiff(HOUR, MIN(A.ts), B.ts) = 2)"""
    read = reading({"sql": sql, "columns": [["ts", "TIMESTAMP"]]})

    with pytest.raises(InputError, match=r"'MIN\(A.ts\)' is not one row's time") as raised:
        read.plan({"ts": Kind.TIMESTAMP}, True).with_casts()
    assert "FIRST or LAST" in (raised.value.hint or "")


# --- aggregates in Python, over the rows of a partial match


_FOLDED = [
    {"f0": 2, "f1": "b"},
    {"f0": None, "f1": "c"},
    {"f0": 4, "f1": "a"},
    {"f0": 2, "f1": None},
]


def _folded(text: str, rows: list[dict[str, Any]]) -> Any:
    call = parsed(text)
    fold = Fold((), (text,), name=str(call.value), text=text, call=call, inputs={})
    return fold_function(fold).function(rows)


@pytest.mark.parametrize(
    ("text", "value", "without_rows"),
    [
        ("count(f0)", 3, 0),
        ("count(DISTINCT f0)", 2, 0),
        ("count(1) FILTER (WHERE f1 > 'a')", 2, 0),
        ("count(DISTINCT f0) FILTER (WHERE f0 > 1)", 2, 0),
        ("sum(f0 + 1)", 11, None),
        ("avg(DISTINCT f0)", 3.0, None),
        ("min(f1)", "a", None),
        ("max(f1)", "c", None),
        ("max_by(f0, f1)", None, None),
        ("min_by(f0, f1)", 4, None),
        ("array_agg(f0)", [2, None, 4, 2], None),
        ("collect_list(f0)", [2, 4, 2], []),
        ("collect_set(f0)", [2, 4], []),
        ("bool_or(f0 > 3)", True, None),
        ("every(f0 > 3)", False, None),
        ("count_if(f0 < 3)", 2, 0),
        ("any_value(f1)", "b", None),
        ("last_value(f1)", None, None),
        ("stddev_pop(f0)", pytest.approx(0.942809041582), None),
        ("variance(f0)", pytest.approx(4 / 3), None),
        ("median(f0)", 2.0, None),
        ("listagg(f1, '-')", "b-c-a", None),
        ("bit_or(f0)", 6, None),
    ],
)
def test_aggregates(text: str, value: Any, without_rows: Any) -> None:
    """NULL is passed over, DISTINCT and FILTER are obeyed; without rows it is as in Spark."""
    assert _folded(text, _FOLDED) == value
    assert _folded(text, []) == without_rows


def test_decimals_stay_exact() -> None:
    """Sums and averages of decimals are decimals."""
    rows = [{"f0": Decimal("0.1")}, {"f0": Decimal("0.2")}]

    assert _folded("sum(f0)", rows) == Decimal("0.3")
    assert _folded("avg(f0)", rows) == Decimal("0.15")


def test_averages_of_long_decimals_have_all_digits() -> None:
    """Of 34 digits, an average has Spark's 38, not the 28 that Python calculates with."""
    whole = "12345678901234567890123456789012"
    rows: Any = [{"f0": Decimal(f"{whole}.{end}")} for end in (34, 36, 37)]
    call, type_ = parsed("avg(f0)"), SqlType("decimal", 34, 2)
    fold = Fold((), ("avg(f0)",), name="avg", text="avg(f0)", call=call, inputs={})
    found = fold_function(fold, RowTypes({"f0": type_}))
    assert found.function(rows) == Decimal(f"{whole}.356667")
    assert found.type == SqlType("decimal", 38, 6)


@pytest.mark.parametrize("text", ["corr(f0, f0)", "listagg(f1) WITHIN GROUP (ORDER BY f0)"])
def test_others_are_refused_with_those_that_there_are(text: str) -> None:
    """An aggregate that only Spark computes is refused; the hint has the list."""
    with pytest.raises(NotSupportedError, match="in DEFINE") as raised:
        _folded(text, [])

    assert "MAX_BY" in (raised.value.hint or "")
