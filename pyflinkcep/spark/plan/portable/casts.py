# SPDX-License-Identifier: Apache-2.0
"""Casts that were written, values as texts, and sums and differences of times and intervals."""

from __future__ import annotations

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
    Part,
    Value,
    failing_if,
    narrowed,
)

_EXPONENT = "^ *[-+]?[0-9.]+[eE]"
_PLAIN = 6
"""The most digits after the point with which no decimal has an exponent in its text."""


def cast_value(part: Part, written: str, function: str = "cast") -> Value:
    """Return a cast with Spark's value."""
    (value,), setting = part.operands, part.setting
    to, own = cast_type(written), value.type
    if to is None:
        raise part.refused(f"{written} is not a type of plain values", "cast before")
    if own in (VOID, to):
        return Value(f"{function}({value.sql} AS {written})", to)
    _check(value, to, part)
    if own.is_whole and to == TIMESTAMP:
        return _time_of(value, part)
    if own.is_decimal and to == BOOLEAN:
        return Value(f"({value.sql} <> 0)", to)
    sql, is_number = value.sql, own.is_number and to.is_number
    if own == TIMESTAMP and to.is_whole:
        sql, is_number = since_epoch(value.sql, 10**6), True
    elif own == TIMESTAMP and to.is_decimal:
        micros = f"cast(unix_micros({value.sql}) AS decimal(19, 0))"
        sql, is_number = f"({micros} * cast('0.000001' AS decimal(7, 6)))", True
    elif own == BOOLEAN and to.is_decimal:
        sql = f"cast({sql} AS int)"
    elif own.is_float and to.is_decimal:
        sql = _digits(part.cast(value, DOUBLE))
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


def _time_of(seconds: Value, part: Part) -> Value:
    """Return the time of some seconds, at the ends of the range if it is beyond them."""
    number, most = part.cast(seconds, BIGINT), RANGE // 10**6
    return Value(
        f"timestamp_micros(CASE WHEN {number} > {most} THEN {RANGE - 1}L "
        f"WHEN {number} < -{most} THEN -{RANGE - 1}L - 1L ELSE {number} * 1000000L END)",
        TIMESTAMP,
    )


def _check(value: Value, to: SqlType, part: Part) -> None:
    own = value.type
    is_clock = TIMESTAMP_NTZ in (own, to) and (own.is_number or to.is_number)
    if cast_rule(own.kind, to.kind) is None or is_clock or own.kind is Kind.INTERVAL:
        raise part.refused("Spark has no such cast", "leave it out")
    if to == STRING:
        text_of(value, part)
    if to.is_time:
        part.needs_utc(own)
    is_narrow = (to.is_whole or to.is_decimal) and (own.is_number or own == TIMESTAMP)
    if not part.setting.ansi and is_narrow:
        raise part.refused("without ANSI it has other values out of range", "use floor()")


def text_of(value: Value, part: Part) -> Value:
    """Return a value as text."""
    own = value.type
    if own == STRING:
        return value
    if own.is_float:
        raise part.refused(
            "it writes 1.0E7 as 10000000.0", "cast to a decimal or a whole number before"
        )
    part.needs_utc(own)
    if own.is_decimal and own.scale > _PLAIN and not part.setting.ansi:
        raise part.refused("without ANSI, Spark writes 1E-7", "cast to fewer digits")
    if own not in (BOOLEAN, DATE, TIMESTAMP, TIMESTAMP_NTZ, VOID) and not own.is_number:
        raise part.refused("it is no plain value", "take it apart before")
    return Value(f"cast({value.sql} AS string)", STRING)


# --- times

MONTHS = SqlType("interval year to month")
_LENGTHS = (DAYS, INTERVAL)
_DAY = UNITS_US["DAY"]


def is_clock(value: Value) -> bool:
    """Whether a value is a time, a date or an interval."""
    return value.type.is_time or value.type in (*_LENGTHS, MONTHS)


