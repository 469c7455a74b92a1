# SPDX-License-Identifier: Apache-2.0
"""Counts of matches and sums over them, without listing them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any

import attrs

__all__ = ["NOTHING", "CountPayloads", "Measure", "Total", "added", "combined", "summand"]

Total = tuple[int, Any, Any, Any]
"""Number, sum, least and greatest of values; :data:`NOTHING` without values."""

NOTHING: Total = (0, 0, None, None)


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
    """Return the two totals combined."""
    if not one[0]:
        return other
    if not other[0]:
        return one
    number, sum_, low, high = other
    return one[0] + number, one[1] + sum_, min(one[2], low), max(one[3], high)


def added(
    parts: Iterable[tuple[int, int, tuple[Total, ...]]], size: int
) -> tuple[int, tuple[Total, ...]]:
    """Return the sums of counts and totals, `size` of them, of events."""
    count, totals = 0, (NOTHING,) * size
    for _, number, found in parts:
        count += number
        totals = tuple(map(combined, totals, found))
    return count, totals
