# SPDX-License-Identifier: Apache-2.0
"""SQL that has on another engine the values that Spark computes, or is refused by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

import attrs

from pyflinkcep.errors import NotSupportedError
from pyflinkcep.expressions.numbers import (
    MOST_DIGITS,
    NUMBER_FUNCTIONS,
    UNITS_US,
    Digits,
    needed,
    of_operation,
    rounded_digits,
    whole_digits,
)
from pyflinkcep.expressions.program import EXACT_DIGITS, Kind, cast_rule
from pyflinkcep.expressions.sql_functions import CASTS, FIELDS, FUNCTIONS
from pyflinkcep.expressions.sql_types import (
    ARRAY,
    BIGINT,
    BOOLEAN,
    DATE,
    DAYS,
    DOUBLE,
    FLOAT,
    INT,
    INTERVAL,
    MAP,
    STRING,
    STRUCT,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    SqlType,
    array_of,
    cast_type,
    decimal_of,
    digits_beside,
    literal_type,
    wider,
)
from pyflinkcep.expressions.tree import (
    COMPARISONS,
    Call,
    Interval,
    Leaf,
    Literal,
    Operation,
    Tree,
    literal_sql,
    quoted_name,
)
from pyflinkcep.expressions.tree import Column as Name

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
                digits = [value.digits for value in known]
                scale, whole = max(own.scale for own in digits), max(own.whole for own in digits)
                if whole + scale > MOST_DIGITS:
                    raise self.refused(
                        f"more than {MOST_DIGITS} digits are needed",
                        "cast to decimals of fewer digits",
                    )
                return decimal_of(Digits(whole + scale, scale))
        elif not all(type_.is_time for type_ in types):
            raise mixed
        found = wider(types)
        assert found is not None
        return found

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


# --- operators: comparisons, arithmetic, choices

_SIGNED_DIGITS = 34  # Of more digits, Spark rounds a decimal when it changes its sign
_BEYOND = f"{float(2**63)!r}D"
_NAN = "cast('NaN' AS double)"
_ROUNDED_TO_DOUBLE = "cast(x AS decimal(20, 4)) before rounding, or round in the result"


def computed(tree: Operation, operands: Sequence[Value], setting: Setting, by_zero: bool) -> Value:
    """Return an operation with Spark's value."""
    operator = tree.operator
    if operator in ("/", "%", "div", "pmod") and (by_zero or not setting.ansi):
        operands = [operands[0], _not_zero(operands[1])]
    part = Part(operator, tree.text or operator, operands, setting, tree.detail)
    if operator in ("+", "-", "*") and any(map(is_clock, operands)):
        return moved(part)
    if operator not in _RULES:
        raise part.unknown()
    return _RULES[operator](part)


def _not_zero(value: Value) -> Value:
    """Return a divisor, NULL for zero; to the engine's own nullif, -0.0 is another number."""
    if value.value:
        return value
    return Value(f"(CASE WHEN {value.sql} = 0 THEN NULL ELSE {value.sql} END)", value.type)


# --- comparisons and choices


def _comparable(part: Part) -> list[Value]:
    """Return values that compare as in Spark: of one type, with one form of NaN."""
    type_ = part.common_type(part.operands)
    if type_.is_float:
        return _of_one_nan(part)
    if has_floats(type_):
        raise part.refused("the parts may be NaN", "compare the parts")
    if type_.is_decimal:
        return list(part.operands)  # the engine compares whole numbers and decimals exactly
    return [value.as_type(type_, part.setting) for value in part.operands]


def _of_one_nan(part: Part) -> list[Value]:
    doubles = (value.as_type(DOUBLE, part.setting) for value in part.operands)
    return [
        v if v.literal or v.type == VOID else Value(f"nanvl({v.sql}, {_NAN})", DOUBLE)
        for v in doubles
    ]


def _compared(part: Part) -> Value:
    return Value(f"({listed(_comparable(part), f' {part.operator} ')})", BOOLEAN)


def _logic(form: str, part: Part) -> Value:
    if not all(value.type in (BOOLEAN, VOID) for value in part.operands):
        raise part.refused("it is about values that are not true or false", "compare them")
    return Value(form.format(listed(part.operands, f" {part.operator.upper()} ")), BOOLEAN)


