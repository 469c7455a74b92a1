# SPDX-License-Identifier: Apache-2.0
"""Matching on streams from stored events, where a key's state is not partial matches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.matching.columns import Flags, Ints
from pyflinkcep.matching.event_store import EventStore
from pyflinkcep.matching.matcher import Items, States, Written
from pyflinkcep.matching.results import Found
from pyflinkcep.matching.stretches import Events


@attrs.frozen(eq=False)
class KeyEvents:
    """The events of a page's keys, key by key: those of its state, then the due ones."""

    handles: Ints  # The events
    bounds: Ints  # Where those of each key begin, and where the last ones end
    held: Ints  # How many of each key are of its state
    numbers: Ints  # A row for each key: the numbers of its state; zeros for a new key
    is_known: Flags  # Which keys have state
    watermark: int  # The time reached
    key_of: Callable[[int], Any]  # Returns a key by its number, for errors


@attrs.frozen(eq=False)
class KeptEvents:
    """What becomes the state of keys."""

    goes_on: Flags  # Which keys have state afterwards
    since: Ints  # For each key its first event to keep, among all events
    deadlines: Ints  # For each key when time alone has an effect
    numbers: Ints  # A row for each key


class EventPages(ABC):
    """
    Matches keys' events; see :class:`~pyflinkcep.matching.matcher.PageMatcher`.

    A key's state is events, and numbers: the version of their format, then `width` others.
    """

    what: ClassVar[str]
    version: ClassVar[int]
    width: ClassVar[int]

    def __init__(self) -> None:
        self._made: list[pa.Table] = []

    def set_events(self, store: EventStore) -> None:
        """Use another store: the events that handles refer to from now on."""
        self._store = store

    def run_page(
        self, events: Events, items: Items, page: States, first_held: int, watermark: int
    ) -> Written:
        """Match events of a page's keys, and advance their time to the watermark."""
        stored = page.fields(self.what, self.version, self.width)
        self.check(stored, page.counts)
        is_known = items.positions >= 0
        known = items.positions[is_known]
        numbers = np.zeros((len(is_known), self.width), np.int64)
        numbers[is_known] = stored[known]
        held, begins = np.zeros((2, len(is_known)), np.int64)
        held[is_known] = page.counts[known]
        begins[is_known] = first_held + (np.cumsum(page.counts) - page.counts)[known]
        sizes = np.stack([held, items.ends - items.starts], axis=1).reshape(-1)
        firsts = np.stack([begins, events.base + items.starts], axis=1).reshape(-1)
        handles = _ranges(firsts, sizes)
        if events.handles is not None:  # due events in an order of their own, after those held
            is_due = handles >= events.base
            handles[is_due] = events.handles[handles[is_due] - events.base]
        bounds = np.r_[0, np.cumsum(sizes)][::2]
        keys = KeyEvents(handles, bounds, held, numbers, is_known, watermark, items.key_of)
        kept = self.matched(keys)
        going = np.flatnonzero(kept.goes_on)
        since, counts = kept.since[going], (bounds[1:] - kept.since)[going]
        versions = np.full((len(going), 1), self.version, np.int64)
        return Written(
            going,
            kept.deadlines[going],
            np.full(len(going), 1 + self.width, np.int64),
            counts,
            np.hstack([versions, kept.numbers[going]]).reshape(-1),
            handles[_ranges(since, counts)],
        )

    def check(self, numbers: Ints, counts: Ints) -> None:  # noqa: B027
        """Refuse damaged state: numbers that do not fit the counts of events."""

    @abstractmethod
    def matched(self, keys: KeyEvents) -> KeptEvents:
        """Collect what the events add; return what to keep."""

    def take(self) -> Found:
        """Return the rows so far, and clear them."""
        made, self._made = self._made, []
        return Found.of_rows(pa.concat_tables(made) if made else None)

    def count(self, page: States) -> None:  # noqa: B027
        """Return nothing: it keeps events, no partial matches."""


def _ranges(firsts: Ints, sizes: Ints) -> Ints:
    """Return the numbers of all ranges in a row."""
    offsets: Ints = np.repeat(firsts - (np.cumsum(sizes) - sizes), sizes)
    return offsets + np.arange(len(offsets))
