# SPDX-License-Identifier: Apache-2.0
"""The fields and slots that the match expressions of a pattern share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import NamedTuple, Protocol

import attrs

from pyflinkcep.expressions.decimals import (
    BIGINT,
    MOST_DIGITS,
    Digits,
    averaged,
    common,
    digits_of_value,
    summed,
)
from pyflinkcep.expressions.program import (
    ALL,
    EXACT_DIGITS,
    Code,
    CompiledExpressions,
    Field,
    Function,
    Instruction,
    Kind,
    Op,
    Slot,
    Type,
)
from pyflinkcep.expressions.sql_types import aggregate_type, of_kind
from pyflinkcep.expressions.tokens import UNITS_US
from pyflinkcep.expressions.tree import (
    Aggregate,
    Column,
    Interval,
    Leaf,
    Literal,
    Moment,
    Tree,
    joined,
)

NUMBERS = (Kind.BIGINT, Kind.DOUBLE)
SMALL = 18
"""Of so many digits, all decimals fit 64 bits."""
TIMES = (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ, Kind.DATE)


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
    """
    Return numbers of one kind and form, decimals exactly; also a value of it without
    instructions.
    """
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


class Leaves(Protocol):
    """Where the values of events come from."""

    unit: str  # What an event is called in messages
    ends: str  # What the functions of its first and last value are called

    def knows(self, sql: str) -> bool:
        """Whether a value of one event has a type; without one it is always NULL."""

    def kind(self, sql: str) -> Kind:
        """Return the kind of a value of one event."""

    def cast(self, sql: str, kind: Kind) -> str:
        """Return the SQL of a value of one event cast to another kind."""

    def column(self, part: Column) -> Typed:
        """Return the instructions that push a value of one event."""

    def aggregate(self, part: Aggregate) -> Typed:
        """Return the instructions that push an aggregate."""


class Kinds:
    """The types of values of one event."""

    unit = "event"
    ends = "first or last"

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        self._kinds = dict(kinds)
        self.casts: dict[str, Kind] = {}

    def knows(self, sql: str) -> bool:
        """Whether a value has a type."""
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


class LeafFields(Kinds):
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


class ProgramLayout(Kinds):
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

    def _slot(self, slot: Slot) -> int:
        return self.slots.setdefault(slot, len(self.slots))

    def aggregate(self, part: Aggregate) -> Typed:
        """Return the instructions that push an aggregate."""
        if part.argument is None:
            return Typed(self._count(part, ALL), Kind.BIGINT)
        field, kind = self.field(part.argument)
        match part.function:
            case "count":
                return Typed(self._count(part, field), Kind.BIGINT)
            case "sum" | "avg" if kind.is_decimal:
                return self._of_decimals(part, kind)
            case "sum":
                return Typed(self._sum(part, field, kind.type), kind)
            case "avg":
                total = self._sum(part, field, Type.FLOAT)
                code = [*total, *self._count(part, field), (Op.INT_TO_FLOAT, None)]
                return Typed([*code, (Op.DIV, Type.FLOAT)], Kind.DOUBLE)
            case "min" | "max":
                return Typed(self._extreme(part, field, kind.type), kind)
            case "first":
                return Typed(self._first(part, field, kind.type), kind)
            case "last":
                return Typed(self._last(part, field, kind.type), kind)
        if kind.is_decimal:
            kind = Kind.DOUBLE
            field = self._field(Field(part.argument, kind))
        is_slot = part.function == "stddev"
        code = (self._deviation if is_slot else self._of_list)(part, field)
        return Typed(code, Kind.DOUBLE)

    def _read(self, part: Aggregate, slot: Slot) -> list[Instruction]:
        """Return the instructions that push a slot, for some after the current event."""
        number = self._slot(slot)
        if not part.with_event:
            return [(Op.SLOT, number)]
        return _after(list(self.slots), list(self.fields), number)

    def _of_list(self, part: Aggregate, field: int) -> list[Instruction]:
        slot = Slot(Function.LIST, part.stage, field, Type.FLOAT)
        return [*self._read(part, slot), (Op.AGGREGATE, part.function)]

    def _count(self, part: Aggregate, field: int) -> list[Instruction]:
        return self._read(part, _counter(part, field))

    def _sum(self, part: Aggregate, field: int, type_: Type) -> list[Instruction]:
        return self._read(part, Slot(Function.SUM, part.stage, field, type_))

    def _of_decimals(self, part: Aggregate, kind: Kind) -> Typed:
        """Return the exact sum of decimals, or their average, each with Spark's digits."""
        digits = kind.digits
        assert digits is not None
        exact = kind if kind.type is Type.DECIMAL else Kind.decimal(digits, exact=True)
        field = self._field(Field(part.argument or "", exact))
        code = [*self._sum(part, field, Type.DECIMAL), fit(summed(digits))]
        if part.function == "sum":
            return Typed(code, Kind.decimal(summed(digits)), Type.DECIMAL)
        code += [*self._count(part, field), (Op.INT_TO_DECIMAL, 0)]
        code += [(Op.DIV, Type.DECIMAL), fit(averaged(digits))]
        return Typed(code, Kind.decimal(averaged(digits)), Type.DECIMAL)

    def _deviation(self, part: Aggregate, field: int) -> list[Instruction]:
        counter = self._slot(_counter(part, field))
        mean = self._slot(Slot(Function.MEAN, part.stage, field, Type.FLOAT, counter))
        squares = self._read(part, Slot(Function.MOMENT, part.stage, field, Type.FLOAT, mean))
        count = self._count(part, field)
        deviation: list[Instruction] = [
            *squares, *count, (Op.INT, 1), (Op.SUB, Type.INT), (Op.INT_TO_FLOAT, None),
            (Op.DIV, Type.FLOAT), (Op["SQRT"], None),
        ]  # fmt: skip
        several: list[Instruction] = [*count, (Op.INT, 1), (Op.GT, Type.INT)]
        return [
            *several, (Op.JUMP_UNLESS, len(deviation) + 1), *deviation, (Op.JUMP, 1),
            (Op.NULL, None),
        ]  # fmt: skip

    def _extreme(self, part: Aggregate, field: int, type_: Type) -> list[Instruction]:
        function = Function.MIN if part.function == "min" else Function.MAX
        return self._read(part, Slot(function, part.stage, field, type_))

    def _first(self, part: Aggregate, field: int, type_: Type) -> list[Instruction]:
        count = self._slot(_counter(part, ALL))
        slot = Slot(Function.FIRST, part.stage, field, type_, count, part.offset)
        return self._read(part, slot)

    def _last(self, part: Aggregate, field: int, type_: Type) -> list[Instruction]:
        if part.with_event and part.offset == 0:
            return [(Op.FIELD, field)]
        slot = -1
        for offset in range(part.offset + (0 if part.with_event else 1)):
            slot = self._slot(Slot(Function.LAST, part.stage, field, type_, slot, offset))
        return [(Op.SLOT, slot)]


