# SPDX-License-Identifier: Apache-2.0
"""Reading a statement and its clauses."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from pyflinkcep.errors import CepError, InvalidArgumentError, NotSupportedError
from pyflinkcep.match_recognize.flink import read_flink_clause
from pyflinkcep.match_recognize.names import Names
from pyflinkcep.match_recognize.parser import parse_clause, window_ms
from pyflinkcep.match_recognize.statement import Statement, with_parameters, without_unused
from pyflinkcep.match_recognize.tokens import Source, tokenize, with_names
from pyflinkcep.match_recognize.tree import Quantified, Rows, SkipTo, Variable, variables
from tests.conformance.cases import Case
from tests.conformance.sql_cases import flink_cases, problem_with_error, standard_cases
from tests.unit.match_recognize.lists import plans

_CLAUSE = "(ORDER BY ts MEASURES A.x AS x PATTERN (A) DEFINE A AS x > 1)"


def _uses(text: str) -> tuple[list[tuple[str, str | None]], str]:
    """Return query and alias of each clause, and what remains of the statement."""
    statement, found = Statement(text.replace("MR", f"MATCH_RECOGNIZE {_CLAUSE}")), []
    while (use := statement.next_use()) is not None:
        found.append((use.query, use.alias))
        statement.replaced(use, f"__cep_view_{len(found)}")
    return found, statement.text


@pytest.mark.parametrize(
    ("text", "uses", "rest"),
    [
        ("SELECT * FROM e MR", [("SELECT * FROM e", "e")], "SELECT * FROM __cep_view_1"),
        (
            "SELECT * FROM db.e AS s MR AS m JOIN d ON m.x = d.x;",
            [("SELECT * FROM db.e AS s", "s")],
            "SELECT * FROM __cep_view_1 AS m JOIN d ON m.x = d.x",
        ),
        (
            "SELECT * FROM a, (SELECT 1) MR m, range(3) r(i) MR",
            [("SELECT * FROM (SELECT 1)", None), ("SELECT * FROM range(3) r(i)", "r")],
            "SELECT * FROM a, __cep_view_1 m, __cep_view_2",
        ),
        (
            "WITH a AS (SELECT 1), b AS (SELECT * FROM a MR) SELECT * FROM b MR",
            [
                ("WITH a AS (SELECT 1) SELECT * FROM a", "a"),
                ("WITH a AS (SELECT 1), b AS (SELECT * FROM __cep_view_1) SELECT * FROM b", "b"),
            ],
            "WITH a AS (SELECT 1), b AS (SELECT * FROM __cep_view_1) SELECT * FROM __cep_view_2",
        ),
        (
            "SELECT * FROM (SELECT * FROM e MR AS t) MR",
            [("SELECT * FROM e", "e"), ("SELECT * FROM (SELECT * FROM __cep_view_1 AS t)", None)],
            "SELECT * FROM __cep_view_2",
        ),
        (
            "SELECT 'x MATCH_RECOGNIZE (' FROM e -- MATCH_RECOGNIZE (\n WHERE x > 1",
            [],
            "SELECT 'x MATCH_RECOGNIZE (' FROM e -- MATCH_RECOGNIZE (\n WHERE x > 1",
        ),
    ],
)
def test_clauses_are_cut_out_with_their_sources(text, uses, rest) -> None:
    """A clause and its source give way to a view; a WITH before it goes with the source."""
    assert _uses(text) == (uses, rest)


@pytest.mark.parametrize(
    "case", [*flink_cases()[::9], *standard_cases()[::5]], ids=lambda c: c["id"]
)
def test_a_clause_as_text_reads_as_the_same_clause(case: Case) -> None:
    """What a clause prints is read as an equal clause."""
    try:
        use = Statement(case["sql"]).next_use()
    except CepError:
        return
    assert use is not None
    again = Statement(f"SELECT * FROM e MATCH_RECOGNIZE (\n{use.clause}\n)").next_use()

    assert again is not None
    assert str(again.clause) == str(use.clause)


def _clause(text: str):
    use = Statement(f"SELECT * FROM e MATCH_RECOGNIZE ({text})").next_use()
    assert use is not None
    return use.clause


def test_all_parts_of_a_clause_are_read() -> None:
    """Every part arrives in the tree, with offsets, directions, quantifiers and comments."""
    clause = _clause(
        "PARTITION BY k, `a b` ORDER BY ts, p DESC NULLS LAST MEASURES LAST(A.x, 2) AS l, 1 AS one "
        "ALL ROWS PER MATCH WITH UNMATCHED ROWS AFTER MATCH SKIP TO FIRST B "
        "PATTERN (A{2,}? B /* ) */) WITHIN INTERVAL '5' MINUTE SUBSET U = (A, B) "
        "DEFINE A AS x IN (1, 2), B AS y = 'AFTER MATCH'"
    )

    assert [key.text for key in clause.partition] == ["k", "a b"]
    assert [str(column) for column in clause.order] == ["ts", "p DESC NULLS LAST"]
    assert [str(measure) for measure in clause.measures] == ["LAST(A.x, 2) AS l", "1 AS one"]
    assert clause.rows is Rows.WITH_UNMATCHED
    assert clause.skip is not None
    assert (clause.skip.to, clause.skip.variable) == (SkipTo.FIRST, "B")
    assert clause.pattern.parts == (
        Quantified(Variable("A"), 2, None, False, "{2,}?"),
        Variable("B"),
    )  # type: ignore[union-attr]
    assert [str(subset) for subset in clause.subsets] == ["U = (A, B)"]
    assert [d.condition.text for d in clause.definitions] == ["x IN (1, 2)", "y = 'AFTER MATCH'"]


def test_a_measure_is_sql_around_what_it_takes_of_a_match() -> None:
    """What is taken twice has one column; marks are left out; a text that looks alike stays."""
    measures = "FINAL LAST(A.x) - (A.x) || '__cep_leaf0' AS m, (id) AS p, AVG( x ) AS a"
    clause = f"ORDER BY id MEASURES {measures} PATTERN (A)"
    sql = f"SELECT * FROM e MATCH_RECOGNIZE ({clause})"
    (plan,) = plans(sql, ["id", "x"], "standard")
    m, p, a = plan.measures.values()

    assert m.sql(lambda leaf: "f" if leaf.final else "r").strip() == "f - (r) || '__cep_leaf0'"
    assert list(m.written().values()) == ["LAST(A.x)", "A.x"]
    assert [one.lone_leaf for one in (m, p)] == [None, None]
    assert a.lone_leaf == a.leaves[0]


@pytest.mark.parametrize(
    ("head", "measure"),
    [
        ("ORDER BY ts", "(LAST(v) - FIRST(v))"),
        ("PARTITION BY k", "-A.v"),
        ("ORDER BY ts DESC", "(SELECT 1)"),
        ("ORDER BY ts NULLS LAST", "*"),
        ("ORDER BY measures, `within`", "+1"),
        ("PARTITION BY define ORDER BY measures", "'x'"),
    ],
)
def test_a_measure_may_begin_with_any_sign(head: str, measure: str) -> None:
    """MEASURES ends the columns before it, whatever follows; a column may have its name."""
    clause = _clause(f"{head} MEASURES {measure} AS d PATTERN (A)")

    assert [str(one) for one in clause.measures] == [f"{measure} AS d"]


def test_names_in_double_quotes_are_names_where_only_a_name_can_stand() -> None:
    """As in other systems, names may stand in double quotes; other such texts stay texts."""
    clause = _clause(
        'PARTITION BY "t"."k" ORDER BY "ts" DESC MEASURES LAST("A"."x") AS "no 1", "x" AS y '
        'AFTER MATCH SKIP TO "A" PATTERN ("A"+ "!") SUBSET "U" = ("A", "!") '
        'DEFINE "A" AS "A".x > 1 AND y = "z"'
    )

    assert [(key.table, key.text) for key in clause.partition] == [("t", "k")]
    assert [column.name.text for column in clause.order] == ["ts"]
    assert [(m.name, str(m.expression)) for m in clause.measures] == [
        ("no 1", "LAST(`A`.`x`)"),
        ("y", '"x"'),
    ]
    assert clause.skip is not None
    assert clause.skip.variable == "A"
    assert [variable.name for variable in variables(clause.pattern)] == ["A", "!"]
    assert clause.subsets[0].variables == ("A", "!")
    (definition,) = clause.definitions
    assert (definition.variable, definition.condition.text) == ("A", '`A`.x > 1 AND y = "z"')


def test_a_session_may_read_double_quotes_as_names() -> None:
    """With spark.sql.ansi.doubleQuotedIdentifiers, every such text is a name, at its place."""
    text = """SELECT "a b" FROM t WHERE x = 'it"s' AND "y" > 1 -- "z\""""

    assert with_names(text) == text.replace('"a b"', "`a b`").replace('"y"', "`y`")