def _asked(part: Part) -> Value:
    return Value(f"({part.operands[0].sql} {part.operator.upper()})", BOOLEAN)


def _among(part: Part) -> Value:
    part.chosen(part.operands)
    value, *others = _comparable(part)
    if value.type.is_float:  # among columns, the engine tells -0.0 and 0.0 apart
        tests = (f"{value.sql} = {other.sql}" for other in others)
        return Value(f"({' OR '.join(tests)})", BOOLEAN)
    return Value(f"({value.sql} IN ({listed(others)}))", BOOLEAN)


def _first_known(part: Part) -> Value:
    values, type_ = part.chosen(part.operands)
    return Value(f"coalesce({', '.join(values)})", type_)


def _extreme(part: Part) -> Value:
    values, type_ = part.chosen(part.operands)
    if STRING in (types := {v.type for v in part.operands} - {VOID}) and len(types) > 1:
        raise part.refused("it compares texts with other values", "cast them")
    if type_.is_float:
        values, type_ = [value.sql for value in _of_one_nan(part)], DOUBLE
    return Value(f"{part.operator}({', '.join(values)})", type_)


def _case(part: Part) -> Value:
    pairs = len(part.operands) // 2
    values = [*part.operands[1 : 2 * pairs : 2], *part.operands[2 * pairs :]]
    typed, type_ = part.chosen(values)
    conditions = [value.sql for value in part.operands[: 2 * pairs : 2]]
    branches = [f"WHEN {c} THEN {v}" for c, v in zip(conditions, typed, strict=False)]
    otherwise = [f"ELSE {typed[-1]}"] if len(values) > pairs else []
    return Value(" ".join(["(CASE", *branches, *otherwise, "END)"]), type_)


# --- arithmetic


def _calculated(part: Part) -> Value:
    type_ = part.number_type()
    if type_.is_float or (type_.is_whole and not part.setting.ansi):
        return part.infix(type_, type_)
    if type_.is_decimal:
        digits = needed(part.operator, *part.digits(type_))
        return part.decimal(part.infix(type_).sql, digits)
    # Computed in more digits and cast, which fails out of the range.
    wide = "decimal(19, 0)" if type_ == BIGINT else "bigint"
    sides = [f"cast({value.sql} AS {wide})" for value in part.operands]
    return Value(narrowed(f" {part.operator} ".join(sides), type_.sql), type_)


def _quotient(part: Part) -> Value:
    type_ = part.number_type()
    if not type_.is_decimal:
        return part.infix(DOUBLE, DOUBLE)
    a, b = part.digits(type_)
    digits = of_operation("/", a, b)
    if digits.scale < a.scale:
        raise part.refused(
            f"of {a.scale} digits after the point it keeps {digits.scale}",
            "cast to fewer digits before",
        )
    dividend = f"cast({part.operands[0].sql} AS decimal({MOST_DIGITS}, {digits.scale}))"
    divisor = f"cast({part.operands[1].sql} AS decimal({b.precision}, {b.scale}))"
    return part.decimal(f"{dividend} / {divisor}", digits)


def _remainder(part: Part) -> Value:
    type_ = part.number_type()
    sides = list(part.operands)
    if not type_.is_decimal:
        sides = [value.as_type(type_, part.setting) for value in sides]
    a, b = (side.sql for side in sides)
    if part.operator == "pmod" and type_.is_float and part.setting.ansi:
        b = failing_if(f"{b} = 0", b, "pmod: remainder by zero")
    sql = f"pmod({a}, {b})" if part.operator == "pmod" else f"({a} % {b})"
    if not type_.is_decimal:
        return Value(sql, type_)
    return part.decimal(sql, needed("%", *part.digits(type_)))


def _whole_quotient(part: Part) -> Value:
    if not all(value.type.is_whole for value in part.operands):
        raise part.refused("it divides numbers that are not whole", "write floor(a / b)")
    return part.infix(BIGINT, BIGINT)


