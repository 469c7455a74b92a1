# SPDX-License-Identifier: Apache-2.0
"""
From match expressions to programs, and the fields and slots that those of a pattern share.

What they are is said in :mod:`pyflinkcep.expressions.program`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from typing import Any, NamedTuple

import attrs

from pyflinkcep.errors import InputError
from pyflinkcep.expressions.aggregates import AGGREGATES
from pyflinkcep.expressions.numbers import (
    BIGINT,
    LEAST,
    MOST,
    MOST_DIGITS,
    NUMBER_FUNCTIONS,
    ROUNDINGS,
    UNITS_US,
    Digits,
    averaged,
    common,
    digits_of_value,
    of_operation,
    rounded_digits,
    summed,
    whole_digits,
)
from pyflinkcep.expressions.program import (
    ALL,
    EXACT_DIGITS,
    OPERATORS,
    Code,
    CompiledExpressions,
    Field,
    Function,
    Instruction,
    Kind,
    Op,
    Slot,
    Type,
    update_code,
)
from pyflinkcep.expressions.sql_types import aggregate_type, of_kind
from pyflinkcep.expressions.tree import (
    COMPARISONS,
    Aggregate,
    Call,
    Column,
    Interval,
    Leaf,
    Literal,
    MatchExpression,
    Moment,
    Operation,
    Tree,
    joined,
    shown,
)

NUMBERS = (Kind.BIGINT, Kind.DOUBLE)
SMALL = 18
"""Of so many digits, all decimals fit 64 bits."""
TIMES = (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ, Kind.DATE)


# --- values


class Typed(NamedTuple):
    """Instructions that push a value."""

    code: list[Instruction]  # The instructions
    kind: Kind | None  # The value's kind; None for one that is always NULL
    # What represents it, if that is not the type of its kind: a decimal may be an INT, which counts
    # units of its last digit, or a DECIMAL.
    form: Type | None = None

    @property
    def type(self) -> Type:
        """The type of the value."""
        if self.form is not None:
            return self.form
        return Type.INT if self.kind is None else self.kind.type

    @property
    def is_decimal(self) -> bool:
        """Whether it is a decimal."""
        return self.kind is not None and self.kind.is_decimal

    @property
    def number(self) -> int | None:
        """The constant INT that it is; None for any other value."""
        (op, operand), *more = self.code
        return operand if op is Op.INT and not more and isinstance(operand, int) else None

    @property
    def digits(self) -> Digits:
        """The digits that it has beside decimals."""
        digits = None if self.kind is None else self.kind.digits
        if digits is not None:
            return digits
        return BIGINT if self.number is None else digits_of_value(self.number)

    @property
    def is_small(self) -> bool:
        """Whether an INT can count its units."""
        is_whole = self.kind is Kind.BIGINT and self.number is not None
        return self.digits.precision <= SMALL and (
            is_whole or (self.is_decimal and self.type is not Type.DECIMAL)
        )


def said(value: Typed) -> str:
    """Return the name of a value's kind for messages."""
    if value.kind is None:
        return "null"
    return "decimal" if value.is_decimal else value.kind.value


def constant(
    value: int | float | str | bool | Decimal | Interval | Moment | None,
) -> Typed | None:
    """Return the instruction that pushes a constant; None for a decimal of too many digits."""
    if value is None:
        return Typed([(Op.NULL, None)], None)
    if isinstance(value, bool):
        return Typed([(Op.INT, int(value))], Kind.BOOLEAN)
    if isinstance(value, int):
        return Typed([(Op.INT, value)], Kind.BIGINT)
    if isinstance(value, float):
        return Typed([(Op.FLOAT, value)], Kind.DOUBLE)
    if isinstance(value, str):
        return Typed([(Op.TEXT, value)], Kind.STRING)
    if isinstance(value, Interval):
        return Typed([(Op.INT, value.microseconds)], Kind.INTERVAL)
    if isinstance(value, Moment):
        return moment(value, Kind.DATE if value.is_date else Kind.TIMESTAMP)
    digits = digits_of_value(value)
    if digits.precision > MOST_DIGITS:
        return None
    kind = Kind.decimal(digits)
    if digits.precision > SMALL:
        return Typed([(Op.DECIMAL, str(value))], kind, Type.DECIMAL)
    return Typed([(Op.INT, int(value.scaleb(digits.scale)))], kind, Type.INT)


def moment(value: Moment, kind: Kind) -> Typed:
    """Return the instruction that pushes a literal date or timestamp as a kind of time."""
    if kind is Kind.DATE:
        number = value.local // UNITS_US["DAY"]
    elif kind is Kind.TIMESTAMP_NTZ or value.instant is None:
        number = value.local
    else:
        number = value.instant
    return Typed([(Op.INT, number)], kind)