@pytest.mark.parametrize(
    ("interval", "milliseconds"),
    [
        ("INTERVAL '5' MINUTE", 300_000),
        ("INTERVAL 5 MINUTES", 300_000),
        ("INTERVAL '2 seconds'", 2000),
        ("INTERVAL '1.5' SECOND(3)", 1500),
        ("INTERVAL '0 00:01:00.250' DAY TO SECOND", 60_250),
        ("INTERVAL '1 2' DAY TO HOUR", 93_600_000),
        ("INTERVAL '0' SECOND", 0),
        ("INTERVAL '0.0019' SECOND", 1),
        ("INTERVAL '1.001' SECOND", 1001),
    ],
)
def test_day_time_intervals_become_milliseconds(interval: str, milliseconds: int) -> None:
    """Intervals of days to seconds, in Spark's forms and the standard's, are rounded down."""
    text = f"SELECT * FROM e MATCH_RECOGNIZE (PATTERN (A) WITHIN {interval} DEFINE A AS x)"
    statement = Statement(text)
    use = statement.next_use()
    assert use is not None

    assert window_ms(use.clause, statement.source) == milliseconds


@pytest.mark.parametrize("interval", ["INTERVAL '0' SECOND", "INTERVAL '0 00:00' DAY TO MINUTE"])
def test_no_window_under_the_standards_meaning(interval: str) -> None:
    """WITHIN zero, which Flink takes as no window, is refused under the standard's meaning."""
    with pytest.raises(InvalidArgumentError, match="expected an interval longer than zero"):
        plans(
            "SELECT * FROM e MATCH_RECOGNIZE (ORDER BY x MEASURES A.x AS a PATTERN (A) WITHIN "
            f"{interval} DEFINE A AS x > 1)",
            ["x"],
            "standard",
        )


