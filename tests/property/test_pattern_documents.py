# SPDX-License-Identifier: Apache-2.0
"""Every pattern that is data is read back from the document that it is written as."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyflinkcep import CepError, IterativeCondition, Pattern
from pyflinkcep.conditions import (
    BooleanConditions,
    ContextFunctionCondition,
    ExpressionCondition,
    RichCompositeIterativeCondition,
)
from pyflinkcep.expressions.parser import event_tree, sql_condition
from pyflinkcep.expressions.tree import MatchExpression
from pyflinkcep.pattern.pattern import stages_of
from pyflinkcep.rules.aviator import aviator_of_sql, sql_of_aviator
from tests.property.combined_patterns import Writer, whole
from tests.property.strategies import NameIn, PatternSpec, Rising, patterns
from tests.shorthand import Named, parse

WAYS = (
    lambda names: f"name in ({names})",
    lambda names: " or ".join(f"name = {name}" for name in names.split(", ")),
    lambda names: f"not name <> {names.split(', ')[0]} or name is null",
)


def _as_sql(condition: IterativeCondition, way: int) -> IterativeCondition:
    """Return a condition on names as SQL, written in one of several ways."""
    if isinstance(condition, ContextFunctionCondition):
        assert isinstance(condition.function, Rising)
        stage = condition.function.stage
        return sql_condition(f"price > coalesce(last({stage}.price), 0)", stage)
    if isinstance(condition, RichCompositeIterativeCondition):
        return type(condition)(*(_as_sql(part, way) for part in condition.nestedConditions))
    assert isinstance(condition, NameIn | Named)
    names = ", ".join(f"'{name}'" for name in sorted(condition.names))
    return sql_condition(WAYS[way](names)) if names else BooleanConditions(False)


class Comparable(IterativeCondition):
    """A condition that equals those of the same meaning."""

    def __init__(self, condition: IterativeCondition) -> None:
        self.meaning: Any = _meaning(condition)

    def filter(self, value: Any, ctx: Any) -> bool:
        """Refuse."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Comparable) and self.meaning == other.meaning

    __hash__ = None  # type: ignore[assignment]


def _meaning(condition: IterativeCondition) -> Any:
    if isinstance(condition, ExpressionCondition):
        return event_tree(condition.text)
    if isinstance(condition, MatchExpression):
        return condition.tree, condition.owners, condition.key
    if isinstance(condition, BooleanConditions):
        return condition.value
    assert isinstance(condition, RichCompositeIterativeCondition)
    return type(condition), [_meaning(part) for part in condition.nestedConditions]


def meaning(pattern: Pattern) -> Any:
    """Return what two patterns that are equal have in common."""
    return stages_of(pattern.with_conditions(Comparable)), pattern.getAfterMatchSkipStrategy()


def _comes_back(pattern: Pattern) -> None:
    document = json.loads(json.dumps(pattern.toJson()))
    again = Pattern.fromJson(document)

    assert meaning(again) == meaning(pattern)
    assert again.toJson() == document


@given(patterns(), st.integers(0, 2))
def test_documents_of_patterns(spec: PatternSpec, way: int) -> None:
    """``fromJson(toJson(p))`` is `p`, and is written as the same document."""
    _comes_back(spec.build().with_conditions(lambda condition: _as_sql(condition, way)))


@given(st.integers(0, 1 << 32), st.integers(0, 2))
@settings(max_examples=50)
def test_documents_of_combined_patterns(seed: int, way: int) -> None:
    """So it is for ``oneOf`` and ``allOf``, which Flink lacks."""
    try:
        pattern = parse(whole(Writer(random.Random(seed)).chain(2, 4)))
    except CepError:
        return
    _comes_back(pattern.with_conditions(lambda condition: _as_sql(condition, way)))


_VALUES = st.sampled_from(
    ["a", "b.c", "`order`", "1", "-2", "0.5", "'x\\'y'", "'/'", "NULL", "true"]
)


def _inside(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    signs = ["=", "<>", "<", "<=", ">", ">=", "and", "or", "+", "-", "*", "%"]
    return st.one_of(
        st.builds("({}) {} ({})".format, parts, st.sampled_from(signs), parts),
        st.builds("not ({})".format, parts),
        st.builds("-(a * ({}))".format, parts),
        st.builds("({}) is null".format, parts),
        st.builds("({}) is not null".format, parts),
        st.builds("({}) rlike '^(?:a/b\\\\d)\\\\z'".format, parts),
    )


@given(st.recursive(_VALUES, _inside, max_leaves=12))
def test_sql_in_aviator(sql: str) -> None:
    """What Aviator says for SQL is read as the same tree; signs and precedence get lost nowhere."""
    said = aviator_of_sql(sql)

    if said is not None:
        assert event_tree(sql_of_aviator(said)) == event_tree(sql)
    elif "+" not in sql and "NULL" not in sql:
        pytest.fail(f"{sql} is not written")
