# SPDX-License-Identifier: Apache-2.0
"""Windows of suppressed alerts on a stream: what comes when, what is stored, what is refused."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest

from pyflinkcep.errors import StateFormatError
from pyflinkcep.matching.suppression import SuppressionPages
from tests.property.test_suppression import DELAY, PERIOD, Stream


def _alert(time: int, id_: str, key: str = "x") -> dict[str, Any]:
    return {"rule": "a", "k": key, "matchTimestamp": time, "matchId": id_, "events": []}


def _told(stream: Stream) -> list[tuple[str, int]]:
    """Return what came since the last time."""
    rows, stream.shown = stream.shown, []
    return [(row["matchId"], row["suppressed"]) for row in rows]


def test_an_alert_comes_when_its_window_opens_and_when_it_is_over() -> None:
    """The first time with the number known, the second with the last; none if that is known."""
    stream = Stream(1)
    stream.batch([_alert(100, "p"), _alert(101, "q")], 99)
    assert _told(stream) == []  # the watermark has not passed it
    stream.batch([_alert(102, "r")], 101)
    assert _told(stream) == [("p", 1)]
    stream.batch([_alert(104, "s"), _alert(105, "t")], 103)
    assert _told(stream) == []
    stream.batch([], 104)  # no alert of the window comes any more
    assert _told(stream) == [("p", 3)]
    stream.batch([], 109)
    assert _told(stream) == [("t", 0)]
    assert stream.storage.is_empty


def test_alerts_that_are_late() -> None:
    """They are dropped and counted, and neither open a window nor count in one."""
    stream = Stream(1)
    stream.batch([_alert(100, "p")], 99)
    stream.batch([], 100)
    stream.batch([_alert(100, "q"), _alert(99, "r", "y"), _alert(101, "s")], 100)
    stream.close()
    assert (_told(stream), stream.late) == ([("p", 0), ("p", 1)], 2)


@pytest.mark.parametrize(("period", "expected"), [(PERIOD - 2, 1), (PERIOD + 3, 3)])
def test_another_period(period: int, expected: int) -> None:
    """A query that goes on with another period has it for open windows too."""
    stream = Stream(1)
    stream.batch([_alert(100, "p"), _alert(101, "q"), _alert(100 + DELAY + 1, "r")])
    assert _told(stream) == [("p", 1)]
    after = attrs.evolve(stream, period=period)
    after.batch([_alert(107, "s")])
    after.close()
    assert {"p": 1, **dict(_told(after))}["p"] == expected


@pytest.mark.parametrize(
    ("numbers", "counts"), [([3, 2], 1), ([-1, 0], 1), ([0, 1], 0), ([0, 1], 2)]
)
def test_damaged_state(numbers: list[int], counts: int) -> None:
    """A window without its one alert, or of which more is told than is known, is refused."""
    with pytest.raises(StateFormatError, match="a window of suppressed alerts"):
        SuppressionPages(Stream(1).alerts).check(np.array([numbers]), np.array([counts]))
