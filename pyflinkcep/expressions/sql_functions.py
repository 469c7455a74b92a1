# SPDX-License-Identifier: Apache-2.0
"""Spark SQL's functions that can be evaluated without Spark: values, and the types of values."""

from __future__ import annotations

import calendar
import math
import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from functools import lru_cache, reduce
from typing import Any, TypeVar
from unicodedata import category

import attrs

from pyflinkcep.errors import InputError, NotSupportedError
from pyflinkcep.expressions.numbers import (
    NUMBER_FUNCTIONS,
    UNITS_US,
    digits_of_value,
    fitted,
    overflow_of,
    rounded,
    rounded_digits,
    whole,
)
from pyflinkcep.expressions.sql_types import (
    ARRAY,
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    MAP,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    SqlType,
    array_of,
    wider,
)
from pyflinkcep.expressions.sql_values import (
    arithmetic,
    compared,
    date_of,
    greater,
    in_bigint,
    is_equal,
    is_same,
    kind_name,
    lesser,
    magnitude,
    read_text,
    time_of,
)


def joined(separator: Any, values: tuple[Any, ...]) -> Any:
    """Return texts, and those of arrays, with a separator between; NULL values are left out."""
    if separator is None:
        return None
    flat = [one for value in values for one in (value if isinstance(value, list) else [value])]
    return _text(separator).join(_text(one) for one in flat if one is not None)


def time_between(unit: str, start: Any, end: Any) -> int:
    """Return the number of whole units between two times."""
    length = arithmetic("-", end, start)
    if not isinstance(length, timedelta):
        raise InputError(f"expected two times, got {kind_name(start)}", "cast them to timestamp")
    return int(arithmetic("div", length // timedelta(microseconds=1), UNITS_US[unit]))


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise InputError(f"expected string, got {kind_name(value)}", "cast it to string")


# --- times


def _clock(value: Any) -> datetime:
    """Return a time, or what a text says, as its own clock shows it."""
    if isinstance(value, str):
        value = read_text(value, time_of, "a time", "write a time")
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    raise InputError(f"expected a date or timestamp, got {kind_name(value)}", "cast it")


def _day(value: Any) -> date:
    """Return the day of a time, or of a text."""
    if isinstance(value, str):
        value = read_text(value, date_of, "a date", "write a date")
    return _clock(value).date()


def _shifted(value: Any, days: int) -> date:
    try:
        return _day(value) + timedelta(days=days)
    except OverflowError as cause:
        raise ArithmeticError("overflow: the date is out of range") from cause


def _months_later(value: Any, months: int) -> date:
    day = _day(value)
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    try:
        last = calendar.monthrange(year, month + 1)[1]
        return date(year, month + 1, min(day.day, last))
    except (ValueError, calendar.IllegalMonthError) as cause:
        raise ArithmeticError("overflow: the date is out of range") from cause


def _last_day(value: Any) -> date:
    day = _day(value)
    return day.replace(day=calendar.monthrange(day.year, day.month)[1])


_WEEKDAYS = {
    name: place
    for place, names in enumerate(
        ("mo mon monday", "tu tue tuesday", "we wed wednesday", "th thu thursday",
         "fr fri friday", "sa sat saturday", "su sun sunday")
    )
    for name in names.split()
}  # fmt: skip

_MONTHS_OF = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), 12), "QUARTER": 3,
    **dict.fromkeys(("MONTH", "MM", "MON"), 1),
}  # fmt: skip
_UNITS = {"DAY": "DAY", "DD": "DAY", "HOUR": "HOUR", "MINUTE": "MINUTE", "SECOND": "SECOND",
          "MILLISECOND": "MILLISECOND", "MICROSECOND": "MICROSECOND"}  # fmt: skip


def is_unit(name: Any, of_time: bool) -> bool:
    """Whether trunc(), or date_trunc(), knows a unit."""
    unit = _text(name).upper()
    return unit == "WEEK" or unit in _MONTHS_OF or (of_time and unit in _UNITS)


