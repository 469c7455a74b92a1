# SPDX-License-Identifier: Apache-2.0
"""Parts of an expression as SQL with their types in Spark, and casts between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import attrs

from pyflinkcep.errors import NotSupportedError
from pyflinkcep.expressions.numbers import MOST_DIGITS, UNITS_US, Digits
from pyflinkcep.expressions.program import EXACT_DIGITS, Kind, cast_rule
from pyflinkcep.expressions.sql_types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DAYS,
    DOUBLE,
    FLOAT,
    INT,
    INTERVAL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    SqlType,
    cast_type,
    decimal_of,
    digits_beside,
    literal_type,
    wider,
)
from pyflinkcep.expressions.tree import Interval, Literal, literal_sql

RANGE = 2**63
BEFORE = "compute it as a column of the events, if this engine's own value will do"


@attrs.frozen
class Setting:
    """What values depend on."""

    engine: str  # The engine's name, for errors
    ansi: bool  # Whether overflow, division by zero and texts that are no numbers are errors
    is_utc: bool  # Whether the session's clock is UTC

    def refused(self, what: str, why: str, hint: str) -> NotSupportedError:
        """Return the error of something that the engine does not compute as Spark does."""
        return NotSupportedError(
            f"{self.engine} does not compute {what} as Spark does: {why}", hint
        )

    def unknown(self, what: str) -> NotSupportedError:
        """Return the error of something that nobody has compared with Spark."""
        return self.refused(what, "it is not known to have the same values", BEFORE)

    def needs_utc(self, what: str, *types: SqlType) -> None:
        """Refuse what depends on the session's clock, unless that is UTC, or no type has it."""
        if not self.is_utc and (not types or TIMESTAMP in types):
            raise self.refused(
                what,
                "it leaves out the time zone of the session",
                "set spark.sql.session.timeZone to UTC, or use TIMESTAMP_NTZ columns",
            )


@attrs.frozen
class Value:
    """A part of an expression."""

    sql: str  # The part as SQL
    type: SqlType  # Its type in Spark
    literal: Literal | None = None  # What was written, if it is a literal

    @classmethod
    def of(cls, literal: Literal) -> Value:
        """Return what was written."""
        value, type_ = literal.value, literal_type(literal) or TIMESTAMP
        type_ = INTERVAL if type_ == DAYS else type_
        sql = literal_sql(value)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        is_least = value == -(2**31) and type_ == INT
        if is_number and (is_least or literal.text[-1:].upper() in tuple("YSLF")):
            sql = f"cast({sql.removesuffix('D')} AS {type_.sql})"
        return cls(sql, type_, literal)

    @property
    def value(self) -> Any:
        """The value of a literal; None of anything else."""
        return None if self.literal is None else self.literal.value

    @property
    def digits(self) -> Digits:
        """The digits that a number has beside a decimal."""
        return digits_beside(self.literal, self.type) or Digits(1, 0)

    @property
    def exact_digits(self) -> str:
        """A decimal as SQL of which a cast makes the nearest double."""
        is_short = self.type.is_decimal and self.type.digits <= EXACT_DIGITS
        return self.sql if is_short else f"cast({self.sql} AS string)"

    def as_type(self, type_: SqlType, setting: Setting) -> Value:
        """Return the value with another type, as Spark casts without being asked."""
        if self.type in (type_, VOID):
            return self
        if type_ == DOUBLE and isinstance(self.value, int | Decimal):
            return Value.of(Literal(float(self.value)))
        sql = self.sql
        if type_.is_float and self.type.is_decimal:
            sql = self.exact_digits
        if type_.is_time:
            setting.needs_utc(f"{self.sql} as {type_.sql}", self.type)
        return Value(f"cast({sql} AS {type_.sql})", type_)


def has_floats(type_: SqlType) -> bool:
    """Whether a type has parts that may be NaN."""
    return type_.is_float or any(has_floats(part) for part in type_.inner if part is not None)


