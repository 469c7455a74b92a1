# SPDX-License-Identifier: Apache-2.0
"""Spark's watermark as events see it whose time is what a clock shows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from pyflinkcep.errors import InputError
from pyflinkcep.spark.worker.bucket_task import WallClock
from pyflinkcep.time import MAX_WATERMARK

QUARTER = 15 * 60 * 1000
STEP = 2 * QUARTER - 1
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
CHANGES = {
    "America/New_York": ["2024-03-10T07:00Z", "2024-11-03T06:00Z"],
    "Europe/Berlin": ["2024-03-31T01:00Z", "2024-10-27T01:00Z"],
    "Australia/Lord_Howe": ["2024-10-05T15:30Z", "2024-04-06T15:00Z"],
    "Pacific/Apia": ["2011-12-30T10:00Z"],  # where a day was skipped
    "Asia/Tokyo": ["2024-03-10T07:00Z"],
    "UTC": ["2024-03-10T07:00Z"],
}


def milliseconds(time: datetime) -> int:
    """Return a moment in epoch milliseconds; a time without a zone as if in UTC."""
    return (time.replace(tzinfo=time.tzinfo or UTC) - EPOCH) // timedelta(milliseconds=1)


def shown(moment: int, zone: str) -> int:
    """Return what the clock shows at a moment."""
    local = (EPOCH + timedelta(milliseconds=moment)).astimezone(ZoneInfo(zone))
    return milliseconds(local.replace(tzinfo=None))


def read(time: int, zone: str) -> int:
    """Return the moment that Spark takes a time for: the first of two, or after those skipped."""
    local = (EPOCH + timedelta(milliseconds=time)).replace(tzinfo=ZoneInfo(zone), fold=0)
    return milliseconds(local.astimezone(UTC))


def around(change: str) -> range:
    """Return moments of three days, half an hour apart."""
    middle = milliseconds(datetime.fromisoformat(change))
    return range(middle - 70 * STEP, middle + 70 * STEP, STEP)


@pytest.mark.parametrize(
    ("zone", "change"), [(zone, change) for zone, all_ in CHANGES.items() for change in all_]
)
def test_no_event_after_the_watermark_is_late(zone: str, change: str) -> None:
    """Time never runs back, and it is the latest at which every later event is still to come."""
    clock, moments = WallClock(zone), around(change)
    before, furthest = clock.shows(moments[0] - 1), 0
    later = [(read(time, zone), time) for time in around(change)]
    later += [(moment, shown(moment, zone)) for moment in moments]

    for moment in moments[:-50]:
        now = clock.shows(moment)
        assert now >= before
        assert all(time > now for when, time in later if when > moment)
        assert clock.shows(clock.reaches(now)) >= now
        assert clock.shows(clock.reaches(now) - 1) < now
        before, furthest = now, max(furthest, shown(moment, zone) - now)

    assert furthest <= 24 * 4 * QUARTER
    assert clock.shows(moments[-1]) == shown(moments[-1], zone)


def test_zones_that_only_spark_names() -> None:
    """Offsets as Java writes them are understood; a zone unknown to Python is refused by name."""
    hours = {"Z": 0, "+05:30": 5.5, "-5": -5, "GMT+8": 8, "UTC-03:00": -3, "UT+01:00": 1}

    assert {zone: WallClock(zone).shows(0) / 3_600_000 for zone in hours} == hours
    with pytest.raises(InputError, match="session's time zone 'Mars/Olympus'"):
        WallClock("Mars/Olympus")


def test_times_that_no_clock_shows() -> None:
    """A watermark outside the years that Python has is the time itself."""
    clock = WallClock("Asia/Tokyo")

    assert clock.shows(MAX_WATERMARK) == clock.reaches(MAX_WATERMARK) == MAX_WATERMARK
    assert clock.reaches(1 << 62) == 1 << 62
