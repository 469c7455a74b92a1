# SPDX-License-Identifier: Apache-2.0
"""The values of literals: numbers, strings, LIKE patterns and intervals."""

from __future__ import annotations

import re
from decimal import Decimal

from pyflinkcep.expressions.tokens import string_value

__all__ = [
    "LEAST",
    "MOST",
    "UNITS_US",
    "interval_us",
    "like_pattern",
    "like_regex",
    "literal_value",
]

LEAST, MOST = -(1 << 63), (1 << 63) - 1
"""The range of whole numbers."""

_US = 1_000_000
UNITS_US = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": _US,
    "MINUTE": 60 * _US,
    "HOUR": 3_600 * _US,
    "DAY": 86_400 * _US,
    "WEEK": 7 * 86_400 * _US,
}
"""The units of time that always have the same length, in microseconds."""

_SUFFIX = re.compile(r"(.*?)(BD|[LSYDF])?", re.IGNORECASE)
_CLOCK = r"(?P<hour>\d+):(?P<minute>\d+)(?::(?P<second>\d+(?:\.\d*)?))?"
_TO_FORMS = {
    ("DAY", "HOUR"): r"(?P<day>\d+) (?P<hour>\d+)",
    ("DAY", "MINUTE"): r"(?P<day>\d+) (?P<hour>\d+):(?P<minute>\d+)",
    ("DAY", "SECOND"): rf"(?P<day>\d+) {_CLOCK}",
    ("HOUR", "MINUTE"): r"(?P<hour>\d+):(?P<minute>\d+)",
    ("HOUR", "SECOND"): _CLOCK,
    ("MINUTE", "SECOND"): r"(?P<minute>\d+):(?P<second>\d+(?:\.\d*)?)",
}
_PIECE = re.compile(
    r"""\s*(?P<sign>[-+]?)\s*(?P<quote>['"]?)\s*(?P<inner>[-+]?)\s*(?P<number>\d+(?:\.\d*)?|\.\d+)
    \s*(?P=quote)\s*(?P<unit>[A-Za-z]+?)S?(?![A-Za-z])""",
    re.VERBOSE | re.IGNORECASE,
)


def literal_value(written: str) -> int | float | str | bool | Decimal | None:
    """
    Return the value of a literal.

    Integers without a suffix that do not fit bigint are decimals, as in Spark; so are numbers with
    a point, but with an exponent or a suffix D or F they are floats.

    Examples
    --------
    >>> [literal_value(text) for text in ("7", "-7L", "0.80", "1e3", ".5D", "true", "null")]
    [7, -7, Decimal('0.80'), 1000.0, 0.5, True, None]
    """
    constants = {"null": None, "true": True, "false": False}
    if written in constants:
        return constants[written]
    if written[0] in "'\"rR":
        return string_value(written)
    found = _SUFFIX.fullmatch(written)
    assert found is not None
    digits, suffix = found[1], (found[2] or "").upper()
    if suffix == "BD":
        return Decimal(digits)
    if suffix in ("D", "F") or "e" in digits.lower():
        return float(digits)
    if "." in digits:
        return Decimal(digits)
    value = int(digits)
    return value if LEAST <= value <= MOST else Decimal(value)


def interval_us(written: str) -> int | None:
    """
    Return the microseconds of an interval; None if it has months or years, does not fit 64 bits,
    or is not one.

    Parameters
    ----------
    written : str
        The text after the word INTERVAL.

    Examples
    --------
    >>> interval_us("'5' MINUTE"), interval_us("'1 02:00:00' DAY TO SECOND"), interval_us("2 YEARS")
    (300000000, 93600000000, None)
    """
    field = re.fullmatch(
        r"(?P<sign>[-+]?)\s*['\"](?P<inner>[-+]?)(?P<text>[^'\"]*)['\"]\s*(\w+)\s+TO\s+(\w+)",
        written.strip(),
        re.IGNORECASE,
    )
    if field is not None:
        form = _TO_FORMS.get((field[4].upper(), field[5].upper()))
        found = form and re.fullmatch(form, field["text"].strip())
        if not found:
            return None
        parts = found.groupdict()
        total = sum(
            Decimal(number) * UNITS_US[unit.upper()] for unit, number in parts.items() if number
        )
        return _in_range(_signed(int(total), field["sign"], field["inner"]))
    return _in_range(_pieces_us(written))


def _in_range(number: int | None) -> int | None:
    return number if number is not None and LEAST <= number <= MOST else None


def _pieces_us(written: str) -> int | None:
    """Return the microseconds of numbers with units: ``5 MINUTES``, ``'1 day 2 hours'``."""
    text = written.strip()
    whole = re.fullmatch(r"(['\"])(.*)\1", text)  # all of it in one string
    if whole is not None:
        text = re.sub(r"^\s*interval\s", "", whole[2], flags=re.IGNORECASE)
    total, at = 0, 0
    while at < len(text) and text[at:].strip():
        found = _PIECE.match(text, at)
        if found is None or found["unit"].upper() not in UNITS_US:
            return None
        amount = Decimal(found["number"]) * UNITS_US[found["unit"].upper()]
        total += _signed(int(amount), found["sign"], found["inner"])
        at = found.end()
    return total if at else None


def _signed(amount: int, *signs: str) -> int:
    return -amount if signs.count("-") == 1 else amount


def like_pattern(pattern: str, escape: str) -> str | None:
    r"""
    Return a LIKE pattern with ``\`` as its escape character; None if its escapes are wrong.

    Examples
    --------
    >>> like_pattern("50!%_", "!")
    '50\\%_'
    """
    if len(escape) != 1:
        return None
    result, at = "", 0
    while at < len(pattern):
        char = pattern[at]
        if char == escape:
            at += 1
            if at == len(pattern) or pattern[at] not in ("%", "_", escape):
                return None
            result += "\\" + pattern[at] if pattern[at] in "%_\\" else pattern[at]
        else:
            result += "\\\\" if char == "\\" else char
        at += 1
    return result


def like_regex(pattern: str) -> re.Pattern[str]:
    r"""Return the regular expression of a LIKE pattern whose escape character is ``\``."""
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    forms = {"%": ".*", "_": "."}
    text = "".join(forms.get(part, re.escape(part[-1])) for part in parts)
    return re.compile(text, re.DOTALL)
