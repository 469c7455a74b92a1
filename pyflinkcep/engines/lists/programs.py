# SPDX-License-Identifier: Apache-2.0
"""SQL over stages as conditions on chosen events, if each stage takes one event."""

from __future__ import annotations

from collections.abc import Collection

import attrs

from pyflinkcep.engines.lists.refusals import refused
from pyflinkcep.expressions.program import ALL, Code, CompiledExpressions, Function, Op, Slot, Type
from pyflinkcep.sase.tree import (
    Arithmetic,
    Comparison,
    Expression,
    Literal,
    Logical,
    Negation,
    NullTest,
    Reference,
)

__all__ = ["condition_of", "field_name"]

_COMPARED = {Op.EQ: "=", Op.NE: "<>", Op.LT: "<", Op.LE: "<=", Op.GT: ">", Op.GE: ">="}
_COMPUTED = {Op.ADD: "+", Op.SUB: "-", Op.MUL: "*", Op.DIV: "/", Op.MOD: "%"}
_JOINED = {Op.AND: "and", Op.OR: "or"}
_CONSTANTS = (Op.INT, Op.FLOAT, Op.TEXT, Op.NULL)
_SKIPPED = (Op.JUMP_IF_FALSE, Op.JUMP_IF_TRUE, Op.INT_TO_FLOAT)
"""Jumps only save work, and numbers become floats by themselves next to a float."""
_OF_ONE = (Function.FIRST, Function.LAST, Function.MIN, Function.MAX, Function.SUM)
"""The aggregates that are the value itself if there is one event."""


def field_name(number: int) -> str:
    """Return the attribute name for a field of match expressions."""
    return f"field {number}"


def condition_of(
    code: Code, stage: str, before: Collection[str], expressions: CompiledExpressions
) -> Expression:
    """
    Return the condition that a program computes.

    Parameters
    ----------
    code : Code
        The program of a match expression.
    stage : str
        The stage that it is written for.
    before : collection of str
        The earlier stages; each takes one event.
    expressions : CompiledExpressions
        The match expressions of the pattern.

    Raises
    ------
    NotSupportedError
        If lists cannot compute it, or could miss an error that a partial match would raise; the
        message says why.
    """
    reading = _Reading(stage, before, expressions)
    for op, operand in code:
        reading.step(op, operand)
    (whole,) = reading.stack
    return whole.as_condition()


@attrs.frozen
class _Value:
    """A part, and whether it is a float or a boolean by itself."""

    tree: Expression
    is_float: bool = False
    is_truth: bool = False

    def as_condition(self) -> Expression:
        """Return it as a condition: booleans of events are stored as numbers."""
        return self.tree if self.is_truth else Comparison("<>", self.tree, Literal(0, "0"))


@attrs.frozen
class _Reading:
    """A program, decoded up to some instruction."""

    stage: str
    before: Collection[str]
    expressions: CompiledExpressions
    stack: list[_Value] = attrs.field(factory=list)

    def step(self, op: Op, operand: int | float | str | None) -> None:
        """Read an instruction."""
        if op in _SKIPPED:
            return
        if op in _CONSTANTS:
            self.stack.append(_Value(Literal(operand, str(operand)), op is Op.FLOAT))
        elif op is Op.FIELD:
            self.stack.append(self._field(self.stage, int(operand or 0)))
        elif op is Op.SLOT:
            self.stack.append(self._slot(self.expressions.slots[int(operand or 0)]))
        elif op in (Op.IS_NULL, Op.NOT):
            self._judge(op)
        elif op in _JOINED or op in _COMPARED:
            self._join(op, operand)
        elif op in _COMPUTED or op is Op.NEG:
            self._compute(op, operand)
        else:
            raise refused(f"{op.name} is computed for partial matches only")

    def _field(self, stage: str, number: int) -> _Value:
        is_float = self.expressions.fields[number].kind.type is Type.FLOAT
        return _Value(Reference(stage, None, field_name(number), 0), is_float)

    def _slot(self, slot: Slot) -> _Value:
        if slot.stage not in self.before:
            raise refused(f"it reads {slot.stage!r}, which is not an earlier stage")
        if slot.function not in _OF_ONE or slot.offset or slot.field == ALL:
            raise refused(
                f"it counts or averages what {slot.stage!r} has taken, or reads further back"
            )
        found = self._field(slot.stage, slot.field)
        if slot.type is Type.FLOAT and not found.is_float:
            raise refused(f"it averages what {slot.stage!r} has taken")
        return found

    def _judge(self, op: Op) -> None:
        value = self.stack.pop()
        found = NullTest(value.tree, False) if op is Op.IS_NULL else Negation(value.as_condition())
        self.stack.append(_Value(found, is_truth=True))

    def _join(self, op: Op, operand: int | float | str | None) -> None:
        right, left = self.stack.pop(), self.stack.pop()
        found: Expression
        if op in _JOINED:
            found = Logical(_JOINED[op], (left.as_condition(), right.as_condition()))
        else:
            self._check_floats(operand, left, right)
            found = Comparison(_COMPARED[op], left.tree, right.tree)
        self.stack.append(_Value(found, is_truth=True))

    def _compute(self, op: Op, operand: int | float | str | None) -> None:
        is_float = operand == Type.FLOAT
        operands = [self.stack.pop() for _ in range(1 if op is Op.NEG else 2)][::-1]
        if self.expressions.ansi and not is_float:
            raise refused("whole numbers may overflow, which is an error: cast one to double")
        if op in (Op.DIV, Op.MOD) and self.expressions.ansi and not _is_nonzero(operands[1].tree):
            raise refused("it may divide by zero, which is an error")
        if op is not Op.DIV:
            self._check_floats(operand, *operands)
        word = "-" if op is Op.NEG else _COMPUTED[op]
        trees = tuple(value.tree for value in operands)
        self.stack.append(_Value(Arithmetic(word, trees), is_float))

    def _check_floats(self, operand: int | float | str | None, *operands: _Value) -> None:
        """Refuse floats that only exist by conversion, which list conditions lack."""
        if operand == Type.FLOAT and not any(value.is_float for value in operands):
            raise refused("it converts whole numbers to floats")


def _is_nonzero(tree: Expression) -> bool:
    return isinstance(tree, Literal) and tree.value not in (None, 0)