def _signed(form: str, part: Part) -> Value:
    (value,) = part.operands
    if part.operator == "neg" and isinstance(value.value, int) and value.sql[-1:] != ")":
        return Value.of(Literal(-value.value))
    own = value.type
    if not own.is_number and own not in (DAYS, INTERVAL):
        raise part.refused("it is of no number", "cast it")
    sql = form.format(value.sql)
    if own.is_decimal:  # which is not what the engine says it is
        sql = f"cast({sql} AS {own.sql})"
        if own.digits > _SIGNED_DIGITS:
            raise part.refused(
                f"Spark rounds it to {_SIGNED_DIGITS} digits",
                f"cast to a decimal of at most {_SIGNED_DIGITS} digits",
            )
    return Value(sql, own)


def _to_whole(part: Part) -> Value:
    (value,) = part.operands
    if value.type.is_decimal:
        return part.decimal(f"{part.operator}({value.sql})", whole_digits(value.digits))
    if part.number_type().is_whole:
        return value.as_type(BIGINT, part.setting)
    number = part.cast(value, DOUBLE)
    sql = f"{part.operator}({number})"
    if part.setting.ansi:  # beyond the range it is its end, and of NaN 0
        bad = f"NOT isnan({number}) AND ({number} > {_BEYOND} OR {number} < -{_BEYOND})"
        sql = failing_if(bad, sql, "overflow: the result does not fit bigint")
    return Value(sql, BIGINT)


def _rounded(part: Part) -> Value:
    """Return a number of some digits; a cut one as a difference of its remainder."""
    value, is_cut = part.operands[0], part.operator == "truncate"
    digits, sql = part.operands[1].value if len(part.operands) > 1 else 0, value.sql
    if not isinstance(digits, int):
        raise part.unknown()
    if value.type.is_decimal and digits >= 0:
        found = rounded_digits(value.digits, digits)
        form = f"round({sql}, {digits})"
        if is_cut:
            form = f"({sql} - {sql} % cast('1e-{found.scale}' AS decimal(38, {found.scale})))"
        return part.decimal(form, found)
    if value.type == DOUBLE and digits == 0:
        cut = f"IF(abs({sql}) < {2.0**53!r}D, {sql} - {sql} % 1D, {sql})"
        return Value(f"({cut if is_cut else f'round({sql})'} + 0D)", DOUBLE)  # no -0.0
    if value.type.is_whole and digits >= 0:
        return value
    raise part.refused("it rounds the number's binary value", _ROUNDED_TO_DOUBLE)


def _of_doubles(form: str, part: Part) -> Value:
    part.number_type()
    doubles = (part.cast(value, DOUBLE) for value in part.operands)
    return Value(form.format(*doubles), DOUBLE)


# --- texts


def _joined(part: Part) -> Value:
    if any(value.type.inner for value in part.operands):
        raise part.refused("it joins values that are no texts", BEFORE)
    return Value(f"({listed(_texts(part), ' || ')})", STRING)


def _texts(part: Part) -> list[Value]:
    return [text_of(value, part) for value in part.operands]


def _like(part: Part) -> Value:
    value, pattern = part.operands
    return Value(f"({text_of(value, part).sql} LIKE {pattern.sql})", BOOLEAN)


_POWER = (
    "(CASE WHEN isnan({1}) OR (abs({0}) = 1D AND abs({1}) = double('Infinity')) "
    "THEN double('NaN') "
    "WHEN {0} = 0D AND {1} < 0D THEN double(if(cast({0} AS string) LIKE '-%' "
    "AND abs({1} % 2D) = 1D, '-Infinity', 'Infinity')) ELSE power({0}, {1}) END)"
)
_RULES: dict[str, Callable[[Part], Value]] = {
    **dict.fromkeys(COMPARISONS, _compared),
    **dict.fromkeys(("and", "or"), partial(_logic, "({})")), "not": partial(_logic, "(NOT {})"),
    "is null": _asked, "is not null": _asked, "in": _among, "coalesce": _first_known,
    "greatest": _extreme, "least": _extreme, "case": _case,
    **dict.fromkeys(("+", "-", "*"), _calculated), "/": _quotient,
    "%": _remainder, "pmod": _remainder, "div": _whole_quotient,
    "neg": partial(_signed, "(- {0})"), "abs": partial(_signed, "abs({0})"),
    "floor": _to_whole, "ceil": _to_whole, "round": _rounded, "truncate": _rounded,
    **{name: partial(_of_doubles, f"{name}({{0}})") for name in NUMBER_FUNCTIONS},
    "power": partial(_of_doubles, _POWER), "||": _joined, "like": _like,
    "startswith": lambda part: Value(f"startswith({listed(_texts(part))})", BOOLEAN),
    "datediff": days_between, "timestampdiff": distance,
}  # fmt: skip


