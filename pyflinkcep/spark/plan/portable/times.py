# SPDX-License-Identifier: Apache-2.0
"""Sums and differences of times, dates and intervals."""

from __future__ import annotations

from collections.abc import Sequence

from pyflinkcep.expressions.sql_types import (
    BIGINT,
    DATE,
    DAYS,
    INT,
    INTERVAL,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    SqlType,
)
from pyflinkcep.expressions.tokens import UNITS_US
from pyflinkcep.expressions.tree import Interval, Literal
from pyflinkcep.spark.plan.portable.values import (
    RANGE,
    Setting,
    Value,
    common_type,
    failing_if,
)

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
