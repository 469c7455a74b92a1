# SPDX-License-Identifier: Apache-2.0
"""Casts of values without a schema, by the table in :mod:`~pyflinkcep.expressions.rules`."""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any

from pyflinkcep.errors import InputError
from pyflinkcep.expressions.program import Kind
from pyflinkcep.expressions.rules import CASTS, Cast
from pyflinkcep.expressions.sql_types import SqlType
from pyflinkcep.expressions.text_values import (
    date_of,
    decimal_of,
    double_of,
    time_of,
    truth_of,
    whole_of,
)

__all__ = ["cast_value", "rounded_decimal"]


def cast_value(value: Any, type_: SqlType, zone: tzinfo | None = None) -> Any:
    """
    Return a value that is not NULL as another type; `zone` is where clocks without one are.

    Raises
    ------
    InputError
        If it cannot be cast, as in Spark's default mode.
    NotImplementedError
        If only Spark can cast it.
    """
    kind = _kind_of(value)
    rule = None if kind is None or type_.kind is None else CASTS.get((kind, type_.kind))
    if rule is Cast.BY_SPARK:
        raise NotImplementedError(type_.name)
    try:
        if rule is not None:
            made = _RULES[rule](value, type_)
            return made if type_.name != "timestamp" else _placed(made, zone)
    except (ValueError, ArithmeticError, LookupError, OSError) as cause:
        raise _refused(value, type_) from cause
    raise _refused(value, type_)


def _placed(time: datetime, zone: tzinfo | None) -> datetime:
    """Return a timestamp by the clock of a zone."""
    if zone is None:
        return time
    known = time.replace(tzinfo=zone) if time.tzinfo is None else time
    return known.astimezone(UTC).astimezone(zone)  # a time that no clock shows is an hour later


def _refused(value: Any, type_: SqlType) -> InputError:
    return InputError(f"expected {written_type(type_)}, got {value!r}", "write a value that is one")


def written_type(type_: SqlType) -> str:
    return f"{type_.name}({type_.digits},{type_.scale})" if type_.digits else type_.name


def _kind_of(value: Any) -> Kind | None:
    kinds = (kind for type_, kind in _OF_VALUES if isinstance(value, type_))
    return next(kinds, None)


_OF_VALUES: tuple[tuple[type, Kind], ...] = (
    (bool, Kind.BOOLEAN), (int, Kind.BIGINT), (float, Kind.DOUBLE), (Decimal, Kind.DECIMAL),
    (str, Kind.STRING), (datetime, Kind.TIMESTAMP), (date, Kind.DATE), (timedelta, Kind.INTERVAL),
)  # fmt: skip


def _whole(value: Any, type_: SqlType) -> int:
    """Cut off the fraction; NaN, infinities and other numbers out of range are errors."""
    number = int(value)
    if not -(1 << type_.bits - 1) <= number < 1 << type_.bits - 1:
        raise ArithmeticError(type_.name)
    return number


def _float(value: Any, type_: SqlType) -> float:
    number = float(value)
    if type_.bits == 64:
        return number
    try:
        (short,) = struct.unpack("f", struct.pack("f", number))
    except OverflowError:
        return number * float("inf")
    return float(short)


def rounded_decimal(value: Any, type_: SqlType) -> Decimal:
    """Return a number as a decimal of a type; raise ArithmeticError if it has too many digits."""
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    with localcontext() as context:
        context.prec = 400
        rounded = exact.quantize(Decimal(1).scaleb(-type_.scale), ROUND_HALF_UP)
    if abs(rounded) >= Decimal(10) ** (type_.digits - type_.scale):
        raise ArithmeticError(f"overflow: the result does not fit {written_type(type_)}")
    return rounded


def _read(text: str, type_: SqlType) -> Any:
    """Read a text, without the blanks around it."""
    match type_.kind:
        case Kind.BIGINT:
            return _whole(whole_of(text), type_)
        case Kind.DOUBLE:
            return _float(double_of(text), type_)
        case Kind.DECIMAL:
            return rounded_decimal(decimal_of(text), type_)
        case Kind.BOOLEAN:
            return truth_of(text)
        case Kind.DATE:
            return date_of(text)
    time = time_of(text)
    return time.replace(tzinfo=None) if type_.kind is Kind.TIMESTAMP_NTZ else time


def _written(value: Any, _: SqlType) -> str:
    """Write a whole number, a boolean or a time, without zeros at the end of its fraction."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, datetime):
        return str(value)
    text = value.replace(tzinfo=None).isoformat(" ")
    return text.rstrip("0") if value.microsecond else text


def _clock(value: date, type_: SqlType) -> date:
    """Return the same day or the same clock time; the time of a day is midnight."""
    if type_.kind is Kind.DATE:
        return value.date() if isinstance(value, datetime) else value
    if not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    return value.replace(tzinfo=None) if type_.kind is Kind.TIMESTAMP_NTZ else value


_RULES: dict[Cast, Callable[[Any, SqlType], Any]] = {
    Cast.KEPT: lambda value, _: value,
    Cast.CUT: _whole,
    Cast.NEAREST: _float,
    Cast.ROUNDED: rounded_decimal,
    Cast.ASKED: lambda value, _: value != 0,
    Cast.READ: _read,
    Cast.WRITTEN: _written,
    Cast.CLOCK: _clock,
}
"""What each rule does."""
