# SPDX-License-Identifier: Apache-2.0
"""Durations: ``Time.seconds(10)`` for code from Flink 1.x, and conversion to milliseconds."""

from __future__ import annotations

import operator
import re
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from pyflinkcep.errors import InputError, InvalidArgumentError

MAX_WATERMARK = 2**63 - 1
"""Flink's final watermark, ``Long.MAX_VALUE``: the end of a bounded input."""

MIN_WATERMARK = -(2**63)
"""The watermark before the first one arrives, ``Long.MIN_VALUE``."""

_CALENDAR_MS = 10**11
"""From when on a number is a moment and not a count: in 1973, as epoch milliseconds."""

UNITS_MS = {
    "millisecond": 1, "ms": 1, "second": 1000, "sec": 1000, "minute": 60_000, "min": 60_000,
    "hour": 3_600_000, "day": 86_400_000, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000,
}  # fmt: skip
"""The units of durations in texts, in milliseconds."""

_TEXT = re.compile(rf"(?:interval\s+)?(\d+)\s*(?:({'|'.join(UNITS_MS)})|(\w+)s)", re.IGNORECASE)


class Time:
    """
    Make durations with the names of Flink 1.x.

    Every method returns a :class:`datetime.timedelta`, which the rest of the API takes.

    Notes
    -----
    Ports ``org.apache.flink.streaming.api.windowing.time.Time`` of Flink 1.x.
    Differs from Flink: the result is an ordinary ``timedelta``, not an object of its own.

    Examples
    --------
    >>> Time.minutes(2)
    datetime.timedelta(seconds=120)
    """

    @staticmethod
    def milliseconds(milliseconds: int) -> timedelta:
        """Return a duration of a number of milliseconds."""
        return timedelta(milliseconds=milliseconds)

    @staticmethod
    def seconds(seconds: int) -> timedelta:
        """Return a duration of a number of seconds."""
        return timedelta(seconds=seconds)

    @staticmethod
    def minutes(minutes: int) -> timedelta:
        """Return a duration of a number of minutes."""
        return timedelta(minutes=minutes)

    @staticmethod
    def hours(hours: int) -> timedelta:
        """Return a duration of a number of hours."""
        return timedelta(hours=hours)

    @staticmethod
    def days(days: int) -> timedelta:
        """Return a duration of a number of days, 24 hours each."""
        return timedelta(days=days)


def clock_ms() -> int:
    """Return what the clock shows, epoch milliseconds."""
    return time.time_ns() // 1_000_000


def to_milliseconds(duration: timedelta, what: str) -> int:
    """Turn a duration into whole milliseconds, rounding down."""
    if not isinstance(duration, timedelta):
        raise InvalidArgumentError(
            f"{what}: expected a timedelta, got {duration!r}",
            "write timedelta(seconds=10) or Time.seconds(10)",
        )
    if timedelta(0) < duration < timedelta(milliseconds=1):
        raise InvalidArgumentError(
            f"{what}: expected at least a millisecond, got {duration!r}",
            "write timedelta(milliseconds=1), the finest unit, or leave the window out",
        )
    return duration // timedelta(milliseconds=1)


def window_milliseconds(window: timedelta, what: str) -> int:
    """
    Turn the length of a window into whole milliseconds, rounding down.

    Differs from Flink: a window of zero or less is refused; Flink takes it as no window.
    """
    milliseconds = to_milliseconds(window, what)
    if milliseconds < 1:
        raise InvalidArgumentError(
            f"{what}: expected a window longer than zero, got {window!r}",
            "leave the window out if there is none, which is what this means in Flink",
        )
    return milliseconds


_SECONDS = (10**8, 31 * 86_400_000)
"""Times in January 1970, but for the first day: as seconds, from 1973 to 2054."""
_MICROSECONDS, _NANOSECONDS = (10**14, 4 * 10**15), (10**17, 4 * 10**18)
"""Times after the year 5000: as micro- and nanoseconds, from 1973 to 2096."""


