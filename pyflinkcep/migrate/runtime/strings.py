# SPDX-License-Identifier: Apache-2.0
"""Java's strings: chars of 16 bits, numbers as texts."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from pyflinkcep.migrate.runtime.numbers import float32, narrowed, present


def text(value: Any) -> str:
    """
    Return a value as Java writes it.

    Examples
    --------
    >>> text(None), text(True), text(1e10), text(0.001), text(12.5), text([1, "a"])
    ('null', 'true', '1.0E10', '0.001', '12.5', '[1, a]')
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float_text(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{text(k)}={text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, list):
        return "[" + ", ".join(map(text, value)) + "]"
    return str(value)


def time_text(value: Any, kind: str) -> str:
    """
    Return a time or duration as its class of Java writes it; old ones in the machine's time zone.

    Examples
    --------
    >>> at = datetime(2024, 1, 2, 3, 4, tzinfo=UTC)
    >>> time_text(at, "Instant"), time_text(at, "LocalDateTime"), time_text(at - at, "Duration")
    ('2024-01-02T03:04:00Z', '2024-01-02T03:04', 'PT0S')
    """
    if isinstance(value, timedelta):
        return _duration_text(value)
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


def _duration_text(value: timedelta) -> str:
    micros = value // timedelta(microseconds=1)
    whole, part = divmod(abs(micros), 1_000_000)
    sign = "-" if micros < 0 else ""
    units = (whole // 3600, "H"), (whole // 60 % 60, "M")
    found = "".join(f"{sign}{count}{unit}" for count, unit in units if count)
    seconds = f"{whole % 60}" + f".{part:06}".rstrip("0") * bool(part)
    return f"PT{found}{sign}{seconds}S" if seconds != "0" or not found else f"PT{found}"


def _float_text(value: float) -> str:
    if math.isnan(value) or math.isinf(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0.0"
    sign = "-" if value < 0 else ""
    mantissa, exponent = f"{abs(value)!r}", 0
    digits = mantissa.replace(".", "")
    if "e" in mantissa:
        mantissa, power = mantissa.split("e")
        digits, exponent = mantissa.replace(".", ""), int(power)
    point = mantissa.index(".") if "." in mantissa else len(mantissa)
    exponent += point - 1
    if len(digits.strip("0")) == 1 and float(f"{value:.1e}") == value:  # never one digit alone
        mantissa, power = f"{abs(value):.1e}".split("e")
        digits, exponent = mantissa.replace(".", ""), int(power)
    leading = len(digits) - len(digits.lstrip("0"))
    digits, exponent = digits.lstrip("0").rstrip("0") or "0", exponent - leading
    if -3 <= exponent < 7:
        if exponent < 0:
            return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
        digits = digits.ljust(exponent + 2, "0")
        return f"{sign}{digits[: exponent + 1]}.{digits[exponent + 1 :]}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


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


def index_of(value: str | None, part: str | None) -> int:
    """Return where a string has a part; -1 if nowhere."""
    known = present(value)
    found = known.find(present(part))
    return found if found < 0 or known.isascii() else length(known[:found])


def last_index_of(value: str | None, part: str | None) -> int:
    """Return where a string has a part for the last time; -1 if nowhere."""
    known = present(value)
    found = known.rfind(present(part))
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


def replace_text(value: str | None, old: str | None, new: str | None) -> str:
    """Return a string with another part for each of some."""
    return present(value).replace(present(old), present(new))


def _folded(unit: str) -> str:
    upper = unit.upper()
    upper = upper if len(upper) == 1 else unit
    lower = "i" if upper == "\u0130" else upper.lower()
    return lower if len(lower) == 1 else upper


def equals_ignore_case(a: str | None, b: str | None) -> bool:
    """
    Whether strings are the same but for case, char by char.

    Examples
    --------
    >>> equals_ignore_case("Fail", "FAIL"), equals_ignore_case("ß", "SS")
    (True, False)
    """
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

    Examples
    --------
    >>> java_split("a,b,,", ","), java_split("a,b,,", ",", -1), java_split("a,b,c", ",", 2)
    (['a', 'b'], ['a', 'b', '', ''], ['a', 'b,c'])
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


def _padded(number: str, flags: str) -> str:
    """Return a number with its sign and width."""
    number = "+" + number if "+" in flags and not number.startswith("-") else number
    width = int(re.sub(r"^[-+0 ]*", "", flags) or 0)
    if "-" in flags:
        return number.ljust(width)
    return number.zfill(width) if flags.lstrip("+ ").startswith("0") else number.rjust(width)


def java_format(pattern: str, *values: Any) -> str:
    """Return ``String.format``, of %s, %d, %f, %x, %c, %b, %n and %%."""
    rest = iter(values)

    def one(found: re.Match[str]) -> str:
        flags, kind = found[1], found[2]
        if kind in "n%":
            return "\n" if kind == "n" else "%"
        value = next(rest)
        if kind in "sbc":
            return f"%{flags}s" % text(value)
        grouped = "," in flags
        flags = flags.replace(",", "")
        if value is None:
            return "null"
        if kind == "f" and not math.isfinite(value):
            return text(float(value))
        if kind == "f":
            digits = re.search(r"\.(\d+)", flags)
            places = int(digits[1]) if digits else 6
            shown = Decimal(repr(value)).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
            plain = f"{shown:,f}" if grouped else f"{shown:f}"
            return _padded(plain, re.sub(r"\.\d+", "", flags))
        return f"{value:,{flags}{kind}}" if grouped else f"%{flags}{kind}" % value

    return re.sub(r"%([-+0 ,#]*\d*(?:\.\d+)?)([sdfxXcbn%])", one, pattern)


def float_text(value: float | None) -> str:
    """Return a ``float`` as Java writes it: with the fewest digits that tell it from others."""
    if value is None or not math.isfinite(value) or value == 0:
        return text(value)
    return text(next(x for n in range(1, 10) if float32(x := float(f"{value:.{n}g}")) == value))


def parse_boolean(value: str | None) -> bool:
    """Whether a string is "true", in any case."""
    return value is not None and value.lower() == "true"


def is_blank_or_null(value: str | None) -> bool:
    """Whether a string is null or has nothing but white space."""
    return value is None or is_a_blank(value)


_TESTS: dict[str, Callable[[str], bool]] = {
    "isDigit": lambda c: unicodedata.category(c) == "Nd",
    "isLetter": lambda c: unicodedata.category(c).startswith("L"),
    "isLetterOrDigit": lambda c: unicodedata.category(c).startswith(("L", "Nd")),
    "isUpperCase": str.isupper, "isLowerCase": str.islower, "isWhitespace": is_a_blank,
}  # fmt: skip


def char_is(char: str, test: str) -> bool:
    """Whether a test of Java's ``Character`` holds for a char."""
    return _TESTS[test](present(char))
