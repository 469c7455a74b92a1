# SPDX-License-Identifier: Apache-2.0
"""How conditions answer, are joined, live and travel."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import pytest

from pyflinkcep import IterativeCondition, RichIterativeCondition, SimpleCondition
from pyflinkcep.conditions import (
    BooleanConditions,
    FunctionCondition,
    RichAndCondition,
    RichCompositeIterativeCondition,
    RichNotCondition,
    RichOrCondition,
    SubtypeCondition,
)
from pyflinkcep.errors import (
    CepRuntimeError,
    MissingConditionError,
)
from pyflinkcep.functions import RuntimeContext


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
