# SPDX-License-Identifier: Apache-2.0
"""Casts of values without a schema, by the table in :mod:`~pyflinkcep.expressions.rules`."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any

import attrs

from pyflinkcep.errors import InputError
from pyflinkcep.expressions.program import Kind
from pyflinkcep.expressions.rules import CASTS, Cast
from pyflinkcep.expressions.text_values import (
    date_of,
    decimal_of,
    double_of,
    time_of,
    truth_of,
    whole_of,
)

__all__ = ["CastType", "cast_type", "cast_value"]

_NAME = re.compile(r"([a-z_]+)(?:\((\d+)(?:,(\d+))?\))?")
_BITS = {"tinyint": 8, "byte": 8, "smallint": 16, "short": 16, "int": 32, "integer": 32}
_KINDS = {
    **dict.fromkeys((*_BITS, "bigint", "long"), Kind.BIGINT),
    **dict.fromkeys(("double", "float", "real"), Kind.DOUBLE),
    **dict.fromkeys(("decimal", "dec", "numeric"), Kind.DECIMAL),
    **dict.fromkeys(("timestamp", "timestamp_ltz"), Kind.TIMESTAMP),
    "boolean": Kind.BOOLEAN,
    "string": Kind.STRING,
    "date": Kind.DATE,
    "timestamp_ntz": Kind.TIMESTAMP_NTZ,
}


@attrs.frozen
class CastType:
    """
    The type that a value is cast to.

    Attributes
    ----------
    name : str
        The type as Spark writes it.
    kind : Kind
        Its kind.
    bits : int
        The size of whole numbers and floating-point numbers.
    digits : int
        The number of digits of a decimal.
    scale : int
        How many of them are after the point.
    """

    name: str
    kind: Kind
    bits: int = 64
    digits: int = 0
    scale: int = 0


def cast_type(written: str) -> CastType | None:
    """
    Return a type as users write it; None for one of which Spark alone has values.

    Examples
    --------
    >>> cast_type("DECIMAL(5, 2)").scale
    2
    """
    name = written.lower().replace(" ", "")
    found = _NAME.fullmatch(name)
    kind = None if found is None else _KINDS.get(found[1])
    if found is None or kind is None or (found[2] and kind is not Kind.DECIMAL):
        return None
    bits = 32 if found[1] in ("float", "real") else _BITS.get(found[1], 64)
    return CastType(name, kind, bits, int(found[2] or 10), int(found[3] or 0))


def cast_value(value: Any, type_: CastType) -> Any:
    """
    Return a value that is not NULL as another type.

    Raises
    ------
    InputError
        If it cannot be cast, as in Spark's default mode.
    NotImplementedError
        If only Spark can cast it.
    """
    kind = _kind_of(value)
    rule = None if kind is None else CASTS.get((kind, type_.kind))
    if rule is Cast.BY_SPARK:
        raise NotImplementedError(type_.name)
    try:
        if rule is not None:
            return _RULES[rule](value, type_)
    except (ValueError, ArithmeticError, LookupError, OSError) as cause:
        raise _refused(value, type_) from cause
    raise _refused(value, type_)


def _refused(value: Any, type_: CastType) -> InputError:
    return InputError(f"expected {type_.name}, got {value!r}", "write a value that is one")


def _kind_of(value: Any) -> Kind | None:
    kinds = (kind for type_, kind in _OF_VALUES if isinstance(value, type_))
    return next(kinds, None)


_OF_VALUES: tuple[tuple[type, Kind], ...] = (
    (bool, Kind.BOOLEAN), (int, Kind.BIGINT), (float, Kind.DOUBLE), (Decimal, Kind.DECIMAL),
    (str, Kind.STRING), (datetime, Kind.TIMESTAMP), (date, Kind.DATE), (timedelta, Kind.INTERVAL),
)  # fmt: skip


def _whole(value: Any, type_: CastType) -> int:
    """Cut off the fraction; NaN, infinities and other numbers out of range are errors."""
    number = int(value)
    if not -(1 << type_.bits - 1) <= number < 1 << type_.bits - 1:
        raise ArithmeticError(type_.name)
    return number


def _float(value: Any, type_: CastType) -> float:
    number = float(value)
    if type_.bits == 64:
        return number
    try:
        (short,) = struct.unpack("f", struct.pack("f", number))
    except OverflowError:
        return number * float("inf")
    return float(short)


def _decimal(value: Any, type_: CastType) -> Decimal:
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    with localcontext() as context:
        context.prec = 400
        rounded = exact.quantize(Decimal(1).scaleb(-type_.scale), ROUND_HALF_UP)
    if abs(rounded) >= Decimal(10) ** (type_.digits - type_.scale):
        raise ArithmeticError(type_.name)
    return rounded


def _read(text: str, type_: CastType) -> Any:
    """Read a text, without the blanks around it."""
    match type_.kind:
        case Kind.BIGINT:
            return _whole(whole_of(text), type_)
        case Kind.DOUBLE:
            return _float(double_of(text), type_)
        case Kind.DECIMAL:
            return _decimal(decimal_of(text), type_)
        case Kind.BOOLEAN:
            return truth_of(text)
        case Kind.DATE:
            return date_of(text)
    time = time_of(text)
    return time.replace(tzinfo=None) if type_.kind is Kind.TIMESTAMP_NTZ else time


def _written(value: Any, _: CastType) -> str:
    """Write a whole number, a boolean or a time, without zeros at the end of its fraction."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, datetime):
        return str(value)
    text = value.replace(tzinfo=None).isoformat(" ")
    return text.rstrip("0") if value.microsecond else text


def _clock(value: date, type_: CastType) -> date:
    """Return the same day or the same clock time; the time of a day is midnight."""
    if type_.kind is Kind.DATE:
        return value.date() if isinstance(value, datetime) else value
    if not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    return value.replace(tzinfo=None) if type_.kind is Kind.TIMESTAMP_NTZ else value


_RULES: dict[Cast, Callable[[Any, CastType], Any]] = {
    Cast.KEPT: lambda value, _: value,
    Cast.CUT: _whole,
    Cast.NEAREST: _float,
    Cast.ROUNDED: _decimal,
    Cast.ASKED: lambda value, _: value != 0,
    Cast.READ: _read,
    Cast.WRITTEN: _written,
    Cast.CLOCK: _clock,
}
"""What each rule does."""