@pytest.mark.parametrize(
    "interval",
    [
        "INTERVAL '1' YEAR",
        "INTERVAL '-1' SECOND",
        "INTERVAL '0.0004' SECOND",
        "'5'",
        "5",
        "INTERVAL '02:03' DAY TO HOUR",
        "INTERVAL '02:03' HOUR TO SECOND",
        "INTERVAL '1 02:03' DAY TO SECOND",
        "INTERVAL '1 HOUR 30 MINUTES'",
    ],
)
def test_other_intervals_are_refused(interval: str) -> None:
    """Months, years, too short ones, other forms and no intervals: refused in Flink's words."""
    with pytest.raises(NotSupportedError, match="Only constant intervals with millisecond"):
        plans(
            "SELECT * FROM e MATCH_RECOGNIZE (ORDER BY x MEASURES A.x AS a PATTERN (A) WITHIN "
            f"{interval} DEFINE A AS x > 1)",
            ["x"],
            "flink",
        )


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("PATTERN (A", "the parenthesis is not closed (at line 1, column 33: ()", "missing )"),
        ("ORDER BY ts", "expected PATTERN (…), got the end of the clause (at line 2", "order is"),
        ("PATTERN (A) SKIP", "unexpected 'SKIP' (at line 2, column 14: SKIP)", "the order is"),
        (
            "MEASURES A.x + 1 PATTERN (A)",
            "a measure needs AS name (at line 2, column 11",
            "A.x + 1 AS name",
        ),
        ("MEASURES A.x AS x ALL MATCHES PATTERN (A)", "unexpected 'ALL MATCHES' after", "Esper's"),
        ("PARTITION BY 1 + 2 PATTERN (A)", "PARTITION BY takes columns", "subquery"),
        ("ORDER BY PROCTIME() PATTERN (A)", "ORDER BY takes columns", "no processing time"),
        ("ORDER BY ts LIMIT DURATION '5' PATTERN (A)", "ORDER BY takes columns", "write WITHIN"),
        ("LIMIT DURATION(second, 5) PATTERN (A)", "expected PATTERN (…), got 'LIMIT'", "WITHIN"),
        ("PATTERN (A) WINDOW w AS (x)", "unexpected 'WINDOW'", "leave WINDOW out"),
        ("PATTERN (A{})", "expected a number in { }, got '}'", "write variables"),
        ("PATTERN (A{3,2})", "The to should be a number greater than or equal to from: 3.", "2,3"),
        (f"PATTERN (A{{{'9' * 5000}}})", "expected a whole number up to 1000000, got 999", "{n}"),
        ("PATTERN (A++)", "expected a variable in PATTERN, got '+'", "quantifiers"),
        ("PATTERN ({- A)", "expected '-}' in PATTERN, got the end of PATTERN", "line 2, column 11"),
        ("AFTER MATCH SKIP NEXT PATTERN (A)", "expected PAST or TO after SKIP, got 'NEXT'", "TO A"),
        ("AFTER MATCH SKIP PAST NEXT ROW PATTERN (A)", "LAST ROW after SKIP PAST, got", "NEXT"),
        ("PATTERN (A) SUBSET U (A)", "expected = in SUBSET, got '('", "SUBSET U = (A, B)"),
        ("PATTERN (A) DEFINE A x > 1", "expected AS in DEFINE, got 'x'", "DEFINE A AS"),
    ],
)
def test_errors_say_where_and_what_to_write(text: str, message: str, hint: str) -> None:
    """A wrong clause is refused with line, column and the way out."""
    with pytest.raises(InvalidArgumentError) as raised:
        Statement(f"SELECT * FROM e MATCH_RECOGNIZE (\n {text})").next_use()

    assert message in raised.value.message
    assert hint in (raised.value.hint or "")


