# SPDX-License-Identifier: Apache-2.0
"""The kernel's machine for match expressions does what generated functions do."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyflinkcep import Pattern
from pyflinkcep.conditions import IterativeCondition
from pyflinkcep.engines.flink.bridge import make_kernel
from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.errors import ConditionError
from pyflinkcep.expressions.codegen import generated
from pyflinkcep.expressions.parser import sql_condition
from pyflinkcep.expressions.program import CompiledExpressions, Kind, Type
from pyflinkcep.expressions.tree import MatchExpression
from tests.kernel_harness import MANY, needs_kernel
from tests.unit.expressions.test_match_expressions import (
    EVENTS,
    _kind_of,
    accumulated,
    compiled_expressions,
    compiled_from,
    outcome,
)
from tests.unit.kernel.random_programs import NAME, ROWS, random_expressions

pytestmark = needs_kernel

Taken = list[tuple[str, dict[str, Any]]]


def expression_of(expressions: CompiledExpressions) -> MatchExpression:
    """Return the expression that was compiled."""
    (text,) = expressions.programs
    expression = sql_condition(text)
    assert isinstance(expression, MatchExpression)
    return expression


def chain(taken: Taken, last: IterativeCondition) -> Pattern:
    """Return a pattern that takes so many events for each stage, and one that a condition decides."""
    pattern: Any = Pattern
    for stage in "acz":
        count = sum(other == stage for other, _ in taken)
        pattern = (pattern.begin if stage == "a" else pattern.next)(stage)
        pattern = (
            pattern.times(count).consecutive()
            if count
            else pattern.where(lambda _: False).optional()
        )
    made: Pattern = pattern.next("end").where(last)
    return made


def field_array(kind: Kind, column: list[Any]) -> tuple[Any, ...]:
    """Return a field of all events as the kernel takes it."""
    if kind.type in (Type.TEXT, Type.DECIMAL):
        return column, None, False
    is_float = kind.type is Type.FLOAT
    array = np.asarray([v or 0 for v in column], float if is_float else np.int64)
    known = np.asarray([value is not None for value in column], bool)
    return array, None if known.all() else known, is_float


def kernel_answer(expressions: CompiledExpressions, taken: Taken, rows: list[list[Any]]) -> bool:
    """Whether the expression holds for the last event, once the others are taken."""
    nfa = NFACompiler.compile(chain(taken, expression_of(expressions)))
    kernel = make_kernel(nfa, expressions=expressions)
    assert kernel is not None
    columns = list(zip(*rows, strict=True)) or []
    fields = tuple(
        field_array(field.kind, list(column))
        for field, column in zip(expressions.fields, columns, strict=True)
    )
    size = len(rows)
    kernel.set_events(lambda handle: handle, 0, size, fields)
    times, bounds = np.arange(size), np.asarray([0, size])
    kernel.run(None, times, None, 0, None, bounds, np.asarray([True]), 0, 0, MANY)
    ends = np.frombuffer(kernel.take_found()[2], np.int64)
    return size in ends.tolist()  # later starts have too few events


@settings(max_examples=settings.default.max_examples * 5)
@given(
    compiled_expressions(), st.lists(st.tuples(st.sampled_from("acz"), EVENTS), max_size=5), EVENTS
)
def test_random_expressions(given_: Any, drawn: Taken, event: dict[str, Any]) -> None:
    """Slots, arithmetic, comparisons, logic and errors are those of plain Python."""
    expressions, parts = given_
    more = {part: 1 if _kind_of(part) is Kind.BOOLEAN else 2.5 for part in parts}
    taken = sorted(drawn, key=lambda step: step[0])
    rows = [
        [{**row, **more}[f.sql] for f in expressions.fields] for _, row in [*taken, ("", event)]
    ]
    (holds,) = generated(expressions).conditions.values()
    events = [(stage, row) for (stage, _), row in zip(taken, rows, strict=False)]

    def anew() -> bool:
        return holds(rows[-1], accumulated(expressions, events))

    def kernel() -> bool:
        try:
            return kernel_answer(expressions, taken, rows)
        except ConditionError as error:
            raise ArithmeticError from error

    assert outcome(kernel) == outcome(anew)


@pytest.mark.slow
@settings(max_examples=settings.default.max_examples * 2)
@given(random_expressions(), st.lists(st.tuples(st.sampled_from("acz"), ROWS), max_size=5), ROWS)
def test_random_programs(expressions: CompiledExpressions, drawn: Any, last: list[Any]) -> None:
    """Every instruction and slot, with texts too, does what it does in plain Python."""
    taken = sorted(drawn, key=lambda step: step[0])
    rows = [*(row for _, row in taken), last]
    functions = generated(expressions)

    def anew() -> bool:
        return functions.conditions[NAME](last, accumulated(expressions, taken))

    def kernel() -> bool:
        try:
            return kernel_answer(expressions, [(stage, {}) for stage, _ in taken], rows)
        except ConditionError as error:
            raise ArithmeticError from error

    def plain() -> bool:
        slots = functions.initial
        for stage, row in taken:
            update = functions.updates.get(stage, functions.other)
            slots = slots if update is None else update(slots, row)
        return functions.conditions[NAME](last, slots)

    assert outcome(kernel) == outcome(anew) == outcome(plain)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sum(a.n) > 0", "overflow: the result does not fit bigint"),
        ("count(a.n) > 5 and sum(a.n) > 0", "overflow"),  # though the sum is not looked at
        ("n % count(c.n) = 0", "division by zero"),
    ],
)
def test_errors_say_what_failed(text: str, said: str) -> None:
    """The error has the condition, the stage and the time."""
    expressions = compiled_from(text)
    taken: Taken = [("a", {}), ("a", {})]
    rows = [[2**63 - 1] * len(expressions.fields)] * 3

    with pytest.raises(ConditionError, match=said) as caught:
        kernel_answer(expressions, taken, rows)

    assert (caught.value.stage, caught.value.timestamp_ms) == ("end", 2)
    assert isinstance(caught.value.__cause__, ArithmeticError)


def test_state_that_was_written_counts_again() -> None:
    """What runs have accumulated follows from the events, so it is not part of the state."""
    expressions = compiled_from("max(a.n) < n and sum(match.x) > 3")
    taken: Taken = [("a", {}), ("a", {}), ("c", {})]
    nfa = NFACompiler.compile(chain(taken, expression_of(expressions)))
    kernel = make_kernel(nfa, expressions=expressions)
    assert kernel is not None
    columns = {"n": [1, 5, 2, 6], "x": [1.0, 1.5, 1.0, math.nan]}
    fields = tuple(field_array(field.kind, columns[field.sql]) for field in expressions.fields)
    kernel.set_events(lambda handle: handle, 0, 4, fields)
    one = (np.asarray([True]), 0, 0, MANY)
    times = np.arange(3)
    *_, key = kernel.run(None, times, None, 0, None, np.asarray([0, 3]), *one)

    numbers, handles = (np.frombuffer(data, np.int64) for data in kernel.write(key))
    assert handles.tolist() == [0, 1, 2]
    copy = kernel.read(numbers, 0, 3)
    kernel.run(copy, np.asarray([3]), None, 3, None, np.asarray([0, 1]), *one)

    assert np.frombuffer(kernel.take_found()[2], np.int64).tolist() == [4]
