# SPDX-License-Identifier: Apache-2.0
"""What translated functions call: numbers, strings, streams, times and JSON as Java has them."""

from __future__ import annotations

import functools
import json
import logging
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, localcontext
from types import SimpleNamespace
from typing import Any, TypeVar

from pyflinkcep import time as clock
from pyflinkcep.errors import FunctionError, NotSupportedError
from pyflinkcep.expressions import numbers, sql_values

# --- numbers

T = TypeVar("T")
R = TypeVar("R")


def present(value: T | None) -> T:
    """Return a value; raise where Java has a NullPointerException."""
    if value is None:
        raise FunctionError("null where Java calls a method: NullPointerException", "test for None")
    return value


def not_translated(where: str, why: str) -> NotSupportedError:
    """Make the error of a function that a person has to write."""
    return NotSupportedError(f"{where} is not translated: {why}", "write it in Python")


def or_else(value: T | None, other: T) -> T:
    """Return a value, or another if it is null."""
    return other if value is None else value


def mapped(value: T | None, function: Callable[[T], R]) -> R | None:
    """Return a function's value, or null for null."""
    return None if value is None else function(value)


def kept_if(value: T | None, test: Callable[[T], object]) -> T | None:
    """Return a value that satisfies a condition; null otherwise."""
    return value if value is not None and test(value) else None


def int32(value: int) -> int:
    """Return a whole number as an ``int`` holds it."""
    return (value + 0x80000000) % 0x100000000 - 0x80000000


def narrowed(value: int, bits: int) -> int:
    """Return a whole number as one of some bits."""
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


current_millis = clock.clock_ms
int64, div_int, rem_int = numbers.wrapped, numbers.int_div, numbers.int_mod
java_pow, float32 = numbers.power, sql_values.short_float
"""Of ``long`` and ``double``, what Spark has of Java too."""


def java_abs(value: Any, bits: int) -> Any:
    """Return the absolute value of a whole number; that of the least one is itself."""
    return narrowed(abs(value), bits)


def to_float32(value: int) -> float:
    """Return the ``float`` nearest to a whole number."""
    if abs(value) < 1 << 53:
        return float32(float(value))
    shift = abs(value).bit_length() - 40
    kept = abs(value) >> shift
    sticky = 1 if abs(value) & ((1 << shift) - 1) else 0
    return math.copysign(float32(float((kept | sticky) << shift)), value)


def div_float(a: float, b: float) -> float:
    """Divide doubles as Java does: by zero too."""
    if b != 0:
        return a / b
    if a == 0 or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def decimal(a: Decimal, b: Decimal, operation: str) -> Decimal:
    """Add, subtract or multiply exactly, as ``BigDecimal`` does."""
    with localcontext() as context:
        context.prec = 1000
        return {"add": a + b, "subtract": a - b, "multiply": a * b}[operation]


def rem_float(a: float, b: float) -> float:
    """Return the remainder of doubles, with the sign of `a`."""
    return math.nan if b == 0 else numbers.float_mod(a, b)


def truncated(value: float, bits: int) -> int:
    """Return a double cast to a whole number of some bits, as near as they hold; 0 for NaN."""
    if math.isnan(value):
        return 0
    most = (1 << bits - 1) - 1
    if math.isinf(value):
        return most if value > 0 else -most - 1
    return max(-most - 1, min(most, int(value)))


def java_round(value: float, bits: int) -> int:
    """Return the nearest whole number, upwards in the middle."""
    if math.isnan(value) or math.isinf(value) or abs(value) >= 2.0**52:
        return truncated(value, bits)
    floor = math.floor(value)
    return truncated(float(floor + (1 if value - floor >= 0.5 else 0)), bits)


def _extreme(a: Any, b: Any, choose: Callable[..., Any]) -> Any:
    if math.isnan(a) or math.isnan(b):
        return math.nan
    if a == b == 0 and isinstance(a + b, float):
        return math.copysign(0.0, choose(math.copysign(1, a), math.copysign(1, b)))
    return choose(a, b)