def fitted(operands: Sequence[Tree], values: Sequence[Typed]) -> list[Typed]:
    """Return values, literal dates and timestamps as the kind of time that the others are."""
    literals = [part.value if isinstance(part, Literal) else None for part in operands]
    pairs = list(zip(literals, values, strict=True))
    kinds = {v.kind for own, v in pairs if not isinstance(own, Moment) and v.kind in TIMES}
    if len(kinds) != 1:
        return list(values)
    (kind,) = kinds
    assert kind is not None
    return [
        moment(own, kind)
        if isinstance(own, Moment) and (own.is_date or kind is not Kind.DATE)
        else value
        for own, value in pairs
    ]


def units(value: Typed, scale: int) -> list[Instruction]:
    """Return a small decimal or whole number as an INT that counts units after the point."""
    factor = 10 ** (scale - value.digits.scale)
    if value.number is not None:
        return [(Op.INT, value.number * factor)]
    code = value.code
    if value.type is Type.FLOAT:
        code = [*code, (Op.UNITS, value.digits.scale)]
    return code if factor == 1 else [*code, (Op.INT, factor), (Op.MUL, Type.INT)]


def as_decimal(value: Typed) -> list[Instruction]:
    """Return a decimal or whole number as a DECIMAL."""
    if value.kind is None or value.type is Type.DECIMAL:
        return value.code
    scale = value.digits.scale
    if value.number is not None:
        return [(Op.DECIMAL, str(Decimal(value.number).scaleb(-scale)))]
    code = [*value.code, (Op.UNITS, scale)] if value.type is Type.FLOAT else value.code
    return [*code, (Op.INT_TO_DECIMAL, scale)]


def as_double(value: Typed) -> list[Instruction]:
    """Return a number as a double."""
    if value.kind is None or value.type is Type.FLOAT:
        return value.code
    if value.type is Type.DECIMAL:
        return [*value.code, (Op.DECIMAL_TO_FLOAT, None)]
    if value.number is not None:
        return [(Op.FLOAT, float(Decimal(value.number).scaleb(-value.digits.scale)))]
    if value.kind is Kind.BIGINT:
        return [*value.code, (Op.INT_TO_FLOAT, None)]
    return [*as_decimal(value), (Op.DECIMAL_TO_FLOAT, None)]


def fit(digits: Digits, rounding: str = "", count: int = 0) -> Instruction:
    """Return the instruction that gives a DECIMAL the digits of a type."""
    text = f"{digits.precision},{digits.scale}"
    if count < 0:
        return Op.FIT, f"{text},{rounding or ROUND_HALF_UP},{count}"
    return Op.FIT, f"{text},{rounding}" if rounding else text


def alike(values: Sequence[Typed], digits: Digits | None = None) -> tuple[list[Typed], Typed]:
    """Return numbers of one kind and form; also a value of it without instructions."""
    known = [value for value in values if value.kind is not None]
    if any(value.kind is Kind.DOUBLE for value in known):
        like = Typed([], Kind.DOUBLE)
        return [Typed(as_double(value), like.kind) for value in values], like
    every = common([value.digits for value in known])
    kind, scale = Kind.decimal(digits or every), max(value.digits.scale for value in known)
    most = (digits or Digits(max(v.digits.precision for v in known), 0)).precision
    if most <= EXACT_DIGITS and all(v.type is Type.FLOAT or v.number is not None for v in known):
        like = Typed([], kind, Type.FLOAT)
        return [Typed(as_double(value), kind, like.form) for value in values], like
    if all(value.is_small for value in known) and every.precision <= SMALL and digits is None:
        like = Typed([], kind, Type.INT)
        return [
            v if v.kind is None else Typed(units(v, scale), kind, like.form) for v in values
        ], like
    like, last = Typed([], kind, Type.DECIMAL), [fit(digits or every)]
    exact = every.scale == scale
    made = [as_decimal(v) if exact or v.kind is None else [*as_decimal(v), *last] for v in values]
    return [Typed(code, kind, like.form) for code in made], like


# --- fields and slots


