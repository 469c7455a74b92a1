# SPDX-License-Identifier: Apache-2.0
"""How conditions answer, are joined, live and travel."""

from __future__ import annotations

import functools
import inspect
import operator
import pickle
from typing import Any

import numpy as np
import pytest

from pyflinkcep import IterativeCondition, Pattern, RichIterativeCondition, SimpleCondition
from pyflinkcep.conditions import (
    BooleanConditions,
    ExpressionCondition,
    FunctionCondition,
    RichAndCondition,
    RichCompositeIterativeCondition,
    RichNotCondition,
    RichOrCondition,
    SubtypeCondition,
)
from pyflinkcep.errors import (
    CepRuntimeError,
    InvalidArgumentError,
    MissingConditionError,
    NotSupportedError,
)
from pyflinkcep.functions import RuntimeContext
from pyflinkcep.pattern.coercion import as_condition, as_count


def is_positive(event: int) -> bool:
    """Whether a number is positive."""
    return event > 0


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


def _ask(condition: IterativeCondition, value: Any = 1) -> bool:
    return condition.filter(value, Context())  # type: ignore[arg-type]


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("right", [True, False])
def test_truth_tables(left: bool, right: bool) -> None:
    """And, or and not are what they are called."""
    a, b = BooleanConditions(left), BooleanConditions(right)
    answers = (_ask(RichAndCondition(a, b)), _ask(RichOrCondition(a, b)), _ask(RichNotCondition(a)))

    assert answers == (left and right, left or right, not left)


@pytest.mark.parametrize(
    ("joined", "decisive"), [(RichAndCondition, False), (RichOrCondition, True)]
)
def test_the_right_part_is_asked_only_where_needed(joined: Any, decisive: bool) -> None:
    """The left part is asked first; where it decides, the right one is not asked."""
    asked = []

    def right(event: int) -> bool:
        asked.append(event)
        return True

    for left in (decisive, not decisive):
        _ask(joined(BooleanConditions(left), SimpleCondition.of(right)), left)

    assert asked == [not decisive]


def test_constants() -> None:
    """The two constant conditions hold always and never."""
    always, never = BooleanConditions.trueFunction(), BooleanConditions.falseFunction()

    assert (_ask(always), _ask(never), repr(always), repr(never)) == (True, False, "true", "false")


def test_subtype_accepts_subclasses() -> None:
    """An instance of the class or of a subclass passes."""
    condition = SubtypeCondition(int)

    assert [_ask(condition, value) for value in (1, True, "1", None)] == [True, True, False, False]


@pytest.mark.parametrize(
    "make",
    [
        lambda: RichAndCondition(None, Above()),  # type: ignore[arg-type]
        lambda: RichOrCondition(Above(), None),  # type: ignore[arg-type]
        lambda: RichNotCondition(None),  # type: ignore[arg-type]
        lambda: RichCompositeForTest(None),  # type: ignore[arg-type]
    ],
)
def test_parts_must_be_given(make: Any) -> None:
    """A composite has no missing parts."""
    with pytest.raises(MissingConditionError, match="The condition cannot be null"):
        make()


class RichCompositeForTest(RichCompositeIterativeCondition):
    """The simplest composite."""

    def filter(self, value: Any, ctx: Any) -> bool:
        """Ask the first part."""
        return self.nestedConditions[0].filter(value, ctx)


class Rich(RichIterativeCondition):
    """Notes its life cycle."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def open(self, context: RuntimeContext | None = None) -> None:
        """Note."""
        self.calls.append("open")

    def close(self) -> None:
        """Note."""
        self.calls.append("close")

    def filter(self, value: Any, ctx: Any) -> bool:
        """Accept."""
        return True


def test_composites_forward_the_life_cycle() -> None:
    """A composite hands context, open and close to every part that is rich, however deep."""
    first, second = Rich(), Rich()
    plain = SimpleCondition.of(is_positive)
    joined = RichAndCondition(RichNotCondition(first), RichOrCondition(plain, second))
    context = RuntimeContext("task", 2)
    joined.setRuntimeContext(context)
    joined.open(context)
    joined.close()

    assert [(r.calls, r.getRuntimeContext() is context) for r in (first, second)] == [
        (["open", "close"], True)
    ] * 2


def test_composites_give_their_parts() -> None:
    """``getNestedConditions`` gives the parts in order."""
    first, second = Above(), Above()

    assert RichOrCondition(first, second).getNestedConditions() == (first, second)


def test_the_context_is_missing_before_open() -> None:
    """A rich condition knows its task only once it runs."""
    with pytest.raises(CepRuntimeError, match="The runtime context has not been initialized"):
        Rich().getRuntimeContext()


@pytest.mark.parametrize(
    "condition",
    [
        SimpleCondition.of(is_positive),
        FunctionCondition(is_positive),
        Above(),
        RichAndCondition(Above(), RichNotCondition(BooleanConditions(False))),
        SubtypeCondition(int),
    ],
)
def test_conditions_of_importable_parts_pickle(condition: IterativeCondition) -> None:
    """A condition made of what can be imported survives pickling and answers the same."""
    copy = pickle.loads(pickle.dumps(condition))

    assert [_ask(copy, v) for v in (1, 5)] == [_ask(condition, v) for v in (1, 5)]


def test_a_function_is_named_in_the_repr() -> None:
    """Errors name a condition by its function."""
    line = inspect.getsourcelines(is_positive)[1]
    assert repr(FunctionCondition(is_positive)) == f"is_positive at test_conditions.py:{line}"


def test_a_lambda_is_named_by_its_place() -> None:
    """Errors name a lambda by the file and line where it was written."""
    first = SimpleCondition.of(lambda e: e > 1)
    line = first.function.__code__.co_firstlineno  # type: ignore[attr-defined]

    assert repr(first) == f"lambda at test_conditions.py:{line}"


# --- what may be written as a condition or a count, and what becomes of it


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
        (lambda a, b, c: True, "got lambda at test_conditions.py:"),
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
