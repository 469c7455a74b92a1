# SPDX-License-Identifier: Apache-2.0
"""Sums and differences of times, dates and intervals."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql.types import (
    DataType,
    DateType,
    DayTimeIntervalType,
    IntegralType,
    LongType,
    TimestampNTZType,
    TimestampType,
    YearMonthIntervalType,
)

from pyflinkcep.expressions.text import literal_sql
from pyflinkcep.expressions.tokens import UNITS_US
from pyflinkcep.expressions.tree import Interval
from pyflinkcep.spark.plan.portable.values import (
    BIGINT,
    DATE,
    INT,
    NTZ,
    RANGE,
    TIMESTAMP,
    Setting,
    Value,
    common_type,
    failing_if,
    is_time,
)

INTERVAL = DayTimeIntervalType()
_DAY = UNITS_US["DAY"]
_CLOCKS = (TimestampType, TimestampNTZType)
_INTERVALS = (DayTimeIntervalType, YearMonthIntervalType)


def is_clock(value: Value) -> bool:
    """Whether a value is a time, a date or an interval."""
    return is_time(value.type) or isinstance(value.type, _INTERVALS)


def moved(sign: str, operands: Sequence[Value], setting: Setting, what: str) -> Value:
    """Return a sum or difference of times, dates and intervals."""
    left, right = operands
    if sign == "+" and not is_time(left.type):
        left, right = right, left
    if sign == "*":
        return _multiplied(left, right, setting, what)
    if not is_time(left.type):
        if not all(isinstance(value.type, DayTimeIntervalType) for value in operands):
            raise setting.refused(what, "it adds no two intervals", "add intervals of days")
        return _infix(sign, left, right, INTERVAL)
    if isinstance(right.type, YearMonthIntervalType):
        if isinstance(left.type, TimestampType):
            setting.needs_utc(what)
        return _infix(sign, left, right, left.type)
    if sign == "-" and is_time(right.type):
        return _between(left, right, setting, what)
    if isinstance(left.type, DateType):
        return _date_moved(sign, left, right, setting, what)
    if not isinstance(right.type, DayTimeIntervalType):
        raise setting.refused(what, "it adds no interval to a time", "add an INTERVAL")
    length = right.literal.microseconds if isinstance(right.literal, Interval) else _DAY
    if isinstance(left.type, TimestampType) and abs(length) >= _DAY:
        setting.needs_utc(what)
    return _infix(sign, left, right, left.type)


def _multiplied(left: Value, right: Value, setting: Setting, what: str) -> Value:
    interval, count = (right, left) if isinstance(right.literal, Interval) else (left, right)
    if not isinstance(interval.literal, Interval) or not isinstance(count.type, IntegralType):
        raise setting.refused(
            what, "it wraps around or rounds otherwise", "write whole number * INTERVAL '1' SECOND"
        )
    number = count.as_type(BIGINT, setting).sql
    most = RANGE // max(abs(interval.literal.microseconds), 1)
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
    if isinstance(left.type, DateType) and isinstance(right.type, DateType):
        return Value(
            f"(datediff({left.sql}, {right.sql}) * INTERVAL '1' DAY)", DayTimeIntervalType(0, 0)
        )
    type_ = common_type([left, right], setting, what)
    if isinstance(type_, TimestampType):
        setting.needs_utc(what)
    return _infix("-", left.as_type(type_, setting), right.as_type(type_, setting), INTERVAL)


def _date_moved(sign: str, date: Value, by: Value, setting: Setting, what: str) -> Value:
    function = "date_add" if sign == "+" else "date_sub"
    if isinstance(by.type, IntegralType) and not isinstance(by.type, LongType):
        return Value(f"{function}({date.sql}, {by.sql})", DATE)
    if not isinstance(by.literal, Interval):
        raise setting.refused(what, "it adds a value to a date", "add an INTERVAL of days")
    days, rest = divmod(by.literal.microseconds, _DAY)
    if not rest:
        return Value(f"{function}({date.sql}, {days})", DATE)
    return _infix(sign, date.as_type(TIMESTAMP, setting), by, TIMESTAMP)


def distance(unit: str, operands: Sequence[Value], setting: Setting, what: str) -> Value:
    """Return a number of whole units between two times."""
    type_ = common_type([*operands, Value("", NTZ)], setting, what)
    if isinstance(type_, TimestampType):
        setting.needs_utc(what)
    first, second = (value.as_type(type_, setting) for value in operands)
    ends = [f"unix_micros(cast({value.sql} AS timestamp))" for value in (second, first)]
    return Value(f"(({' - '.join(ends)}) div {UNITS_US[unit]})", BIGINT)


def days_between(operands: Sequence[Value], setting: Setting, what: str) -> Value:
    """Return a number of days between two days."""
    if any(isinstance(value.type, TimestampType) for value in operands):
        setting.needs_utc(what)
    if not all(is_time(value.type) for value in operands):
        raise setting.refused(what, "it counts days between texts", "write DATE '2026-03-01'")
    later, earlier = (value.as_type(DATE, setting).sql for value in operands)
    return Value(f"cast(datediff({later}, {earlier}) AS int)", INT)


def added(unit: str, operands: Sequence[Value], setting: Setting, what: str) -> Value:
    """Return a time some units later."""
    count, time = operands
    if not isinstance(count.type, IntegralType) or not isinstance(time.type, _CLOCKS):
        raise setting.refused(what, "it adds to a date or a text", "cast to timestamp before")
    if isinstance(time.type, TimestampType) and UNITS_US[unit] >= _DAY:
        setting.needs_utc(what)
    length = Interval(UNITS_US[unit])
    by = _multiplied(count, Value(literal_sql(length), INTERVAL, length), setting, what)
    return Value(f"if({time.sql} IS NULL, NULL, {time.sql} + {by.sql})", time.type)


def _infix(sign: str, left: Value, right: Value, type_: DataType) -> Value:
    return Value(f"({left.sql} {sign} {right.sql})", type_)
