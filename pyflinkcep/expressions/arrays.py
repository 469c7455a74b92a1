# SPDX-License-Identifier: Apache-2.0
"""
Programs on arrays with null masks: a value for each row instead of one.

Texts are numbers here, which compare as the texts do (:func:`ranked`). Both sides of AND and OR are
computed, so jumps do nothing; without ANSI no computation fails. The rules are those of
:mod:`~pyflinkcep.expressions.program`. Mirror: ``kernel/src/batch.c``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import pairwise
from typing import Any

import attrs
import numpy as np

from pyflinkcep.expressions.number_functions import rounded
from pyflinkcep.expressions.program import Code, Instruction, Op, Type

__all__ = ["OPERATIONS", "Array", "TextRanks", "Values", "computed", "holding", "ranked"]

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


def holding(code: Code, size: int, field: Callable[[int], Values], ranks: TextRanks) -> Array:
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
    ranks : TextRanks
        The numbers of texts.
    """
    found = computed(code, field, ranks)
    true = np.logical_and(found.data, np.logical_not(found.nulls))
    return np.broadcast_to(true, size)


def computed(code: Code, field: Callable[[int], Values], ranks: TextRanks) -> Values:
    """Return a value or a condition for each row; see :func:`holding`."""
    stack: list[Values] = []
    with np.errstate(all="ignore"):  # infinities, NaN and numbers that wrap around are values
        for op, operand in code:
            if op is Op.FIELD:
                stack.append(field(int(operand or 0)))
            elif op in (Op.INT, Op.FLOAT):
                stack.append(Values(operand))
            elif op is Op.ROUND:
                stack.append(_rounded(stack.pop(), int(operand or 0)))
            elif op is Op.PREFIX_END:
                stack.append(_prefix_ends(stack.pop(), ranks.ends))
            elif op is Op.NULL:
                stack.append(Values(0, True))
            elif op not in _SKIPPED:
                function, count = OPERATIONS[op]
                operands = [stack.pop() for _ in range(count)][::-1]
                stack.append(function(operand == Type.FLOAT, *operands))
    (found,) = stack
    return found


@attrs.frozen(eq=False, slots=False)
class TextRanks:
    """
    Texts as numbers that compare as they do.

    Attributes
    ----------
    numbers : mapping of str to int
        The place of each text among all in ascending order.
    """

    numbers: Mapping[str, int]

    @cached_property
    def ends(self) -> Array:
        """By number, the least number of the texts after all that begin with a text."""
        texts = sorted(self.numbers)
        ends = np.full(len(texts), len(texts), np.int64)
        begun: list[int] = []
        for number, text in enumerate(texts):
            while begun and not text.startswith(texts[begun[-1]]):
                ends[begun.pop()] = number
            begun.append(number)
        return ends


def ranked(code: Code, ranks: TextRanks) -> Code:
    """Return a program over the numbers of texts instead of texts."""
    found: list[Instruction] = []
    for (before, text), (op, operand) in pairwise(((Op.NULL, None), *code)):
        if op is Op.TEXT:
            found.append((Op.INT, ranks.numbers[str(operand)]))
        elif op is Op.PREFIX_END and before is Op.TEXT:
            found[-1] = Op.INT, int(ranks.ends[ranks.numbers[str(text)]])
        elif operand == Type.TEXT and op in _COMPARED:
            found.append((op, Type.INT))
        else:
            found.append((op, operand))
    return tuple(found)


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

_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


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


def _rounded(a: Values, digits: int) -> Values:
    data = np.asarray(a.data, np.float64)
    numbers = [rounded(number, digits) for number in data.ravel().tolist()]
    return Values(np.asarray(numbers, np.float64).reshape(data.shape), a.nulls)


def _prefix_ends(a: Values, ends: Array) -> Values:
    return Values(np.take(ends, a.data), a.nulls) if len(ends) else a


def _whole(function: Callable[[Any], Any]) -> tuple[_Function, int]:
    """Return a function to whole numbers, which stop at the ends of the range."""

    def integers(_is_float: bool, data: Any) -> Any:
        found = function(data)
        inside = np.abs(found) < 2.0**63
        ends = np.where(np.isnan(found), 0, np.where(found > 0, _MOST, _LEAST))
        return np.where(inside, np.where(inside, found, 0).astype(np.int64), ends)

    return _of_one(integers)


def _power(_is_float: bool, a: Any, b: Any) -> Any:
    """Return a power by Java's rules, which differ from C's for NaN and infinite exponents."""
    undefined = np.isnan(b) | ((np.abs(a) == 1) & np.isinf(b))
    return np.where(undefined, np.nan, np.power(a, b))


def _pmod(a: Any, b: Any) -> Any:
    remainder = np.fmod(a, b)
    return np.where(remainder < 0, np.fmod(remainder + b, b), remainder)


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
    Op.ABS: _of_one(lambda _, a: np.abs(_numbers(a))),
    Op.NEG: _of_one(lambda _, a: np.negative(_numbers(a))),
    Op.ADD: _of_two(lambda _, a, b: np.add(a, b)),
    Op.SUB: _of_two(lambda _, a, b: np.subtract(a, b)),
    Op.MUL: _of_two(lambda _, a, b: np.multiply(a, b)),
    Op.DIV: _divided(np.true_divide),
    Op.MOD: _divided(np.fmod),
    Op.PMOD: _divided(_pmod),
    Op.FLOOR: _whole(np.floor),
    Op.CEIL: _whole(np.ceil),
    Op.SQRT: _of_one(lambda _, a: np.sqrt(a)),
    Op.POWER: _of_two(_power),
    **{op: _of_two(function) for op, function in _COMPARED.items()},
    Op.NOT: _of_one(lambda _, a: np.logical_not(a)),
    Op.AND: _joined(False),
    Op.OR: _joined(True),
    Op.IS_NULL: (_is_null, 1),
}
"""The operations that can be computed for many rows at once, and how many values they take."""