def _counter(part: Aggregate, field: int) -> Slot:
    return Slot(Function.COUNT, part.stage, field, Type.INT)


def update_code(expressions: CompiledExpressions, number: int) -> Code:
    """Return the program of a slot's value after an event that the match takes for its stage."""
    return tuple(_after(expressions.slots, expressions.fields, number))


def _after(slots: Sequence[Slot], fields: Sequence[Field], number: int) -> list[Instruction]:
    slot, own = slots[number], (Op.SLOT, number)
    if slot.field == ALL:
        return [own, (Op.INT, 1), (Op.ADD, Type.INT)]
    new: list[Instruction] = [(Op.FIELD, slot.field)]
    if slot.type is Type.FLOAT and fields[slot.field].kind.type is Type.INT:
        new.append((Op.INT_TO_FLOAT, None))
    match slot.function:
        case Function.COUNT:
            return [own, *new, (Op.IS_NULL, None), (Op.NOT, None), (Op.ADD, Type.INT)]
        case Function.FIRST:  # the event if it is the one, otherwise an earlier event
            is_it = [(Op.SLOT, slot.source), (Op.INT, slot.offset), (Op.EQ, Type.INT)]
            return [*is_it, (Op.JUMP_UNLESS, len(new) + 1), *new, (Op.JUMP, 1), own]
        case Function.LAST:
            return [(Op.SLOT, slot.source)] if slot.offset else new
        case Function.MIN | Function.MAX:
            is_least = slot.function is Function.MIN
            return [own, *new, (Op.LEAST if is_least else Op.GREATEST, slot.type)]
        case Function.LIST:
            return [own, *new, (Op.LISTED, None), (Op.ADD_PASSING, Type.LIST)]
        case Function.SUM:
            return [own, *new, (Op.ADD_PASSING, slot.type)]
    is_mean = slot.function is Function.MEAN
    mean = number if is_mean else slot.source
    distance: list[Instruction] = [
        *new, (Op.SLOT, mean), (Op.JUMP_IF_NOT_NULL, 1), (Op.FLOAT, 0.0), (Op.SUB, Type.FLOAT),
    ]  # fmt: skip
    step: list[Instruction] = [
        *distance, (Op.SLOT, slots[mean].source), (Op.INT, 1), (Op.ADD, Type.INT),
        (Op.INT_TO_FLOAT, None), (Op.DIV, Type.FLOAT),
    ]  # fmt: skip
    if not is_mean:
        step = [*distance, *distance, *step, (Op.SUB, Type.FLOAT), (Op.MUL, Type.FLOAT)]
    return [own, *step, (Op.ADD_PASSING, Type.FLOAT)]


def _operands(programs: Mapping[str, Code], wanted: Op) -> set[int]:
    return {int(i or 0) for code in programs.values() for op, i in code if op is wanted}