def java_max(a: Any, b: Any) -> Any:
    """Return the greater number; NaN if one is."""
    return _extreme(a, b, max)


def java_min(a: Any, b: Any) -> Any:
    """Return the lesser number; NaN if one is."""
    return _extreme(a, b, min)


_FUNCTIONS: dict[str, Callable[..., float]] = {
    "sqrt": math.sqrt, "exp": math.exp, "log": math.log, "log10": math.log10, "sin": math.sin,
    "cos": math.cos, "tan": math.tan, "hypot": math.hypot, "atan2": math.atan2, "asin": math.asin,
    "acos": math.acos, "atan": math.atan, "cbrt": math.cbrt, "toRadians": math.radians,
    "toDegrees": math.degrees,
    "floor": lambda x: math.copysign(float(math.floor(x)), x),
    "ceil": lambda x: math.copysign(float(math.ceil(x)), x),
    "rint": lambda x: math.copysign(float(round(x)), x),
    "signum": lambda x: math.copysign(1.0, x) if x else x,
}  # fmt: skip


def java_math(*arguments: Any) -> float:
    """Return a function of Java's ``Math``, which the last argument names."""
    *values, name = arguments
    numbers = list(map(float, values))
    if any(map(math.isnan, numbers)):
        return math.nan
    if name in ("floor", "ceil", "rint") and math.isinf(numbers[0]):
        return numbers[0]
    if name in ("log", "log10") and numbers[0] == 0:
        return -math.inf
    try:
        return float(_FUNCTIONS[name](*numbers))
    except OverflowError:
        return math.inf
    except ValueError:
        return math.nan


# --- strings


def text(value: Any) -> str:
    """Return a value as Java writes it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return numbers.double_text(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{text(k)}={text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, list):
        return "[" + ", ".join(map(text, value)) + "]"
    return str(value)


def time_text(value: Any, kind: str) -> str:
    """Return a time as its class of Java writes it; old ones in the machine's time zone."""
    if not isinstance(value, datetime):
        return text(value) if value is None else str(value)
    aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    micros = f"{value.microsecond:06}"
    if kind == "Timestamp":
        return f"{aware.astimezone():%Y-%m-%d %H:%M:%S}.{micros.rstrip('0') or '0'}"
    if kind == "Date":
        return f"{aware.astimezone():%a %b %d %H:%M:%S %Z %Y}"
    seconds = f"{value:%Y-%m-%dT%H:%M:%S}"
    if value.microsecond:
        seconds += "." + (micros if micros[3:] != "000" else micros[:3])
    if kind == "Instant":
        return seconds + "Z"
    return seconds if value.second or value.microsecond else seconds[:-3]


def _units(value: str) -> bytes:
    return value.encode("utf-16-be", "surrogatepass")


def _of_units(units: bytes) -> str:
    return units.decode("utf-16-be", "surrogatepass")


def length(value: str | None) -> int:
    """Return the number of chars, of which some characters have two."""
    known = present(value)
    return len(known) if known.isascii() else len(_units(known)) // 2


def char_at(value: str | None, index: int) -> str:
    """Return a char of a string; raise if there is none."""
    units = _units(present(value))
    if not 0 <= index < len(units) // 2:
        raise IndexError(f"StringIndexOutOfBoundsException: index {index}")
    return _of_units(units[2 * index : 2 * index + 2])


def substring(value: str | None, begin: int, end: int | None = None) -> str:
    """Return a part of a string; raise if it is not inside."""
    units = _units(present(value))
    last = len(units) // 2 if end is None else end
    if not 0 <= begin <= last <= len(units) // 2:
        raise IndexError(f"StringIndexOutOfBoundsException: begin {begin}, end {last}")
    return _of_units(units[2 * begin : 2 * last])


