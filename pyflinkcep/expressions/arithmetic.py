# SPDX-License-Identifier: Apache-2.0
"""The arithmetic and the order of match expressions, in generated Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pyflinkcep.expressions.number_functions import (
    float_pmod,
    int_pmod,
    power,
    root,
    rounded,
    whole,
)
from pyflinkcep.expressions.program import Op, Type

__all__ = ["BY_ZERO", "COMPARISONS", "LEAST", "MOST", "OVERFLOW", "compared", "computed", "helpers"]

OVERFLOW = "overflow: the result does not fit bigint"
BY_ZERO = "division by zero"

LEAST, MOST = -(1 << 63), (1 << 63) - 1
"""The range of whole numbers."""


def helpers(ansi: bool) -> dict[str, Any]:
    """Return the functions that generated code calls; with `ansi`, overflow is an error."""

    def overflow(number: int) -> int:
        if ansi:
            raise ArithmeticError(OVERFLOW)
        return (number - LEAST) % (1 << 64) + LEAST

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
        "root": root,
        "power": power,
        "int_pmod": int_pmod,
        "float_pmod": float_pmod,
        "by_zero": by_zero,
        "int_mod": _int_mod,
        "int_div": _int_div,
        "fmod": _float_mod,
    }


def _int_mod(a: int, b: int) -> int:
    remainder = abs(a) % abs(b)
    return -remainder if a < 0 else remainder


def _int_div(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _float_mod(a: float, b: float) -> float:
    return math.nan if math.isinf(a) else math.fmod(a, b)


_EQUAL = "({a} == {b} or ({a} != {a} and {b} != {b}))"
_LESS = "({a} < {b} or ({b} != {b} and {a} == {a}))"
_NOT_MORE = "({a} <= {b} or {b} != {b})"
COMPARISONS = {
    Op.EQ: _EQUAL,
    Op.NE: f"(not {_EQUAL})",
    Op.LT: _LESS,
    Op.LE: _NOT_MORE,
    Op.GT: _LESS.replace("{a}", "{c}").replace("{b}", "{a}").replace("{c}", "{b}"),
    Op.GE: _NOT_MORE.replace("{a}", "{c}").replace("{b}", "{a}").replace("{c}", "{b}"),
}
"""The comparisons of floats."""

_SIGNS = {
    Op.EQ: "==", Op.NE: "!=", Op.LT: "<", Op.LE: "<=", Op.GT: ">", Op.GE: ">=",
    Op.ADD: "+", Op.SUB: "-", Op.MUL: "*", Op.CONCAT: "+",
}  # fmt: skip


def compared(op: Op, a: str, b: str, type_: Any) -> str:
    """Return a comparison of two values as Python; NaN is the greatest number."""
    if type_ == Type.FLOAT:
        return COMPARISONS[op].format(a=a, b=b)
    return f"({a} {_SIGNS[op]} {b})"


def computed(op: Op, a: str, b: str, type_: Any) -> str:
    """Return an operation on two values as Python."""
    if op is Op.DIV:
        return f"({a} / {b} if {b} else by_zero())"
    if op is Op.INT_DIV:
        return f"(int_div({a}, {b}) if {b} else by_zero())"
    if op is Op.POWER:
        return f"power({a}, {b})"
    if op is Op.STARTS_WITH:
        return f"{a}.startswith({b})"
    if op in (Op.MOD, Op.PMOD):
        names = {Op.MOD: ("int_mod", "fmod"), Op.PMOD: ("int_pmod", "float_pmod")}
        name = names[op][type_ == Type.FLOAT]
        return f"({name}({a}, {b}) if {b} else by_zero())"
    return f"({a} {_SIGNS[op]} {b})"
