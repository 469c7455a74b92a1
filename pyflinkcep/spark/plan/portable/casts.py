# SPDX-License-Identifier: Apache-2.0
"""Casts that were written, values as texts, and sums and differences of times and intervals."""

from __future__ import annotations

from collections.abc import Sequence

from pyflinkcep.expressions.numbers import UNITS_US
from pyflinkcep.expressions.program import Kind, cast_rule
from pyflinkcep.expressions.sql_types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DAYS,
    DOUBLE,
    INT,
    INTERVAL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    SqlType,
    cast_type,
)
from pyflinkcep.expressions.tree import Interval, Literal
from pyflinkcep.spark.plan.portable.values import (
    RANGE,
    Setting,
    Value,
    common_type,
    failing_if,
    narrowed,
)

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


# --- times

MONTHS = SqlType("interval year to month")
_LENGTHS = (DAYS, INTERVAL)
_DAY = UNITS_US["DAY"]


def is_clock(value: Value) -> bool:
    """Whether a value is a time, a date or an interval."""
    return value.type.is_time or value.type in (*_LENGTHS, MONTHS)


def moved(sign: str, operands: Sequence[Value], setting: Setting, what: str) -> Value:
    """Return a sum or difference of times, dates and intervals."""
    left, right = operands
    if sign == "+" and not left.type.is_time:
        left, right = right, left
    if sign == "*":
        return _multiplied(left, right, setting, what)
    if not left.type.is_time:
        if not all(value.type in _LENGTHS for value in operands):
            raise setting.refused(what, "it adds no two intervals", "add intervals of days")
        return _infix(sign, left, right, INTERVAL)
    if right.type == MONTHS:
        setting.needs_utc(what, left.type)
        return _infix(sign, left, right, left.type)
    if sign == "-" and right.type.is_time:
        return _between(left, right, setting, what)
    if left.type == DATE:
        return _date_moved(sign, left, right, setting, what)
    if right.type not in _LENGTHS:
        raise setting.refused(what, "it adds no interval to a time", "add an INTERVAL")
    length = _length(right)
    if length is None or abs(length) >= _DAY:
        setting.needs_utc(what, left.type)
    return _infix(sign, left, right, left.type)


def _length(value: Value) -> int | None:
    """Return a literal interval; None for any other value."""
    return value.value.microseconds if isinstance(value.value, Interval) else None


def _multiplied(left: Value, right: Value, setting: Setting, what: str) -> Value:
    interval, count = (left, right) if _length(right) is None else (right, left)
    length = _length(interval)
    if length is None or not count.type.is_whole:
        raise setting.refused(
            what, "it wraps around or rounds otherwise", "write whole number * INTERVAL '1' SECOND"
        )
    number, most = count.as_type(BIGINT, setting).sql, RANGE // max(abs(length), 1)
    if most < RANGE:
        bad = f"{number} > {most} OR {number} < -{most}"
        number = failing_if(bad, number, "overflow: the interval is too long")
    return Value(f"({number} * {interval.sql})", INTERVAL)


def since_epoch(time: Value, micros: int) -> Value:
    """Return the whole units of some microseconds from the epoch to a time, a TIMESTAMP."""
    since = f"unix_micros({time.sql})"
    whole = since if micros == 1 else f"(({since} - pmod({since}, {micros}L)) div {micros}L)"
    return Value(whole, BIGINT)


def _between(left: Value, right: Value, setting: Setting, what: str) -> Value:
    if left.type == right.type == DATE:
        return Value(f"(datediff({left.sql}, {right.sql}) * INTERVAL '1' DAY)", DAYS)
    type_ = common_type([left, right], setting, what)
    setting.needs_utc(what, type_)
    return _infix("-", left.as_type(type_, setting), right.as_type(type_, setting), INTERVAL)


def _date_moved(sign: str, date: Value, by: Value, setting: Setting, what: str) -> Value:
    function = "date_add" if sign == "+" else "date_sub"
    if by.type.is_whole and by.type != BIGINT:
        return Value(f"{function}({date.sql}, {by.sql})", DATE)
    length = _length(by)
    if length is None:
        raise setting.refused(what, "it adds a value to a date", "add an INTERVAL of days")
    days, rest = divmod(length, _DAY)
    if not rest:
        return Value(f"{function}({date.sql}, {days})", DATE)
    return _infix(sign, date.as_type(TIMESTAMP, setting), by, TIMESTAMP)


def distance(unit: str, operands: Sequence[Value], setting: Setting, what: str) -> Value:
    """Return a number of whole units between two times."""
    type_ = common_type([*operands, Value("", TIMESTAMP_NTZ)], setting, what)
    setting.needs_utc(what, type_)
    first, second = (value.as_type(type_, setting) for value in operands)
    ends = [f"unix_micros(cast({value.sql} AS timestamp))" for value in (second, first)]
    return Value(f"(({' - '.join(ends)}) div {UNITS_US[unit]})", BIGINT)


def days_between(operands: Sequence[Value], setting: Setting, what: str) -> Value:
    """Return a number of days between two days."""
    setting.needs_utc(what, *(value.type for value in operands))
    if not all(value.type.is_time for value in operands):
        raise setting.refused(what, "it counts days between texts", "write DATE '2026-03-01'")
    later, earlier = (value.as_type(DATE, setting).sql for value in operands)
    return Value(f"cast(datediff({later}, {earlier}) AS int)", INT)


def added(unit: str, operands: Sequence[Value], setting: Setting, what: str) -> Value:
    """Return a time some units later."""
    count, time = operands
    if not count.type.is_whole or time.type not in (TIMESTAMP, TIMESTAMP_NTZ):
        raise setting.refused(what, "it adds to a date or a text", "cast to timestamp before")
    if UNITS_US[unit] >= _DAY:
        setting.needs_utc(what, time.type)
    by = _multiplied(count, Value.of(Literal(Interval(UNITS_US[unit]))), setting, what)
    return Value(f"if({time.sql} IS NULL, NULL, {time.sql} + {by.sql})", time.type)


def _infix(sign: str, left: Value, right: Value, type_: SqlType) -> Value:
    return Value(f"({left.sql} {sign} {right.sql})", type_)
