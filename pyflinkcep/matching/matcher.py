# SPDX-License-Identifier: Apache-2.0
"""The interfaces of matching sorted events on a worker."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import attrs

from pyflinkcep.engines.flink.operator.state_counts import StateCounts
from pyflinkcep.matching.columns import Ints
from pyflinkcep.matching.event_store import EventStore
from pyflinkcep.matching.fields import FieldArray
from pyflinkcep.matching.results import Found
from pyflinkcep.matching.stretches import Events, Stretches
from pyflinkcep.time import MAX_WATERMARK

__all__ = [
    "MOST_EVENTS",
    "NO_DEADLINE",
    "Items",
    "PageMatcher",
    "PatternMatcher",
    "States",
    "Store",
    "Written",
]

MOST_EVENTS = 1 << 17
"""About how many events the results may have that a bounded job collects before handing them on."""

NO_DEADLINE = MAX_WATERMARK
"""The deadline of a key, or page, that waits only for events."""


class Store(Protocol):
    """The events that a matcher knows by handle."""

    def row(self, handle: int) -> Any:
        """Return an event as the user's conditions see it."""

    def fields(self, handle: int) -> Sequence[Any]:
        """Return what match expressions need of an event."""

    def field_arrays(self) -> tuple[int, int, tuple[FieldArray, ...]]:
        """Return the handle of the first of the newest events, their number, and their fields."""

    def keep(self, handles: Iterable[int]) -> None:
        """Drop all events except these."""


class States(Protocol):
    """
    The states of the keys of a page, in columns.

    Attributes
    ----------
    lengths : array of int
        How many of `numbers` belong to each key.
    counts : array of int
        How many of the page's events belong to each key.
    numbers : array of int
        The concatenated states of the keys; see ``StateWriter``.
    """

    lengths: Ints
    counts: Ints
    numbers: Ints

    def fields(self, what: str, version: int, width: int) -> Ints:
        """Return the keys' numbers as a row for each, if all keys have the same number of them."""


@attrs.frozen(eq=False)
class Items:
    """
    The work to do for the keys of a page of state.

    Attributes
    ----------
    positions : array of int64
        For each item the position of its key in the page; -1 for a new key.
    starts, ends : array of int64
        Where each item's events are; there may be none.
    key_of : callable
        Returns the key of an item by its number, for errors.
    """

    positions: Ints
    starts: Ints
    ends: Ints
    key_of: Callable[[int], Any]


@attrs.frozen(eq=False)
class Written:
    """
    The states of the keys that continue.

    Attributes
    ----------
    items : array of int64
        The numbers of their items.
    deadlines, lengths, counts : array of int64
        For each one, as in a page.
    numbers : array of int64
        The concatenated states; see ``StateWriter``.
    handles : array of int64
        The events that the states refer to.
    """

    items: Ints
    deadlines: Ints
    lengths: Ints
    counts: Ints
    numbers: Ints
    handles: Ints


class PageMatcher(Protocol):
    """
    Matches keys' events on a stream.

    A matcher serves one task, and the task calls its methods in a fixed order. For each bucket
    of keys in a micro-batch:

    1. :meth:`set_events`, once the store has the events of the bucket's pages and the due ones;
    2. :meth:`run_page` for each page with due events or with a deadline that has passed; nothing
       stays open, the states of the keys that continue are returned;
    3. :meth:`take`, the results of all these pages.

    An error in user code leaves the matcher unusable and fails the task.
    """

    def set_events(self, store: EventStore) -> None:
        """Use another store: the events that handles refer to from now on."""

    def run_page(
        self, events: Events, items: Items, page: States, first_held: int, watermark: int
    ) -> Written:
        """
        Match events of a page's keys, and advance their time to the watermark.

        Parameters
        ----------
        events : Events
            The events.
        items : Items
            The events of each key.
        page : States
            The page.
        first_held : int
            The handle of the page's first event.
        watermark : int, epoch milliseconds
            The watermark; in processing time the clock.
        """

    def take(self) -> Found:
        """Return the results of the pages so far, and clear them."""

    def count(self, page: States) -> StateCounts | None:
        """Return what a page's states hold; None if they are not partial matches."""


class PatternMatcher(PageMatcher, Protocol):
    """
    Matches keys' events: of a bounded job with :meth:`run`, of a stream with :meth:`run_page`.

    In a bounded job the task calls for each chunk of sorted events:

    1. :meth:`set_events`, once the store has the chunk;
    2. :meth:`run`, whose results must be consumed before anything else is called. The last key of
       the chunk stays open, since its events may continue in the next one;
    3. :meth:`live`; the store then drops all other events.

    After the last chunk, :meth:`finish` ends the open key.
    """

    def set_events(self, store: Store) -> None:
        """Use another store: the events that handles refer to from now on."""

    def run(self, stretches: Stretches, continues: bool, key_before: Any) -> Iterator[Found]:
        """
        Match the stretches of a chunk; yield results as they come.

        Parameters
        ----------
        stretches : Stretches
            The events of the chunk.
        continues : bool
            Whether the first stretch continues the open key.
        key_before : object
            The key that is open, for errors.
        """

    def finish(self, key: Any) -> Found:
        """End the open key with its final watermark, if one is open; `key` is for errors."""

    def live(self) -> list[int]:
        """Return the handles of the events that the open key holds."""