class Leaves(ABC):
    """Where the values of events come from, and their types."""

    unit = "event"  # What an event is called in messages
    ends = "first or last"  # What the functions of its first and last value are called

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        self._kinds = dict(kinds)
        self.casts: dict[str, Kind] = {}

    def knows(self, sql: str) -> bool:
        """Whether a value of one event has a type; without one it is always NULL."""
        return sql in self._kinds

    def kind(self, sql: str) -> Kind:
        """Return the kind of a value."""
        return self._kinds[sql]

    def cast(self, sql: str, kind: Kind) -> str:
        """Return the SQL of a value cast to another kind; one without a type stays NULL."""
        if not self.knows(sql) or self.kind(sql) is kind:
            return sql
        cast = joined(("cast(", sql, f" as {kind.value})"))
        self._kinds[cast] = self.casts[cast] = kind
        return cast

    @abstractmethod
    def column(self, part: Column) -> Typed:
        """Return the instructions that push a value of one event."""

    @abstractmethod
    def aggregate(self, part: Aggregate) -> Typed:
        """Return the instructions that push an aggregate."""


class LeafFields(Leaves):
    """Assigns a field to each leaf of trees."""

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        super().__init__(kinds)
        self.leaves: dict[Leaf, int] = {}

    def column(self, part: Column) -> Typed:
        """Return the instruction that pushes a value of one event."""
        return Typed([(Op.FIELD, self._field(part))], self.kind(part.sql or ""))

    def aggregate(self, part: Aggregate) -> Typed:
        """Return the instruction that pushes an aggregate."""
        own = Kind.BIGINT if part.function == "count" else self.kind(part.argument or "")
        kind = kind_of_aggregate(part.function, own)
        return Typed([(Op.FIELD, self._field(part))], kind)

    def _field(self, leaf: Leaf) -> int:
        return self.leaves.setdefault(leaf, len(self.leaves))


def kind_of_aggregate(function: str, kind: Kind) -> Kind:
    """Return the kind of an aggregate of values of a kind."""
    found = aggregate_type(function, of_kind(kind))
    return (found and found.kind) or kind


