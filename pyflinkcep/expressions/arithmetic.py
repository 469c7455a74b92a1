# SPDX-License-Identifier: Apache-2.0
"""The arithmetic and the order of match expressions, in generated Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pyflinkcep.expressions.number_functions import (
    OF_ONE,
    float_mod,
    float_pmod,
    int_div,
    int_mod,
    int_pmod,
    power,
    rounded,
    whole,
)
from pyflinkcep.expressions.program import Op, Type
from pyflinkcep.expressions.rules import (
    BY_ZERO,
    LEAST,
    MOST,
    OVERFLOW,
    RULES,
    floats_compared,
    wrapped,
)

__all__ = ["compared", "computed", "helpers"]


def helpers(ansi: bool) -> dict[str, Any]:
    """Return the functions that generated code calls; with `ansi`, overflow is an error."""

    def overflow(number: int) -> int:
        if ansi:
            raise ArithmeticError(OVERFLOW)
        return wrapped(number)

    def by_zero() -> None:
        if ansi:
            raise ArithmeticError(BY_ZERO)

    def rounded_to(step: Callable[[float], int]) -> Callable[[float], int]:
        def integer(number: float) -> int:
            found = whole(number if math.isinf(number) or math.isnan(number) else step(number))
            if found is None and ansi:
                raise ArithmeticError(OVERFLOW)
            return (MOST if number > 0 else LEAST) if found is None else found

        return integer

    return {
        "overflow": overflow,
        "floor": rounded_to(math.floor),
        "ceil": rounded_to(math.ceil),
        "rounded": rounded,
        **{op.name: function for op, function in OF_ONE.items()},
        "power": power,
        "int_pmod": int_pmod,
        "float_pmod": float_pmod,
        "by_zero": by_zero,
        "int_mod": int_mod,
        "int_div": int_div,
        "fmod": float_mod,
    }


_SIGNS = {
    Op.EQ: "==", Op.NE: "!=", Op.LT: "<", Op.LE: "<=", Op.GT: ">", Op.GE: ">=",
    Op.ADD: "+", Op.ADD_PASSING: "+", Op.SUB: "-", Op.MUL: "*", Op.DIV: "/", Op.CONCAT: "+",
}  # fmt: skip
_COMPARED = {
    **{op: op for op in (Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE)}, Op.EQ_NULLSAFE: Op.EQ,
}  # fmt: skip


_CALLED = {
    (Op.INT_DIV, Type.INT): "int_div({a}, {b})",
    (Op.MOD, Type.INT): "int_mod({a}, {b})",
    (Op.MOD, Type.FLOAT): "fmod({a}, {b})",
    (Op.PMOD, Type.INT): "int_pmod({a}, {b})",
    (Op.PMOD, Type.FLOAT): "float_pmod({a}, {b})",
    (Op.POWER, None): "power({a}, {b})",
    (Op.STARTS_WITH, None): "{a}.startswith({b})",
}


def compared(op: Op, a: str, b: str, type_: Any) -> str:
    """Return a comparison of two values as Python; NaN is the greatest number."""
    return floats_compared(op, a, b) if type_ == Type.FLOAT else f"({a} {_SIGNS[op]} {b})"


def computed(op: Op, a: str, b: str, type_: Any) -> str:
    """Return an operation on two values that are not NULL as Python."""
    if op in (Op.LEAST, Op.GREATEST):
        better = compared(Op.LT if op is Op.LEAST else Op.GT, b, a, type_)
        return f"({b} if {better} else {a})"
    if op in _COMPARED:
        return compared(_COMPARED[op], a, b, type_)
    form = _CALLED.get((op, type_), f"({a} {_SIGNS.get(op)} {b})").format(a=a, b=b)
    return f"({form} if {b} else by_zero())" if RULES[op].divides else form
