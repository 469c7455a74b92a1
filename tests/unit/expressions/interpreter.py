# SPDX-License-Identifier: Apache-2.0
"""Programs and slots of match expressions, computed straight from their definition."""

from __future__ import annotations

import functools
import math
import operator
from fractions import Fraction
from typing import Any

import numpy as np

from pyflinkcep.expressions.numbers import NUMBER_FUNCTIONS
from pyflinkcep.expressions.program import ALL, Code, CompiledExpressions, Function, Op, Slot, Type
from pyflinkcep.expressions.tree import WHOLE


class Failed(Exception):
    """Overflow or division by zero, where they are errors."""


def order(a: Any, b: Any) -> int:
    """Compare as Spark does: NaN is equal to itself and greater than all other numbers."""
    if isinstance(a, float) and (math.isnan(a) or math.isnan(b)):
        return math.isnan(a) - math.isnan(b)
    return (a > b) - (a < b)


COMPARED = {
    Op.LT: operator.lt, Op.LE: operator.le, Op.GT: operator.gt, Op.GE: operator.ge,
    Op.EQ: operator.eq, Op.NE: operator.ne,
}  # fmt: skip


def fitted(number: int, ansi: bool) -> int:
    """Let an integer overflow."""
    if -(2**63) <= number < 2**63:
        return number
    if ansi:
        raise Failed
    return (number + 2**63) % 2**64 - 2**63


def computed(op: Op, a: Any, b: Any, type_: Any, ansi: bool) -> Any:
    """Do arithmetic on two values that are not NULL."""
    if op.name in FUNCTIONS:
        return FUNCTIONS[op.name](a, b)
    if op in (Op.DIV, Op.MOD, Op.PMOD, Op.INT_DIV):
        if b == 0:
            if ansi:
                raise Failed
            return None
        if op is Op.DIV:
            return a / b
        if op is Op.INT_DIV:
            return fitted(abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1), ansi)
        if type_ == Type.FLOAT:
            first = float_remainder(a, b)
            return float_remainder(first + b, b) if op is Op.PMOD and first < 0 else first
        if op is Op.PMOD:
            first = abs(a) % abs(b) * (-1 if a < 0 else 1)
            a = fitted(first + b, ansi=False) if first < 0 else first
        return abs(a) % abs(b) * (-1 if a < 0 else 1)
    result = {Op.ADD: operator.add, Op.SUB: operator.sub, Op.MUL: operator.mul}[op](a, b)
    return fitted(result, ansi) if type_ == Type.INT else result


def float_remainder(a: float, b: float) -> float:
    return math.nan if math.isinf(a) else math.fmod(a, b)


def power(a: float, b: float) -> float:
    """Raise to a power as Java does."""
    if math.isnan(b) or (abs(a) == 1 and math.isinf(b)):
        return math.nan
    return float(np.power(np.float64(a), np.float64(b)))


def logarithm(of: Any) -> Any:
    return lambda a: None if a <= 0 else of(a)


FUNCTIONS: dict[str, Any] = {
    "POWER": power, "SQRT": lambda a: math.sqrt(a) if a >= 0 else math.nan,
    "SIGN": lambda a: math.copysign(1.0, a) if abs(a) > 0 else a,
    "EXP": lambda a: math.inf if a > 1000 else float(np.float64(math.e) ** a) if a < 0 else math.exp(a),
    "LN": logarithm(math.log), "LOG10": logarithm(math.log10), "LOG2": logarithm(math.log2),
}  # fmt: skip


def run(code: Code, fields: Any, slots: Any, ansi: bool) -> bool:
    """Run a program."""
    stack: list[Any] = []
    at = 0
    while at < len(code):
        op, arg = code[at]
        at += 1
        if op in (Op.FIELD, Op.SLOT):
            stack.append((fields if op is Op.FIELD else slots)[arg])
        elif op in (Op.INT, Op.FLOAT, Op.TEXT, Op.NULL):
            stack.append(arg)
        elif op is Op.JUMP_IF_FALSE:
            at += arg if stack[-1] == 0 and stack[-1] is not None else 0
        elif op is Op.JUMP_IF_TRUE:
            at += arg if stack[-1] else 0
        elif op is Op.JUMP_IF_NOT_NULL:
            if stack[-1] is not None:
                at += arg
            else:
                stack.pop()
        elif op is Op.JUMP:
            at += arg
        elif op is Op.JUMP_UNLESS:
            at += 0 if stack.pop() else arg
        else:
            b = stack.pop()
            if op is Op.IS_NULL:
                stack.append(int(b is None))
            elif op is Op.AGGREGATE:
                stack.append(None if b is None else middle(b))
            elif op is Op.LISTED:
                stack.append(None if b is None else (b,))
            elif op in UNARY:
                stack.append(None if b is None else unary(op, b, arg, ansi))
            else:
                stack.append(binary(op, stack.pop(), b, arg, ansi))
    (result,) = stack
    return bool(result)


UNARY = (
    Op.INT_TO_FLOAT, Op.NEG, Op.ABS, Op.NOT, Op.LIKE, Op.FLOOR, Op.CEIL, Op.ROUND, Op.TRUNCATE,
    *(Op[name.upper()] for name, of in NUMBER_FUNCTIONS.items() if of.arity == 1),
)  # fmt: skip


