# SPDX-License-Identifier: Apache-2.0
"""Spark's rules for values, on Python values: NULL is None, times are datetimes."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import ROUND_HALF_UP, Decimal, localcontext
from functools import cache
from math import isfinite
from operator import neg
from typing import Any
from zoneinfo import ZoneInfo

from pyflinkcep.errors import InputError
from pyflinkcep.expressions.codegen import Scalar, scalar
from pyflinkcep.expressions.numbers import (
    BIGINT,
    EXACT,
    LEAST,
    MOST,
    MOST_DIGITS,
    Digits,
    computed,
    digits_of_value,
    fitted,
    of_operation,
    overflow_of,
    wrapped,
)
from pyflinkcep.expressions.program import (
    BY_ZERO,
    OPERATORS,
    OVERFLOW,
    RULES,
    Cast,
    Kind,
    Op,
    Type,
    cast_rule,
)
from pyflinkcep.expressions.sql_types import SqlType

_BLANK = "".join(map(chr, [*range(0x21), 0x7F]))
"""What is trimmed: the blank and all control characters, not other white space."""

_DIGITS = r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_WHOLE = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(rf"[+-]?{_DIGITS}")
_DOUBLE = re.compile(rf"(?P<number>[+-]?{_DIGITS})[dDfF]?", re.ASCII)
_ENDLESS = re.compile(r"[+-]?inf(inity)?|nan", re.IGNORECASE)
_TRUTHS = {
    **dict.fromkeys(("t", "true", "y", "yes", "1"), True),
    **dict.fromkeys(("f", "false", "n", "no", "0"), False),
}

_DATE = re.compile(
    r"\+?(\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?P<rest>[ T].*)?)?)?", re.ASCII | re.DOTALL
)
_CLOCK = re.compile(
    r"[ T](\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d{0,9}))?)?)?(?P<zone> ?[A-Za-z+-].*)?",
    re.ASCII,
)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?", re.ASCII)


def whole_of(text: str) -> int:
    """Return a whole number; raise ValueError for any other text."""
    return int(_matched(_WHOLE, text)[0])


def double_of(text: str) -> float:
    """Return a double; raise ValueError for any other text."""
    endless = _ENDLESS.fullmatch(text.strip(_BLANK))
    return float(endless[0] if endless else _matched(_DOUBLE, text)["number"])


def decimal_of(text: str) -> Decimal:
    """Return a decimal; raise ValueError for any other text."""
    return Decimal(_matched(_DECIMAL, text)[0])


def truth_of(text: str) -> bool:
    """Return a boolean; raise ValueError for any other text."""
    word = text.strip(_BLANK).lower()
    if word not in _TRUTHS:
        raise ValueError(text)
    return _TRUTHS[word]


def date_of(text: str) -> date:
    """Return the date at the begin of a text; raise ValueError if there is none."""
    return _day(_matched(_DATE, text))


def time_of(text: str) -> datetime:
    """Return a timestamp, with its zone if it has one; raise ValueError for any other text."""
    found = _matched(_DATE, text)
    day, rest = _day(found), found["rest"]
    if not rest:
        return datetime(day.year, day.month, day.day)
    clock = _CLOCK.fullmatch(rest)
    if clock is None:
        raise ValueError(text)
    hour, minute, second = (int(clock[number] or 0) for number in (1, 2, 3))
    micros = int((clock[4] or "").ljust(6, "0")[:6])
    zone = zone_of(clock["zone"].strip()) if clock["zone"] else None
    return datetime(day.year, day.month, day.day, hour, minute, second, micros, zone)


def _matched(form: re.Pattern[str], text: str) -> re.Match[str]:
    found = form.fullmatch(text.strip(_BLANK))
    if found is None:
        raise ValueError(text)
    return found


def _day(found: re.Match[str]) -> date:
    return date(int(found[1]), int(found[2] or 1), int(found[3] or 1))


def zone_of(name: str) -> tzinfo:
    """Return a time zone by its name or its distance from UTC."""
    found = _OFFSET.fullmatch(name)
    if found is None:
        return ZoneInfo("UTC" if name in ("Z", "UT", "GMT") else name)
    length = timedelta(hours=int(found[2]), minutes=int(found[3] or 0))
    return timezone(-length if found[1] == "-" else length)


def kind_name(value: Any) -> str:
    """Return the name of a value's type for messages."""
    kind = _KINDS.get(type(value))
    name = type(value).__name__ if kind is None else kind.value
    return "interval" if kind is Kind.INTERVAL else name


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _mismatch(what: str, a: Any, b: Any) -> InputError:
    hint = "cast one of them"
    if what.startswith("compared") and isinstance(a, bool):
        hint += "; write a < b AND b < c for a < b < c, and OR for ||"
    found = f"expected compatible values, got {kind_name(a)} {what} {kind_name(b)}"
    return InputError(found, hint)


