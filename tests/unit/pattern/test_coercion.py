# SPDX-License-Identifier: Apache-2.0
"""What may be written as a condition or a count, and what becomes of it."""

from __future__ import annotations

import functools
import operator
import pickle
from typing import Any

import numpy as np
import pytest

from pyflinkcep import IterativeCondition, Pattern, SimpleCondition
from pyflinkcep.conditions import ExpressionCondition
from pyflinkcep.errors import InvalidArgumentError, MissingConditionError, NotSupportedError
from pyflinkcep.pattern.coercion import as_condition, as_count


class Context:
    """A context with events of one stage."""

    def getEventsForPattern(self, name: str) -> list[int]:
        """Return 1 for stage ``up``."""
        return [1] if name == "up" else []


class Above(IterativeCondition):
    """Above everything accepted for stage ``up``."""

    def filter(self, value: int, ctx: Any) -> bool:
        """Compare."""
        return all(value > earlier for earlier in ctx.getEventsForPattern("up"))


class Bound:
    """Has a method that may serve as a condition."""

    def over(self, event: int) -> bool:
        """Compare."""
        return event > 1

    def __call__(self, event: int, ctx: Any) -> bool:
        """Compare with the context."""
        return event not in ctx.getEventsForPattern("up")


@pytest.mark.parametrize(
    "written",
    [
        lambda e: e > 1,
        lambda e, limit=1: e > limit,
        lambda *e: e[0] > 1,
        lambda e, ctx: e not in ctx.getEventsForPattern("up"),
        functools.partial(operator.lt, 1),
        Bound().over,
        Bound(),
        Above(),
        SimpleCondition.of(lambda e: e > 1),
        {2}.__contains__,
    ],
    ids=[
        "one argument",
        "a default beside it",
        "any arguments",
        "event and context",
        "partial",
        "bound method",
        "callable object",
        "IterativeCondition",
        "SimpleCondition",
        "builtin",
    ],
)
def test_kinds_of_conditions(written: Any) -> None:
    """Functions of (event) or (event, ctx) and condition objects all become conditions."""
    condition = as_condition(written, "none")

    assert [condition.filter(e, Context()) for e in (1, 2)] == [False, True]  # type: ignore[arg-type]


def test_condition_objects_are_used_as_they_are() -> None:
    """A condition object is not wrapped."""
    condition = Above()

    assert as_condition(condition, "none") is condition


@pytest.mark.parametrize("function", [lambda e: True, lambda *e: True, {1}.__contains__])
def test_functions_of_one_event_are_simple(function: Any) -> None:
    """A function of the event alone is evaluated once for an event, so it is marked simple."""
    assert isinstance(as_condition(function, "none"), SimpleCondition)


def test_functions_with_a_context_are_iterative() -> None:
    """A function that takes the context depends on the partial match."""
    condition = as_condition(lambda e, ctx: True, "none")

    assert (isinstance(condition, IterativeCondition), isinstance(condition, SimpleCondition)) == (
        True,
        False,
    )


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (3, "stage 'a': expected a condition, got 3"),
        (int, "got <class 'int'>"),
        (Above, "expected a condition, got <class"),
        (lambda: True, "expected a function of one or two arguments"),
        (lambda a, b, c: True, "got lambda at test_coercion.py:"),
    ],
)
def test_what_is_no_condition(written: Any, message: str) -> None:
    """Values, classes and functions of other shapes are refused when the pattern is built."""
    with pytest.raises(InvalidArgumentError) as caught:
        Pattern.begin("a").where(written)

    assert (message in str(caught.value), bool(caught.value.hint)) == (True, True)


def test_none_is_refused_in_the_words_of_flink() -> None:
    """A missing condition gets the message it is looked up with."""
    with pytest.raises(MissingConditionError, match=r"^The text"):
        as_condition(None, "The text")


def test_a_string_is_for_spark() -> None:
    """A SQL expression is kept as written and refuses to be evaluated without Spark."""
    condition = as_condition("price > 3", "none")
    with pytest.raises(NotSupportedError, match="'price > 3' can only be evaluated by Spark"):
        condition.filter({"price": 5}, Context())  # type: ignore[arg-type]

    assert (type(condition), repr(condition)) == (ExpressionCondition, "price > 3")


def test_a_column_is_known_without_pyspark() -> None:
    """What is called Column and lives in pyspark.sql is an expression, kept as text in pickles."""
    column_type = type("Column", (), {"__module__": "pyspark.sql.x", "__str__": lambda s: "c > 1"})
    column = column_type()
    condition = as_condition(column, "none")
    assert isinstance(condition, ExpressionCondition)
    copy = pickle.loads(pickle.dumps(condition))

    assert (condition.expression is column, condition.text, copy.text) == (True, "c > 1", "c > 1")


@pytest.mark.parametrize("written", [2, np.int64(2), np.uint8(2)])
def test_counts(written: Any) -> None:
    """Whole numbers of any library are counts."""
    assert (as_count(written, "times"), type(as_count(written, "times"))) == (2, int)


@pytest.mark.parametrize("written", [True, False, 2.0, "2", None, np.float64(2), np.True_])
def test_what_is_not_a_count(written: Any) -> None:
    """Booleans, fractions and text are refused, with the method that they were given to."""
    with pytest.raises(InvalidArgumentError, match=r"^times: expected a whole number, got "):
        as_count(written, "times")
