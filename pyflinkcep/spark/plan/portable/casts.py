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

from pyflinkcep.expressions.program import Kind
from pyflinkcep.expressions.rules import CASTS
from pyflinkcep.expressions.sql_types import cast_type
from pyflinkcep.spark.plan.analysis import common_kind
from pyflinkcep.spark.plan.portable.times import since_epoch
from pyflinkcep.spark.plan.portable.values import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    NTZ,
    RANGE,
    STRING,
    TIMESTAMP,
    Setting,
    Value,
    failing_if,
    is_float,
    is_time,
)

_WHOLE: dict[int, DataType] = {8: ByteType(), 16: ShortType(), 32: INT, 64: BIGINT}
_EXPONENT = "^ *[-+]?[0-9.]+[eE]"
_PLAIN = 6
"""The most digits after the point with which no decimal has an exponent in its text."""
_TYPES = {
    Kind.BOOLEAN: BOOLEAN, Kind.STRING: STRING, Kind.DATE: DATE, Kind.TIMESTAMP: TIMESTAMP,
    Kind.TIMESTAMP_NTZ: NTZ,
}  # fmt: skip


def cast_value(value: Value, written: str, function: str, setting: Setting, what: str) -> Value:
    """Return a cast with Spark's value."""
    type_ = _type_of(written)
    if type_ is None:
        raise setting.refused(what, f"{written} is not a type of plain values", "cast before")
    if isinstance(value.type, NullType) or value.type == type_:
        return Value(f"{function}({value.sql} AS {written})", type_)
    _check(value, type_, setting, what)
    sql = value.sql
    if isinstance(value.type, TimestampType) and isinstance(type_, IntegralType):
        sql = since_epoch(value, 10**6).sql
        return Value(narrowed(sql, written, function), type_)
    if isinstance(value.type, IntegralType) and isinstance(type_, TimestampType):
        return _time_of(value, setting)
    if isinstance(value.type, BooleanType) and isinstance(type_, DecimalType):
        sql = f"cast({sql} AS int)"
    if isinstance(value.type, DecimalType) and isinstance(type_, BooleanType):
        return Value(f"({sql} <> 0)", type_)
    if isinstance(value.type, TimestampType) and isinstance(type_, DecimalType):
        micros = f"cast({since_epoch(value, 1).sql} AS decimal(19, 0))"
        sql = f"({micros} * cast('0.000001' AS decimal(7, 6)))"
        return Value(narrowed(sql, written, function), type_)
    if is_float(value.type) and isinstance(type_, DecimalType):
        digits = _digits(value.as_type(DOUBLE, setting).sql)
        return Value(narrowed(digits, written, function), type_)
    if isinstance(value.type, StringType) and isinstance(type_, BooleanType | DecimalType):
        bad = (
            f"lower(trim({sql})) IN ('on', 'off')"
            if isinstance(type_, BooleanType)
            else f"length({sql}) <> octet_length({sql})"
        )
        if isinstance(type_, DecimalType):
            sql = failing_if(f"{sql} RLIKE '{_EXPONENT}'", sql, "a decimal with an exponent")
        otherwise = "NULL" if function == "try_cast" or not setting.ansi else "raise_error('cast')"
        sql = f"if({bad}, {otherwise}, {sql})"
    if is_float(type_) and isinstance(value.type, DecimalType):
        sql = value.exact_digits
    if isinstance(value.type, NumericType) and isinstance(type_, NumericType):
        return Value(narrowed(sql, written, function), type_)
    return Value(f"{function}({sql} AS {written})", type_)


def _digits(number: str) -> str:
    """Return the shortest digits of a double as SQL; NULL for what is not finite."""
    text = f"cast({number} AS string)"
    digits = f"replace(replace(split_part({text}, 'e', 1), '.', ''), '-', '')"
    power = f"try_cast(split_part({text}, 'e', 2) AS int)"
    small = f"concat('0.', repeat('0', -1 - ({power})), {digits})"
    large = f"rpad({digits}, 1 + {power}, '0')"
    shifted = f"if({power} < 0, {small}, {large})"
    return (
        f"(CASE WHEN isnan({number}) OR abs({number}) = double('Infinity') THEN NULL "
        f"WHEN contains({text}, 'e') THEN concat(if({number} < 0D, '-', ''), {shifted}) "
        f"ELSE {text} END)"
    )


def _time_of(seconds: Value, setting: Setting) -> Value:
    """Return the time of some seconds, at the ends of the range if it is beyond them."""
    number, most = seconds.as_type(BIGINT, setting).sql, RANGE // 10**6
    return Value(
        f"timestamp_micros(CASE WHEN {number} > {most} THEN {RANGE - 1}L "
        f"WHEN {number} < -{most} THEN -{RANGE - 1}L - 1L ELSE {number} * 1000000L END)",
        TIMESTAMP,
    )


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
    assert known.kind is not None
    return _WHOLE[known.bits] if known.is_whole else _TYPES[known.kind]


def _check(value: Value, type_: DataType, setting: Setting, what: str) -> None:
    kinds = tuple(_kind(one) for one in (value.type, type_))
    if (
        kinds not in CASTS
        or (isinstance(type_, TimestampNTZType) and isinstance(value.type, NumericType))
        or (isinstance(value.type, TimestampNTZType) and isinstance(type_, NumericType))
    ):
        raise setting.refused(what, "Spark has no such cast", "leave it out")
    if isinstance(type_, StringType):
        text_of(value, setting, what)
    if isinstance(value.type, TimestampType) and is_time(type_):
        setting.needs_utc(what)
    numbers = NumericType | TimestampType
    ends = isinstance(type_, IntegralType | DecimalType) and isinstance(value.type, numbers)
    if ends and not setting.ansi:
        raise setting.refused(what, "without ANSI it has other values out of range", "use floor()")


def _kind(type_: DataType) -> Kind | None:
    kind = common_kind(type_)
    return Kind.DECIMAL if kind is not None and kind.is_decimal else kind


def text_of(value: Value, setting: Setting, what: str) -> Value:
    """Return a value as text."""
    type_ = value.type
    if isinstance(type_, StringType):
        return value
    if is_float(type_):
        raise setting.refused(
            what, "it writes 1.0E7 as 10000000.0", "cast to a decimal or a whole number before"
        )
    if isinstance(type_, TimestampType):
        setting.needs_utc(what)
    if isinstance(type_, DecimalType) and type_.scale > _PLAIN and not setting.ansi:
        raise setting.refused(what, "without ANSI, Spark writes 1E-7", "cast to fewer digits")
    if not isinstance(
        type_,
        IntegralType | DecimalType | BooleanType | DateType | TimestampType | TimestampNTZType
        | NullType,
    ):  # fmt: skip
        raise setting.refused(what, "it is no plain value", "take it apart before")
    return Value(f"cast({value.sql} AS string)", STRING)
