# SPDX-License-Identifier: Apache-2.0
"""The matches of a query, counted, aggregated or enumerated without being listed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

import attrs

from pyflinkcep.engines.compressed.counting import Ended, Exact, MeasuredValues, Total, combined
from pyflinkcep.errors import InputError, InvalidArgumentError, NotSupportedError
from pyflinkcep.expressions.aggregates import AGGREGATES
from pyflinkcep.expressions.numbers import mean
from pyflinkcep.expressions.program import Kind
from pyflinkcep.expressions.tree import attribute_of
from pyflinkcep.sase.model import MOST_WINDOWS, OUTSIDE, TOTALS, Query
from pyflinkcep.time import duration_ms

WINDOW_START = "windowStart"
"""The output column with the start of a window."""

WINDOW_END = "windowEnd"
"""That with the end."""


@attrs.frozen
class TimeWindows:
    """Windows of one length that begin at regular times, one of them at the epoch."""

    length: int  # Their length; an event at the end is no longer in a window
    slide: int  # The time from the start of one to the start of the next

    @classmethod
    def of(
        cls, window: timedelta | str | None, slide: timedelta | str | None
    ) -> TimeWindows | None:
        """Return windows as users describe them; one after another without a slide."""
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
    """Refuse windows of a query about whose matches events outside of the window decide."""
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
    Yield for each window with matches one of its events, their number and the requested
    totals.
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


COUNT = "count"
"""The output column with the number of matches."""

_ADDING = ("sum", "avg", "stddev")
"""Those of numbers only."""
_NAME = r"(?:\w+|`(?:[^`]|``)+`)"
_MEASURE = re.compile(
    rf"\s*(?P<function>\w+)\s*\(\s*(?:(?P<all>\*)|(?P<variable>{_NAME})(?:\s*\[\s*\])?"
    rf"(?:\s*\.\s*(?P<attribute>{_NAME}))?)\s*\)\s*(?:as\s+(?P<name>{_NAME})\s*)?",
    re.IGNORECASE,
)


@attrs.frozen
class Measured:
    """An aggregate over a variable's events in all matches."""

    function: str  # count, sum, avg, min, max or stddev
    variable: str | None  # The variable; None for ``count(*)``
    attribute: str | None  # The attribute; None to count events
    name: str  # Its key in the result

    def result(self, count: int, total: Total) -> Any:
        """Return the aggregate, given the number of matches and the total of the events."""
        if self.variable is None:
            return count
        number, sum_, low, high = total
        if number < AGGREGATES[self.function].least:
            return None
        if self.function == "count":
            return number
        if self.function == "avg":
            return mean(sum_, number) if isinstance(sum_, Decimal) else sum_ / number
        if self.function == "stddev":
            return sum_.deviation(number)
        return {"sum": sum_, "min": low, "max": high}[self.function]


def read_measure(text: str, variables: Sequence[str]) -> Measured:
    """Parse an aggregate."""
    found = _MEASURE.fullmatch(text) if isinstance(text, str) else None
    function = found["function"].lower() if found else ""
    counts = found is not None and (found["all"] or not found["attribute"])
    if found is None or function not in TOTALS or (counts and function != "count"):
        raise InvalidArgumentError(
            f"expected an aggregate over matches, got {text!r}",
            'write "count(*)", "count(b)", "sum(b.volume) AS v", or avg, min, max, stddev',
        )
    variable, attribute, name = (
        None if found[part] is None else attribute_of(found[part])
        for part in ("variable", "attribute", "name")
    )
    if variable is not None and variable not in variables:
        raise InvalidArgumentError(
            f"expected a variable of the pattern in {text!r}, got {variable!r}",
            f"the variables are {', '.join(variables)}",
        )
    return Measured(function, variable, attribute, name or text)


def check_measure(measured: Measured, kind: Kind | None, found: str = "") -> None:
    """Refuse an aggregate of values that it cannot add or order."""
    adds = measured.function in _ADDING
    if measured.attribute is None or measured.function == "count":
        return
    is_number = kind in (Kind.BIGINT, Kind.DOUBLE) or (kind is not None and kind.is_decimal)
    if kind is None or (adds and not is_number):
        wanted = "numbers" if adds else "numbers, texts, booleans or times"
        raise InputError(
            f"{measured.function}({measured.variable}.{measured.attribute}): expected {wanted}, "
            f"got {found or str(kind and kind.value)}",
            "use count, or cast the attribute before matching",
        )


def check_names(others: Iterable[str], measured: Iterable[Measured]) -> None:
    """
    Refuse aggregates of which one would take the place of another, or of another column.

    Case is ignored, as in Spark's columns.
    """
    known: set[str] = set()
    for name in (*others, *(one.name for one in measured)):
        if name.lower() in known:
            raise InvalidArgumentError(
                f"two columns of the result are named {name!r}",
                "give the aggregate another name with AS, or rename the attribute",
            )
        known.add(name.lower())
