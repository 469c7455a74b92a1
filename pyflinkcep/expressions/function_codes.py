# SPDX-License-Identifier: Apache-2.0
"""The types of functions of values of several events, and the instructions that they become."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from pyflinkcep.errors import InputError
from pyflinkcep.expressions.program import Instruction, Kind, Op
from pyflinkcep.expressions.rules import OPERATORS
from pyflinkcep.expressions.tree import Literal, Operation, Tree
from pyflinkcep.expressions.typed import DECIMALS, NUMBERS, Typed, as_double

__all__ = ["FUNCTION_CODES"]


class Compiler(Protocol):
    """What compiles the operands."""

    def part(self, part: Tree) -> Typed:
        """Return the instructions that push the value of a part."""

    def check(self, value: Typed, wanted: tuple[Kind, ...], part: Tree) -> None:
        """Refuse a value of another kind than wanted."""

    def refused(self, part: Tree, what: str, hint: str) -> InputError:
        """Make the error for a part."""


def _rounded(compiler: Compiler, part: Operation) -> Typed:
    value, digits = _number(compiler, part), 0
    if len(part.operands) > 1:
        given = part.operands[1]
        if not isinstance(given, Literal) or type(given.value) is not int:
            hint = "write a number, such as 2"
            raise compiler.refused(part, "rounds to digits that are not known", hint)
        digits = given.value
    if value.kind is Kind.DOUBLE:
        return Typed([*value.code, (Op.ROUND, digits)], Kind.DOUBLE)
    if digits < 0:
        raise compiler.refused(part, "rounds a whole number", "cast it to double")
    return value


def _whole(compiler: Compiler, part: Operation) -> Typed:
    value = _number(compiler, part)
    if value.kind is not Kind.DOUBLE:
        return value
    return Typed([*value.code, (OPERATORS[part.operator], None)], Kind.BIGINT)


def _number(compiler: Compiler, part: Operation) -> Typed:
    """Return the first operand, a double or a whole number."""
    value = compiler.part(part.operands[0])
    compiler.check(value, NUMBERS, part)
    if value.scale:
        hint = "cast them to double, inside the aggregate, or write 0.5D"
        raise compiler.refused(part, "calculates with decimals", hint)
    return value


def _of_doubles(compiler: Compiler, part: Operation) -> Typed:
    code: list[Instruction] = []
    for operand in part.operands:
        value = compiler.part(operand)
        compiler.check(value, (*NUMBERS, *DECIMALS), part)
        code += as_double(value)
    return Typed([*code, (OPERATORS[part.operator], None)], Kind.DOUBLE)


def _of_texts(compiler: Compiler, part: Operation) -> Typed:
    code: list[Instruction] = []
    for operand in part.operands:
        value = compiler.part(operand)
        compiler.check(value, (Kind.STRING,), part)
        code += value.code
    if part.operator == "prefix end":
        return Typed([*code, (Op.PREFIX_END, None)], Kind.STRING)
    return Typed([*code, (Op.STARTS_WITH, None)], Kind.BOOLEAN)


FUNCTION_CODES: dict[str, Callable[[Compiler, Operation], Typed]] = {
    "round": _rounded,
    "floor": _whole,
    "ceil": _whole,
    "sqrt": _of_doubles,
    "sign": _of_doubles,
    "power": _of_doubles,
    "startswith": _of_texts,
    "prefix end": _of_texts,
}
"""By operator; ``pmod`` is arithmetic."""