def in_bigint(number: int) -> int:
    """Return a number; raise ArithmeticError if it does not fit bigint."""
    if LEAST <= number <= MOST:
        return number
    raise ArithmeticError(OVERFLOW)


def truth(value: Any) -> bool | None:
    """Return a boolean or NULL; raise InputError for anything else."""
    if value is None or isinstance(value, bool):
        return value
    raise InputError(f"expected boolean, got {kind_name(value)}", "compare it with a value")


# --- order


def compared(a: Any, b: Any) -> int:
    """Return the order of two values: negative if `a` comes first, zero if they are equal."""
    if _is_number(a) and _is_number(b):
        return _compared_numbers(a, b)
    a, b = _as_times(*_as_numbers(a, b))
    if _is_number(a) and _is_number(b):
        return _compared_numbers(a, b)
    if isinstance(a, list) and isinstance(b, list):
        return _compared_lists(a, b)
    if isinstance(a, dict) and isinstance(b, dict) and list(a) == list(b):
        return _compared_lists(list(a.values()), list(b.values()))
    alike = isinstance(a, type(b)) or isinstance(b, type(a))
    if not alike or isinstance(a, dict) or _is_number(a) is not _is_number(b):
        raise _mismatch("compared with", a, b)
    if isinstance(a, datetime) and a.tzinfo is not None:
        a, b = a.astimezone(UTC), b.astimezone(UTC)
    try:
        return int(a > b) - int(a < b)
    except TypeError as cause:
        raise _mismatch("compared with", a, b) from cause


def _compared_lists(a: list[Any], b: list[Any]) -> int:
    """Compare element by element; NULL is the least."""
    for one, other in zip(a, b, strict=False):
        if one is None or other is None:
            order = (one is not None) - (other is not None)
        else:
            order = compared(one, other)
        if order:
            return order
    return len(a) - len(b)


def is_equal(a: Any, b: Any) -> bool:
    """Whether two values that are not NULL are equal; NULLs inside are equal to each other."""
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(map(is_same, a.values(), b.values()))
    return compared(a, b) == 0


def is_same(a: Any, b: Any) -> bool:
    """Whether two values are equal, NULL being equal to itself."""
    return a is b if a is None or b is None else is_equal(a, b)


def alike(a: Any, b: Any) -> tuple[Any, Any]:
    """Return two values, both as doubles if one of two numbers is."""
    is_mixed = isinstance(a, float) is not isinstance(b, float)
    return (float(a), float(b)) if is_mixed and _is_number(a) and _is_number(b) else (a, b)


def greater(a: Any, b: Any) -> Any:
    """Return the greater of two values that are not NULL, the first if they are equal."""
    return b if compared(b, a) > 0 else a


def lesser(a: Any, b: Any) -> Any:
    """Return the lesser of two values that are not NULL, the first if they are equal."""
    return b if compared(b, a) < 0 else a


def _compared_numbers(a: Any, b: Any) -> int:
    if isinstance(a, float) or isinstance(b, float):
        a, b = float(a), float(b)
        return int(_float_less(b, a)) - int(_float_less(a, b))
    return int(a > b) - int(a < b)


_float_less = scalar(Op.LT, Type.FLOAT, ansi=True)


def _as_numbers(a: Any, b: Any) -> tuple[Any, Any]:
    """Convert a string beside a number to a bigint or double."""
    if isinstance(a, str) and _is_number(b):
        return _parsed_number(a, b), b
    if isinstance(b, str) and _is_number(a):
        return a, _parsed_number(b, a)
    return a, b


