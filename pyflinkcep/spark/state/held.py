# SPDX-License-Identifier: Apache-2.0
"""What pages of state hold, in numbers small enough to be kept for each page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs
import numpy as np

from pyflinkcep.engines.flink.operator.state_counts import NO_START, StateCounts
from pyflinkcep.engines.flink.operator.state_format import damaged_state
from pyflinkcep.spark.state.pages import Page

__all__ = ["PageCounts", "PageNumbers", "counts_from_bytes", "counts_to_bytes"]

PageNumbers = Sequence[int]
"""What one page holds: the fields of :class:`PageCounts`, ``NO_START`` for no time. A bucket may
have many pages, and reads and writes these with each micro-batch: they are not made objects."""

_LEAST = 5
_UNKNOWN = -1
"""The number of keys of a page that was not counted."""


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

    @staticmethod
    def of_page(page: Page, states: StateCounts | None) -> PageNumbers:
        """Return the numbers of a page, given what its states hold."""
        sizes = len(page), page.events.num_rows
        if states is None:
            return (*sizes, 0, 0, NO_START)
        return (*sizes, states.held, states.largest, states.oldest, *states.by_stage)

    @classmethod
    def sum(cls, pages: Iterable[PageNumbers]) -> PageCounts:
        """Return the counts of several pages together."""
        columns = list(zip(*pages, strict=False))
        if not columns:
            return cls()
        keys, events, held = map(sum, columns[:3])
        oldest = min(columns[4])
        return cls(
            keys,
            events,
            held,
            max(columns[3]),
            None if oldest == NO_START else oldest,
            tuple(map(sum, columns[_LEAST:])),
        )


def counts_to_bytes(pages: Iterable[PageNumbers | None]) -> bytes:
    """Return the numbers of pages as bytes; None for a page that was not counted."""
    rows = list(pages)
    width = max([_LEAST, *(len(row) for row in rows if row is not None)])
    filled = [
        (_UNKNOWN, *[0] * (width - 1)) if row is None else (*row, *[0] * (width - len(row)))
        for row in rows
    ]
    return np.asarray(filled, "<i8").tobytes()


def counts_from_bytes(data: bytes, pages: int) -> list[PageNumbers | None]:
    """
    Read the output of :func:`counts_to_bytes` for so many pages.

    Raises
    ------
    StateFormatError
        If it is anything else.
    """
    size, rest = divmod(len(data), 8 * pages) if pages else (_LEAST, len(data))
    if rest or size < _LEAST:
        raise damaged_state("the counts of pages")
    rows = np.frombuffer(data, "<i8").reshape(pages, size).tolist()
    return [None if row[0] == _UNKNOWN else row for row in rows]