def wrong_unit(earliest: int, latest: int, what: str) -> str | None:
    """Return a warning if all times between two look like another unit than epoch milliseconds."""
    for low, high, unit, read_as, factor in (
        (*_SECONDS, "seconds", "lie in January 1970", "* 1000"),
        (*_MICROSECONDS, "microseconds", "lie after the year 5000", "/ 1000"),
        (*_NANOSECONDS, "nanoseconds", "lie after the year 5000", "/ 1000000"),
    ):
        if low <= earliest and latest < high:
            return (
                f"{what}: whole numbers are epoch milliseconds, and these, from {earliest} to "
                f"{latest}, {read_as}. They look like epoch {unit}: pass them {factor}, or as "
                "timestamps."
            )
    return None


def duration_ms(duration: timedelta | str, what: str) -> int:
    """
    Turn a duration, as a ``timedelta`` or as ``withWatermark`` takes it, into milliseconds.

    Examples
    --------
    >>> duration_ms(timedelta(seconds=2), "maxAhead"), duration_ms("10 minutes", "maxAhead")
    (2000, 600000)
    >>> duration_ms("4 ms", "window"), duration_ms("5 min", "window"), duration_ms("1h", "window")
    (4, 300000, 3600000)
    """
    read = _TEXT.fullmatch(duration.strip()) if isinstance(duration, str) else None
    unit = UNITS_MS.get((read[2] or read[3]).lower()) if read is not None else None
    if read is not None and unit is not None:
        milliseconds = int(read[1]) * unit
    elif isinstance(duration, timedelta):
        milliseconds = duration // timedelta(milliseconds=1)
    else:
        raise InvalidArgumentError(
            f"{what}: expected a timedelta or a text such as '1 hour', got {duration!r}",
            f"write {what}=timedelta(hours=1)",
        )
    if milliseconds < 1:
        raise InvalidArgumentError(
            f"{what}: expected at least a millisecond, got {duration!r}",
            f"write {what}=timedelta(hours=1), or leave it out",
        )
    return milliseconds


def duration_text(milliseconds: int) -> str:
    """Return a duration in its largest whole unit, as in ``5 min``."""
    for size, unit in ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s")):
        if milliseconds % size == 0:
            return f"{milliseconds // size} {unit}"
    return f"{milliseconds} ms"


MISSING = ("NaTType", "NAType")
"""The types of missing values of pandas."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def plain(value: Any) -> Any:
    """Return a value of pandas or NumPy as Python's own, and a missing one as None."""
    kind = type(value)
    if kind.__name__ in MISSING:
        return None
    if kind.__module__ != "numpy" or getattr(value, "shape", None) != ():
        return value
    return (value.astype("datetime64[us]") if kind.__name__ == "datetime64" else value).item()


def exact_moment(time: Any, what: str) -> int:
    """Return epoch milliseconds, or a datetime (UTC if it has no zone), in epoch microseconds."""
    moment = plain(time)
    if isinstance(moment, datetime):
        aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return (aware - _EPOCH) // timedelta(microseconds=1)
    with suppress(TypeError):
        if not isinstance(moment, bool):
            return operator.index(moment) * 1000
    raise InputError(
        f"{what}: expected epoch milliseconds or a datetime, got {time!r}",
        "pass epoch milliseconds as int, or a datetime; leave events without a time out",
    )


def is_calendar(milliseconds: int) -> bool:
    """Whether epoch milliseconds look like a moment that calendars have, and not like a count."""
    return milliseconds >= _CALENDAR_MS and moment_text(milliseconds) is not None


def moment_text(milliseconds: int) -> str | None:
    """
    Return epoch milliseconds as calendars and clocks show them; None if no calendar has them.

    Examples
    --------
    >>> moment_text(1_767_268_810_000), moment_text(90_500), moment_text(1 << 62)
    ('2026-01-01 12:00:10 UTC', '1970-01-01 00:01:30.500 UTC', None)
    """
    try:
        moment = datetime.fromtimestamp(milliseconds // 1000, UTC)
    except (OverflowError, OSError, ValueError):
        return None
    rest = f".{milliseconds % 1000:03}" if milliseconds % 1000 else ""
    return f"{moment:%Y-%m-%d %H:%M:%S}{rest} UTC"