def index_of(value: str | None, part: str | None, *, last: bool = False) -> int:
    """Return where a string has a part for the first or last time; -1 if nowhere."""
    known = present(value)
    found = known.rfind(present(part)) if last else known.find(present(part))
    return found if found < 0 or known.isascii() else length(known[:found])


def trim(value: str | None) -> str:
    """Return a string without chars up to the blank at its ends."""
    return present(value).strip("".join(map(chr, range(33))))


def is_a_blank(value: str | None) -> bool:
    """Whether a string has nothing but white space, as Java's ``isBlank``."""
    return all(c in _WHITE for c in present(value))


_WHITE = frozenset(
    "\t\n\x0b\f\r\x1c\x1d\x1e\x1f \u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2008\u2009"
    "\u200a\u2028\u2029\u205f\u3000"
)


def _folded(unit: str) -> str:
    upper = unit.upper()
    upper = upper if len(upper) == 1 else unit
    lower = "i" if upper == "\u0130" else upper.lower()
    return lower if len(lower) == 1 else upper


def equals_ignore_case(a: str | None, b: str | None) -> bool:
    """Whether strings are the same but for case, char by char."""
    known = present(a)
    if b is None or len(known) != len(b):
        return False
    return all(x == y or _folded(x) == _folded(y) for x, y in zip(known, b, strict=True))


def compare_text(a: str | None, b: str | None) -> int:
    """Return what ``compareTo`` does: the difference of the first chars that differ, or lengths."""
    first, second = present(a), present(b)
    one, other = (_units(side) for side in (first, second))
    for at in range(0, min(len(one), len(other)), 2):
        if one[at : at + 2] != other[at : at + 2]:
            return int.from_bytes(one[at : at + 2]) - int.from_bytes(other[at : at + 2])
    return (len(one) - len(other)) // 2


def java_matches(value: str | None, pattern: str) -> bool:
    """Whether a whole string matches a regular expression."""
    return re.fullmatch(pattern, present(value), re.ASCII) is not None


def chars(value: str | None) -> list[str]:
    """Return the chars of a string: of 16 bits, as in Java."""
    units = _units(present(value))
    return [chr(int.from_bytes(units[at : at + 2])) for at in range(0, len(units), 2)]


def java_split(value: str | None, pattern: str, limit: int = 0) -> list[str]:
    """
    Return the parts of a string between matches, at most `limit` if it is above zero.

    Empty ones at the end are left out, unless there is a limit.
    """
    known = present(value)
    if limit == 1:
        return [known]
    found = re.split(pattern, known, maxsplit=max(0, limit - 1), flags=re.ASCII)
    if len(found) > 1 and found[0] == "" and re.match(pattern, known, re.ASCII)[0] == "":  # type: ignore[index]
        found = found[1:]
    if len(found) == 1 or limit:
        return found
    while found and found[-1] == "":
        found.pop()
    return found


_NUMBER = re.compile(r"[+-]?\d+")
_FLOAT = re.compile(r"[+-]?(NaN|Infinity|(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[fFdD]?)", re.ASCII)


def parse_int(value: str | None, bits: int = 32) -> int:
    """Return the number in a string; raise ValueError for a NumberFormatException."""
    if value is None or not _NUMBER.fullmatch(value):
        raise ValueError(f"NumberFormatException: {value!r}")
    found = int(value)
    if narrowed(found, bits) != found:
        raise ValueError(f"NumberFormatException: {value!r}")
    return found


def parse_double(value: str | None) -> float:
    """Return the double in a string; raise ValueError for a NumberFormatException."""
    known = trim(value)
    if not _FLOAT.fullmatch(known):
        raise ValueError(f"NumberFormatException: {value!r}")
    return float(known if known.lower().endswith(("nan", "infinity")) else known.rstrip("fFdD"))


_FORMAT = re.compile(r"%([-+0 ,#]*)(\d*)(?:\.(\d+))?([sdfxXcbn%])")