_NEED_TYPES = ("order-by-other", "unknown-column", "condition-not-boolean")


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("WITH a AS (SELECT 1) SELECT * FROM v", "SELECT * FROM v"),
        ("WITH a AS (SELECT 1) SELECT * FROM `A`", "WITH a AS (SELECT 1) SELECT * FROM `A`"),
        ("WITH a AS (SELECT 1), b AS (SELECT * FROM a) SELECT 'a', 2 -- b", "SELECT 'a', 2 -- b"),
        (
            "WITH a AS (SELECT 1), b AS (SELECT 2), c AS (SELECT 3) SELECT * FROM a, c",
            "WITH a AS (SELECT 1) , c AS (SELECT 3) SELECT * FROM a, c",
        ),
        ("WITH a AS (SELECT 1), b(x) AS (SELECT 2) TABLE b", "WITH b(x) AS (SELECT 2) TABLE b"),
        ("SELECT * FROM (WITH a AS (SELECT 1) SELECT 2)", "SELECT * FROM ( SELECT 2)"),
        ("WITH RECURSIVE a AS (SELECT 1) TABLE a", "WITH RECURSIVE a AS (SELECT 1) TABLE a"),
    ],
)
def test_named_queries_that_nothing_names_are_left_out(text: str, rest: str) -> None:
    """What only a clause read is gone from the statement around, so that no stream is in it."""
    assert " ".join(without_unused(text).split()) == rest


@pytest.mark.parametrize(
    "case",
    [
        case
        for case in flink_cases()
        if case["expect"].get("error", {}).get("phase") == "plan"
        and not case["id"].startswith(_NEED_TYPES)
    ],
    ids=lambda case: case["id"],
)
def test_what_flink_refuses_is_refused_with_its_words(case: Case) -> None:
    """Each refusal of Flink that needs no types comes from the clause alone, and says where."""
    with pytest.raises(CepError) as raised:
        plans(case["sql"], [name for name, _ in case["columns"]], "flink")

    assert problem_with_error(case, raised.value) is None
    assert "line 1, column " in raised.value.message
    assert raised.value.hint