# --- functions

# By function, what its arguments are: s anything with a text, t a text, i a whole number, n one of
# at most 32 bits, l one as bigint, 0 a literal from 0, x a number, c a time, d a date, m a
# TIMESTAMP of a moment, e that of any time, a an array or map.
_TAKEN = {
    **dict.fromkeys(
        ("lower", "lcase", "upper", "ucase", "trim", "ltrim", "rtrim", "btrim", "reverse",
         "octet_length", "bit_length", "length", "char_length", "character_length", "len",
         "ascii"), "s"),
    **dict.fromkeys(("replace", "translate"), "sss"),
    **dict.fromkeys(
        ("endswith", "contains", "instr", "locate", "position", "levenshtein"), "ss"),
    **dict.fromkeys(("left", "right", "repeat"), "s0"),
    **dict.fromkeys(("substring", "substr"), "si"),
    **dict.fromkeys(("split_part", "substring_index"), "ssi"),
    **dict.fromkeys(("lpad", "rpad"), "s0s"), "concat_ws": "ss", "nanvl": "xx", "isnan": "x",
    **dict.fromkeys(("size", "cardinality"), "a"),
    **dict.fromkeys(("unix_seconds", "unix_millis", "unix_micros"), "m"),
    **dict.fromkeys(("unix_timestamp", "to_unix_timestamp"), "e"),
    **dict.fromkeys(("timestamp_seconds", "timestamp_millis"), "l"),
    **dict.fromkeys(("md5", "sha1", "crc32"), "t"), "sha2": "ti",
    **dict.fromkeys(
        ("year", "quarter", "month", "day", "dayofmonth", "dayofweek", "dayofyear", "weekofyear",
         "weekday", "hour", "minute", "second", "last_day"), "c"),
    **dict.fromkeys(("date_add", "date_sub", "dateadd", "add_months"), "cn"),
    "unix_date": "d", **dict.fromkeys(("date_from_unix_date", "timestamp_micros"), "i"),
    "make_date": "iii",
    **dict.fromkeys(
        ("rand", "random", "uuid", "current_date", "curdate", "current_timestamp", "now"), ""),
}  # fmt: skip
# The types of those that are not computed in memory.
_TYPES = {
    **dict.fromkeys(("bit_length", "levenshtein", "size", "cardinality"), INT),
    **dict.fromkeys(
        ("crc32", "unix_seconds", "unix_millis", "unix_micros", "unix_timestamp",
         "to_unix_timestamp"), BIGINT),
    **dict.fromkeys(("md5", "sha1", "sha2", "split_part", "concat_ws", "uuid"), STRING),
    **dict.fromkeys(("nanvl", "rand", "random"), DOUBLE), "isnan": BOOLEAN,
    **dict.fromkeys(
        ("timestamp_seconds", "timestamp_millis", "timestamp_micros", "current_timestamp", "now"),
        TIMESTAMP),
    **dict.fromkeys(("current_date", "curdate"), DATE),
}  # fmt: skip


def _at(micros: int) -> str:
    """Return the form of the time some units of so many microseconds after the epoch."""
    most = RANGE // micros
    bad = f"{{0}} > {most} OR {{0}} < -{most}"
    return f"timestamp_micros({failing_if(bad, '{0}', 'overflow: no such time')} * {micros}L)"


# Those that are written otherwise on the engine.
_FORMS = {
    "isnan": "coalesce(isnan({0}), false)",
    "weekday": "cast(pmod(dayofweek({0}) + 5, 7) AS int)",
    **dict.fromkeys(("size", "cardinality"), "cast(size({0}) AS int)"),
    "unix_seconds": since_epoch("{0}", 10**6), "unix_millis": since_epoch("{0}", 10**3),
    # Before 1970 too, Spark leaves the rest off.
    **dict.fromkeys(("unix_timestamp", "to_unix_timestamp"), "(unix_micros({0}) div 1000000L)"),
    "timestamp_seconds": _at(10**6), "timestamp_millis": _at(10**3),
}  # fmt: skip
_TRUNCATED = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")


