# SPDX-License-Identifier: Apache-2.0
"""
Programs on arrays with null masks: a value for each row instead of one.

Texts are numbers here, which compare as the texts do (:func:`ranked`). Both sides of AND and OR are
computed, so jumps do nothing; without ANSI no computation fails. The rules are those of
:mod:`~pyflinkcep.expressions.program`. Mirror: ``kernel/src/batch.c``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import numpy as np

from pyflinkcep.expressions.program import Code, Op, Type

__all__ = ["OPERATIONS", "Array", "Values", "computed", "holding", "ranked"]

Array = np.ndarray[Any, Any]


@attrs.frozen(eq=False)
class Values:
    """
    A value for each row.

    Attributes
    ----------
    data : array or number
        The values; arbitrary for NULL.
    nulls : array of bool or bool
        The null mask.
    """

    data: Any
    nulls: Any = False


def holding(code: Code, size: int, field: Callable[[int], Values]) -> Array:
    """
    Return for each row whether a condition is true.

    Parameters
    ----------
    code : Code
        The condition, its texts being numbers.
    size : int
        The number of rows.
    field : callable
        Returns a field for each row.
    """
    found = computed(code, field)
    true = np.logical_and(found.data, np.logical_not(found.nulls))
    return np.broadcast_to(true, size)


def computed(code: Code, field: Callable[[int], Values]) -> Values:
    """Return a value or a condition for each row; see :func:`holding`."""
    stack: list[Values] = []
    with np.errstate(all="ignore"):  # infinities, NaN and numbers that wrap around are values
        for op, operand in code:
            if op is Op.FIELD:
                stack.append(field(int(operand or 0)))
            elif op in (Op.INT, Op.FLOAT):
                stack.append(Values(operand))
            elif op is Op.NULL:
                stack.append(Values(0, True))
            elif op not in _SKIPPED:
                function, count = OPERATIONS[op]
                operands = [stack.pop() for _ in range(count)][::-1]
                stack.append(function(operand == Type.FLOAT, *operands))
    (found,) = stack
    return found


def ranked(code: Code, ranks: Mapping[str, int]) -> Code:
    """Return a program over the ranks of texts instead of texts."""
    return tuple(
        (Op.INT, ranks[str(operand)])
        if op is Op.TEXT
        else (op, Type.INT if operand == Type.TEXT and op in _COMPARED else operand)
        for op, operand in code
    )


# --- operations: functions of whether operands are floats, and of these


def _less(is_float: bool, a: Any, b: Any) -> Any:
    """Return where a is less than b, NaN being greater than all other numbers."""
    return np.less(a, b) | (np.isnan(b) & ~np.isnan(a)) if is_float else np.less(a, b)


def _equal(is_float: bool, a: Any, b: Any) -> Any:
    return np.equal(a, b) | (np.isnan(a) & np.isnan(b)) if is_float else np.equal(a, b)


_COMPARED: dict[Op, Callable[[bool, Any, Any], Any]] = {
    Op.EQ: _equal,
    Op.NE: lambda is_float, a, b: ~_equal(is_float, a, b),
    Op.LT: _less,
    Op.LE: lambda is_float, a, b: ~_less(is_float, b, a),
    Op.GT: lambda is_float, a, b: _less(is_float, b, a),
    Op.GE: lambda is_float, a, b: ~_less(is_float, a, b),
}

_Function = Callable[..., Values]


def _of_one(function: Callable[[bool, Any], Any]) -> tuple[_Function, int]:
    return lambda is_float, a: Values(function(is_float, a.data), a.nulls), 1


def _of_two(function: Callable[[bool, Any, Any], Any]) -> tuple[_Function, int]:
    def values(is_float: bool, a: Values, b: Values) -> Values:
        data = function(is_float, *map(_numbers, (a.data, b.data)))
        return Values(data, np.logical_or(a.nulls, b.nulls))

    return values, 2


def _numbers(data: Any) -> Any:
    """Return a constant in 64 bits, in which integers wrap around."""
    if isinstance(data, int) and not isinstance(data, bool):
        return np.int64(data)
    return data


def _divided(function: Callable[[Any, Any], Any]) -> tuple[_Function, int]:
    """Return a division, NULL by zero."""

    def values(_is_float: bool, a: Values, b: Values) -> Values:
        zero = np.equal(b.data, 0)
        nulls = np.logical_or(np.logical_or(a.nulls, b.nulls), zero)
        return Values(function(a.data, np.where(zero, 1, b.data)), nulls)

    return values, 2


def _is_null(_is_float: bool, a: Values) -> Values:
    return Values(np.asarray(a.nulls))


def _joined(decides: bool) -> tuple[_Function, int]:
    """Return AND or OR, with SQL's rules for NULL."""

    def values(_is_float: bool, a: Values, b: Values) -> Values:
        truths = [np.asarray(part.data, bool) == decides for part in (a, b)]
        known = [np.logical_not(part.nulls) for part in (a, b)]
        decided = (truths[0] & known[0]) | (truths[1] & known[1])
        nulls = np.logical_or(a.nulls, b.nulls) & ~decided
        return Values(decided if decides else np.logical_not(decided), nulls)

    return values, 2


_SKIPPED = (Op.JUMP_IF_FALSE, Op.JUMP_IF_TRUE)

OPERATIONS: dict[Op, tuple[_Function, int]] = {
    Op.INT_TO_FLOAT: _of_one(lambda _, a: np.asarray(a, np.float64)),
    Op.NEG: _of_one(lambda _, a: np.negative(_numbers(a))),
    Op.ADD: _of_two(lambda _, a, b: np.add(a, b)),
    Op.SUB: _of_two(lambda _, a, b: np.subtract(a, b)),
    Op.MUL: _of_two(lambda _, a, b: np.multiply(a, b)),
    Op.DIV: _divided(np.true_divide),
    Op.MOD: _divided(np.fmod),
    **{op: _of_two(function) for op, function in _COMPARED.items()},
    Op.NOT: _of_one(lambda _, a: np.logical_not(a)),
    Op.AND: _joined(False),
    Op.OR: _joined(True),
    Op.IS_NULL: (_is_null, 1),
}
"""The operations that can be computed for many rows at once, and how many values they take."""