def read_text(text: str, read: Callable[[str], Any], wanted: str, hint: str) -> Any:
    """Return what a text says; raise InputError if it is not what is wanted."""
    try:
        return read(text)
    except (ValueError, LookupError, OSError) as cause:
        raise InputError(f"expected {wanted}, got {text!r}", hint) from cause


def _parsed_number(text: str, like: Any) -> Any:
    read, wanted = (whole_of, "bigint") if isinstance(like, int) else (double_of, "double")
    return read_text(text, read, wanted, "write a value that is one")


def _as_times(a: Any, b: Any) -> tuple[Any, Any]:
    """Convert a string next to a time to such a time, a date next to a timestamp to midnight."""
    if isinstance(a, str) and isinstance(b, date):
        a = _parsed_time(a, b)
    elif isinstance(b, str) and isinstance(a, date):
        b = _parsed_time(b, a)
    if isinstance(a, date) and isinstance(b, date):
        return _beside_time(a, b), _beside_time(b, a)
    return a, b


def _beside_time(time: date, other: date) -> date:
    """Return a time in the form of another: a date is midnight, a clock has the other's zone."""
    if not isinstance(other, datetime):
        return time
    if not isinstance(time, datetime):
        return datetime(time.year, time.month, time.day, tzinfo=other.tzinfo)
    return time.replace(tzinfo=other.tzinfo) if time.tzinfo is None else time


def _parsed_time(text: str, like: date) -> date:
    read = time_of if isinstance(like, datetime) else date_of
    time: date = read_text(text, read, "a time", "write '2026-01-31 12:00:00'")
    return _beside_time(time, like)


# --- arithmetic


def negated(value: Any) -> Any:
    """Return the negative of a number or interval."""
    return _of_number(value, neg)


def magnitude(value: Any) -> Any:
    """Return a number or interval without its sign."""
    return _of_number(value, abs)


def _of_number(value: Any, function: Callable[[Any], Any]) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return in_bigint(function(value))
    if isinstance(value, Decimal):
        with localcontext(EXACT):
            return function(value)
    if isinstance(value, float | timedelta):
        return function(value)
    raise InputError(f"expected a number, got {kind_name(value)}", "cast it")


def arithmetic(
    operator: str, a: Any, b: Any, digits: Sequence[Digits | None] = (None, None)
) -> Any:
    """Return ``a + b`` and so on, of non-NULL values."""
    if operator == "||":
        if isinstance(a, str) and isinstance(b, str):
            return a + b
        if isinstance(a, list) and isinstance(b, list):
            return a + b
        raise _mismatch("joined with", a, b)
    a, b = _as_numbers(a, b)
    if not (_is_number(a) and _is_number(b)):
        return _with_times(operator, a, b)
    if RULES[OPERATORS[operator]].divides and b == 0:
        raise ArithmeticError(BY_ZERO)
    is_float = isinstance(a, float) or isinstance(b, float)
    if not is_float and (isinstance(a, Decimal) or isinstance(b, Decimal)):
        return _with_decimals(operator, a, b, digits)
    if not is_float and operator != "/":
        return _calculation(operator, Type.INT)(a, b)
    if operator == "div":
        raise InputError("expected whole numbers around DIV, got double", "write /")
    return _calculation(operator, Type.FLOAT)(float(a), float(b))


@cache
def _calculation(operator: str, type_: Type) -> Scalar:
    """Return an operation of numbers as programs have it."""
    return scalar(OPERATORS[operator], type_, ansi=True)


def _with_decimals(operator: str, a: Any, b: Any, digits: Sequence[Digits | None]) -> Any:
    own = [
        known or (BIGINT if isinstance(value, int) else digits_of_value(value))
        for value, known in zip((a, b), digits, strict=True)
    ]
    type_ = of_operation(operator, *own)
    if operator in ("%", "pmod") and None in digits:
        type_ = Digits(MOST_DIGITS, type_.scale)  # it is as exact as the numbers
    found = computed(operator, Decimal(a), Decimal(b), type_)
    if found is None:
        raise ArithmeticError(overflow_of(type_))
    return wrapped(int(found)) if operator == "div" else found  # as Spark does, with ANSI too