def java_format(pattern: str, *values: Any) -> str:
    """Return ``String.format``, of %s, %d, %f, %x, %c, %b, %n and %%."""
    rest = iter(values)

    def one(found: re.Match[str]) -> str:
        flags, width, places, kind = found.groups()
        if kind in "n%":
            return "\n" if kind == "n" else "%"
        value = next(rest)
        if kind in "sbc":
            left = "-" if "-" in flags else ""
            return f"%{left}{width}{(places and f'.{places}') or ''}s" % text(value)
        if value is None:
            return "null"
        if kind == "f" and not math.isfinite(value):
            return text(float(value))
        if kind == "f":
            last = Decimal(1).scaleb(-int(places or 6))
            value = Decimal(repr(value)).quantize(last, ROUND_HALF_UP)
        before = "".join(sign for sign in "+ #0" if sign in flags and (sign != "0" or width))
        grouped = "," if "," in flags else ""
        return f"{value:{'<' if '-' in flags else ''}{before}{width}{grouped}{kind}}"

    return _FORMAT.sub(one, pattern)


def float_text(value: float | None) -> str:
    """Return a ``float`` as Java writes it: with the fewest digits that tell it from others."""
    if value is None or not math.isfinite(value) or value == 0:
        return text(value)
    return text(next(x for n in range(1, 10) if float32(x := float(f"{value:.{n}g}")) == value))


def parse_boolean(value: str | None) -> bool:
    """Whether a string is "true", in any case."""
    return value is not None and value.lower() == "true"


_TESTS: dict[str, Callable[[str], bool]] = {
    "isDigit": lambda c: unicodedata.category(c) == "Nd",
    "isLetter": lambda c: unicodedata.category(c).startswith("L"),
    "isLetterOrDigit": lambda c: unicodedata.category(c).startswith(("L", "Nd")),
    "isUpperCase": str.isupper, "isLowerCase": str.islower, "isWhitespace": is_a_blank,
}  # fmt: skip


def char_is(char: str, test: str) -> bool:
    """Whether a test of Java's ``Character`` holds for a char."""
    return _TESTS[test](present(char))


# --- comparisons, streams, iterators, times, JSON


def compare(a: Any, b: Any) -> int:
    """Return -1, 0 or 1, as ``Double.compare`` does: NaN is the greatest, and 0.0 above -0.0."""
    a, b = present(a), present(b)
    if isinstance(a, float) and isinstance(b, float):
        if math.isnan(a) or math.isnan(b):
            return int(math.isnan(a)) - int(math.isnan(b))
        if a == b == 0:
            return int((math.copysign(1, a) - math.copysign(1, b)) / 2)
    return int(a > b) - int(a < b)


def stream_sum(values: Iterable[float]) -> float:
    """Return the sum of doubles as ``DoubleStream.sum`` computes it, with compensation."""
    total = compensation = simple = 0.0
    for value in values:
        simple += value
        changed = value - compensation
        velvel = total + changed
        compensation = (velvel - total) - changed
        total = velvel
    result = total - compensation
    return simple if math.isnan(result) and math.isinf(simple) else result


def stream_average(values: Iterable[Any]) -> float | None:
    """Return the average as ``average()`` of a stream does; None if there is no value."""
    listed = list(values)
    if not listed:
        return None
    if all(isinstance(value, int) for value in listed):
        return float(int64(sum(listed))) / len(listed)
    return stream_sum(listed) / len(listed)


def same_boxed(a: Any, b: Any) -> bool:
    """Whether ``==`` holds for two boxed values: from -128 to 127 they are the same objects."""
    if a is None or b is None or isinstance(a, bool):
        return a is b or bool(a == b)
    if isinstance(a, int) and isinstance(b, int):
        return a == b and -128 <= a <= 127
    return isinstance(a, str) and bool(a == b) and len(a) == 1 and ord(a) < 128


def equal_floats(a: float | None, b: float | None) -> bool:
    """Whether ``equals`` holds for two doubles, or both are null."""
    return a is b if a is None or b is None else compare(a, b) == 0


