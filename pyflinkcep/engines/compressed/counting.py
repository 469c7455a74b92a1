# SPDX-License-Identifier: Apache-2.0
"""Counts of matches and sums over them, without listing them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import date
from fractions import Fraction
from typing import Any

import attrs

__all__ = [
    "NOTHING",
    "CountPayloads",
    "Measure",
    "Spread",
    "Total",
    "added",
    "combined",
    "summand",
]

_PLACES = 64
"""How many more binary digits a root has than the number below it."""

Total = tuple[int, Any, Any, Any]
"""
Number, sum, least and greatest of values; :data:`NOTHING` without values. For a standard deviation
the sum is a :class:`Spread`.
"""

NOTHING: Total = (0, 0, None, None)


@attrs.frozen
class Spread:
    """
    Exact sums for a standard deviation, which do not depend on the order of addition.

    Attributes
    ----------
    sum, squares : Fraction
        The sums of the finite values and of their squares.
    is_nan : bool
        Whether there are other values, NaN and infinities.
    """

    sum: Fraction
    squares: Fraction
    is_nan: bool = False

    def __add__(self, other: Spread) -> Spread:
        """Return the sums of both."""
        sums = self.sum + other.sum, self.squares + other.squares
        return Spread(*sums, self.is_nan or other.is_nan)

    def deviation(self, number: int) -> float:
        """
        Return the standard deviation of a sample of `number` values, at least 2.

        Examples
        --------
        >>> Spread(Fraction(12), Fraction(50)).deviation(3)
        1.0
        """
        if self.is_nan:
            return math.nan
        variance = (self.squares - self.sum**2 / number) / (number - 1)
        root = math.isqrt((variance.numerator * variance.denominator) << 2 * _PLACES)
        try:
            return root / (variance.denominator << _PLACES)
        except OverflowError:  # beyond the largest double
            return math.inf


@attrs.frozen(eq=False)
class Measure:
    """
    A total over a component's events in all matches.

    Attributes
    ----------
    component : int
        The component.
    values : sequence or None
        The value of each event by position, None for NULL; None to count the events.
    """

    component: int
    values: Sequence[Any] | None


class CountPayloads:
    """
    Lets merged runs carry their number and the totals of the measures.

    Parameters
    ----------
    measures : sequence of Measure
        What is measured.
    """

    def __init__(self, measures: Sequence[Measure] = ()) -> None:
        self._measures = measures
        self._nothing = (NOTHING,) * len(measures)

    def begun(self, component: int, at: int) -> tuple[int, tuple[Total, ...]]:
        """Return the number of a run that begins."""
        return self.taken((1, self._nothing), component, at)

    def taken(
        self, payload: tuple[int, tuple[Total, ...]], component: int, at: int
    ) -> tuple[int, tuple[Total, ...]]:
        """Return the numbers after each run takes an event."""
        if not self._measures:
            return payload
        runs, totals = payload
        return runs, tuple(
            _with(total, runs, 1 if m.values is None else m.values[at])
            if m.component == component
            else total
            for m, total in zip(self._measures, totals, strict=True)
        )

    def merged(
        self, one: tuple[int, tuple[Total, ...]], other: tuple[int, tuple[Total, ...]]
    ) -> tuple[int, tuple[Total, ...]]:
        """Return the numbers of both combined."""
        totals = tuple(map(combined, one[1], other[1]))
        return one[0] + other[0], totals


def _with(total: Total, runs: int, value: Any) -> Total:
    """Return a total after each of some runs takes an event with a value."""
    if value is None:
        return total
    return combined(total, (runs, summand(value, runs), value, value))


def summand(value: Any, times: int = 1) -> Any:
    """Return what a value adds to a sum; texts and times have an order only."""
    return 0 if isinstance(value, str | date) else times * value


def combined(one: Total, other: Total) -> Total:
    """Return the two totals combined; NaN is above all other values, as in Spark."""
    if not one[0]:
        return other
    if not other[0]:
        return one
    number, sum_, low, high = one
    low = other[2] if other[2] < low or low != low else low
    high = other[3] if other[3] > high or other[3] != other[3] else high
    return number + other[0], sum_ + other[1], low, high


def added(
    parts: Iterable[tuple[int, int, tuple[Total, ...]]], size: int
) -> tuple[int, tuple[Total, ...]]:
    """Return the sums of counts and totals, `size` of them, of events."""
    count, totals = 0, (NOTHING,) * size
    for _, number, found in parts:
        count += number
        totals = tuple(map(combined, totals, found))
    return count, totals
