# SPDX-License-Identifier: Apache-2.0
"""Instructions, and the kind of value that they push."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from pyflinkcep.expressions.literals import MOST, UNITS_US
from pyflinkcep.expressions.program import Instruction, Kind, Op, Type
from pyflinkcep.expressions.tree import Interval, Literal, Moment, Tree

__all__ = [
    "DECIMALS",
    "NUMBERS",
    "TIMES",
    "Typed",
    "as_double",
    "constant",
    "converted",
    "fitted",
    "moment",
    "rescaled",
    "said",
]

NUMBERS = (Kind.BIGINT, Kind.DOUBLE)
DECIMALS = (Kind.DECIMAL, Kind.WIDE_DECIMAL)
TIMES = (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ, Kind.DATE)


class Typed(NamedTuple):
    """
    Instructions that push a value.

    Attributes
    ----------
    code : list of Instruction
        The instructions.
    kind : Kind or None
        The value's kind; None for one that is always NULL.
    scale : int
        For a BIGINT the number of its decimal digits after the point; if not 0, it is a decimal, as
        from a literal like 0.25.
    """

    code: list[Instruction]
    kind: Kind | None
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