class ProgramLayout(Leaves):
    """Assigns indexes to fields and slots, equal ones the same."""

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        super().__init__(kinds)
        self.fields: dict[Field, int] = {}
        self.slots: dict[Slot, int] = {}

    def compiled(self, programs: Mapping[str, Code], ansi: bool) -> CompiledExpressions:
        """Return programs with only the fields and slots that they need, renumbered."""
        all_slots = list(self.slots)
        slots = _operands(programs, Op.SLOT)
        for place in range(len(all_slots) - 1, -1, -1):  # a source comes before its reader
            if place in slots:
                slots.add(all_slots[place].source)
        slots.discard(-1)
        fields = _operands(programs, Op.FIELD) | {all_slots[place].field for place in slots}
        to_slot = {place: number for number, place in enumerate(sorted(slots))}
        to_field = {place: number for number, place in enumerate(sorted(fields - {ALL}))}
        numbers: dict[Op, dict[int, int]] = {Op.FIELD: to_field, Op.SLOT: to_slot}

        def renumbered(code: Code) -> Code:
            return tuple(
                (op, numbers[op][int(operand or 0)] if op in numbers else operand)
                for op, operand in code
            )

        kept = [
            attrs.evolve(
                all_slots[place],
                field=to_field.get(all_slots[place].field, ALL),
                source=to_slot.get(all_slots[place].source, -1),
            )
            for place in to_slot
        ]
        sql = tuple(field for field, place in self.fields.items() if place in to_field)
        programs = {key: renumbered(code) for key, code in programs.items()}
        return CompiledExpressions(sql, tuple(kept), programs, ansi)

    def column(self, part: Column) -> Typed:
        """Return the instruction that pushes a value of the current event."""
        field, kind = self.field(part.sql or "")
        return Typed([(Op.FIELD, field)], kind)

    def field(self, sql: str) -> tuple[int, Kind]:
        """Return the index of a field and its kind."""
        kind = self.kind(sql)
        return self._field(Field(sql, kind)), kind

    def _field(self, field: Field) -> int:
        return self.fields.setdefault(field, len(self.fields))

    def aggregate(self, part: Aggregate) -> Typed:
        """Return the instructions that push an aggregate."""
        if part.argument is None:
            return Typed(self._read(part, Function.COUNT, ALL), Kind.BIGINT)
        field, kind = self.field(part.argument)
        match part.function:
            case "count":
                return Typed(self._read(part, Function.COUNT, field), Kind.BIGINT)
            case "sum" | "avg" if kind.is_decimal:
                return self._of_decimals(part, kind)
            case "avg":
                code = self._read(part, Function.SUM, field, Type.FLOAT)
                code += [*self._read(part, Function.COUNT, field), (Op.INT_TO_FLOAT, None)]
                return Typed([*code, (Op.DIV, Type.FLOAT)], Kind.DOUBLE)
            case "sum" | "min" | "max":
                function = Function[part.function.upper()]
                return Typed(self._read(part, function, field, kind.type), kind)
            case "first":
                count = self._slot(part, Function.COUNT, ALL)
                code = self._read(part, Function.FIRST, field, kind.type, count, part.offset)
                return Typed(code, kind)
            case "last":
                return Typed(self._last(part, field, kind.type), kind)
        if kind.is_decimal:
            field = self._field(Field(part.argument, Kind.DOUBLE))
        if part.function == "stddev":
            return Typed(self._deviation(part, field), Kind.DOUBLE)
        values = self._read(part, Function.LIST, field, Type.FLOAT)
        return Typed([*values, (Op.AGGREGATE, part.function)], Kind.DOUBLE)

    def _slot(
        self,
        part: Aggregate,
        function: Function,
        field: int,
        type_: Type = Type.INT,
        source: int = -1,
        offset: int = 0,
    ) -> int:
        slot = Slot(function, part.stage, field, type_, source, offset)
        return self.slots.setdefault(slot, len(self.slots))

    def _read(
        self, part: Aggregate, function: Function, field: int, *slot: Any
    ) -> list[Instruction]:
        """Return the instructions that push a slot, for some after the current event."""
        number = self._slot(part, function, field, *slot)
        if not part.with_event:
            return [(Op.SLOT, number)]
        return list(update_code(list(self.slots), list(self.fields), number))

    def _of_decimals(self, part: Aggregate, kind: Kind) -> Typed:
        """Return the exact sum of decimals, or their average, each with Spark's digits."""
        digits = kind.digits
        assert digits is not None
        exact = kind if kind.type is Type.DECIMAL else Kind.decimal(digits, exact=True)
        field = self._field(Field(part.argument or "", exact))
        code = [*self._read(part, Function.SUM, field, Type.DECIMAL), fit(summed(digits))]
        if part.function == "sum":
            return Typed(code, Kind.decimal(summed(digits)), Type.DECIMAL)
        code += [*self._read(part, Function.COUNT, field), (Op.INT_TO_DECIMAL, 0)]
        code += [(Op.DIV, Type.DECIMAL), fit(averaged(digits))]
        return Typed(code, Kind.decimal(averaged(digits)), Type.DECIMAL)

    def _deviation(self, part: Aggregate, field: int) -> list[Instruction]:
        counter = self._slot(part, Function.COUNT, field)
        mean = self._slot(part, Function.MEAN, field, Type.FLOAT, counter)
        squares = self._read(part, Function.MOMENT, field, Type.FLOAT, mean)
        count = self._read(part, Function.COUNT, field)
        deviation: list[Instruction] = [
            *squares, *count, (Op.INT, 1), (Op.SUB, Type.INT), (Op.INT_TO_FLOAT, None),
            (Op.DIV, Type.FLOAT), (Op["SQRT"], None),
        ]  # fmt: skip
        several: list[Instruction] = [*count, (Op.INT, 1), (Op.GT, Type.INT)]
        return [
            *several, (Op.JUMP_UNLESS, len(deviation) + 1), *deviation, (Op.JUMP, 1),
            (Op.NULL, None),
        ]  # fmt: skip

    def _last(self, part: Aggregate, field: int, type_: Type) -> list[Instruction]:
        if part.with_event and part.offset == 0:
            return [(Op.FIELD, field)]
        slot = -1
        for offset in range(part.offset + (0 if part.with_event else 1)):
            slot = self._slot(part, Function.LAST, field, type_, slot, offset)
        return [(Op.SLOT, slot)]


def _operands(programs: Mapping[str, Code], wanted: Op) -> set[int]:
    return {int(i or 0) for code in programs.values() for op, i in code if op is wanted}


# --- trees

_JUMPS = {"and": Op.JUMP_IF_FALSE, "or": Op.JUMP_IF_TRUE}
_NULL_TESTS: dict[str, list[Instruction]] = {
    "is null": [(Op.IS_NULL, None)],
    "is not null": [(Op.IS_NULL, None), (Op.NOT, None)],
}
_OF_TEXTS = {
    "||": (Op.CONCAT, Kind.STRING),
    "startswith": (Op.STARTS_WITH, Kind.BOOLEAN),
    "prefix end": (Op.PREFIX_END, Kind.STRING),
}
_PASSING = ("least", "greatest")
_DAY_US = UNITS_US["DAY"]
_MOST_BRANCHES = 50
_CAST = "cast one of them, inside the aggregate if it is about one"


def compiled(
    expressions: Iterable[tuple[str, MatchExpression]], kinds: Mapping[str, Kind], ansi: bool
) -> CompiledExpressions:
    """Compile the match expressions of a pattern."""
    layout = ProgramLayout(kinds)
    programs: dict[str, Code] = {}
    for where, expression in expressions:
        what = f"{where}: the condition {expression.text!r}"
        try:
            programs[expression.key] = condition_code(expression.tree, layout, what)
        except InputError as refused:
            refused.stage, refused.condition = expression.stage or None, expression.text
            raise
    return layout.compiled(programs, ansi)


