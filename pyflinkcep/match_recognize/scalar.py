# SPDX-License-Identifier: Apache-2.0
"""Conditions of DEFINE as programs whose fields are leaves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from pyflinkcep.errors import CepError, InputError
from pyflinkcep.expressions.codegen import generated
from pyflinkcep.expressions.compiler import condition_code, value_code
from pyflinkcep.expressions.leaf_fields import LeafFields
from pyflinkcep.expressions.program import Code, CompiledExpressions, Field, Kind, Op
from pyflinkcep.expressions.text import shown
from pyflinkcep.expressions.tree import Aggregate, Column, leaves
from pyflinkcep.expressions.typed import Typed
from pyflinkcep.match_recognize.expressions import Expression
from pyflinkcep.match_recognize.leaves import LABEL, Leaf

__all__ = ["ConditionProgram", "condition_leaves", "condition_program", "value_kind"]

_BEFORE = "compute it in a subquery first"


@attrs.frozen(eq=False)
class ConditionProgram:
    """
    A condition as a program whose fields are leaves.

    Attributes
    ----------
    leaves : tuple of Leaf
        What it takes from the match.
    kinds : tuple of Kind
        The types of the leaves.
    code : Code
        The program; its field ``i`` is leaf ``i``.
    function : callable
        Whether it holds, given the values of the leaves.
    """

    leaves: tuple[Leaf, ...]
    kinds: tuple[Kind, ...]
    code: Code
    function: Callable[[Sequence[Any]], bool]


def condition_leaves(expression: Expression) -> list[Leaf]:
    """
    Return what a condition takes from the match.

    For a condition that cannot be read, all leaves are returned; :func:`condition_program` then
    raises the error.
    """
    tree = expression.tree
    if tree is None or isinstance(tree, CepError):
        return list(expression.leaves)
    return list(dict.fromkeys(part for part in leaves(tree) if isinstance(part, Leaf)))


def condition_program(
    expression: Expression, kinds: Mapping[Leaf, Kind], ansi: bool
) -> ConditionProgram:
    """
    Compile a condition.

    Parameters
    ----------
    expression : Expression
        The condition; each of its leaves is a value of the match.
    kinds : mapping of Leaf to Kind
        The types of :func:`condition_leaves`.
    ansi : bool
        Whether overflow and division by zero are errors.

    Raises
    ------
    InputError
        If types are incompatible, or it is not a condition.
    InvalidArgumentError
        If the SQL around leaves is not supported.
    """
    tree = expression.tree
    if isinstance(tree, CepError):
        raise tree
    assert tree is not None
    for part in leaves(tree):
        if isinstance(part, Column):  # a constant that only Spark could compute, which never does
            raise InputError(f"{shown(part)!r} next to values of the match", _BEFORE)
    fields = _Leaves(kinds)
    code = condition_code(tree, fields, f"DEFINE: the condition {expression.text!r}")
    used = sorted({int(operand or 0) for op, operand in code if op is Op.FIELD})
    numbers = {old: new for new, old in enumerate(used)}
    code = tuple(
        (op, numbers[int(operand or 0)] if op is Op.FIELD else operand) for op, operand in code
    )
    read = list(fields.fields.items())
    wanted, types = zip(*(read[number] for number in used), strict=True) if used else ((), ())
    values = tuple(Field(repr(leaf), kind) for leaf, kind in zip(wanted, types, strict=True))
    compiled = CompiledExpressions(values, (), {expression.text: code}, ansi)
    (function,) = generated(compiled).conditions.values()
    return ConditionProgram(wanted, types, code, _Plain(function))


def value_kind(expression: Expression, kinds: Mapping[Leaf, Kind]) -> Kind | None:
    """Return the type of an expression of leaves; None if it is always NULL, or not known."""
    if expression.tree is None or isinstance(expression.tree, CepError):
        return None
    try:
        return value_code(expression.tree, _Leaves(kinds), "").kind
    except CepError:
        return None


class _Leaves(LeafFields):
    """The leaves of a condition as fields."""

    unit = "row"
    ends = "FIRST or LAST"

    def __init__(self, kinds: Mapping[Leaf, Kind]) -> None:
        self._of = dict(kinds)
        arguments = {leaf.argument: kind for leaf, kind in kinds.items() if leaf.argument}
        super().__init__({str(argument): kind for argument, kind in arguments.items()})
        self.fields: dict[Leaf, Kind] = {}

    def knows(self, sql: str) -> bool:
        """Whether the values of a leaf have a type; without one they are always NULL."""
        return super().knows(sql) or sql == LABEL

    def aggregate(self, part: Aggregate) -> Typed:
        """Return the instruction that pushes a leaf."""
        assert isinstance(part, Leaf)
        kind = self._of[part] if part in self._of else self.kind(part.argument or "")
        self.fields.setdefault(part, kind)
        return Typed([(Op.FIELD, list(self.fields).index(part))], kind)


@attrs.frozen(eq=False)
class _Plain:
    """A condition on the values of leaves."""

    function: Callable[[Sequence[Any], tuple[Any, ...]], bool]

    def __call__(self, fields: Sequence[Any]) -> bool:
        return self.function(fields, ())
