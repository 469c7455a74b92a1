# SPDX-License-Identifier: Apache-2.0
"""Casts that were written, and values as texts."""

from __future__ import annotations

from pyflinkcep.expressions.program import Kind
from pyflinkcep.expressions.rules import cast_rule
from pyflinkcep.expressions.sql_types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    SqlType,
    cast_type,
)
from pyflinkcep.spark.plan.portable.times import since_epoch
from pyflinkcep.spark.plan.portable.values import RANGE, Setting, Value, failing_if, narrowed

_EXPONENT = "^ *[-+]?[0-9.]+[eE]"
_PLAIN = 6
"""The most digits after the point with which no decimal has an exponent in its text."""


def cast_value(value: Value, written: str, function: str, setting: Setting, what: str) -> Value:
    """Return a cast with Spark's value."""
    to, own = cast_type(written), value.type
    if to is None:
        raise setting.refused(what, f"{written} is not a type of plain values", "cast before")
    if own in (VOID, to):
        return Value(f"{function}({value.sql} AS {written})", to)
    _check(value, to, setting, what)
    if own.is_whole and to == TIMESTAMP:
        return _time_of(value, setting)
    if own.is_decimal and to == BOOLEAN:
        return Value(f"({value.sql} <> 0)", to)
    sql, is_number = value.sql, own.is_number and to.is_number
    if own == TIMESTAMP and to.is_whole:
        sql, is_number = since_epoch(value, 10**6).sql, True
    elif own == TIMESTAMP and to.is_decimal:
        micros = f"cast({since_epoch(value, 1).sql} AS decimal(19, 0))"
        sql, is_number = f"({micros} * cast('0.000001' AS decimal(7, 6)))", True
    elif own == BOOLEAN and to.is_decimal:
        sql = f"cast({sql} AS int)"
    elif own.is_float and to.is_decimal:
        sql = _digits(value.as_type(DOUBLE, setting).sql)
    elif own.is_decimal and to.is_float:
        sql = value.exact_digits
    elif own == STRING and (to == BOOLEAN or to.is_decimal):
        bad = f"lower(trim({sql})) IN ('on', 'off')"
        if to.is_decimal:
            bad = f"length({sql}) <> octet_length({sql})"
            sql = failing_if(f"{sql} RLIKE '{_EXPONENT}'", sql, "a decimal with an exponent")
        otherwise = "NULL" if function == "try_cast" or not setting.ansi else "raise_error('cast')"
        sql = f"if({bad}, {otherwise}, {sql})"
    cast = narrowed(sql, written, function) if is_number else f"{function}({sql} AS {written})"
    return Value(cast, to)


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


def _check(value: Value, to: SqlType, setting: Setting, what: str) -> None:
    own = value.type
    is_clock = TIMESTAMP_NTZ in (own, to) and (own.is_number or to.is_number)
    if cast_rule(own.kind, to.kind) is None or is_clock or own.kind is Kind.INTERVAL:
        raise setting.refused(what, "Spark has no such cast", "leave it out")
    if to == STRING:
        text_of(value, setting, what)
    if to.is_time:
        setting.needs_utc(what, own)
    if not setting.ansi and (to.is_whole or to.is_decimal) and (own.is_number or own == TIMESTAMP):
        raise setting.refused(what, "without ANSI it has other values out of range", "use floor()")


def text_of(value: Value, setting: Setting, what: str) -> Value:
    """Return a value as text."""
    own = value.type
    if own == STRING:
        return value
    if own.is_float:
        raise setting.refused(
            what, "it writes 1.0E7 as 10000000.0", "cast to a decimal or a whole number before"
        )
    setting.needs_utc(what, own)
    if own.is_decimal and own.scale > _PLAIN and not setting.ansi:
        raise setting.refused(what, "without ANSI, Spark writes 1E-7", "cast to fewer digits")
    if own not in (BOOLEAN, DATE, TIMESTAMP, TIMESTAMP_NTZ, VOID) and not own.is_number:
        raise setting.refused(what, "it is no plain value", "take it apart before")
    return Value(f"cast({value.sql} AS string)", STRING)
