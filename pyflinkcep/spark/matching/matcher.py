# SPDX-License-Identifier: Apache-2.0
"""Matching of sorted events on a worker: what is asked, and who can do it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import attrs

from pyflinkcep.spark.arrow.columns import Ints
from pyflinkcep.spark.matching.event_store import EventStore
from pyflinkcep.spark.matching.results import Found
from pyflinkcep.spark.matching.stretches import Events, Stretches
from pyflinkcep.spark.state.pages import Page

__all__ = ["MOST_RESULTS", "Items", "Matcher", "PageMatcher", "Written"]

MOST_RESULTS = 4096
"""How many results of a bounded job wait at most, or some more, before they are handed on."""


@attrs.frozen(eq=False)
class Items:
    """
    What is to be done for keys of a page of state.

    Attributes
    ----------
    positions : array of int64
        For each item the position of its key in the page, -1 for a key that is not there.
    starts, ends : array of int64
        For each item where its events are; there may be none.
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
    The states of the keys that go on.

    Attributes
    ----------
    items : array of int64
        The numbers of their items.
    deadlines, lengths, counts : array of int64
        For each one, as a page has them.
    numbers : array of int64
        The states one after another; see ``StateWriter``.
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
       stays open, the states of the keys that go on are returned;
    3. :meth:`take`, the results of all these pages.

    An error of users' code leaves the matcher unusable; the task fails with it.
    """

    def set_events(self, store: EventStore) -> None:
        """Use another store: what handles mean from now on."""

    def run_page(
        self, events: Events, items: Items, page: Page, first_held: int, watermark: int
    ) -> Written:
        """
        Match events of keys of a page, and let time pass for them to the watermark.

        Parameters
        ----------
        events : Events
            The events.
        items : Items
            Which key gets which of them.
        page : Page
            The page.
        first_held : int
            The handle of the page's first event.
        watermark : int, epoch milliseconds
            The watermark; in processing time the clock.
        """

    def take(self) -> Found:
        """Return the results of the pages so far, and forget them."""


class Matcher(PageMatcher, Protocol):
    """
    Matches keys' events: of a bounded job with :meth:`run`, of a stream with :meth:`run_page`.

    In a bounded job the task calls for each chunk of sorted events:

    1. :meth:`set_events`, once the store has the chunk;
    2. :meth:`run`, whose results are taken to the end before anything else is called. The last
       key of the chunk stays open, for its events may go on in the next one;
    3. :meth:`live`; the store then forgets every other event.

    After the last chunk, :meth:`finish` ends the open key.
    """

    def run(self, stretches: Stretches, continues: bool, key_before: Any) -> Iterator[Found]:
        """
        Match the stretches of a chunk; yield results as they come.

        Parameters
        ----------
        stretches : Stretches
            The events of the chunk.
        continues : bool
            Whether the first stretch goes on with the key that is open.
        key_before : object
            The key that is open, for errors.
        """

    def finish(self, key: Any) -> Found:
        """End the open key with its final watermark, if one is open; `key` is for errors."""

    def live(self) -> list[int]:
        """Return the handles of the events that the open key holds."""
