# SPDX-License-Identifier: Apache-2.0
"""The fields and slots that the match expressions of a pattern share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple, Protocol

import attrs

from pyflinkcep.expressions.program import (
    ALL,
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
from pyflinkcep.expressions.tokens import MOST, UNITS_US
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
DECIMALS = (Kind.DECIMAL, Kind.WIDE_DECIMAL)
TIMES = (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ, Kind.DATE)


class Typed(NamedTuple):
    """Instructions that push a value."""

    code: list[Instruction]  # The instructions
    kind: Kind | None  # The value's kind; None for one that is always NULL
    # For a BIGINT the number of its decimal digits after the point; if not 0, it is a decimal, as
    # from a literal like 0.25.
    scale: int = 0

    @property
    def type(self) -> Type:
        """The type of the value."""
        return Type.INT if self.kind is None else self.kind.type


def said(value: Typed) -> str:
    """Return the name of a value's kind for messages."""
    if value.kind is None:
        return "null"
    return "decimal" if value.scale else value.kind.value


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
    scale = max(0, -int(value.as_tuple().exponent))
    digits = int(value.scaleb(scale))
    if abs(digits) > MOST:
        return None
    return Typed([(Op.INT, digits)], Kind.BIGINT, scale)


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


def rescaled(value: Typed, scale: int) -> list[Instruction]:
    """Return a whole number or decimal with more digits after the point."""
    if value.scale == scale or value.kind is None:
        return value.code
    factor = 10 ** (scale - value.scale)
    (op, operand), *more = value.code
    if op is Op.INT and not more and isinstance(operand, int):
        return [(Op.INT, operand * factor)]
    return [*value.code, (Op.INT, factor), (Op.MUL, Type.INT)]


def as_double(value: Typed) -> list[Instruction]:
    """Return a number as a double."""
    if value.kind is not Kind.BIGINT:
        return value.code
    (op, operand), *more = value.code
    if op is Op.INT and not more and isinstance(operand, int):
        return [(Op.FLOAT, float(Decimal(operand).scaleb(-value.scale)))]
    whole: list[Instruction] = [*value.code, (Op.INT_TO_FLOAT, None)]
    if not value.scale:
        return whole
    return [*whole, (Op.FLOAT, float(10**value.scale)), (Op.DIV, Type.FLOAT)]


