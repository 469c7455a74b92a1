# SPDX-License-Identifier: Apache-2.0
"""Texts as numbers, booleans and times, by the grammar of Spark's casts."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from zoneinfo import ZoneInfo

__all__ = ["date_of", "decimal_of", "double_of", "time_of", "truth_of", "whole_of", "zone_of"]

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