def distinct(values: Iterable[Any]) -> list[Any]:
    """Return values without those that were there before."""
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


def joined(values: Iterable[Any], separator: str = "") -> str:
    """Return the texts of values with a separator between."""
    return separator.join(map(text, values))


def item(values: Sequence[Any], index: int) -> Any:
    """Return an element; raise for an index below zero, as Java does."""
    if index < 0:
        raise IndexError(f"IndexOutOfBoundsException: index {index}")
    return values[index]


class Iterator:
    """An iterator that knows whether there is another element."""

    def __init__(self, values: Iterable[Any]) -> None:
        self._values = list(values)
        self._at = 0

    def has_next(self) -> bool:
        """Whether there is another element."""
        return self._at < len(self._values)

    def next(self) -> Any:
        """Return the next element; raise if there is none."""
        self._at += 1
        return self._values[self._at - 1]


def row_of(value: Any, *names: str) -> Any:
    """Return some fields of an event, which may have others; None for null."""
    if value is None:
        return None
    by_name = isinstance(value, dict | tuple)
    return tuple(value[name] if by_name else getattr(value, name) for name in names)


def fields_of(value: Any) -> Any:
    """Return an event as a dict that may be changed."""
    as_dict = getattr(value, "asDict", None)
    return dict(value) if as_dict is None else as_dict()


def rows_of(values: Iterable[Any] | None, *names: str) -> list[Any] | None:
    """Return some fields of each of some events."""
    return None if values is None else [row_of(value, *names) for value in values]


