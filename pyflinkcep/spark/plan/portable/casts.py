# SPDX-License-Identifier: Apache-2.0
"""Casts that were written, and values as texts."""

from __future__ import annotations

from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    IntegralType,
    NullType,
    NumericType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from pyflinkcep.expressions.casts import cast_type
from pyflinkcep.expressions.program import Kind
from pyflinkcep.expressions.rules import CASTS
from pyflinkcep.spark.plan.kinds import common_kind
from pyflinkcep.spark.plan.portable.values import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    NTZ,
    STRING,
    TIMESTAMP,
    Setting,
    Value,
    is_float,
    is_time,
)

__all__ = ["cast_value", "narrowed", "text_of"]

_WHOLE: dict[int, DataType] = {8: ByteType(), 16: ShortType(), 32: INT, 64: BIGINT}
_TYPES = {
    Kind.BOOLEAN: BOOLEAN, Kind.STRING: STRING, Kind.DATE: DATE, Kind.TIMESTAMP: TIMESTAMP,
    Kind.TIMESTAMP_NTZ: NTZ,
}  # fmt: skip


def cast_value(value: Value, written: str, function: str, setting: Setting, what: str) -> Value:
    """
    Return a cast with Spark's value.

    Parameters
    ----------
    value : Value
        What is cast.
    written : str
        The type, as written.
    function : str
        ``cast`` or ``try_cast``.
    setting : Setting
        What values depend on.
    what : str
        The cast as written, for errors.

    Raises
    ------
    NotSupportedError
        If the engine does not cast as Spark does.
    """
    type_ = _type_of(written)
    if type_ is None:
        raise setting.refused(what, f"{written} is not a type of plain values", "cast before")
    if isinstance(value.type, NullType) or value.type == type_:
        return Value(f"{function}({value.sql} AS {written})", type_)
    _check(value, type_, setting, what)
    sql = value.sql
    if isinstance(value.type, StringType) and isinstance(type_, BooleanType | DecimalType):
        bad = (
            f"lower(trim({sql})) IN ('on', 'off')"
            if isinstance(type_, BooleanType)
            else f"length({sql}) <> octet_length({sql})"
        )
        otherwise = "NULL" if function == "try_cast" or not setting.ansi else "raise_error('cast')"
        sql = f"if({bad}, {otherwise}, {sql})"
    if isinstance(value.type, NumericType) and isinstance(type_, NumericType):
        return Value(narrowed(sql, written, function), type_)
    return Value(f"{function}({sql} AS {written})", type_)


def narrowed(sql: str, written: str, function: str = "cast") -> str:
    """Return a cast that fails if the number does not fit, even beside a comparison."""
    return f"coalesce({function}({sql} AS {written}), NULL)"  # which is not simplified away


def _type_of(written: str) -> DataType | None:
    """Return the type of a name; None if it is none of plain values."""
    known = cast_type(written)
    if known is None:
        return None
    if known.kind is Kind.DECIMAL:
        return DecimalType(known.digits, known.scale)
    if known.kind is Kind.DOUBLE:
        return FLOAT if known.bits == 32 else DOUBLE
    return _WHOLE[known.bits] if known.kind is Kind.BIGINT else _TYPES[known.kind]


def _check(value: Value, type_: DataType, setting: Setting, what: str) -> None:
    kinds = tuple(_kind(one) for one in (value.type, type_))
    numbers = isinstance(type_, TimestampNTZType) and isinstance(value.type, NumericType)
    if (
        kinds not in CASTS
        or numbers
        or (isinstance(value.type, TimestampNTZType) and isinstance(type_, NumericType))
    ):
        raise setting.refused(what, "Spark has no such cast", "leave it out")
    if isinstance(type_, StringType):
        text_of(value, setting, what)
    if isinstance(value.type, TimestampType) and is_time(type_):
        setting.needs_utc(what)
    ends = isinstance(type_, IntegralType | DecimalType) and isinstance(value.type, NumericType)
    if ends and not setting.ansi:
        raise setting.refused(what, "without ANSI it has other values out of range", "use floor()")


def _kind(type_: DataType) -> Kind | None:
    return Kind.DECIMAL if isinstance(type_, DecimalType) else common_kind(type_)


def text_of(value: Value, setting: Setting, what: str) -> Value:
    """
    Return a value as text.

    Raises
    ------
    NotSupportedError
        If the engine writes its type otherwise than Spark.
    """
    type_ = value.type
    if isinstance(type_, StringType):
        return value
    if is_float(type_):
        raise setting.refused(
            what, "it writes 1.0E7 as 10000000.0", "cast to a decimal or a whole number before"
        )
    if isinstance(type_, TimestampType):
        setting.needs_utc(what)
    if not isinstance(
        type_,
        IntegralType | DecimalType | BooleanType | DateType | TimestampType | TimestampNTZType
        | NullType,
    ):  # fmt: skip
        raise setting.refused(what, "it is no plain value", "take it apart before")
    return Value(f"cast({value.sql} AS string)", STRING)
