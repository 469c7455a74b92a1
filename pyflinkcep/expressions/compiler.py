# SPDX-License-Identifier: Apache-2.0
"""From match expressions to programs; :mod:`pyflinkcep.expressions.program` says what those are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyflinkcep.errors import InputError
from pyflinkcep.expressions.program import (
    ALL,
    Field,
    Function,
    Instruction,
    Kind,
    MatchValues,
    Op,
    Slot,
    Type,
)
from pyflinkcep.expressions.tree import (
    Aggregate,
    Constant,
    EventPart,
    MatchExpression,
    Operation,
    Part,
)

__all__ = ["compiled"]

_NUMBERS = (Kind.BIGINT, Kind.DOUBLE)
_COMPARISONS = {
    "=": Op.EQ, "<>": Op.NE, "<": Op.LT, "<=": Op.LE, ">": Op.GT, ">=": Op.GE,
    "<=>": Op.EQ_NULLSAFE,
}  # fmt: skip
_ARITHMETIC = {"+": Op.ADD, "-": Op.SUB, "*": Op.MUL, "/": Op.DIV, "%": Op.MOD}
_JUMPS = {"and": (Op.JUMP_IF_FALSE, Op.AND), "or": (Op.JUMP_IF_TRUE, Op.OR)}

_Typed = tuple[list[Instruction], Kind | None]
"""Instructions that push a value, and the value's kind: None for one that is always NULL."""


def compiled(
    expressions: Iterable[tuple[str, MatchExpression]], kinds: Mapping[str, Kind], ansi: bool
) -> MatchValues:
    """
    Compile the match expressions of a pattern.

    Parameters
    ----------
    expressions : iterable of (str, MatchExpression)
        For each where it is, for errors, and the expression.
    kinds : mapping of str to Kind
        What the expressions' parts about one event give.
    ansi : bool
        Whether overflow and division by zero are errors.

    Raises
    ------
    InputError
        When kinds do not go together, or an expression gives no boolean.
    """
    layout = _Layout(kinds)
    programs = {}
    for where, expression in expressions:
        code, kind = _Compiler(layout, f"{where}: the condition {expression.text!r}").part(
            expression.tree
        )
        if kind not in (Kind.BOOLEAN, None):
            raise InputError(
                f"{where}: the condition {expression.text!r} gives {_said(kind)}, want boolean",
                "compare it with something",
            )
        programs[expression.text] = tuple(code)
    return MatchValues(tuple(layout.fields), tuple(layout.slots), programs, ansi)


class _Layout:
    """The fields and slots that the expressions of a pattern share."""

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        self._kinds = kinds
        self.fields: dict[Field, int] = {}
        self.slots: dict[Slot, int] = {}

    def field(self, sql: str) -> tuple[int, Kind]:
        """Give the place of a field and its kind."""
        kind = self._kinds[sql]
        return self.fields.setdefault(Field(sql, kind), len(self.fields)), kind

    def slot(self, function: Function, stage: str, field: int, type_: Type) -> Instruction:
        """Give the instruction that pushes a slot."""
        count = -1
        if function is Function.FIRST:
            count = self._place(Slot(Function.COUNT, stage, ALL, Type.INT))
        return Op.SLOT, self._place(Slot(function, stage, field, type_, count))

    def _place(self, slot: Slot) -> int:
        return self.slots.setdefault(slot, len(self.slots))