@attrs.frozen
class Part:
    """An operation or function and its operands."""

    operator: str
    what: str  # Its text, for errors
    operands: Sequence[Value]
    setting: Setting
    detail: str = ""  # See ``Operation`` and ``Call``

    def refused(self, why: str, hint: str) -> NotSupportedError:
        """Return the error of what the engine does not compute as Spark does."""
        return self.setting.refused(self.what, why, hint)

    def unknown(self) -> NotSupportedError:
        """Return the error of something that nobody has compared with Spark."""
        return self.setting.unknown(self.what)

    def needs_utc(self, *types: SqlType) -> None:
        """Refuse what depends on the session's clock; see :class:`Setting`."""
        self.setting.needs_utc(self.what, *types)

    def cast(self, value: Value, type_: SqlType) -> str:
        """Return a value with another type as SQL, as Spark casts without being asked."""
        return value.as_type(type_, self.setting).sql

    def common_type(self, values: Sequence[Value]) -> SqlType:
        """Return the type to which Spark casts values beside each other."""
        known = [value for value in values if value.type != VOID]
        types = list(dict.fromkeys(value.type for value in known))
        if len(types) < 2:
            return types[0] if types else VOID
        mixed = self.refused("it has values of different types", "cast them to one type")
        if STRING in types:
            other = self.common_type([value for value in known if value.type != STRING])
            if other.is_time:
                return other
            if not (self.setting.ansi and other.is_number):
                raise mixed
            return BIGINT if other.is_whole else DOUBLE
        if all(type_.is_number for type_ in types):
            if FLOAT in types and DOUBLE not in types and not self.setting.ansi:
                raise mixed
            if any(type_.is_decimal for type_ in types) and not any(t.is_float for t in types):
                return self._common_decimal([value.digits for value in known])
        elif not all(type_.is_time for type_ in types):
            raise mixed
        found = wider(types)
        assert found is not None
        return found

    def _common_decimal(self, digits: Sequence[Digits]) -> SqlType:
        scale, whole = max(own.scale for own in digits), max(own.whole for own in digits)
        if whole + scale > MOST_DIGITS:
            raise self.refused(
                f"more than {MOST_DIGITS} digits are needed", "cast to decimals of fewer digits"
            )
        return decimal_of(Digits(whole + scale, scale))

    def chosen(self, values: Sequence[Value]) -> tuple[list[str], SqlType]:
        """Return the SQL of values in the type that a choice between them has, and the type."""
        # There, literals have all digits of their types.
        types = [value.type for value in values]
        if not self.setting.ansi and STRING in types and any(type_.is_time for type_ in types):
            raise self.refused("it has values of different types", "cast them to one type")
        type_ = self.common_type([Value(value.sql, value.type) for value in values])
        return [self.cast(value, type_) for value in values], type_

    def number_type(self) -> SqlType:
        """Return the type that the operands have in common; refuse what is no number."""
        type_ = self.common_type(self.operands)
        if type_ == VOID:
            return DOUBLE
        if not type_.is_number or STRING in (value.type for value in self.operands):
            raise self.refused("it computes with values that are no numbers", "cast them")
        return type_

    def digits(self, type_: SqlType) -> list[Digits]:
        """Return the digits of the sides of an operation, those of NULL as the other's."""
        return [(Value("", type_) if v.type == VOID else v).digits for v in self.operands]

    def infix(self, type_: SqlType, wanted: SqlType | None = None) -> Value:
        """Return the operator between its operands, cast to a type if one is wanted."""
        sides = self.operands
        if wanted is not None:
            sides = [value.as_type(wanted, self.setting) for value in sides]
        return Value(f"({listed(sides, f' {self.operator} ')})", type_)

    def decimal(self, sql: str, digits: Digits) -> Value:
        """Return a decimal of some digits; refuse too many."""
        if digits.precision > MOST_DIGITS:
            raise self.refused(
                f"the result has up to {digits.precision} digits",
                f"cast to decimals of fewer digits, so that it has at most {MOST_DIGITS}",
            )
        type_ = f"decimal({digits.precision}, {digits.scale})"
        return Value(f"cast({sql} AS {type_})", decimal_of(digits))


def listed(values: Iterable[Value], between: str = ", ") -> str:
    """Return the SQL of values, one after the other."""
    return between.join(value.sql for value in values)


def failing_if(bad: str, sql: str, problem: str) -> str:
    """Return SQL that is an error where a condition holds."""
    return f"if({bad}, raise_error('{problem}'), {sql})"


def narrowed(sql: str, written: str, function: str = "cast") -> str:
    """Return a cast that fails if the number does not fit, even beside a comparison."""
    return f"coalesce({function}({sql} AS {written}), NULL)"  # which is not simplified away


_EXPONENT = "^ *[-+]?[0-9.]+[eE]"
_PLAIN = 6  # The most digits after the point with which no decimal has an exponent in its text


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
