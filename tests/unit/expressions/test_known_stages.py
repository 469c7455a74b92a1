# SPDX-License-Identifier: Apache-2.0
"""Conditions in a language in which stages are known, as in MATCH_RECOGNIZE."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from pyflinkcep.conditions import ExpressionCondition, RichAndCondition
from pyflinkcep.expressions.aggregates import AGGREGATES
from pyflinkcep.expressions.codegen import generated
from pyflinkcep.expressions.compiler import compiled
from pyflinkcep.expressions.grammar import parsed
from pyflinkcep.expressions.parser import Names, condition_of
from pyflinkcep.expressions.program import CompiledExpressions, Kind
from pyflinkcep.expressions.tree import (
    WHOLE,
    Aggregate,
    Column,
    Leaf,
    MatchExpression,
    rewritten,
)
from tests.unit.expressions.interpreter import accumulated, run
from tests.unit.expressions.test_match_expressions import EVENTS, KINDS

STAGES = {"a", "c", "end"}


def defined(text: str) -> Any:
    """Return the condition of stage a in a language in which stages are known."""
    return condition_of(parsed(text), Names(text, "a", STAGES))


def once_taken(part: Leaf) -> Aggregate:
    """Return a value in terms of a match that has taken the event at hand."""
    if isinstance(part, Column):
        return Aggregate("last", WHOLE, part.sql)
    return attrs.evolve(part, with_event=False)


@st.composite
def aggregates(draw: Any) -> str:
    """Return an aggregate of MATCH_RECOGNIZE, in which the event at hand may count."""
    where = draw(st.sampled_from(["a.", "c.", ""])) + draw(st.sampled_from("nmxy"))
    function = draw(st.sampled_from([name for name, of in AGGREGATES.items() if not of.condition]))
    offset = f", {draw(st.integers(0, 3))}" if function in ("first", "last") else ""
    return str(draw(st.sampled_from([f"{function}({where}{offset})", where, "count(*)"])))


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
    if isinstance(condition, RichAndCondition):
        condition = condition.nestedConditions[1]
    parts = {part: KINDS.get(part, Kind.BOOLEAN) for part in condition.event_parts()}
    expressions = compiled([("here", condition)], parts, False)
    without = MatchExpression(text, rewritten(condition.tree, once_taken))
    plain = compiled([("here", without)], KINDS, False)

    def fields(of: CompiledExpressions, row: dict[str, Any]) -> list[Any]:
        return [row.get(field.sql) for field in of.fields]

    if any(kind is Kind.BOOLEAN for part, kind in parts.items() if part not in KINDS):
        reject()  # an OR of the event alone
    (expected,) = plain.programs.values()
    (holds,) = generated(expressions).conditions.values()
    slots = accumulated(expressions, [(stage, fields(expressions, row)) for stage, row in taken])
    after = [(stage, fields(plain, row)) for stage, row in [*taken, ("a", event)]]

    wanted = run(expected, [], accumulated(plain, after), False)
    assert (holds(fields(expressions, event), tuple(slots)), wanted) == (wanted, wanted)


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("last(a.n) > 3", "n > 3"),
        ("LAST(a.n + 1, 0) * 2 = last(m)", "(n + 1) * 2 = m"),
        ("exists(last(a.items), a -> a.n > last(a.n))", "exists(items, a -> a.n > n)"),
    ],
)
def test_the_last_event_that_counts_is_the_one_at_hand(text: str, sql: str) -> None:
    """last(own.x) reaches Spark as x: Spark's own last would be an aggregate over all events."""
    condition = defined(text)

    assert isinstance(condition, ExpressionCondition)
    assert condition.text == sql
