# SPDX-License-Identifier: Apache-2.0
"""Converts arguments (conditions, numbers) to the form that stages hold."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from typing import Any, Protocol, SupportsIndex

from pyflinkcep.conditions import (
    ConditionContext,
    ContextFunctionCondition,
    ExpressionCondition,
    FunctionCondition,
    IterativeCondition,
)
from pyflinkcep.errors import InvalidArgumentError, MissingConditionError
from pyflinkcep.expressions.parser import sql_condition
from pyflinkcep.functions import function_name


class SparkColumn(Protocol):
    """A ``pyspark.sql.Column``, classic or Connect, recognized by its methods."""

    def isNotNull(self) -> Any:
        """Return the column that is true where this one is not null."""

    def eqNullSafe(self, other: Any, /) -> Any:
        """Return the column that is true where two are equal or both null."""


Condition = (
    IterativeCondition
    | str
    | SparkColumn
    | Callable[[Any], bool]
    | Callable[[Any, ConditionContext], bool]
)
"""The argument of :meth:`pyflinkcep.Pattern.where`."""


def as_condition(condition: Condition, null_message: str, stage: str = "") -> IterativeCondition:
    """Turn any form of condition into an :class:`IterativeCondition`."""
    if condition is None:
        raise MissingConditionError(null_message, "pass a function, an expression or a condition")
    if isinstance(condition, IterativeCondition):
        return condition
    if isinstance(condition, str):
        return sql_condition(condition, stage)
    if _is_column(condition):
        return ExpressionCondition(condition)
    if not callable(condition) or isinstance(condition, type):
        raise InvalidArgumentError(
            f"{_at(stage)}expected a condition, got {condition!r}",
            "pass a function of the event, a SQL string, a Column or an IterativeCondition object",
        )
    function: Callable[..., bool] = condition
    match required_arguments(function):
        case 1:
            return FunctionCondition(function)
        case 2:
            return ContextFunctionCondition(function)
        case count:
            raise InvalidArgumentError(
                f"{_at(stage)}expected a function of one or two arguments, "
                f"got {function_name(function)} with {count}",
                "write a function of (event) or of (event, ctx)",
            )


_TIMES = "write times(n), times(from, to) or timesOrMore(n), and a timedelta after the numbers"


def as_count(value: SupportsIndex, what: str, hint: str = _TIMES) -> int:
    """Return a whole number, including NumPy's, as int."""
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise InvalidArgumentError(f"{what}: expected a whole number, got {value!r}", hint)
    return operator.index(value)


def _at(stage: str) -> str:
    return f"stage {stage!r}: " if stage else ""


def _is_column(value: object) -> bool:
    """Whether this is a Spark Column, classic or Connect; without importing pyspark."""
    return any(
        c.__name__ == "Column" and c.__module__.startswith("pyspark.sql")
        for c in type(value).__mro__
    )


def required_arguments(function: Callable[..., Any]) -> int:
    """Return the number of required arguments; one for builtins without a signature."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 1
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = sum(1 for p in positional if p.default is p.empty)
    if required == 0 and (positional or any(p.kind == p.VAR_POSITIONAL for p in parameters)):
        return 1
    return required