class _Compiler:
    """Compiles one expression."""

    def __init__(self, layout: _Layout, where: str) -> None:
        self._layout = layout
        self._where = where

    def part(self, part: Part) -> _Typed:
        """Give the instructions that push the value of a part."""
        if isinstance(part, Constant):
            return _constant(part.value)
        if isinstance(part, EventPart):
            field, kind = self._layout.field(part.text)
            return [(Op.FIELD, field)], kind
        if isinstance(part, Aggregate):
            return self._aggregate(part)
        return self._operation(part)

    def _aggregate(self, part: Aggregate) -> _Typed:
        slot, stage = self._layout.slot, part.stage
        if part.argument is None:
            return [slot(Function.COUNT, stage, ALL, Type.INT)], Kind.BIGINT
        field, kind = self._layout.field(part.argument)
        if part.function == "count":
            return [slot(Function.COUNT, stage, field, Type.INT)], Kind.BIGINT
        if part.function in ("sum", "avg"):
            self._check(kind, _NUMBERS, part)
            if part.function == "avg":
                total = slot(Function.SUM, stage, field, Type.FLOAT)
                count = slot(Function.COUNT, stage, field, Type.INT)
                divide: list[Instruction] = [(Op.INT_TO_FLOAT, None), (Op.DIV, Type.FLOAT)]
                return [total, count, *divide], Kind.DOUBLE
        return [slot(Function[part.function.upper()], stage, field, kind.type)], kind

    def _operation(self, part: Operation) -> _Typed:
        operator = part.operator
        if operator == "coalesce":
            return self._coalesce(part)
        first, *rest = map(self.part, part.operands)
        if operator == "is null":
            return [*first[0], (Op.IS_NULL, None)], Kind.BOOLEAN
        if operator == "not":
            self._check(first[1], (Kind.BOOLEAN,), part)
            return [*first[0], (Op.NOT, None)], Kind.BOOLEAN
        if operator == "neg":
            self._check(first[1], _NUMBERS, part)
            return [*first[0], (Op.NEG, _type(first[1]))], first[1]
        if operator in _JUMPS:
            self._check(first[1], (Kind.BOOLEAN,), part)
            self._check(rest[0][1], (Kind.BOOLEAN,), part)
            jump, combine = _JUMPS[operator]
            right = rest[0][0]
            return [*first[0], (jump, len(right) + 1), *right, (combine, None)], Kind.BOOLEAN
        return self._binary(part, first, rest[0])

    def _binary(self, part: Operation, left: _Typed, right: _Typed) -> _Typed:
        if part.operator in _COMPARISONS:
            kind = self._common([left, right], part)
            op, gives = _COMPARISONS[part.operator], Kind.BOOLEAN
        else:
            self._check(left[1], _NUMBERS, part)
            self._check(right[1], _NUMBERS, part)
            kind = Kind.DOUBLE if part.operator == "/" else self._common([left, right], part)
            op, gives = _ARITHMETIC[part.operator], kind or Kind.BIGINT
        code = [*_converted(left, kind), *_converted(right, kind)]
        return [*code, (op, _type(kind))], gives

    def _coalesce(self, part: Operation) -> _Typed:
        values = list(map(self.part, part.operands))
        kind = self._common(values, part)
        *before, code = [_converted(value, kind) for value in values]
        for earlier in reversed(before):
            code = [*earlier, (Op.JUMP_IF_NOT_NULL, len(code)), *code]
        return code, kind

    # --- kinds

    def _common(self, values: list[_Typed], part: Part) -> Kind | None:
        """Give the kind that values have in common, numbers being of one kind."""
        kinds = list(dict.fromkeys(kind for _, kind in values if kind is not None))
        if len(kinds) > 1 and all(kind in _NUMBERS for kind in kinds):
            return Kind.DOUBLE
        if len(kinds) > 1:
            raise InputError(
                f"{self._where}: {part.text!r} puts {' and '.join(map(_said, kinds))} together",
                "cast one of them, inside the aggregate where it is about one",
            )
        return kinds[0] if kinds else None

    def _check(self, kind: Kind | None, wanted: tuple[Kind, ...], part: Part) -> None:
        if kind is not None and kind not in wanted:
            raise InputError(
                f"{self._where}: {part.text!r} needs {' or '.join(map(_said, wanted))}, "
                f"got {_said(kind)}",
                "cast it, inside the aggregate where it is about one",
            )


def _said(kind: Kind | None) -> str:
    return "null" if kind is None else kind.value


def _type(kind: Kind | None) -> Type:
    return Type.INT if kind is None else kind.type


def _converted(value: _Typed, kind: Kind | None) -> list[Instruction]:
    """Give a value as one of another kind of number, where it is none already."""
    code, own = value
    if (own, kind) != _NUMBERS:
        return code
    (op, operand), *more = code
    if op is Op.INT and not more:
        return [(Op.FLOAT, float(operand or 0))]
    return [*code, (Op.INT_TO_FLOAT, None)]


def _constant(value: int | float | str | bool | None) -> _Typed:
    if value is None:
        return [(Op.NULL, None)], None
    if isinstance(value, bool):
        return [(Op.INT, int(value))], Kind.BOOLEAN
    if isinstance(value, int):
        return [(Op.INT, value)], Kind.BIGINT
    if isinstance(value, float):
        return [(Op.FLOAT, value)], Kind.DOUBLE
    return [(Op.TEXT, value)], Kind.STRING
