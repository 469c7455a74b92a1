# SPDX-License-Identifier: Apache-2.0
"""Programs without jumps, for many rows at once: all branches are computed, then chosen from."""

from __future__ import annotations

from typing import NamedTuple

from pyflinkcep.expressions.program import Code, Instruction, Op, Type
from pyflinkcep.expressions.rules import RULES, TRUTHS

__all__ = ["unbranched"]

_OF_TRUTHS = (Op.NOT, Op.AND, Op.OR)
_TO_TRUTH: list[Instruction] = [(Op.INT, 0), (Op.NE, Type.INT)]


class _Part(NamedTuple):
    """Instructions that push a value, a number or a truth value."""

    code: list[Instruction]
    is_truth: bool = False

    @property
    def truth(self) -> list[Instruction]:
        return self.code if self.is_truth else [*self.code, *_TO_TRUTH]

    @property
    def number(self) -> list[Instruction]:
        return [*self.code, (Op.TRUTH_TO_INT, None)] if self.is_truth else self.code


def unbranched(code: Code, *, is_condition: bool = False) -> Code:
    """
    Return a program without jumps, in which truth values and numbers are kept apart.

    Parameters
    ----------
    code : Code
        The program.
    is_condition : bool
        Whether its value is to be a truth value.

    Examples
    --------
    ``coalesce(x, 0) > 1``:

    >>> jump = (Op.JUMP_IF_NOT_NULL, 1)
    >>> code = (Op.FIELD, 0), jump, (Op.INT, 0), (Op.INT, 1), (Op.GT, Type.INT)
    >>> [op.name for op, _ in unbranched(code)]
    ['FIELD', 'INT', 'OR_ELSE', 'INT', 'GT']
    """
    stack: list[_Part] = []
    chosen: list[tuple[int, Op]] = []
    for at, (op, operand) in enumerate(code):
        _end(stack, chosen, at)
        if op is Op.JUMP_IF_NOT_NULL:
            chosen.append((at + 1 + int(operand or 0), Op.OR_ELSE))
        elif op is Op.JUMP:
            chosen.append((at + 1 + int(operand or 0), Op.CHOOSE))
        elif op not in (Op.JUMP_IF_FALSE, Op.JUMP_IF_TRUE, Op.JUMP_UNLESS):
            _compute(stack, op, operand)
    _end(stack, chosen, len(code))
    (found,) = stack
    return tuple(found.truth if is_condition else found.code)


def _compute(stack: list[_Part], op: Op, operand: int | float | str | None) -> None:
    """Replace the operands on the stack by a computation."""
    count = RULES[op].operands if op in RULES else 0
    operands = stack[len(stack) - count :]
    del stack[len(stack) - count :]
    code: list[Instruction] = []
    for part in operands:
        if op is Op.IS_NULL:
            code += part.code
        else:
            code += part.truth if op in _OF_TRUTHS else part.number
    stack.append(_Part([*code, (op, operand)], op in TRUTHS))


def _end(stack: list[_Part], chosen: list[tuple[int, Op]], at: int) -> None:
    """Choose between the branches that end here."""
    while chosen and chosen[-1][0] == at:
        _, op = chosen.pop()
        other, value = stack.pop().number, stack.pop().number
        condition = stack.pop().truth if op is Op.CHOOSE else []
        stack.append(_Part([*condition, *value, *other, (op, None)]))