def whole(number: float, ansi: bool) -> int:
    """Make an integer of a number without fraction, at most the greatest one."""
    if math.isnan(number):
        return 0
    if abs(number) > 2.0**63:
        if ansi:
            raise Failed
        return 2**63 - 1 if number > 0 else -(2**63)
    return min(int(number), 2**63 - 1)


def rounded(number: float, digits: int) -> float:
    """Round halves away from zero, on the digits that are shown."""
    if not math.isfinite(number):
        return number
    shifted = Fraction(repr(number)) * Fraction(10) ** digits
    nearest = math.floor(abs(shifted) + Fraction(1, 2)) * (-1 if shifted < 0 else 1)
    return float(nearest / Fraction(10) ** digits)


def truncated(number: float, digits: int) -> float:
    """Cut what follows some of the digits that are shown."""
    if not math.isfinite(number):
        return number
    return float(
        math.trunc(Fraction(repr(number)) * Fraction(10) ** digits) / Fraction(10) ** digits
    )


def unary(op: Op, a: Any, type_: Any, ansi: bool) -> Any:
    if op is Op.INT_TO_FLOAT:
        return float(a)
    if op is Op.NOT:
        return int(not a)
    if op is Op.LIKE:
        return int(is_like(a, type_))
    if op is Op.ROUND:
        return rounded(a, type_)
    if op is Op.TRUNCATE:
        return truncated(a, type_)
    if op.name in FUNCTIONS:
        return FUNCTIONS[op.name](a)
    if op in (Op.FLOOR, Op.CEIL):
        step = math.floor if op is Op.FLOOR else math.ceil
        return whole(float(step(a)) if math.isfinite(a) else a, ansi)
    value = -a if op is Op.NEG else abs(a)
    return fitted(value, ansi) if type_ == Type.INT else value


def is_like(text: str, pattern: str) -> bool:
    """Match a LIKE pattern from the left."""
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(is_like(text[at:], pattern[1:]) for at in range(len(text) + 1))
    wanted = pattern[1] if pattern[0] == "\\" else pattern[0]
    rest = pattern[2:] if pattern[0] == "\\" else pattern[1:]
    fits = text and (pattern[0] == "_" or text[0] == wanted)
    return bool(fits) and is_like(text[1:], rest)


def binary(op: Op, a: Any, b: Any, type_: Any, ansi: bool) -> Any:
    if op in (Op.AND, Op.OR):
        decisive = op is Op.OR
        if any(v is not None and bool(v) is decisive for v in (a, b)):
            return int(decisive)
        return None if a is None or b is None else int(not decisive)
    if op is Op.EQ_NULLSAFE:
        return int(a is b) if a is None or b is None else int(order(a, b) == 0)
    if op in (Op.ADD_PASSING, Op.LEAST, Op.GREATEST):
        return passing(op, a, b, type_, ansi)
    if a is None or b is None:
        return None
    if op is Op.CONCAT:
        return a + b
    if op is Op.STARTS_WITH:
        return int(a[: len(b)] == b)
    if op in COMPARED:
        return int(COMPARED[op](order(a, b), 0))
    return computed(op, a, b, type_, ansi)


def middle(numbers: Any) -> float:
    """Return the median."""
    ordered = sorted(numbers, key=functools.cmp_to_key(order))
    half = (len(numbers) - 1) / 2
    low, high = ordered[math.floor(half)], ordered[math.ceil(half)]
    return low if order(low, high) == 0 else low + (high - low) / 2


def passing(op: Op, a: Any, b: Any, type_: Any, ansi: bool) -> Any:
    """Return the other value where one is NULL."""
    if a is None or b is None:
        return b if a is None else a
    if op is Op.ADD_PASSING:
        return fitted(a + b, ansi) if type_ == Type.INT else a + b
    return b if order(b, a) == (-1 if op is Op.LEAST else 1) else a


def accumulated(expressions: CompiledExpressions, events: Any) -> list[Any]:
    """Compute every slot anew from all events (stage, fields)."""
    return [_slot(expressions, slot, events) for slot in expressions.slots]


def _slot(expressions: CompiledExpressions, slot: Slot, events: Any) -> Any:
    seen = [fields for stage, fields in events if slot.stage in (stage, WHOLE)]
    if slot.field == ALL:
        return len(seen)
    given = [fields[slot.field] for fields in seen]
    if slot.type == Type.FLOAT and expressions.fields[slot.field].kind.type == Type.INT:
        given = [None if v is None else float(v) for v in given]
    if slot.function in (Function.FIRST, Function.LAST):
        in_order = given if slot.function is Function.FIRST else given[::-1]
        return in_order[slot.offset] if slot.offset < len(given) else None
    known = [v for v in given if v is not None]
    if slot.function is Function.COUNT:
        return len(known)
    if not known:
        return None
    if slot.function is Function.LIST:
        return tuple(known)
    if slot.function in (Function.MEAN, Function.MOMENT):
        mean, moment = known[0], known[0] * (known[0] - known[0])
        for count, value in enumerate(known[1:], 2):
            far, mean = value - mean, mean + (value - mean) / count
            moment += far * (far - far / count)
        return mean if slot.function is Function.MEAN else moment
    found = known[0]
    for value in known[1:]:
        if slot.function is Function.SUM:
            found = found + value
            found = fitted(found, expressions.ansi) if slot.type == Type.INT else found
        else:
            wanted = -1 if slot.function is Function.MIN else 1
            found = value if order(value, found) == wanted else found
    return found