def values_of(match: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    """Return a match of plain values with these in place of the events that have them."""
    return {stage: [event.value for event in events] for stage, events in match.items()}


def enum_of(name: str | None, *names: str) -> str:
    """Return the constant of an enum that has a name."""
    if present(name) not in names:
        raise ValueError(f"no constant is named {name!r}, but {', '.join(names)}")
    return present(name)


def ordinal(value: str | None, *names: str) -> int:
    """Return the place of a constant in its enum."""
    return names.index(present(value))


def millis(value: Any) -> int:
    """Return a time or duration in milliseconds."""
    known = present(value)
    if isinstance(known, int):
        return known
    if isinstance(known, timedelta):
        return known // timedelta(milliseconds=1)
    if isinstance(known, datetime):
        aware = known if known.tzinfo is not None else known.replace(tzinfo=UTC)
        return (aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    if isinstance(known, date):
        return (known.toordinal() - date(1970, 1, 1).toordinal()) * 86_400_000
    raise TypeError(f"expected a time, got {known!r}")


def of_millis(value: int) -> timedelta:
    """Return a duration of milliseconds."""
    return timedelta(milliseconds=value)


def log(level: str, message: Any, *values: Any) -> None:
    """Write to the log of translated functions; ``{}`` stands for the next value."""
    pieces = text(message).split("{}")
    given: Sequence[Any] = values[: len(pieces) - 1]
    texts = [*map(text, given), *(["{}"] * (len(pieces) - 1 - len(given)))]
    joined = pieces[0] + "".join(t + p for t, p in zip(texts, pieces[1:], strict=True))
    logging.getLogger("pyflinkcep.migrated").log(getattr(logging, level.upper()), "%s", joined)


def time_of(value: int) -> datetime:
    """Return the time that is some milliseconds after 1970, in UTC."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=value)


def json_text(value: Any) -> str:
    """Return a map or an event as JSON without blanks."""
    return json.dumps(_jsonable(value), separators=(",", ":"), ensure_ascii=False, default=text)


def _jsonable(value: Any) -> Any:
    as_dict = getattr(value, "asDict", None)
    if as_dict is not None:
        value = as_dict()
    if isinstance(value, dict):
        return {key: _jsonable(one) for key, one in value.items()}
    return [_jsonable(one) for one in value] if isinstance(value, list | tuple | set) else value


class JsonObject(dict[str, Any]):
    """An object of JSON, whose missing members are None."""

    def __missing__(self, key: str) -> Any:
        return None


def json_object(value: str | None, names: dict[str, str] | None = None) -> Any:
    """Return the object that a text of JSON is, with other names for some of its members."""
    found = json.loads(present(value), object_hook=JsonObject)
    if names and isinstance(found, dict):
        return JsonObject({str(names.get(name, name)): member for name, member in found.items()})
    return found


def json_item(value: Any, key: str | int) -> Any:
    """Return a member of an object or array of JSON, or a field of a row; None if there is none."""
    known = present(value)
    if isinstance(known, dict):
        return known.get(key)
    if isinstance(key, int):
        return known[key] if isinstance(known, list) and 0 <= key < len(known) else None
    return getattr(known, key, None)


def json_find(value: Any, name: str) -> Any:
    """Return the first member of a name, at any depth; None if there is none."""
    found = value.get(name) if isinstance(value, dict) else None
    if found is not None:
        return found
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next((one for part in inner if (one := json_find(part, name)) is not None), None)


def json_as(value: Any, kind: str, *default: Any) -> Any:
    """Return a value of JSON as one of a type of Java, as ``asText()`` and ``asInt()`` do."""
    if value is None and default:
        return default[0]
    known = present(value)
    if kind == "String":
        return (default[0] if default else "") if isinstance(known, dict | list) else text(known)
    if kind == "boolean":
        return known == "true" if isinstance(known, str) else bool(known)
    try:
        number = float(known) if kind == "double" else math.trunc(float(known))
    except (TypeError, ValueError, OverflowError):
        return default[0] if default else 0.0 if kind == "double" else 0
    is_exact = isinstance(known, int) and kind != "double"
    return int(known) if is_exact else number


def json_is(value: Any, kind: str) -> bool:
    """Whether a value of JSON is of a kind."""
    if isinstance(present(value), bool):
        return kind == "boolean"
    types: dict[str, tuple[type, ...]] = {
        "text": (str,), "number": (int, float), "int": (int,), "double": (float,),
        "array": (list,), "object": (dict,), "boolean": (),
    }  # fmt: skip
    return isinstance(value, types[kind])


def collected(function: Callable[[Any, Any], None]) -> Callable[[Any], list[Any]]:
    """Return a function of an event that returns the rows that another one collects."""

    def rows(event: Any) -> list[Any]:
        found: list[Any] = []
        function(event, SimpleNamespace(collect=found.append))
        return found

    return rows


def natural_order(a: Any, b: Any) -> int:
    """Return a negative number, 0 or a positive one, as ``compareTo`` does."""
    return compare_text(a, b) if isinstance(a, str) else compare(a, b)


def by(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the key by which values are in the order of what a function returns of them."""
    key = functools.cmp_to_key(natural_order)
    return lambda value: key(function(value))


def in_order(values: Iterable[Any]) -> list[Any]:
    """Return values in their order."""
    return sorted(values, key=functools.cmp_to_key(natural_order))


def reduced(values: Iterable[Any], function: Callable[[Any, Any], Any]) -> Any:
    """Return values combined by a function; None if there is none."""
    listed = list(values)
    return functools.reduce(function, listed) if listed else None


def merged(of: dict[Any, Any], key: Any, value: Any, function: Callable[[Any, Any], Any]) -> Any:
    """Combine a value of a map with another one; return the new value."""
    before = of.get(key)
    of[key] = value if before is None else function(before, value)
    return of[key]


def computed(of: dict[Any, Any], key: Any, function: Callable[[Any], Any]) -> Any:
    """Return a value of a map, made and kept if there is none."""
    if of.get(key) is None:
        of[key] = function(key)
    return of[key]


def added(of: set[Any], value: Any) -> bool:
    """Add a value to a set; return whether it is new."""
    is_new = value not in of
    of.add(value)
    return is_new


def index_in(values: list[Any], value: Any) -> int:
    """Return the first place of a value; -1 if it is not there."""
    return values.index(value) if value in values else -1
