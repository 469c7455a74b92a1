# SPDX-License-Identifier: Apache-2.0
"""Sums over the events that matches have, exactly, in the kernel if that can be."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import numpy as np

from pyflinkcep.compact.counting import Total
from pyflinkcep.kernel.counting import KernelCounter

__all__ = ["Exact", "Weighed"]

_WEIGHT = 1 << 63
"""What weights in the kernel are below."""


@attrs.frozen(eq=False)
class Exact:
    """
    Values as whole numbers, so that sums do not depend on the order of runs.

    Attributes
    ----------
    values : sequence or None
        The values, None for NULL; None to count events.
    digits : int or None
        How many binary digits behind the point they stand for; None if they are as they came.
    """

    values: Sequence[Any] | None
    digits: int | None = None

    @classmethod
    def of(cls, values: Sequence[Any] | None) -> Exact:
        """Return values as whole numbers if they are finite floats, else as they are."""
        known = [] if values is None else [value for value in values if value is not None]
        if not known or not all(type(v) is float and math.isfinite(v) for v in known):
            return cls(values)
        ratios = {value: value.as_integer_ratio() for value in set(known)}
        digits = max(below.bit_length() for _, below in ratios.values()) - 1
        whole = {value: (above << digits) // below for value, (above, below) in ratios.items()}
        assert values is not None
        return cls([None if value is None else whole[value] for value in values], digits)

    def total(self, total: Total) -> Total:
        """Return what whole numbers came to in terms of the values."""
        if self.digits is None or not total[0]:
            return total
        number, *others = total
        sum_, low, high = (_divided(other, 1 << self.digits) for other in others)
        return number, sum_, low, high


def _divided(value: int, by: int) -> float:
    try:
        return value / by
    except OverflowError:  # beyond the largest double
        return math.copysign(math.inf, value)


@attrs.frozen(eq=False)
class Weighed:
    """
    A measure as weights of a component's events.

    Attributes
    ----------
    component : int
        The component.
    flags : array or None
        1 for each event that counts; None if the number of matches is the number of events.
    weights : array or None
        What events weigh; None if only their number is wanted.
    least : int
        What a weight of 0 stands for.
    """

    component: int
    flags: Any
    weights: Any
    least: int

    @classmethod
    def of(
        cls, component: int, loops: bool, values: Sequence[Any] | None, size: int
    ) -> Weighed | None:
        """Return a measure over so many events as weights; None if its values cannot be such."""
        if values is None:
            return cls(component, np.ones(size, np.uint64) if loops else None, None, 1)
        known = [value for value in values if value is not None]
        if any(type(value) is not int for value in known):
            return None
        least, most = min(known, default=0), max(known, default=0)
        least = min(least, 0) if most < _WEIGHT else least
        if most - least >= _WEIGHT:
            return None
        flags = None
        if loops or len(known) < len(values):
            flags = np.fromiter((value is not None for value in values), np.uint64, size)
        weights = (0 if value is None else value - least for value in values)
        return cls(component, flags, np.fromiter(weights, np.uint64, size), least)

    def totals(
        self, counter: KernelCounter, positions: Sequence[int]
    ) -> Iterator[tuple[int, int, Total]]:
        """Yield for each event that completes matches their number and the total, no extremes."""
        numbers: Iterator[int] | None = None
        if self.flags is not None:
            numbers = (n for _, _, n in counter.sums(positions, self.component, self.flags))
        if self.weights is not None:
            found = counter.sums(positions, self.component, self.weights)
        else:
            found = ((at, count, 0) for at, count in counter.counts(positions))
        for at, count, weight in found:
            number = count if numbers is None else next(numbers)
            yield at, count, (number, weight + self.least * number, 0, 0) if number else _NOTHING


_NOTHING: Total = (0, 0, None, None)