def condition_code(tree: Tree, leaves: Leaves, where: str) -> Code:
    """Return the program of a condition."""
    value = value_code(tree, leaves, where)
    if value.kind not in (Kind.BOOLEAN, None):
        problem = f"expected boolean, got {said(value)}"
        raise InputError(f"{where}: {problem}", "compare it with a value", problem=problem)
    return tuple(value.code)


def value_code(tree: Tree, leaves: Leaves, where: str) -> Typed:
    """Return the program of a value; see :func:`condition_code`."""
    return _Compiler(leaves, where).part(tree)


@attrs.frozen(eq=False)
class _Compiler:
    """Compiles one expression."""

    _leaves: Leaves
    _where: str

    def part(self, part: Tree) -> Typed:
        """Return the instructions that push the value of a part."""
        if isinstance(part, Literal):
            value = constant(part.value)
            if value is None:
                raise self.refused(part, "has too many digits", "write it as a double: 1.5e30")
            return value
        if isinstance(part, Column):
            known = self._leaves.knows(part.sql or "")
            return self._leaves.column(part) if known else Typed([(Op.NULL, None)], None)
        if isinstance(part, Aggregate):
            if part.argument is not None and not self._leaves.knows(part.argument):
                return self.part(Literal(0 if part.function == "count" else None, part.text))
            function = AGGREGATES.get(part.function)
            if function is not None and function.of_numbers:
                kind = self._leaves.kind(part.argument or "")
                if not kind.is_decimal:
                    allowed = (*NUMBERS, Kind.INTERVAL) if part.function == "sum" else NUMBERS
                    self.check(Typed([], kind), allowed, part)
            return self._leaves.aggregate(part)
        if isinstance(part, Call):
            raise self.refused(part, "is computed from one event", "compute it before matching")
        return self._operation(part)

    def refused(self, part: Tree, what: str, hint: str) -> InputError:
        """Make the error for a part."""
        text = shown(part)
        return InputError(f"{self._where}: {text!r} {what}", hint, problem=what, part=text)

    # --- operations

    def _operation(self, part: Operation) -> Typed:
        operator, operands = part.operator, part.operands
        if operator in _JUMPS:
            return self._logic(part, list(map(self.part, operands)))
        if operator in COMPARISONS:
            return self._comparison(part, fitted(operands, list(map(self.part, operands))))
        if operator == "in":
            return self.part(_any_equal(part.text, operands[0], operands[1:]))
        if operator == "case":
            return self._case(part)
        if operator == "coalesce":
            return self._coalesce(part)
        if operator in _PASSING:
            return self._passing(part)
        if operator in ("timestampdiff", "datediff"):
            return self._difference(part)
        if operator in ROUNDINGS:
            return self._rounded(part)
        if operator in ("floor", "ceil"):
            return self._whole_number(part)
        if operator in NUMBER_FUNCTIONS:
            return self._of_doubles(part)
        values = list(map(self.part, operands))
        if operator == "like" or operator in _OF_TEXTS:
            return self._text(part, values)
        if len(values) == 1:
            return self._unary(part, values[0])
        return self._arithmetic(part, values[0], values[1])

    def _logic(self, part: Operation, operands: list[Typed]) -> Typed:
        jump, combine = _JUMPS[part.operator], OPERATORS[part.operator]
        for operand in operands:
            self.check(operand, (Kind.BOOLEAN,), part)
        code = operands[0].code
        for right in operands[1:]:
            code = [*code, (jump, len(right.code) + 1), *right.code, (combine, None)]
        return Typed(code, Kind.BOOLEAN)

    def _unary(self, part: Operation, value: Typed) -> Typed:
        if part.operator in _NULL_TESTS:
            return Typed([*value.code, *_NULL_TESTS[part.operator]], Kind.BOOLEAN)
        if part.operator == "not":
            self.check(value, (Kind.BOOLEAN,), part)
            return Typed([*value.code, (Op.NOT, None)], Kind.BOOLEAN)
        self.check(value, (*NUMBERS, Kind.DECIMAL, Kind.INTERVAL), part)
        op = OPERATORS[part.operator]
        return Typed([*value.code, (op, value.type)], value.kind, value.form)

    def _text(self, part: Operation, values: list[Typed]) -> Typed:
        for value in values:
            self.check(value, (Kind.STRING,), part)
        if part.operator == "like":
            pattern = part.operands[1]
            assert isinstance(pattern, Literal)
            return Typed([*values[0].code, (Op.LIKE, str(pattern.value))], Kind.BOOLEAN)
        op, kind = _OF_TEXTS[part.operator]
        code = [instruction for value in values for instruction in value.code]
        return Typed([*code, (op, None)], kind)

    # --- functions

    def _rounded(self, part: Operation) -> Typed:
        value, digits = self.part(part.operands[0]), 0
        self.check(value, (*NUMBERS, Kind.DECIMAL), part)
        if len(part.operands) > 1:
            given = part.operands[1]
            if not isinstance(given, Literal) or type(given.value) is not int:
                hint = "write a number, such as 2"
                raise self.refused(part, "rounds to digits that are not known", hint)
            digits = given.value
        if value.is_decimal:
            return _rounded(
                value, rounded_digits(value.digits, digits), ROUNDINGS[part.operator], digits
            )
        if value.kind is Kind.DOUBLE:
            return Typed([*value.code, (OPERATORS[part.operator], digits)], Kind.DOUBLE)
        if digits < 0:
            raise self.refused(part, "rounds a whole number", "cast it to double")
        return value

    def _whole_number(self, part: Operation) -> Typed:
        value = self.part(part.operands[0])
        self.check(value, (*NUMBERS, Kind.DECIMAL), part)
        if value.is_decimal:
            rounding = ROUND_FLOOR if part.operator == "floor" else ROUND_CEILING
            return _rounded(value, whole_digits(value.digits), rounding)
        if value.kind is not Kind.DOUBLE:
            return value
        return Typed([*value.code, (OPERATORS[part.operator], None)], Kind.BIGINT)

    def _of_doubles(self, part: Operation) -> Typed:
        code: list[Instruction] = []
        for operand in part.operands:
            value = self.part(operand)
            self.check(value, (*NUMBERS, Kind.DECIMAL), part)
            code += as_double(value)
        return Typed([*code, (OPERATORS[part.operator], None)], Kind.DOUBLE)

    # --- comparisons

    def _comparison(self, part: Operation, values: list[Typed]) -> Typed:
        (left, right), kind = self._matched(part, _whole(part.operator, values))
        code = [*left.code, *right.code, (OPERATORS[part.operator], kind.type)]
        return Typed(code, Kind.BOOLEAN)

    # --- arithmetic

    def _arithmetic(self, part: Operation, left: Typed, right: Typed) -> Typed:
        kinds = {left.kind, right.kind}
        if kinds & {*TIMES, Kind.INTERVAL}:
            return self._time_arithmetic(part, left, right)
        for value in (left, right):
            self.check(value, (*NUMBERS, Kind.DECIMAL), part)
        op, operator = OPERATORS[part.operator], part.operator
        if operator == "div" and Kind.DOUBLE in kinds:
            self.check(left, (Kind.BIGINT,), part)
            self.check(right, (Kind.BIGINT,), part)
        if Kind.DOUBLE not in kinds and (left.is_decimal or right.is_decimal):
            return _of_decimals(operator, left, right)
        if Kind.DOUBLE in kinds or operator == "/":
            code = [*as_double(left), *as_double(right), (op, Type.FLOAT)]
            return Typed(code, Kind.DOUBLE)
        return Typed([*left.code, *right.code, (op, Type.INT)], Kind.BIGINT)

    def _time_arithmetic(self, part: Operation, left: Typed, right: Typed) -> Typed:
        """Compile differences of times, and operations on intervals."""
        operator, both = part.operator, (left.kind, right.kind)
        code: list[Instruction] = [*left.code, *right.code, (OPERATORS[operator], Type.INT)]
        if operator == "-" and left.kind in TIMES and right.kind in TIMES:
            return self._between(part.operands[0], part.operands[1])
        if operator in ("+", "-") and both == (Kind.INTERVAL, Kind.INTERVAL):
            return Typed(code, Kind.INTERVAL)
        if operator == "*" and set(both) == {Kind.INTERVAL, Kind.BIGINT}:
            return Typed(code, Kind.INTERVAL)
        shifts = both[1] is Kind.INTERVAL or (operator == "+" and both[0] is Kind.INTERVAL)
        time = left.kind if both[1] is Kind.INTERVAL else right.kind
        values = [operand.value for operand in part.operands if isinstance(operand, Literal)]
        # A literal of less than a day is as long in all time zones.
        exact = time is Kind.TIMESTAMP_NTZ or any(
            isinstance(value, Interval) and abs(value.microseconds) < _DAY_US for value in values
        )
        if operator in ("+", "-") and shifts and exact and time in TIMES[:2]:
            return Typed(code, time)
        raise self.refused(
            part,
            f"puts {said(left)} and {said(right)} together",
            "intervals are added to times as literals, inside the aggregate, "
            "as in last(up.ts + INTERVAL '1' DAY)",
        )

    def _difference(self, part: Operation) -> Typed:
        start, end = part.operands
        if part.operator == "datediff":
            days = [self.part(_cast(operand, "date", self._leaves)) for operand in (start, end)]
            for value in days:
                self.check(value, (Kind.DATE,), part)
            return Typed([*days[0].code, *days[1].code, (Op.SUB, Type.INT)], Kind.BIGINT)
        for operand in (start, end):
            self.check(self.part(operand), TIMES, part)
        unit = UNITS_US[part.detail]
        code = self._between(end, start).code
        return Typed([*code, (Op.INT, unit), (Op.INT_DIV, Type.INT)], Kind.BIGINT)

    def _between(self, end: Tree, start: Tree) -> Typed:
        """Compile the time between two times, in the session's time zone as in Spark."""
        return Typed([*self._local(end), *self._local(start), (Op.SUB, Type.INT)], Kind.INTERVAL)

    def _local(self, part: Tree) -> list[Instruction]:
        """Return the instructions for a time as microseconds of the local clock."""
        value = self.part(part)
        if isinstance(part, Literal) and isinstance(part.value, Moment):
            return moment(part.value, Kind.TIMESTAMP_NTZ).code
        if value.kind is Kind.TIMESTAMP:
            local = self.part(_cast(part, "timestamp_ntz", self._leaves))
            if local.kind is not Kind.TIMESTAMP_NTZ:
                unit, hint = self._leaves.unit, f"use {self._leaves.ends}, or a timestamp_ntz"
                raise self.refused(part, f"is not one {unit}'s time", hint)
            return local.code
        if value.kind is Kind.DATE:
            return [*value.code, (Op.INT, _DAY_US), (Op.MUL, Type.INT)]
        return value.code

    # --- choices

    def _coalesce(self, part: Operation) -> Typed:
        values, kind = self._alike(part, part.operands)
        *before, code = [value.code for value in values]
        for earlier in reversed(before):
            code = [*earlier, (Op.JUMP_IF_NOT_NULL, len(code)), *code]
        return Typed(code, kind.kind, kind.form)

    def _case(self, part: Operation) -> Typed:
        operands = part.operands
        if len(operands) > 2 * _MOST_BRANCHES:
            raise self.refused(part, f"has more than {_MOST_BRANCHES} branches", "use a map column")
        pairs = len(operands) // 2
        conditions = [self.part(operands[2 * place]) for place in range(pairs)]
        for condition in conditions:
            self.check(condition, (Kind.BOOLEAN,), part)
        otherwise = operands[-1] if len(operands) % 2 else Literal(None, "null")
        results = (*operands[1 : 2 * pairs : 2], otherwise)
        values, kind = self._alike(part, results)
        code = values[-1].code
        for condition, value in zip(reversed(conditions), reversed(values[:-1]), strict=True):
            then = [*value.code, (Op.JUMP, len(code))]
            code = [*condition.code, (Op.JUMP_UNLESS, len(then)), *then, *code]
        return Typed(code, kind.kind, kind.form)

    def _passing(self, part: Operation) -> Typed:
        values, kind = self._alike(part, part.operands)
        code = values[0].code
        for value in values[1:]:
            code = [*code, *value.code, (OPERATORS[part.operator], kind.type)]
        return Typed(code, kind.kind, kind.form)

    # --- kinds

    def _alike(self, part: Tree, operands: Sequence[Tree]) -> tuple[list[Typed], Typed]:
        """Convert the values of a choice to one kind; also return one without instructions."""
        values = fitted(operands, list(map(self.part, operands)))
        digits = None
        if any(value.is_decimal for value in values):
            digits = common([_digits_of_choice(value) for value in values if value.kind])
        return self._matched(part, values, digits)

    def _matched(
        self, part: Operation | Tree, values: Sequence[Typed], digits: Digits | None = None
    ) -> tuple[list[Typed], Typed]:
        """Convert values to one kind; also return one without instructions."""
        known = [value for value in values if value.kind is not None]
        kinds = {value.kind for value in known}
        are_numbers = all(value.kind in NUMBERS or value.is_decimal for value in known)
        if len(kinds) <= 1 and not any(value.is_decimal for value in known):
            return list(values), Typed([], next(iter(kinds), None))
        if are_numbers:
            return alike(values, digits)
        names = list(dict.fromkeys(map(said, known)))
        raise self.refused(part, f"puts {' and '.join(names)} together", _CAST)

    def check(self, value: Typed, wanted: tuple[Kind, ...], part: Tree) -> None:
        """Refuse a value of another kind than wanted."""
        kind = Kind.DECIMAL if value.is_decimal else value.kind
        if kind is not None and kind not in wanted:
            hidden = (Kind.DECIMAL, Kind.INTERVAL) if Kind.BIGINT in wanted else ()
            names = " or ".join(kind.value for kind in wanted if kind not in hidden)
            raise self.refused(
                part,
                f"needs {names}, got {said(value)}",
                "cast it, inside the aggregate if it is about one",
            )


