# SPDX-License-Identifier: Apache-2.0
"""Conditions in a language in which stages are known, as in MATCH_RECOGNIZE."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyflinkcep.conditions import ExpressionCondition, IterativeCondition
from pyflinkcep.expressions.aggregates import AGGREGATES
from pyflinkcep.expressions.codegen import generated
from pyflinkcep.expressions.compiler import compiled
from pyflinkcep.expressions.grammar import parsed
from pyflinkcep.expressions.parser import Names, condition_of
from pyflinkcep.expressions.program import CompiledExpressions
from pyflinkcep.expressions.tree import (
    WHOLE,
    Aggregate,
    Column,
    Leaf,
    MatchExpression,
    leaves,
    rewritten,
)
from pyflinkcep.match_recognize.expressions import read_expression
from pyflinkcep.match_recognize.flink_condition import flink_condition
from pyflinkcep.match_recognize.names import Names as MatchNames
from pyflinkcep.match_recognize.parser import parse_clause
from pyflinkcep.match_recognize.tokens import Source, tokenize
from tests.unit.expressions.slots import accumulated
from tests.unit.expressions.test_match_expressions import EVENTS, KINDS


def with_event(part: Leaf) -> Leaf:
    """Return a value for which the event at hand is one of stage a."""
    own = isinstance(part, Aggregate) and part.stage in ("a", WHOLE)
    return attrs.evolve(part, with_event=True) if own else part


def defined(text: str) -> MatchExpression:
    """Return the condition of stage a, whose event at hand counts."""
    condition = condition_of(parsed(text), Names(text, "a"))
    assert isinstance(condition, MatchExpression)
    return MatchExpression(text, rewritten(condition.tree, with_event), (), "a")


def of_clause(text: str) -> IterativeCondition:
    """Return the condition of the variable A of a clause with Flink's meaning."""
    columns = ("n", "m", "items")
    source = Source(f"PATTERN (A C) DEFINE A AS {text}")
    clause = parse_clause(tokenize(source), source, len(source.text))
    names = MatchNames.of(clause, source, columns, None, standard=False)
    return flink_condition(read_expression(clause.definitions[0].condition, names, "A"), "A")


def once_taken(part: Leaf) -> Aggregate:
    """Return a value in terms of a match that has taken the event at hand."""
    if isinstance(part, Column):
        return Aggregate("last", WHOLE, part.sql)
    return attrs.evolve(part, with_event=False)


@st.composite
def aggregates(draw: Any) -> str:
    """Return an aggregate of MATCH_RECOGNIZE, in which the event at hand may count."""
    where = draw(st.sampled_from(["a.", "c.", "match."])) + draw(st.sampled_from("nmxy"))
    function = draw(st.sampled_from([name for name, of in AGGREGATES.items() if not of.condition]))
    offset = f", {draw(st.integers(0, 3))}" if function in ("first", "last") else ""
    return str(
        draw(st.sampled_from([f"{function}({where}{offset})", f"last({where})", "count(match)"]))
    )


@given(
    st.lists(aggregates(), min_size=3, max_size=3),
    st.lists(st.tuples(st.sampled_from("acz"), EVENTS), max_size=5),
    EVENTS,
)
def test_the_event_at_hand_counts(
    drawn: list[str], taken: list[tuple[str, dict[str, Any]]], event: dict[str, Any]
) -> None:
    """What is about the own stage, or about the match, is as if the event were taken already."""
    one, two, three = drawn
    text = f"({one} <=> {two} or {one} > {three}) and count(c.n) >= 0"
    condition = defined(text)
    expressions = compiled([("here", condition)], KINDS, False)
    without = MatchExpression(text, rewritten(condition.tree, once_taken))
    plain = compiled([("here", without)], KINDS, False)

    def fields(of: CompiledExpressions, row: dict[str, Any]) -> list[Any]:
        return [row.get(field.sql) for field in of.fields]

    (expected,) = generated(plain).conditions.values()
    (holds,) = generated(expressions).conditions.values()
    slots = accumulated(expressions, [(stage, fields(expressions, row)) for stage, row in taken])
    after = [(stage, fields(plain, row)) for stage, row in [*taken, ("a", event)]]

    wanted = expected([], accumulated(plain, after))
    assert (holds(fields(expressions, event), slots), wanted) == (wanted, wanted)


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("last(A.n) > 3", "n > 3"),
        ("LAST(A.n + 1, 0) * 2 = last(m)", "(n + 1) * 2 = m"),
        ("exists(last(A.items), a -> a.n > last(A.n))", "exists(items, a -> a.n > n)"),
        ("PREV(A.n, 0) > 3 AND n < 5", "n > 3 AND n < 5"),
    ],
)
def test_the_last_event_that_counts_is_the_one_at_hand(text: str, sql: str) -> None:
    """last(own.x) reaches Spark as x: Spark's own last would be an aggregate over all events."""
    condition = of_clause(text)

    assert isinstance(condition, ExpressionCondition)
    assert condition.text == sql


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("A.n > AVG(C.n)", [("n", None, False), ("n", "C", False)]),
        ("COUNT(*) > m", [(None, WHOLE, True), ("m", None, False)]),
        ("FIRST((n), 2) < SUM(A.n + 1)", [("n", WHOLE, True), ("n + 1", "A", True)]),
        ("PREV(LAST(C.m, 1), 0) = m", [("m", "C", False), ("m", None, False)]),
    ],
)
def test_values_of_a_clause_are_those_of_stages(text: str, read: list[Any]) -> None:
    """By the text of each argument stored state knows its values."""
    condition = of_clause(text)

    assert isinstance(condition, MatchExpression)
    assert condition.text == text.replace("PREV(LAST(C.m, 1), 0)", "LAST(C.m, 1)")
    assert [
        (part.sql, None, False)
        if isinstance(part, Column)
        else (part.argument, part.stage, part.with_event)
        for part in leaves(condition.tree)
    ] == read