def _with_times(operator: str, a: Any, b: Any) -> Any:
    """Return differences of times, times shifted by intervals, and arithmetic on intervals."""
    a, b = _as_times(a, b)
    try:
        if isinstance(a, date) and isinstance(b, date) and operator == "-":
            return _by_clock(a) - _by_clock(b)
        if type(a) is date and type(b) is int and operator in ("+", "-"):
            return moved(a, timedelta(days=b if operator == "+" else -b))
        if type(b) is date and type(a) is int and operator == "+":
            return moved(b, timedelta(days=a))
        if isinstance(b, timedelta) and isinstance(a, date | timedelta) and operator in ("+", "-"):
            return moved(a, b if operator == "+" else -b)
        if isinstance(a, timedelta) and isinstance(b, date) and operator == "+":
            return moved(b, a)
        if operator == "*" and isinstance(a, timedelta) and _is_number(b):
            return _scaled(a, b, 1)
        if operator == "*" and isinstance(b, timedelta) and _is_number(a):
            return _scaled(b, a, 1)
        if operator == "/" and isinstance(a, timedelta) and _is_number(b):
            return _scaled(a, 1, b)
    except TypeError as cause:  # a time zone on one side only
        raise _mismatch(operator, a, b) from cause
    raise _mismatch(operator, a, b)


def _scaled(length: timedelta, factor: Any, divisor: Any) -> timedelta:
    """Return an interval times a number, or divided by one; halves are rounded up."""
    if divisor == 0:
        raise ArithmeticError(BY_ZERO)
    whole = length // timedelta(microseconds=1)
    with localcontext(prec=100):
        if isinstance(factor, float) or isinstance(divisor, float):
            micros = Decimal(whole * factor if divisor == 1 else whole / divisor)
        else:
            micros = whole * Decimal(factor) / Decimal(divisor)
        if not micros.is_finite():
            raise ArithmeticError(OVERFLOW)
        return timedelta(microseconds=in_bigint(int(micros.to_integral_value(ROUND_HALF_UP))))


def _by_clock(time: date) -> date:
    return time.replace(tzinfo=None) if isinstance(time, datetime) else time


def moved(time: Any, by: timedelta) -> Any:
    """Return a time shifted by days of the clock and time that passes; of a date, at midnight."""
    if not isinstance(time, date):
        return time + by
    try:
        if not isinstance(time, datetime):
            whole = datetime(time.year, time.month, time.day) + by
            return whole if by % timedelta(days=1) else whole.date()
        if time.tzinfo is None:
            return time + by
        days = timedelta(days=int(by / timedelta(days=1)))
        later = _shown_as(time, time + days).astimezone(UTC) + (by - days)
        return later.astimezone(time.tzinfo)
    except OverflowError as cause:
        raise ArithmeticError("overflow: the time is out of range") from cause


def _shown_as(time: datetime, later: datetime) -> datetime:
    """Return a time that a clock shows twice at the distance from UTC of the time before it."""
    first, second = later.utcoffset(), later.replace(fold=1).utcoffset()
    shown_twice = first is not None and second is not None and first > second
    return later.replace(fold=int(shown_twice and time.utcoffset() == second))


def passed(time: date, by: timedelta) -> datetime:
    """Return a time after an interval that passes; midnight is the time of a date."""
    if not isinstance(time, datetime):
        time = datetime(time.year, time.month, time.day)
    try:
        if time.tzinfo is None:
            return time + by
        return (time.astimezone(UTC) + by).astimezone(time.tzinfo)
    except OverflowError as cause:
        raise ArithmeticError("overflow: the time is out of range") from cause