def _rounded(value: Typed, digits: Digits, rounding: str, count: int = 0) -> Typed:
    """Return a decimal that is rounded."""
    code = [*as_decimal(value), fit(digits, rounding, count)]
    return Typed(code, Kind.decimal(digits), Type.DECIMAL)


def _digits_of_choice(value: Typed) -> Digits:
    """Return the digits of an alternative, whose literal whole numbers are of 32 bits."""
    if value.is_decimal or value.number is None:
        return value.digits
    return Digits(10, 0) if -(1 << 31) <= value.number < 1 << 31 else BIGINT


def _of_decimals(operator: str, left: Typed, right: Typed) -> Typed:
    """Return the arithmetic of decimals: of units if 64 bits suffice, else of DECIMALs."""
    op, (a, b) = OPERATORS[operator], (left.digits, right.digits)
    if None in (left.kind, right.kind):
        return Typed([(Op.NULL, None)], None)
    digits, scale = of_operation(operator, a, b), max(a.scale, b.scale)
    kind = Kind.BIGINT if operator == "div" else Kind.decimal(digits)
    is_small = left.is_small and right.is_small and operator != "/"
    may_grow = operator == "pmod" and a.whole < b.whole  # what is negative becomes nearly b
    room = digits.precision if operator == "*" else max(a.whole, b.whole) + scale
    if is_small and not may_grow and max(room, digits.precision) <= SMALL:
        scales = (a.scale, b.scale) if operator == "*" else (scale, scale)
        code = [*units(left, scales[0]), *units(right, scales[1]), (op, Type.INT)]
        return Typed(code, kind, Type.INT)
    code = [*as_decimal(left), *as_decimal(right), (op, Type.DECIMAL)]
    if operator in ("/", "div") or may_grow or digits.precision == MOST_DIGITS:
        code.append(fit(digits))
    if operator == "div":
        return Typed([*code, (Op.DECIMAL_TO_INT, None)], kind)
    return Typed(code, kind, Type.DECIMAL)