def called(part: Part) -> Value:
    """Return a function with Spark's value."""
    function, operands = part.operator, part.operands
    special = _SPECIAL.get(function)
    found = None if special is None else special(part)
    if found is not None:
        return found
    taken, count = _TAKEN.get(function), len(operands)
    if taken is None or not (count == len(taken) or (function == "concat_ws" and count > 2)):
        raise part.unknown()
    taken += taken[-1:] * (count - len(taken))
    given = [_argument(of, value, part) for of, value in zip(taken, operands, strict=True)]
    type_ = _TYPES.get(function) or FUNCTIONS[function].type_of([STRING for _ in given])
    assert type_ is not None
    return Value(_FORMS.get(function, f"{function}({', '.join(given)})").format(*given), type_)


def _argument(of: str, value: Value, part: Part) -> str:
    own = value.type
    if of == "s":
        return text_of(value, part).sql
    if of in "me" and own.is_time and (of == "e" or own != DATE):
        return part.cast(value, TIMESTAMP)
    if of == "l" and own.is_whole:
        return part.cast(value, BIGINT)
    is_given = (
        (of not in "mela" and own == VOID)
        or (of == "t" and own == STRING)
        or (of == "d" and own == DATE)
        or (of == "n" and own.is_whole and own != BIGINT)
        or (of == "0" and isinstance(value.value, int) and value.value >= 0)
        or (of == "a" and own.name in (ARRAY, MAP))
    )
    if is_given:
        return value.sql
    if of == "x" and own.is_number:
        return part.cast(value, DOUBLE)
    if of == "i" and own.is_whole:
        return value.sql if own.bits > 16 else part.cast(value, INT)
    if of == "c" and own.is_time:
        part.needs_utc(own)
        return value.sql
    raise part.unknown()


def _substring(part: Part) -> Value | None:
    if len(part.operands) != 3:
        return None
    begins, length = (value.value for value in part.operands[1:])
    if not (isinstance(begins, int) and isinstance(length, int) and begins >= 0 and length >= 0):
        raise part.refused(
            "it counts from the end otherwise", "begin at 1 or later; write right(text, n)"
        )
    return Value(f"substring({text_of(part.operands[0], part).sql}, {begins}, {length})", STRING)


def _nvl2(part: Part) -> Value | None:
    if len(part.operands) != 3:
        return None
    (known, other), type_ = part.chosen(part.operands[1:])
    return Value(f"if({part.operands[0].sql} IS NOT NULL, {known}, {other})", type_)


def _holds(part: Part) -> Value | None:
    if len(part.operands) != 2:
        return None
    array, value = part.operands
    own = array.type.inner[0] if array.type.name == ARRAY else None
    if own is None or value.type == VOID:
        return None
    type_ = part.common_type([Value("", own), Value(value.sql, value.type)])
    if has_floats(type_) or (own == STRING) != (value.type == STRING):
        return None
    values = part.cast(array, array_of(type_))
    found = f"array_contains({values}, {part.cast(value, type_)})"
    unknown = f"size(filter({values}, v -> v IS NULL)) > 0"
    return Value(f"if(({found}) OR NOT ({unknown}), {found}, NULL)", BOOLEAN)


def _array(part: Part) -> Value:
    values, type_ = part.chosen(part.operands)
    return Value(f"array({', '.join(values)})", array_of(type_))


def _struct(part: Part) -> Value | None:
    names = [value.sql[1:-1] for value in part.operands]
    are_names = [value.sql == quoted_name(n) for value, n in zip(part.operands, names, strict=True)]
    return _of_fields(part, names, part.operands) if all(are_names) else None


def _named_struct(part: Part) -> Value | None:
    names, values = [name.value for name in part.operands[::2]], part.operands[1::2]
    is_known = len(names) == len(values) and all(isinstance(name, str) for name in names)
    return _of_fields(part, names, values) if is_known else None


def _of_fields(part: Part, names: Sequence[str], values: Sequence[Value]) -> Value:
    type_ = SqlType(STRUCT, inner=tuple(value.type for value in values), fields=tuple(names))
    return Value(f"{part.operator}({listed(part.operands)})", type_)