def converted(value: Typed, like: Typed) -> list[Instruction]:
    """Convert a value to the kind and scale of another."""
    if like.kind in (Kind.DOUBLE, *DECIMALS):
        return as_double(value)
    return rescaled(value, like.scale) if like.scale else value.code


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
        if part.function == "count":
            kind = Kind.BIGINT
        else:
            is_float = part.function in ("avg", "stddev")
            kind = Kind.DOUBLE if is_float else self.kind(part.argument or "")
        return Typed([(Op.FIELD, self._field(part))], kind)

    def _field(self, leaf: Leaf) -> int:
        return self.leaves.setdefault(leaf, len(self.leaves))


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
        return self.fields.setdefault(Field(sql, kind), len(self.fields)), kind

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
            case "sum":
                return Typed(self._sum(part, field, kind, kind.type), kind)
            case "avg":
                total = self._sum(part, field, kind, Type.FLOAT)
                code = [*total, *self._count(part, field), (Op.INT_TO_FLOAT, None)]
                return Typed([*code, (Op.DIV, Type.FLOAT)], Kind.DOUBLE)
            case "stddev":
                return Typed(self._deviation(part, field, kind), Kind.DOUBLE)
            case "min" | "max":
                return Typed(self._extreme(part, field, kind.type), kind)
            case "first":
                return Typed(self._first(part, field, kind.type), kind)
        return Typed(self._last(part, field, kind.type), kind)

    def _count(self, part: Aggregate, field: int) -> list[Instruction]:
        code: list[Instruction] = [(Op.SLOT, self._counter(part.stage, field))]
        if not part.with_event:
            return code
        if field == ALL:
            return [*code, (Op.INT, 1), (Op.ADD, Type.INT)]
        own: list[Instruction] = [(Op.FIELD, field), (Op.IS_NULL, None), (Op.NOT, None)]
        return [*code, *own, (Op.ADD, Type.INT)]

    def _counter(self, stage: str, field: int) -> int:
        return self._slot(Slot(Function.COUNT, stage, field, Type.INT))

    def _sum(self, part: Aggregate, field: int, kind: Kind, type_: Type) -> list[Instruction]:
        slot = self._slot(Slot(Function.SUM, part.stage, field, type_))
        if not part.with_event:
            return [(Op.SLOT, slot)]
        own: list[Instruction] = [(Op.FIELD, field)]
        if kind.type is not type_:
            own.append((Op.INT_TO_FLOAT, None))
        return [(Op.SLOT, slot), *own, (Op.ADD_PASSING, type_)]

    def _deviation(self, part: Aggregate, field: int, kind: Kind) -> list[Instruction]:
        counter = self._counter(part.stage, field)
        mean = self._slot(Slot(Function.MEAN, part.stage, field, Type.FLOAT, counter))
        moment = self._slot(Slot(Function.MOMENT, part.stage, field, Type.FLOAT, mean))
        squares: list[Instruction] = [(Op.SLOT, moment)]
        if part.with_event:
            squares = self._moment_with(field, kind, counter, mean, moment)
        count = self._count(part, field)
        deviation: list[Instruction] = [
            *squares, *count, (Op.INT, 1), (Op.SUB, Type.INT), (Op.INT_TO_FLOAT, None),
            (Op.DIV, Type.FLOAT), (Op.SQRT, None),
        ]  # fmt: skip
        several: list[Instruction] = [*count, (Op.INT, 1), (Op.GT, Type.INT)]
        return [
            *several, (Op.JUMP_UNLESS, len(deviation) + 1), *deviation, (Op.JUMP, 1),
            (Op.NULL, None),
        ]  # fmt: skip

    @staticmethod
    def _moment_with(
        field: int, kind: Kind, counter: int, mean: int, moment: int
    ) -> list[Instruction]:
        """Return the instructions that push a MOMENT after the current event."""
        to_float: list[Instruction] = [] if kind.type is Type.FLOAT else [(Op.INT_TO_FLOAT, None)]
        distance: list[Instruction] = [
            (Op.FIELD, field), *to_float, (Op.SLOT, mean), (Op.JUMP_IF_NOT_NULL, 1),
            (Op.FLOAT, 0.0), (Op.SUB, Type.FLOAT),
        ]  # fmt: skip
        step: list[Instruction] = [
            *distance, (Op.SLOT, counter), (Op.INT, 1), (Op.ADD, Type.INT),
            (Op.INT_TO_FLOAT, None), (Op.DIV, Type.FLOAT),
        ]  # fmt: skip
        own: list[Instruction] = [
            *distance, *distance, *step, (Op.SUB, Type.FLOAT), (Op.MUL, Type.FLOAT),
        ]  # fmt: skip
        return [(Op.SLOT, moment), *own, (Op.ADD_PASSING, Type.FLOAT)]

    def _extreme(self, part: Aggregate, field: int, type_: Type) -> list[Instruction]:
        is_least = part.function == "min"
        function = Function.MIN if is_least else Function.MAX
        slot = self._slot(Slot(function, part.stage, field, type_))
        if not part.with_event:
            return [(Op.SLOT, slot)]
        return [(Op.SLOT, slot), (Op.FIELD, field), (Op.LEAST if is_least else Op.GREATEST, type_)]

    def _first(self, part: Aggregate, field: int, type_: Type) -> list[Instruction]:
        count = self._counter(part.stage, ALL)
        slot = self._slot(Slot(Function.FIRST, part.stage, field, type_, count, part.offset))
        if not part.with_event:
            return [(Op.SLOT, slot)]
        return [  # the current event if it is the one, otherwise an earlier event
            (Op.SLOT, count), (Op.INT, part.offset), (Op.EQ, Type.INT),
            (Op.JUMP_UNLESS, 2), (Op.FIELD, field), (Op.JUMP, 1), (Op.SLOT, slot),
        ]  # fmt: skip

    def _last(self, part: Aggregate, field: int, type_: Type) -> list[Instruction]:
        if part.with_event and part.offset == 0:
            return [(Op.FIELD, field)]
        slot = -1
        for offset in range(part.offset + (0 if part.with_event else 1)):
            slot = self._slot(Slot(Function.LAST, part.stage, field, type_, slot, offset))
        return [(Op.SLOT, slot)]


def _operands(programs: Mapping[str, Code], wanted: Op) -> set[int]:
    return {int(i or 0) for code in programs.values() for op, i in code if op is wanted}
