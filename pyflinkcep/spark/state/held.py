# SPDX-License-Identifier: Apache-2.0
"""What pages of state hold, in numbers small enough to be kept for each page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from pyflinkcep.engines.flink.operator.state_counts import NO_START, StateCounts
from pyflinkcep.engines.flink.operator.state_format import damaged_state
from pyflinkcep.spark.state.pages import Page

__all__ = ["PageCounts"]

_OLDEST, _LEAST = 4, 5


@attrs.frozen
class PageCounts:
    """
    What some pages hold.

    Attributes
    ----------
    keys : int
        Keys.
    events : int
        Events.
    held : int
        Matches that a skip strategy holds back.
    largest : int
        The partial matches of the key with the most.
    oldest : int or None, epoch milliseconds
        When the first of the partial matches and matches held back began.
    by_stage : tuple of int
        Partial matches by the stage of their last event, if known.
    """

    keys: int = 0
    events: int = 0
    held: int = 0
    largest: int = 0
    oldest: int | None = None
    by_stage: tuple[int, ...] = ()

    @classmethod
    def of_page(cls, page: Page, states: StateCounts | None) -> PageCounts:
        """Return what a page holds, given what its states do."""
        sizes = len(page), page.events.num_rows
        if states is None:
            return cls(*sizes)
        oldest = None if states.oldest == NO_START else states.oldest
        return cls(*sizes, states.held, states.largest, oldest, tuple(states.by_stage))

    @classmethod
    def of_list(cls, numbers: Sequence[int | None]) -> PageCounts:
        """
        Read the output of :meth:`as_list`.

        Raises
        ------
        StateFormatError
            If it is anything else.
        """
        if len(numbers) < _LEAST or any(
            type(number) is not int and (at != _OLDEST or number is not None)
            for at, number in enumerate(numbers)
        ):
            raise damaged_state("the counts of a page")
        keys, events, held, largest, _, *by_stage = (number or 0 for number in numbers)
        return cls(keys, events, held, largest, numbers[_OLDEST], tuple(by_stage))

    def as_list(self) -> list[int | None]:
        """Return the counts as numbers for JSON."""
        return [self.keys, self.events, self.held, self.largest, self.oldest, *self.by_stage]

    @classmethod
    def sum(cls, parts: Iterable[PageCounts]) -> PageCounts:
        """Return the counts of several pages together."""
        parts = list(parts)
        starts = [part.oldest for part in parts if part.oldest is not None]
        return cls(
            sum(part.keys for part in parts),
            sum(part.events for part in parts),
            sum(part.held for part in parts),
            max((part.largest for part in parts), default=0),
            min(starts, default=None),
            tuple(map(sum, zip(*(part.by_stage for part in parts), strict=False))),
        )