def _cut_day(value: Any, unit: str) -> date:
    """Return the first day of a unit."""
    day, unit = _day(value), unit.upper()
    if unit == "WEEK":
        return day - timedelta(days=day.weekday())
    months = _MONTHS_OF[unit]
    return date(day.year, (day.month - 1) // months * months + 1, 1)


def _cut_time(unit: str, value: datetime) -> datetime:
    """Return the begin of a unit by the clock."""
    own = unit.upper()
    if own not in _UNITS:
        day = _cut_day(value, own)
        return datetime(day.year, day.month, day.day, tzinfo=value.tzinfo)
    size = timedelta(microseconds=UNITS_US[_UNITS[own]])
    begin = datetime(value.year, value.month, value.day)
    if own in ("DAY", "DD"):
        return begin.replace(tzinfo=value.tzinfo)
    since = _clock(value) - begin
    if value.tzinfo is not None and own not in ("HOUR", "MINUTE"):
        return value - since % size
    return (value - since % size).replace(fold=value.fold)


def _micros(value: Any) -> int:
    aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    return int((aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1))


def _made_date(year: int, month: int, day: int) -> date:
    try:
        return date(year, month, day)
    except ValueError as cause:
        raise InputError(
            f"expected a date, got {year}-{month}-{day}", "write one that is"
        ) from cause


# --- numbers


def _whole(value: Any, rounding: str) -> int | Decimal:
    if isinstance(value, Decimal):
        return _rounded_exactly(value, 0, rounding)
    if isinstance(value, float) and not math.isfinite(value):
        found = whole(value)
    else:
        exact = int(Decimal(value).to_integral_value(rounding))
        found = whole(float(exact)) if isinstance(value, float) else exact
    if found is None:
        raise ArithmeticError("overflow: the result does not fit bigint")
    return in_bigint(found)


def to_digits(value: Any, digits: int, rounding: str) -> Any:
    """Return a number with some digits after the point."""
    if isinstance(value, float):
        return rounded(value, digits, rounding)
    if isinstance(value, int) and digits >= 0:
        return value
    if isinstance(value, Decimal) and digits > 38:
        return value
    found = _rounded_exactly(Decimal(value), digits, rounding)
    return in_bigint(int(found)) if isinstance(value, int) else found


def _rounded_exactly(value: Decimal, digits: int, rounding: str) -> Decimal:
    type_ = rounded_digits(digits_of_value(value), digits)
    found = fitted(value, type_, rounding, digits)
    if found is None:
        raise ArithmeticError(overflow_of(type_))
    return found


# --- texts


def _substring(text: Any, start: int, length: int | None = None) -> Any:
    whole = text if isinstance(text, bytes) else _text(text)
    begin = start - 1 if start > 0 else (len(whole) + start if start < 0 else 0)
    end = len(whole) if length is None else begin + length
    return whole[max(0, begin) : max(0, end)]


def _padded(text: Any, size: int, pad: Any, is_left: bool) -> str:
    own = _text(text)[: max(0, size)]
    missing = size - len(own)
    if missing <= 0 or not pad:
        return own
    padding = (_text(pad) * (missing // len(pad) + 1))[:missing]
    return padding + own if is_left else own + padding


def _located(part: Any, text: Any, start: int = 1) -> int:
    return 0 if start < 1 else _text(text).find(_text(part), start - 1) + 1


def _before(text: Any, separator: Any, count: int) -> str:
    if not separator or not count:
        return ""
    between = _text(separator)
    parts = _text(text).split(between)
    return between.join(parts[:count] if count > 0 else parts[count:])


@lru_cache(64)
def _translations(old: str, new: str) -> dict[int, str | None]:
    """Return what becomes of characters; None for those that are left out."""
    table: dict[int, str | None] = {}
    for place, char in enumerate(old):
        table.setdefault(ord(char), new[place] if place < len(new) else None)
    return table


Answer = TypeVar("Answer")

_LINES = "\n\r\u0085\u2028\u2029"
_CLASSES = frozenset("dDwWsS")
_ESCAPED = frozenset("\\.[]{}()*+-?^$|/ \"'#&~=!<>:;,@%_`")
_CONTROLS = frozenset("tnrf")
_DOT, _ANY = f"[^{_LINES}]", r"[\s\S]"
_END = "(?:\\Z|(?=(?:\r\n|[\r\u0085\u2028\u2029])\\Z)|(?<!\r)(?=\n\\Z))"
# With the flag m, lines begin nowhere at the end of the text, and end between no \r and \n.
_LINE_BEGIN = f"(?:(?!\\Z)(?:(?<!{_ANY})|(?<=[\n\u0085\u2028\u2029])|(?<=\r)(?!\n)))"
_LINE_END = "(?:\\Z|(?=[\r\u0085\u2028\u2029])|(?<!\r)(?=\n))"
_FLAGS = re.compile(r"\(\?([ims]+)\)")
_COUNTED = re.compile(r"\{[0-9]+(?:,[0-9]*)?\}")


@lru_cache(256)
def matching(pattern: str) -> re.Pattern[str]:
    """Return a regular expression of Java."""
    given = _FLAGS.match(pattern)
    flags, at = ("", 0) if given is None else (given[1], given.end())
    found, in_class = "(?i)" if "i" in flags else "", False
    while at < len(pattern):
        char, following = pattern[at], pattern[at + 1 : at + 2]
        size = 1
        if char == "\\":
            known = _CLASSES | _ESCAPED | _CONTROLS
            if following not in (known if in_class else known | frozenset("bBz")):
                raise _not_read(pattern)
            char, size = "\\Z" if following == "z" else char + following, 2
        elif in_class:
            if char == "[" or pattern.startswith("&&", at):
                raise _not_read(pattern)
            in_class = char != "]"
        elif char == "[":
            in_class = True
            if following == "]" or pattern.startswith("^]", at + 1):
                raise _not_read(pattern)
        elif char == ".":
            char = _ANY if "s" in flags else _DOT
        elif char == "$":
            char = _LINE_END if "m" in flags else _END
        elif char == "^" and "m" in flags:
            char = _LINE_BEGIN
        elif (
            (char == "(" and following == "?" and not pattern.startswith("(?:", at))
            or (char == "{" and not _COUNTED.match(pattern, at))
            or (char in "*+?}" and following == "+")
        ):
            raise _not_read(pattern)
        found, at = found + char, at + size
    try:
        return re.compile(found, re.ASCII)
    except re.error as cause:
        raise _not_read(pattern) from cause


_ESCAPE = re.compile(r"\[\\s\\S\]|\\(.)", re.DOTALL)
"""What matches any character, or one that stands after a backslash."""


def plain_regex(pattern: str) -> str | None:
    """Return a regular expression of Java as other engines read it; None if they may not."""
    found = matching(pattern).pattern
    # They know other classes, and fold other letters.
    letters = {char for char in _ESCAPE.findall(found) if char.isalpha()}
    if not letters <= {"Z"} or found.startswith("(?i)"):
        return None
    return _ESCAPE.sub(lambda one: "\\z" if one[1] == "Z" else one[0], found)


def _not_read(pattern: str) -> NotSupportedError:
    return NotSupportedError(
        f"the regular expression {pattern!r} can only be evaluated by Spark",
        "run it on a DataFrame, or write it with classes, groups and repetitions alone",
    )


def fitting(pattern: str) -> Callable[[str], bool]:
    """Return a function that returns whether a regular expression of Java fits a part of a text."""
    search = matching(pattern).search
    if _by_letters(pattern) is None:
        return lambda text: search(text) is not None
    return lambda text: _agreed(pattern, text, lambda found: found is not None)


@lru_cache(256)
def _by_letters(pattern: str) -> re.Pattern[str] | None:
    r"""Return a regular expression whose `\b` knows the letters of all languages; None without."""
    found = matching(pattern).pattern
    wide = _ESCAPE.sub(lambda one: f"(?u:{one[0]})" if one[1] in ("b", "B") else one[0], found)
    return None if wide == found else re.compile(wide, re.ASCII)


def _agreed(pattern: str, text: str, answer: Callable[[re.Match[str] | None], Answer]) -> Answer:
    r"""
    Return an answer that does not depend on which letters `\b` knows.

    In Java 17 it knows those of all languages, later a to z alone. Accents apart from their letters
    are part of words in either, unlike here.
    """
    found, wide = answer(matching(pattern).search(text)), _by_letters(pattern)
    if wide is None or text.isascii():
        return found
    if answer(wide.search(text)) != found or any(category(char) == "Mn" for char in text):
        raise NotSupportedError(
            f"the regular expression {pattern!r} has a \\b, which Java 17 and later ones read "
            f"otherwise in {text!r:.80}",
            r"run it on a DataFrame, or write which characters may be there: (^|[^A-Za-z0-9_])",
        )
    return found


def _extracted(text: Any, pattern: Any, group: int = 1) -> str:
    if group < 0 or group > matching(_text(pattern)).groups:
        raise InputError(f"expected a group of {pattern!r}, got {group}", "count its parentheses")
    return _agreed(pattern, _text(text), lambda found: str(found[group] or "") if found else "")


# --- collections; their elements may be NULL


def _size(value: Any) -> int:
    if isinstance(value, list | tuple | dict | set):
        return len(value)
    raise InputError(f"expected an array or map, got {kind_name(value)}", "use an array or map")


def _list(value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return list(value)
    raise InputError(f"expected an array, got {kind_name(value)}", "use an array")


def _contains(values: Any, value: Any) -> bool | None:
    """Whether an array has a value; NULL if only a NULL could be it."""
    found = any(one is not None and is_equal(one, value) for one in _list(values))
    return found or (None if any(one is None for one in values) else False)


def _overlap(a: Any, b: Any) -> bool | None:
    """Whether arrays have a value in common; NULL if only a NULL could be one."""
    known = [value for value in _list(b) if value is not None]
    if any(one is not None and any(is_equal(one, other) for other in known) for one in _list(a)):
        return True
    has_null = len(known) < len(b) or any(one is None for one in a)
    return None if has_null and a and b else False


def _position(values: Any, value: Any) -> int:
    places = (n for n, one in enumerate(_list(values), 1) if one is not None)
    return next((n for n in places if is_equal(values[n - 1], value)), 0)


def _extreme(values: Any, choose: Callable[[Any, Any], Any]) -> Any:
    known = [value for value in _list(values) if value is not None]
    return reduce(choose, known) if known else None


def _distinct(values: Any) -> list[Any]:
    found: list[Any] = []
    for value in (v + 0.0 if isinstance(v, float) else v for v in _list(values)):  # not -0.0
        if not any(is_same(value, other) for other in found):
            found.append(value)
    return found


def _has_same(values: Any, wanted: Any) -> bool:
    return any(is_same(value, wanted) for value in _list(values))


def _element_at(whole: Any, key: Any) -> Any:
    """Return an element by its place from 1, or from the end, or of a map by its key."""
    if isinstance(whole, dict):
        return next((value for own, value in whole.items() if is_equal(own, key)), None)
    if key == 0 or abs(key) > len(_list(whole)):
        raise InputError(
            f"expected a place from 1 to {len(whole)}, got {key}",
            "test size(), or try_element_at()",
        )
    return whole[key - 1 if key > 0 else key]


def _tried_element(whole: Any, key: Any) -> Any:
    if not isinstance(whole, dict) and key and abs(key) > len(_list(whole)):
        return None
    return _element_at(whole, key)


def _sliced(values: Any, start: int, length: int) -> list[Any]:
    if start == 0 or length < 0:
        raise InputError(
            f"expected a place from 1 and a length, got {start}, {length}", "count from 1"
        )
    begin = start - 1 if start > 0 else len(_list(values)) + start
    return values[begin : begin + length] if begin >= 0 else []


def _sorted(values: Any, is_ascending: bool = True, nulls_first: bool = True) -> list[Any]:
    """Return values in order; NULL is the least, or the greatest."""
    from functools import cmp_to_key

    known = [value for value in _list(values) if value is not None]
    known.sort(key=cmp_to_key(compared), reverse=not is_ascending)
    nulls = [None] * (len(values) - len(known))
    return [*nulls, *known] if nulls_first is is_ascending else [*known, *nulls]


def _concat(*parts: Any) -> Any:
    if isinstance(parts[0], list):
        return [value for part in parts for value in _list(part)]
    if isinstance(parts[0], bytes):
        return b"".join(parts)
    return "".join(map(_text, parts))


def _flat(values: Any) -> list[Any] | None:
    if any(part is None for part in _list(values)):
        return None
    return [value for part in values for value in _list(part)]


def _array_joined(values: Any, separator: Any, null: Any = None) -> str:
    found = [null if value is None else _text(value) for value in _list(values)]
    return _text(separator).join(value for value in found if value is not None)


# --- bits, which are those of the type


def _signed(number: int, bits: int) -> int:
    half = 1 << bits - 1
    return (number + half) % (1 << bits) - half


# --- the table

Types = Sequence[SqlType | None]

TAKEN = {"s": STRING, "x": DOUBLE, "i": INT, "d": DATE, "z": TIMESTAMP, "c": TIMESTAMP}
"""What arguments are cast to, by letter; a dot leaves them, c a clock without a zone."""


@attrs.frozen
class SqlFunction:
    """A function of values that are not NULL."""

    # The number of its arguments.
    least: int
    most: int
    # Returns the value; with `by_bits`, given the size of the first argument, the function.
    compute: Callable[..., Any]
    # The type of the value, or what returns it, given those of the arguments.
    type: SqlType | Callable[[Types], SqlType | None] | None = None
    # What arguments are cast to, a letter of :data:`TAKEN` for each; the last is that of all
    # others.
    takes: str = "."
    same: bool = False  # Whether the arguments are cast to what they have in common
    by_element: bool = False  # Whether an array and a value are cast to what they have in common
    by_bits: bool = False  # Whether it depends on the size of whole numbers
    of_bytes: bool = False  # Whether it takes bytes as they are, not as a text
    reads: bool = True  # Whether it takes a text as what it says; otherwise Spark has a format

    def taken(self, place: int, own: SqlType | None) -> SqlType | None:
        """Return the type that an argument is cast to; None if it stays as it is."""
        letter = self.takes[min(place, len(self.takes) - 1)]
        is_own = (letter == "c" and own == TIMESTAMP_NTZ) or (self.of_bytes and own == BINARY)
        return None if is_own else TAKEN.get(letter)

    def type_of(self, types: Types) -> SqlType | None:
        """Return the type of the value."""
        return self.type(types) if callable(self.type) else self.type


def _text_type(types: Types) -> SqlType | None:
    return BINARY if types[0] == BINARY else STRING


def _first(types: Types) -> SqlType | None:
    return types[0] if types else None


def _array(types: Types) -> SqlType | None:
    """Return the type of the first argument, which NULL alone makes an array of NULL."""
    return array_of(VOID) if types[0] == VOID else types[0]


def _element(types: Types) -> SqlType | None:
    first = types[0]
    return first.inner[-1] if first is not None and first.inner else None


def _elements_of(place: int) -> Callable[[Types], SqlType | None]:
    def found(types: Types) -> SqlType | None:
        of = types[0]
        if of is None or of.name != MAP:
            return array_of(VOID) if of == VOID else None
        return array_of(of.inner[place])

    return found


def _joined_type(types: Types) -> SqlType | None:
    is_array = types[0] is not None and types[0].name == ARRAY
    return wider(types) if is_array or None in types else STRING


def _of_bits(types: Types) -> SqlType | None:
    first = types[0]
    return None if first is None else BIGINT if first == BIGINT else INT


def _next_day(value: Any, name: Any) -> date:
    place = _WEEKDAYS.get(_text(name).lower())
    if place is None:
        raise InputError(f"expected a day of the week, got {name!r}", "write 'MON'")
    day = _day(value)
    return day + timedelta(days=(place - day.weekday() - 1) % 7 + 1)


def _of(
    compute: Callable[..., Any], type_: Any = None, least: int = 1, most: int = 0, **more: Any
) -> SqlFunction:
    return SqlFunction(least, max(least, most), compute, type_, **more)


_ROWS: dict[str, SqlFunction] = {
    "abs": _of(magnitude),
    "floor": _of(lambda x: _whole(x, ROUND_FLOOR)),
    "ceil": _of(lambda x: _whole(x, ROUND_CEILING)),
    "round": _of(lambda x, digits=0: to_digits(x, digits, ROUND_HALF_UP), _first, 1, 2),
    "bround": _of(lambda x, digits=0: to_digits(x, digits, ROUND_HALF_EVEN), _first, 1, 2),
    **{
        " ".join((name, *function.aliases)): _of(function.value, DOUBLE, function.arity, takes="x")
        for name, function in NUMBER_FUNCTIONS.items()
    },
    "rint": _of(lambda x: rounded(float(x), 0, ROUND_HALF_EVEN), DOUBLE, takes="x"),
    "&": _of(lambda a, b: a & b, wider, 2, same=True),
    "|": _of(lambda a, b: a | b, wider, 2, same=True),
    "^": _of(lambda a, b: a ^ b, wider, 2, same=True),
    "~": _of(lambda a: ~a, _first, takes="."),
    "<<": _of(lambda bits: lambda a, n: _signed(a << n % bits, bits), _of_bits, 2, by_bits=True,
        takes=".i"),
    ">>": _of(lambda bits: lambda a, n: a >> n % bits, _of_bits, 2, by_bits=True, takes=".i"),
    ">>>": _of(lambda bits: lambda a, n: _signed((a % (1 << bits)) >> n % bits, bits), _of_bits,
        2, by_bits=True, takes=".i"),
    "bit_count": _of(lambda a: (int(a) % (1 << 64)).bit_count(), INT, takes="."),
    "lower lcase": _of(lambda s: _text(s).lower(), STRING, takes="s"),
    "upper ucase": _of(lambda s: _text(s).upper(), STRING, takes="s"),
    "initcap": _of(
        lambda s: " ".join(w[:1].upper() + w[1:].lower() for w in _text(s).split(" ")), STRING,
        takes="s"),
    "trim": _of(lambda s: _text(s).strip(" "), STRING, takes="s"),
    "btrim": _of(lambda s, t=" ": _text(s).strip(_text(t)) if t else s, STRING, 1, 2, takes="s"),
    "ltrim": _of(lambda s: _text(s).lstrip(" "), STRING, takes="s"),
    "rtrim": _of(lambda s: _text(s).rstrip(" "), STRING, takes="s"),
    "lpad": _of(lambda s, n, p=" ": _padded(s, n, p, True), STRING, 2, 3, takes="sis"),
    "rpad": _of(lambda s, n, p=" ": _padded(s, n, p, False), STRING, 2, 3, takes="sis"),
    "length char_length character_length len": _of(
        lambda s: len(s if isinstance(s, bytes) else _text(s)), INT, takes="s", of_bytes=True),
    "octet_length": _of(lambda s: len(s if isinstance(s, bytes) else _text(s).encode()), INT,
        takes="s", of_bytes=True),
    "ascii": _of(lambda s: ord(_text(s)[0]) if s else 0, INT, takes="s"),
    "startswith": _of(lambda s, t: _text(s).startswith(_text(t)), BOOLEAN, 2, takes="s"),
    "endswith": _of(lambda s, t: _text(s).endswith(_text(t)), BOOLEAN, 2, takes="s"),
    "contains": _of(lambda s, t: _text(t) in _text(s), BOOLEAN, 2, takes="s"),
    "replace": _of(lambda s, old, new="": _text(s).replace(old, new) if old else s, STRING, 2, 3,
        takes="s"),
    "translate": _of(
        lambda s, old, new: _text(s).translate(_translations(_text(old), _text(new))), STRING, 3,
        takes="s"),
    "substring substr": _of(_substring, _text_type, 2, 3, takes="si", of_bytes=True),
    "substring_index": _of(_before, STRING, 3, takes="ssi"),
    "left": _of(lambda s, n: (s if isinstance(s, bytes) else _text(s))[: max(0, n)], _text_type,
        2, takes="si", of_bytes=True),
    "right": _of(lambda s, n: _text(s)[-n:] if n > 0 else "", STRING, 2, takes="si"),
    "concat": _of(_concat, _joined_type, 1, 255),
    "reverse": _of(lambda s: s[::-1] if isinstance(s, list) else _text(s)[::-1],
        lambda types: types[0] if types[0] is None or types[0].name == ARRAY else STRING,
        takes="s"),
    "repeat": _of(lambda s, n: _text(s) * n, STRING, 2, takes="si"),
    "instr": _of(lambda s, t: _text(s).find(_text(t)) + 1, INT, 2, takes="s"),
    "locate position": _of(_located, INT, 2, 3, takes="ssi"),
    "rlike regexp regexp_like": _of(lambda s, p: fitting(_text(p))(_text(s)), BOOLEAN, 2,
        takes="s"),
    "regexp_extract": _of(_extracted, STRING, 2, 3, takes="ssi"),
    "size cardinality": _of(_size, INT),
    "array_size": _of(lambda xs: len(_list(xs)), INT),
    "array_contains": _of(_contains, BOOLEAN, 2),
    "array_position": _of(_position, BIGINT, 2),
    "arrays_overlap": _of(_overlap, BOOLEAN, 2),
    "array_max": _of(lambda xs: _extreme(xs, greater), _element),
    "array_min": _of(lambda xs: _extreme(xs, lesser), _element),
    "array_distinct": _of(_distinct, _array),
    "array_compact": _of(lambda xs: [x for x in _list(xs) if x is not None], _array),
    "array_remove": _of(lambda xs, x: [v for v in _list(xs) if v is None or not is_equal(v, x)],
        _array, 2, by_element=True),
    "array_join": _of(_array_joined, STRING, 2, 3, takes=".s"),
    "sort_array": _of(_sorted, _array, 1, 2),
    "array_sort": _of(lambda xs: _sorted(xs, nulls_first=False), _array),
    "array_union": _of(lambda xs, ys: _distinct([*_list(xs), *_list(ys)]), _joined_type, 2),
    "array_intersect": _of(lambda xs, ys: [x for x in _distinct(xs) if _has_same(ys, x)],
        _joined_type, 2),
    "array_except": _of(lambda xs, ys: [x for x in _distinct(xs) if not _has_same(ys, x)],
        _joined_type, 2),
    "slice": _of(_sliced, _array, 3, takes=".i"),
    "flatten": _of(_flat, _element),
    "element_at": _of(_element_at, _element, 2),
    "try_element_at": _of(_tried_element, _element, 2),
    "get": _of(lambda xs, n: xs[n] if 0 <= n < len(_list(xs)) else None, _element, 2, takes=".i"),
    "map_keys": _of(lambda kv: list(kv), _elements_of(0)),
    "map_values": _of(lambda kv: list(kv.values()), _elements_of(1)),
    "map_contains_key": _of(lambda kv, k: any(is_equal(own, k) for own in kv), BOOLEAN, 2),
    "year": _of(lambda t: _day(t).year, INT, takes="d"),
    "quarter": _of(lambda t: (_day(t).month + 2) // 3, INT, takes="d"),
    "month": _of(lambda t: _day(t).month, INT, takes="d"),
    "day dayofmonth": _of(lambda t: _day(t).day, INT, takes="d"),
    "dayofweek": _of(lambda t: _day(t).isoweekday() % 7 + 1, INT, takes="d"),
    "weekday": _of(lambda t: _day(t).weekday(), INT, takes="d"),
    "dayofyear": _of(lambda t: _day(t).timetuple().tm_yday, INT, takes="d"),
    "weekofyear": _of(lambda t: _day(t).isocalendar()[1], INT, takes="d"),
    "hour": _of(lambda t: _clock(t).hour, INT, takes="c"),
    "minute": _of(lambda t: _clock(t).minute, INT, takes="c"),
    "second": _of(lambda t: _clock(t).second, INT, takes="c"),
    "last_day": _of(_last_day, DATE, takes="d"),
    "next_day": _of(_next_day, DATE, 2, takes="ds"),
    "add_months": _of(_months_later, DATE, 2, takes="di"),
    "date_add dateadd": _of(_shifted, DATE, 2, takes="di"),
    "date_sub": _of(lambda t, n: _shifted(t, -n), DATE, 2, takes="di"),
    "datediff date_diff": _of(lambda a, b: (_day(a) - _day(b)).days, INT, 2, takes="d"),
    "trunc": _of(_cut_day, DATE, 2, takes="ds"),
    "date_trunc": _of(_cut_time, TIMESTAMP, 2, takes="sz"),
    "make_date": _of(_made_date, DATE, 3, takes="i"),
    "unix_date": _of(lambda t: _day(t).toordinal() - date(1970, 1, 1).toordinal(), INT, takes="d"),
    "date_from_unix_date": _of(lambda n: _shifted("1970-01-01", n), DATE, takes="i"),
    "unix_seconds": _of(lambda t: _micros(t) // 1_000_000, BIGINT, takes="c"),
    "unix_millis": _of(lambda t: _micros(t) // 1_000, BIGINT, takes="c"),
    "unix_micros": _of(_micros, BIGINT, takes="c"),
    "unix_timestamp": _of(lambda t: _micros(t) // 1_000_000, BIGINT, takes="c", reads=False),
}  # fmt: skip
"""By name, or by several with blanks between."""

FUNCTIONS = {name: row for names, row in _ROWS.items() for name in names.split()}
"""By name."""

CASTS = {
    **{name: name for name in (
        "tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "boolean", "string",
        "date", "timestamp",
    )},
    "to_date": "date", "to_timestamp": "timestamp",
}  # fmt: skip
"""The functions that are casts, and their types."""

FIELDS = {
    "year": "year", "years": "year", "quarter": "quarter", "month": "month", "months": "month",
    "day": "day", "days": "day", "hour": "hour", "hours": "hour", "minute": "minute",
    "minutes": "minute", "doy": "dayofyear", "dow": "dayofweek", "dayofweek": "dayofweek",
    "week": "weekofyear", "weeks": "weekofyear",
}  # fmt: skip
"""What EXTRACT takes out of times, and the function that it is."""