def _element_at(part: Part) -> Value | None:
    if len(part.operands) != 2:
        return None
    return Value(f"{part.operator}({listed(part.operands)})", _element_type(part))


def _truncated(part: Part) -> Value | None:
    if len(part.operands) != 2 or str(part.operands[0].value).upper() not in _TRUNCATED:
        return None
    unit, time = part.operands
    if not time.type.is_time:
        return None
    if time.type != TIMESTAMP_NTZ:
        part.needs_utc()
    return Value(f"date_trunc({unit.sql}, {part.cast(time, TIMESTAMP)})", TIMESTAMP)


_SPECIAL: dict[str, Callable[[Part], Value | None]] = {
    "substring": _substring, "substr": _substring, "nvl2": _nvl2, "struct": _struct,
    "named_struct": _named_struct, "array_contains": _holds, "array": _array,
    "date_trunc": _truncated, "element_at": _element_at, "try_element_at": _element_at,
}  # fmt: skip


# --- parts of values


def member(part: Part) -> Value:
    """Return a field of a struct."""
    (owner,), name = part.operands, part.detail
    for field, type_ in zip(owner.type.fields, owner.type.inner, strict=False):
        if field.casefold() == name.casefold() and type_ is not None:
            sql = f"{owner.sql}.{quoted_name(name)}"  # of a NULL struct, what Arrow has there
            return Value(f"if({owner.sql} IS NULL, NULL, {sql})", type_)
    raise part.unknown()


def element(part: Part) -> Value:
    """Return an element of an array or map."""
    whole, key = part.operands
    return Value(f"{whole.sql}[{key.sql}]", _element_type(part))


def _element_type(part: Part) -> SqlType:
    whole, key = part.operands
    keys, found = whole.type.inner[0] if whole.type.inner else None, None
    if whole.type.name == ARRAY and key.type.is_whole:
        found = keys
    elif (
        whole.type.name == MAP
        and keys is not None
        and not has_floats(keys)
        and (key.type == VOID or part.common_type([Value("", keys), key]) == keys)
    ):
        found = whole.type.inner[1]
    if found is None:
        raise part.unknown()
    return found


# A window function of a column, over a window of columns.
_WINDOW = re.compile(
    r"(?:(?:lag|lead|first_value|last_value)\s*\(\s*(\w+)\s*(?:,\s*\d+\s*)?\)|"
    r"(?:row_number|rank|dense_rank)\s*\(\s*\))\s*over\s*\([\w\s,]*\)$",
    re.IGNORECASE,
)
_MONTHS = re.compile(r"interval\b.*\b(month|year)s?\b", re.IGNORECASE | re.DOTALL)


def portable(
    tree: Tree, leaf: Callable[[Leaf], Value], setting: Setting, *, zero_is_null: bool = False
) -> Value:
    """Return a tree as SQL that has Spark's values."""

    def value(part: Tree) -> Value:
        if isinstance(part, Literal):
            return Value.of(part)
        if isinstance(part, Leaf):
            return leaf(part)
        if isinstance(part, Call) and part.function == "extract" and len(part.operands) == 2:
            name = FIELDS.get(part.operands[0].text.lower(), "")
            return called(Part(name, part.text, [value(part.operands[1])], setting))
        if isinstance(part, Call) and not part.operands and (found := _WINDOW.match(part.text)):
            # What it takes of another event, or an event's rank.
            type_ = leaf(Name(quoted_name(found[1]))).type if found[1] else INT
            return Value(part.text, type_)
        operands = [value(operand) for operand in part.operands]
        if isinstance(part, Call):
            return _call(Part(part.function, part.text, operands, setting, part.detail))
        return computed(part, operands, setting, zero_is_null)

    return value(tree)


def _call(part: Part) -> Value:
    function, count = part.operator, len(part.operands)
    if not function and not count and _MONTHS.match(part.what):
        return Value(part.what, MONTHS)
    if function == ".":
        return member(part)
    if function == "[]":
        return element(part)
    if function in ("cast", "try_cast") and part.detail:
        return cast_value(part, part.detail, function)
    if function in CASTS and count == 1 and not part.detail:
        return cast_value(part, CASTS[function])
    if function in ("timestampadd", "dateadd") and part.detail and count == 2:
        return added(part)
    if part.detail or not function:
        raise part.unknown()
    return called(part)
