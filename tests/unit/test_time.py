# SPDX-License-Identifier: Apache-2.0
"""Durations and the ends of time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from pyflinkcep import Time
from pyflinkcep.errors import InvalidArgumentError
from pyflinkcep.time import MAX_WATERMARK, MIN_WATERMARK, to_milliseconds, wrong_unit


@pytest.mark.parametrize(
    ("duration", "milliseconds"),
    [
        (Time.milliseconds(7), 7),
        (Time.seconds(2), 2_000),
        (Time.minutes(2), 120_000),
        (Time.hours(1), 3_600_000),
        (Time.days(1), 86_400_000),
        (timedelta(microseconds=1999), 1),
        (timedelta(microseconds=-1), -1),
        (timedelta(days=36500), 3_153_600_000_000),
    ],
)
def test_milliseconds(duration: timedelta, milliseconds: int) -> None:
    """A duration counts in whole milliseconds, rounded down."""
    assert to_milliseconds(duration, "x") == milliseconds


@pytest.mark.parametrize("duration", [10, 1.5, "10 s", None])
def test_other_types_are_refused(duration: Any) -> None:
    """A number has no unit, so only a timedelta will do."""
    with pytest.raises(InvalidArgumentError, match="within: expected a timedelta") as caught:
        to_milliseconds(duration, "within")

    assert caught.value.hint


@pytest.mark.parametrize("microseconds", [1, 999])
def test_less_than_a_millisecond_is_refused(microseconds: int) -> None:
    """A window too short to measure is refused: rounded down it would mean no window at all."""
    with pytest.raises(InvalidArgumentError, match="within: expected at least a millisecond"):
        to_milliseconds(timedelta(microseconds=microseconds), "within")


def test_the_ends_of_time_are_those_of_java() -> None:
    """The first and last watermarks are the ends of a 64-bit integer."""
    assert (MIN_WATERMARK, MAX_WATERMARK) == (-(2**63), 2**63 - 1)


@pytest.mark.parametrize(
    ("earliest", "latest", "unit"),
    [
        (1_700_000_000, 1_700_000_050, "epoch seconds"),
        (10**8, 2_678_399_999, "epoch seconds"),
        (1_700_000_000_000_000, 1_700_000_000_000_001, "epoch microseconds"),
        (1_700_000_000_000_000_000, 1_700_000_000_000_000_001, "epoch nanoseconds"),
        (0, 1_700_000_000, None),
        (1, 99_999, None),
        (1_700_000_000, 2_678_400_000, None),
        (1_700_000_000, 1_700_000_000_000, None),
        (1_700_000_000_000, 1_800_000_000_000, None),
        (MIN_WATERMARK + 1, MAX_WATERMARK, None),
        (MAX_WATERMARK, MAX_WATERMARK, None),
    ],
)
def test_units_that_look_wrong(earliest: int, latest: int, unit: str | None) -> None:
    """Times of which all are in January 1970, or all after the year 5000, are of another unit."""
    text = wrong_unit(earliest, latest, "ts")

    assert (text is None) == (unit is None)
    assert unit is None or f"look like {unit}" in str(text)
