# SPDX-License-Identifier: Apache-2.0
"""Spark's watermark, a moment, against events timed by a clock on the wall (timestamp_ntz)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

import attrs

from pyflinkcep.errors import InputError

__all__ = ["WallClock"]

_DAY = 24 * 3600 * 1000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST = (datetime(1, 1, 3, tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)
_LAST = (datetime(9999, 12, 29, tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)
_FIXED = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?")


@attrs.frozen
class WallClock:
    """
    The clock of a session's time zone, which Spark reads a ``timestamp_ntz`` by.

    Attributes
    ----------
    zone : str
        The time zone, as ``spark.sql.session.timeZone`` names it.

    Raises
    ------
    InputError
        If Python does not know the time zone.

    Notes
    -----
    When clocks are set back, an hour is shown twice; when they are set forward, Spark reads the
    hour that they skip as the next one. The clock here runs behind in these two hours, so that an
    event after the watermark in either time is not before it in the other.

    Examples
    --------
    >>> hour = 3_600_000
    >>> WallClock("Asia/Tokyo").shows(0) // hour, WallClock("-05:00").shows(0) // hour
    (9, -5)
    >>> back = 1_730_613_600_000  # in New York it is 2 o'clock, and again 1 o'clock
    >>> clock = WallClock("America/New_York")
    >>> [(clock.shows(back + n * hour // 2) - clock.shows(back)) / hour for n in (-3, -2, 0, 1)]
    [-0.5, -2.7777777777777776e-07, 0.0, 0.5]
    """

    zone: str

    def __attrs_post_init__(self) -> None:
        _zone(self.zone)

    def shows(self, moment: int) -> int:
        """
        Return the latest time that no later event can have, epoch milliseconds as if in UTC.

        Parameters
        ----------
        moment : int, epoch milliseconds
            A watermark of Spark.
        """
        if not _FIRST <= moment <= _LAST:
            return moment
        here = self._offset(moment)
        after, before = self._offset(moment + _DAY), self._offset(moment - _DAY)
        if after < here:  # set back soon: the time just after will be shown again
            changed = self._change(moment, moment + _DAY)
            return min(moment + here, changed + after - 1)
        if before < here and moment < self._change(moment - _DAY, moment) + here - before:
            return moment + before
        return moment + here

    def reaches(self, time: int) -> int:
        """Return the first moment at which the clock :meth:`shows` a time or a later one."""
        if not _FIRST <= time <= _LAST:
            return time
        low, high = time - 2 * _DAY, time + 2 * _DAY
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.shows(middle) >= time else (middle + 1, high)
        return low

    def _offset(self, moment: int) -> int:
        """Return how far the clock is ahead of UTC at a moment, in milliseconds."""
        inside = min(max(moment, _FIRST), _LAST)
        local = (_EPOCH + timedelta(milliseconds=inside)).astimezone(_zone(self.zone))
        return (local.utcoffset() or timedelta()) // timedelta(milliseconds=1)

    def _change(self, low: int, high: int) -> int:
        """Return the moment between two at which the clock is set."""
        first = self._offset(low)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._offset(middle) == first else (low, middle)
        return high


@lru_cache(maxsize=64)
def _zone(name: str) -> tzinfo:
    if name == "Z":
        return UTC
    fixed = _FIXED.fullmatch(name)
    if fixed is not None:
        sign, hours, minutes, seconds = fixed.groups(default="0")
        offset = timedelta(hours=int(hours), minutes=int(minutes), seconds=int(seconds))
        return timezone(-offset if sign == "-" else offset)
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as cause:  # ZoneInfoNotFoundError is a KeyError
        raise InputError(
            f"Python does not know the session's time zone {name!r}, "
            "by which Spark reads a timestamp_ntz",
            "set spark.sql.session.timeZone to a region such as 'Europe/Berlin'; on a system "
            "without time zones, install tzdata",
        ) from cause
