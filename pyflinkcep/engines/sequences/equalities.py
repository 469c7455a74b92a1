# SPDX-License-Identifier: Apache-2.0
"""The equalities that every event on an edge satisfies."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from pyflinkcep.expressions.program import Code, Op

__all__ = ["Equality", "equality_of"]


@attrs.frozen
class Equality:
    """
    A clause that compares a field of the event to a slot of the run.

    Attributes
    ----------
    field, slot : int
        Their numbers.
    """

    field: int
    slot: int


def equality_of(code: Code) -> Equality | None:
    """Return an equality that holds wherever a program holds; None if there is none."""
    for part in _conjuncts(code):
        read = [(op, operand) for op, operand in part if op is not Op.INT_TO_FLOAT]
        if len(read) != 3 or read[2][0] is not Op.EQ:
            continue
        numbers = dict(read[:2])
        if set(numbers) == {Op.FIELD, Op.SLOT}:
            return Equality(_number(numbers[Op.FIELD]), _number(numbers[Op.SLOT]))
    return None


def _conjuncts(code: Code) -> Iterator[Code]:
    """Yield the parts of a program that must all hold."""
    last = len(code) - 1
    if not code or code[last][0] is not Op.AND:
        yield code
        return
    for at, (op, operand) in enumerate(code):
        if op is Op.JUMP_IF_FALSE and at + _number(operand) == last:
            yield from _conjuncts(code[:at])
            yield from _conjuncts(code[at + 1 : last])


def _number(operand: object) -> int:
    assert isinstance(operand, int)
    return operand
