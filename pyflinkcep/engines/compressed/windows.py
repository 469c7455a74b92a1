# SPDX-License-Identifier: Apache-2.0
"""Sliding and tumbling windows, in each of which matches are totalled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import attrs

from pyflinkcep.engines.compressed.counting import combined
from pyflinkcep.engines.compressed.payloads import Ended, MeasuredValues
from pyflinkcep.engines.compressed.sums import Exact
from pyflinkcep.errors import InvalidArgumentError, NotSupportedError
from pyflinkcep.sase.model import OUTSIDE, Query
from pyflinkcep.sase.windows import MOST_WINDOWS
from pyflinkcep.time import duration_ms

__all__ = [
    "WINDOW_END",
    "WINDOW_START",
    "TimeWindows",
    "listing",
    "refuse_outside",
    "totals_by_window",
    "windows_of",
]

WINDOW_START = "windowStart"
"""The output column with the start of a window."""

WINDOW_END = "windowEnd"
"""That with the end."""


@attrs.frozen
class TimeWindows:
    """
    Windows of one length that begin at regular times, one of them at the epoch.

    Attributes
    ----------
    length : int, milliseconds
        Their length; an event at the end is no longer in a window.
    slide : int, milliseconds
        The time from the start of one to the start of the next.
    """

    length: int
    slide: int

    @classmethod
    def of(
        cls, window: timedelta | str | None, slide: timedelta | str | None
    ) -> TimeWindows | None:
        """
        Return windows as users describe them; one after another without a slide.

        Raises
        ------
        InvalidArgumentError
            If these are not durations, or leave out events, or are too many.
        """
        if window is None:
            if slide is None:
                return None
            raise InvalidArgumentError(
                f"aggregate(slide={slide!r}) without a window", "pass window= too"
            )
        length = duration_ms(window, "window")
        step = length if slide is None else duration_ms(slide, "slide")
        if step > length:
            raise InvalidArgumentError(
                f"aggregate(window={window!r}, slide={slide!r}): events between windows would "
                "be in none",
                "pass a slide that is at most the window",
            )
        if length > step * MOST_WINDOWS:
            raise InvalidArgumentError(
                f"aggregate(window={window!r}, slide={slide!r}): expected at most {MOST_WINDOWS} "
                f"windows at a time, got {-(-length // step)}, each with a copy of its events",
                "pass a longer slide",
            )
        return cls(length, step)

    def __str__(self) -> str:
        return f"{self.length} ms every {self.slide} ms"

    def starts(self, time: int) -> Iterator[int]:
        """Yield the starts of the windows that have a time."""
        last = time - time % self.slide
        yield from range(last, time - self.length, -self.slide)


def windows_of(query: Query) -> TimeWindows:
    """Return the windows of a query with SLIDE."""
    assert query.window is not None
    assert query.totals is not None
    return TimeWindows(query.window, query.totals.slide)


def listing(query: Query) -> Query:
    """Return the query of the matches that a query with SLIDE totals; its windows bound them."""
    return attrs.evolve(query, window=None, totals=None)


def refuse_outside(query: Query) -> None:
    """
    Refuse windows of a query about whose matches events outside of the window decide.

    Raises
    ------
    NotSupportedError
        If the query is one.
    """
    if query.looks_back or query.looks_ahead:
        raise NotSupportedError(
            f"windows are not available for a query with {OUTSIDE}",
            "leave that component out, or aggregate without windows",
        )


def totals_by_window(
    totals_by_event: Callable[[Sequence[MeasuredValues]], Iterator[Ended]],
    measures: Sequence[MeasuredValues],
    windows: Sequence[int],
) -> Iterator[Ended]:
    """
    Yield for each window with matches one of its events, their number and the requested totals.

    Parameters
    ----------
    totals_by_event : callable
        Returns the totals of the matches that each event completes.
    measures : sequence of MeasuredValues
        What is requested; sums of floats are rounded once, at the end.
    windows : sequence of int
        The window of each event.
    """
    exact = [_exact(values, function) for _, values, function in measures]
    whole = [
        (variable, own.values, function)
        for (variable, _, function), own in zip(measures, exact, strict=True)
    ]
    sums: dict[int, Ended] = {}
    for at, count, totals in totals_by_event(whole):
        _, counted, before = sums.get(windows[at], (at, 0, None))
        own = totals if before is None else tuple(map(combined, before, totals))
        sums[windows[at]] = at, counted + count, own
    for at, count, totals in sums.values():
        yield at, count, tuple(map(Exact.total, exact, totals))


def _exact(values: Sequence[Any] | None, function: str) -> Exact:
    """Return values whose sums are rounded at the end only; those of a spread are already."""
    return Exact(values) if function == "stddev" else Exact.of(values)