_UP = {"<": True, ">=": True, ">": False, "<=": False}
"""Where a whole number is compared with a decimal: whether the next one above says the same."""
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def _whole(operator: str, values: Sequence[Typed]) -> Sequence[Typed]:
    """Return what is compared; beside a whole number, a decimal constant as a whole number too."""
    left, right = values
    if right.kind is Kind.BIGINT:
        if left.kind is Kind.BIGINT:
            return values
        right, left = _whole(_MIRRORED.get(operator, operator), (right, left))
        return left, right
    number, scale = right.number, right.digits.scale
    if left.kind is not Kind.BIGINT or not right.is_decimal or number is None:
        return values
    below, rest = divmod(number, 10**scale)
    if rest and operator not in _UP:
        return values
    bound = below + 1 if rest and _UP[operator] else below
    return (left, Typed([(Op.INT, bound)], Kind.BIGINT)) if LEAST <= bound <= MOST else values


def _any_equal(text: str, value: Tree, others: tuple[Tree, ...]) -> Operation:
    """Return IN as equalities joined by OR, balanced so that long lists do not nest deeply."""
    if len(others) == 1:
        return Operation("=", (value, others[0]), text)
    middle = len(others) // 2
    sides = (_any_equal(text, value, others[:middle]), _any_equal(text, value, others[middle:]))
    return Operation("or", sides, text)


def _cast(part: Tree, type_: str, leaves: Leaves) -> Tree:
    """Return a time as a timestamp_ntz or date, cast on each event."""
    kind = Kind(type_)
    if isinstance(part, Column):
        return attrs.evolve(part, sql=leaves.cast(part.sql or "", kind))
    if isinstance(part, Aggregate) and part.function in ("first", "last"):
        return attrs.evolve(part, argument=leaves.cast(part.argument or "", kind))
    if isinstance(part, Operation) and part.operator in ("coalesce", "case"):
        is_case, last = part.operator == "case", len(part.operands) - 1
        operands = tuple(
            operand
            if is_case and place % 2 == 0 and place < last
            else _cast(operand, type_, leaves)
            for place, operand in enumerate(part.operands)
        )
        return attrs.evolve(part, operands=operands)
    return part