@pytest.mark.parametrize(
    ("condition", "over_stages"),
    [
        ("PREV(A.x, 0) > 1 AND x > 2", "(x > 2 and LAST(A.x) > 1)"),
        ("upper(PREV(LAST(A.k, 1), 0)) = 'X'", "upper(LAST(A.k, 1)) = 'X'"),
        ("PREV(LAST(B.x), 0) > 1", "x > 1"),
        ("SUM((A.x)) / NEXT((A.x), 0) > 1", "SUM((A.x)) / LAST(A.x) > 1"),
        ("AVG(A.k) > 1", "AVG(A.k) > 1"),
    ],
)
def test_define_of_flink_as_a_condition_over_stages(condition: str, over_stages: str) -> None:
    """PREV and NEXT at offset 0 are their argument."""
    sql = f"PATTERN (A B) DEFINE B AS {condition}"
    source = Source(sql)
    clause = parse_clause(tokenize(source), source, len(sql))
    names = Names.of(clause, source, ["x", "k"], None, False)
    pattern = read_flink_clause(clause, names, 0).pattern

    (found,) = [s.getCondition() for s in pattern.stages() if s.getName() == "B"]
    assert repr(found) == over_stages


# --- parameters of a statement become literals


def test_named_parameters_are_literals_wherever_they_stand() -> None:
    """A name may occur twice; casts, paths into JSON and texts are not parameters."""
    text = "SELECT j:k, x::int, ':n' FROM t WHERE a = :n AND (:n > 0 OR b = :s) -- :n"

    assert with_parameters(text, {"n": 1, "s": "it's \\"}) == (
        "SELECT j:k, x::int, ':n' FROM t WHERE a = 1 AND (1 > 0 OR b = 'it\\'s \\\\') -- :n"
    )


def test_question_marks_are_parameters_outside_pattern() -> None:
    """In PATTERN they are quantifiers."""
    text = "x > ? AND MATCH_RECOGNIZE (PATTERN (A? (B+?)?) DEFINE A AS v = ?)"

    assert with_parameters(text, [1, 2.5]) == (
        "x > 1 AND MATCH_RECOGNIZE (PATTERN (A? (B+?)?) DEFINE A AS v = 2.5D)"
    )


@pytest.mark.parametrize(
    ("value", "literal"),
    [
        (None, "NULL"),
        (True, "TRUE"),
        (1 << 40, "1099511627776L"),
        (-1.5, "-1.5D"),
        (float("nan"), "double('nan')"),
        (Decimal("1.50"), "1.50BD"),
        (b"\x01", "X'01'"),
        (date(2026, 1, 2), "DATE '2026-01-02'"),
        (datetime(2026, 1, 2, tzinfo=UTC), "TIMESTAMP '2026-01-02 00:00:00.000000+00:00'"),
        (timedelta(seconds=90), "INTERVAL '90.000000' SECOND"),
        ([1, "a"], "array(1, 'a')"),
    ],
)
def test_values_as_literals(value: Any, literal: str) -> None:
    """Each type that Spark's parameters take has a literal of the same type."""
    assert with_parameters("x = ?", [value]) == f"x = {literal}"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"low": 1}, "no value for :high (at line 1, column 5: :)"),
        ([], "no value for :high"),
        ("x", "args: expected a dict or a list, got str"),
        ({"high": object()}, "a parameter is object"),
    ],
)
def test_wrong_arguments_are_refused(args: Any, message: str) -> None:
    """A missing value, and one without a literal, are refused with their place."""
    with pytest.raises(InvalidArgumentError) as raised:
        with_parameters("x > :high", args)

    assert message in raised.value.message
    assert raised.value.hint


def test_values_left_over_are_refused() -> None:
    """As many values as question marks, no more and no less."""
    with pytest.raises(InvalidArgumentError, match="1 value more than the statement has"):
        with_parameters("x > ?", [1, 2])
    with pytest.raises(InvalidArgumentError, match="no value for"):
        with_parameters("x > ? + ?", [1])