def moved(part: Part) -> Value:
    """Return a sum or difference of times, dates and intervals."""
    left, right = part.operands
    if part.operator == "+" and not left.type.is_time:
        left, right = right, left
    if part.operator == "*":
        return _multiplied(left, right, part)
    if not left.type.is_time:
        if not all(value.type in _LENGTHS for value in part.operands):
            raise part.refused("it adds no two intervals", "add intervals of days")
        return _infix(part, left, right, INTERVAL)
    if part.operator == "-" and right.type.is_time:
        return _between(left, right, part)
    if right.type != MONTHS and left.type == DATE:
        return _date_moved(left, right, part)
    if right.type not in (MONTHS, *_LENGTHS):
        raise part.refused("it adds no interval to a time", "add an INTERVAL")
    length = _length(right)
    if length is None or abs(length) >= _DAY:
        part.needs_utc(left.type)
    return _infix(part, left, right, left.type)


def _length(value: Value) -> int | None:
    """Return a literal interval; None for any other value."""
    return value.value.microseconds if isinstance(value.value, Interval) else None


def _multiplied(left: Value, right: Value, part: Part) -> Value:
    interval, count = (left, right) if _length(right) is None else (right, left)
    length = _length(interval)
    if length is None or not count.type.is_whole:
        raise part.refused(
            "it wraps around or rounds otherwise", "write whole number * INTERVAL '1' SECOND"
        )
    number, most = part.cast(count, BIGINT), RANGE // max(abs(length), 1)
    if most < RANGE:
        bad = f"{number} > {most} OR {number} < -{most}"
        number = failing_if(bad, number, "overflow: the interval is too long")
    return Value(f"({number} * {interval.sql})", INTERVAL)


def since_epoch(time: str, micros: int) -> str:
    """Return the whole units of some microseconds from the epoch to a TIMESTAMP, as SQL."""
    since = f"unix_micros({time})"
    return f"(({since} - pmod({since}, {micros}L)) div {micros}L)"


def _between(left: Value, right: Value, part: Part) -> Value:
    if left.type == right.type == DATE:
        return Value(f"(datediff({left.sql}, {right.sql}) * INTERVAL '1' DAY)", DAYS)
    type_ = part.common_type([left, right])
    part.needs_utc(type_)
    return part.infix(INTERVAL, type_)


def _date_moved(date: Value, by: Value, part: Part) -> Value:
    function = "date_add" if part.operator == "+" else "date_sub"
    if by.type.is_whole and by.type != BIGINT:
        return Value(f"{function}({date.sql}, {by.sql})", DATE)
    length = _length(by)
    if length is None:
        raise part.refused("it adds a value to a date", "add an INTERVAL of days")
    days, rest = divmod(length, _DAY)
    if not rest:
        return Value(f"{function}({date.sql}, {days})", DATE)
    return _infix(part, date.as_type(TIMESTAMP, part.setting), by, TIMESTAMP)


def distance(part: Part) -> Value:
    """Return a number of whole units between two times."""
    type_ = part.common_type([*part.operands, Value("", TIMESTAMP_NTZ)])
    part.needs_utc(type_)
    first, second = (part.cast(value, type_) for value in part.operands)
    ends = [f"unix_micros(cast({sql} AS timestamp))" for sql in (second, first)]
    return Value(f"(({' - '.join(ends)}) div {UNITS_US[part.detail]})", BIGINT)


def days_between(part: Part) -> Value:
    """Return a number of days between two days."""
    part.needs_utc(*(value.type for value in part.operands))
    if not all(value.type.is_time for value in part.operands):
        raise part.refused("it counts days between texts", "write DATE '2026-03-01'")
    later, earlier = (part.cast(value, DATE) for value in part.operands)
    return Value(f"cast(datediff({later}, {earlier}) AS int)", INT)


def added(part: Part) -> Value:
    """Return a time some units later."""
    (count, time), unit = part.operands, UNITS_US[part.detail]
    if not count.type.is_whole or time.type not in (TIMESTAMP, TIMESTAMP_NTZ):
        raise part.refused("it adds to a date or a text", "cast to timestamp before")
    if unit >= _DAY:
        part.needs_utc(time.type)
    by = _multiplied(count, Value.of(Literal(Interval(unit))), part)
    return Value(f"if({time.sql} IS NULL, NULL, {time.sql} + {by.sql})", time.type)


def _infix(part: Part, left: Value, right: Value, type_: SqlType) -> Value:
    return Value(f"({left.sql} {part.operator} {right.sql})", type_)
