# SPDX-License-Identifier: Apache-2.0
"""Aggregates of the values of several events: what each takes and gives, in every target."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from pyflinkcep.expressions.numbers import EXACT, complete, root
from pyflinkcep.expressions.program import Kind


class Moments:
    """Variance and standard deviation, number by number as Spark computes them."""

    def __init__(self, numbers: Sequence[float] = ()) -> None:
        self.count, self.mean, self.moment = 0, 0.0, 0.0
        for number in numbers:
            self.add(number)

    def add(self, number: float) -> None:
        """Add a number."""
        self.count += 1
        distance = number - self.mean
        step = distance / self.count
        self.mean += step
        self.moment += distance * (distance - step)

    def variance(self, less: int = 1) -> float | None:
        """Return the moment by the count `less` 1, or 0 for all there are; None of too few."""
        return self.moment / (self.count - less) if self.count > less else None

    def deviation(self, less: int = 1) -> float | None:
        """Return the root of :meth:`variance`, by default that of a sample."""
        variance = self.variance(less)
        return None if variance is None else root(variance)


def median(numbers: Sequence[float]) -> float:
    """Return the number in the middle, or between two; NaN is the greatest, -0.0 less than 0.0."""
    ordered = sorted(numbers, key=lambda x: (x != x, x, math.copysign(1, x)))
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return low if low == high else low + 0.5 * (high - low)


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return a percentile of numbers in order, between the two nearest to the digit as Spark's."""
    at = (len(ordered) - 1) * share
    low, high = math.floor(at), math.ceil(at)
    below, above = float(ordered[low]), float(ordered[high])
    return below if below == above else below + (above - below) * (at - low)


added = EXACT.add
"""Add two decimals; the kernel calls it."""


def appended(numbers: tuple[float, ...] | None, number: float) -> tuple[float, ...]:
    """Return numbers and one more; the kernel calls it."""
    return (number,) if numbers is None else (*numbers, number)


_FAR = "(cast(v AS double) - s.mean)"
_STEP = f"{_FAR} / (s.n + 1D)"
_DEVIATION = (
    "aggregate({0}, struct(0D AS n, 0D AS mean, 0D AS moment), (s, v) -> struct("
    f"s.n + 1D AS n, s.mean + {_STEP} AS mean, s.moment + {_FAR} * ({_FAR} - {_STEP}) AS moment), "
    "s -> IF(s.n > 1D, sqrt(s.moment / (s.n - 1D)), NULL))"
)
_LOW, _HIGH = (
    f"element_at(s, cast({place} AS int)).v" for place in ("(size(s) + 1) / 2", "size(s) / 2 + 1")
)
_MEDIAN = (
    "IF(size({0}) = 0, NULL, element_at(transform(array(array_sort(transform({0}, v -> struct("
    "cast(v AS double) AS v, cast(v AS string) NOT LIKE '-%' AS p)))), "
    f"s -> IF({_LOW} = {_HIGH}, {_LOW}, {_LOW} + 0.5D * ({_HIGH} - {_LOW}))), 1))"
)


@attrs.frozen(kw_only=True)
class AggregateFunction:
    """An aggregate of values of several events."""

    least: int = 1  # The least number of values that are not NULL; of fewer it is NULL
    result: Kind | None = None  # What it is; None for the kind of its values, or of their sum
    of_numbers: bool = False  # Whether it is of numbers alone; a sum is of intervals too
    # Of doubles in their order, from which all targets but Spark compute it.
    of_list: Callable[[Sequence[float]], Any] | None = None
    sql: str = ""  # Spark SQL, of an array ``{0}`` of those that are not NULL
    condition: str = ""  # For what counts conditions: SQL that is not NULL where ``{0}`` holds


AGGREGATES = complete(
    {
        "first": AggregateFunction(),
        "last": AggregateFunction(),
        "count": AggregateFunction(least=0, result=Kind.BIGINT),
        "sum": AggregateFunction(of_numbers=True),
        "min": AggregateFunction(),
        "max": AggregateFunction(),
        "avg": AggregateFunction(result=Kind.DOUBLE, of_numbers=True),
        "stddev": AggregateFunction(least=2, result=Kind.DOUBLE, of_numbers=True,
            of_list=lambda numbers: Moments(numbers).deviation(), sql=_DEVIATION),
        "median": AggregateFunction(
            result=Kind.DOUBLE, of_numbers=True, of_list=median, sql=_MEDIAN),
        "count_if": AggregateFunction(result=Kind.BIGINT, condition="CASE WHEN {0} THEN 1 END"),
    },
    "of_list", "sql",
)  # fmt: skip
"""By name. One with these forms needs nothing else."""