def cast_value(value: Any, type_: SqlType, zone: tzinfo | None = None) -> Any:
    """Return a value that is not NULL as another type; `zone` is where clocks without one are."""
    if type_.name == "decimal" and isinstance(value, float) and not isfinite(value):
        return None
    rule = cast_rule(kind_of(value), type_.kind)
    if rule is Cast.BY_SPARK:
        raise NotImplementedError(type_.name)
    try:
        if rule is not None:
            made = _RULES[rule](value, type_)
            return made if type_.name != "timestamp" else _placed(made, zone)
    except (ValueError, ArithmeticError, LookupError, OSError) as cause:
        raise _refused(value, type_) from cause
    raise _refused(value, type_)


def _placed(time: datetime, zone: tzinfo | None) -> datetime:
    """Return a timestamp by the clock of a zone."""
    if zone is None:
        return time
    known = time.replace(tzinfo=zone) if time.tzinfo is None else time
    return known.astimezone(UTC).astimezone(zone)  # a time that no clock shows is an hour later


def _refused(value: Any, type_: SqlType) -> InputError:
    return InputError(f"expected {type_.sql}, got {value!r}", "write a value that is one")


def kind_of(value: Any) -> Kind | None:
    """Return the kind of a value of Python; None if SQL has none, TIMESTAMP of any datetime."""
    return next((_KINDS[type_] for type_ in type(value).__mro__ if type_ in _KINDS), None)


_KINDS: dict[type, Kind] = {
    bool: Kind.BOOLEAN, int: Kind.BIGINT, float: Kind.DOUBLE, Decimal: Kind.DECIMAL,
    str: Kind.STRING, datetime: Kind.TIMESTAMP, date: Kind.DATE, timedelta: Kind.INTERVAL,
}  # fmt: skip


def _whole(value: Any, type_: SqlType) -> int:
    """Cut off the fraction; NaN, infinities and other numbers out of range are errors."""
    number = int(value)
    if not -(1 << type_.bits - 1) <= number < 1 << type_.bits - 1:
        raise ArithmeticError(type_.name)
    return number


def _float(value: Any, type_: SqlType) -> float:
    number = float(value)
    return number if type_.bits == 64 else short_float(number)


def short_float(number: float) -> float:
    """Return the nearest float of 32 bits."""
    try:
        return float(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return number * float("inf")


def rounded_decimal(value: Any, type_: SqlType) -> Decimal:
    """Return a number as a decimal of a type; raise ArithmeticError if it has too many digits."""
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    digits = Digits(type_.digits, type_.scale)
    found = fitted(exact, digits) if exact.is_finite() else None
    if found is None:
        raise ArithmeticError(overflow_of(digits))
    return found


def _read(text: str, type_: SqlType) -> Any:
    """Read a text, without the blanks around it."""
    match type_.kind and type_.kind.family:
        case Kind.BIGINT:
            return _whole(whole_of(text), type_)
        case Kind.DOUBLE:
            return _float(double_of(text), type_)
        case Kind.DECIMAL:
            return rounded_decimal(decimal_of(text), type_)
        case Kind.BOOLEAN:
            return truth_of(text)
        case Kind.DATE:
            return date_of(text)
    time = time_of(text)
    return time.replace(tzinfo=None) if type_.kind is Kind.TIMESTAMP_NTZ else time


def _written(value: Any, _: SqlType) -> str:
    """Write a number, a boolean, or a time without zeros at the end of its fraction."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Decimal):
        return format(value, "f")
    if not isinstance(value, datetime):
        return str(value)
    text = value.replace(tzinfo=None).isoformat(" ")
    return text.rstrip("0") if value.microsecond else text


def _clock(value: date, type_: SqlType) -> date:
    """Return the same day or the same clock time; the time of a day is midnight."""
    if type_.kind is Kind.DATE:
        return value.date() if isinstance(value, datetime) else value
    if not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    return value.replace(tzinfo=None) if type_.kind is Kind.TIMESTAMP_NTZ else value


_RULES: dict[Cast, Callable[[Any, SqlType], Any]] = {
    Cast.KEPT: lambda value, _: value,
    Cast.CUT: _whole,
    Cast.NEAREST: _float,
    Cast.ROUNDED: rounded_decimal,
    Cast.ASKED: lambda value, _: value != 0,
    Cast.READ: _read,
    Cast.WRITTEN: _written,
    Cast.CLOCK: _clock,
}
"""What each rule does."""
