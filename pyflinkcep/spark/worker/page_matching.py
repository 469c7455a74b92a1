# SPDX-License-Identifier: Apache-2.0
"""The work on the pages of a bucket: each key with due events or a passed deadline."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from pyflinkcep.matching.columns import HASH, Flags, Ints
from pyflinkcep.matching.event_store import EventStore
from pyflinkcep.matching.keys import differ
from pyflinkcep.matching.layout import KeyText
from pyflinkcep.matching.matcher import Items, Written
from pyflinkcep.matching.stretches import Stretches
from pyflinkcep.spark.state.pages import NO_DEADLINE, Page
from pyflinkcep.spark.worker.bucket_task import BucketTask

__all__ = ["PageWork"]


class PageWork:
    """
    Runs the automata of the keys of some pages, all at once.

    Parameters
    ----------
    task : BucketTask
        The prepared plan.
    store : EventStore
        The events: those held by pages, then the due ones.
    due : pyarrow.Table
        The due events, sorted by page, key, time and arrival.
    times : array of int, epoch milliseconds
        Their times.
    first_held : int
        The handle of the first event held by pages.
    watermark : int, epoch milliseconds
        The watermark; in processing time the clock.
    """

    def __init__(
        self,
        task: BucketTask,
        store: EventStore,
        due: pa.Table,
        times: Ints,
        first_held: int,
        watermark: int,
    ) -> None:
        self._task = task
        self._store = store
        self._due = due
        self._times = times
        self._first_held = first_held
        self._watermark = watermark

    def run(self, held: Page, page_of_key: Ints, page_of_event: Ints) -> dict[int, Page]:
        """
        Process pages.

        Parameters
        ----------
        held : Page
            All keys of the pages.
        page_of_key : array of int
            The number of each key's page.
        page_of_event : array of int
            The number of the page of each due event's key.

        Returns
        -------
        dict of int to Page
            The changed pages by number.
        """
        task = self._task
        first_due = self._first_held + held.events.num_rows
        stretches = Stretches.of(
            self._due, self._times, first_due, task.layout, task.rules, task.order, self._store
        )
        task.matcher.set_events(self._store)
        firsts, lasts = stretches.bounds[:-1], stretches.bounds[1:]
        positions = self._positions(held, firsts)
        runs = np.flatnonzero((positions >= 0) | stretches.needed)
        positions = positions[runs]
        is_untouched = np.ones(len(held), bool)
        is_untouched[positions[positions >= 0]] = False
        is_waiting = is_untouched & (held.deadlines <= self._watermark)
        is_waiting &= held.deadlines != NO_DEADLINE
        waiting = np.flatnonzero(is_waiting)
        if not len(runs) and not len(waiting):
            return {}
        event_ends = np.r_[0, np.cumsum(held.counts)]

        def key_of(item: int) -> Any:
            if item < len(runs):
                return stretches.key_of(int(runs[item]))
            row = int(event_ends[waiting[item - len(runs)]])
            return KeyText(task.layout, held.events, row)

        nothing = np.zeros(len(waiting), np.int64)
        items = Items(
            np.r_[positions, waiting],
            np.r_[firsts[runs], nothing],
            np.r_[lasts[runs], nothing],
            key_of,
        )
        written = task.matcher.run_page(
            stretches.events, items, held, self._first_held, self._watermark
        )
        page_of_item = np.r_[page_of_event[firsts[runs]], page_of_key[waiting]]
        rows = np.r_[firsts[runs], waiting]
        return self._pages(
            held, page_of_key, is_untouched & ~is_waiting, written, page_of_item, rows, len(runs)
        )

    def _positions(self, held: Page, firsts: Ints) -> Ints:
        """Return the position of each stretch's key among the held keys; -1 for a new key."""
        if not len(held) or not len(firsts):
            return np.full(len(firsts), -1, np.int64)
        wanted = self._due.select(self._task.key_schema.names).take(pa.array(firsts))
        hashes = held.keys.column(HASH).to_numpy()
        order = np.argsort(hashes, kind="stable")
        ranked = hashes[order]
        wanted_hashes = wanted.column(HASH).to_numpy()
        found = np.searchsorted(ranked, wanted_hashes)
        positions = order[np.minimum(found, len(order) - 1)]
        same = hashes[positions] == wanted_hashes
        if (ranked[1:] == ranked[:-1]).any() or not _same_keys(held.keys, wanted, positions, same):
            return _positions_by_value(held.keys, wanted)
        return np.where(same, positions, -1)

    def _pages(
        self,
        held: Page,
        page_of_key: Ints,
        is_kept: Flags,
        written: Written,
        page_of_item: Ints,
        rows: Ints,
        runs: int,
    ) -> dict[int, Page]:
        """
        Return the pages with items: untouched keys, then those that continue.

        `rows` has for each item the row of its key: for the first `runs` among the due events, for
        the others among the held keys.
        """
        changed = np.unique(page_of_item)
        is_kept = is_kept & np.isin(page_of_key, changed)
        parts, numbers = [held.keep(is_kept)], [page_of_key[is_kept]]
        if len(written.items):
            split = int(np.searchsorted(written.items, runs))  # items are written in order
            rows = rows[written.items]
            columns = self._task.key_schema.names
            keys = [
                self._due.select(columns).take(pa.array(rows[:split])),
                held.keys.take(pa.array(rows[split:])),
            ]
            goes_on = Page(
                pa.concat_tables(keys),
                written.deadlines,
                written.lengths,
                written.counts,
                written.numbers,
                self._store.take(written.handles),
            )
            parts.append(goes_on)
            numbers.append(page_of_item[written.items])
        divided = Page.concat(parts).divide(np.concatenate(numbers))
        empty = Page.empty(self._task.key_schema, self._task.event_schema)
        return {number: divided.get(number, empty) for number in changed.tolist()}


def _same_keys(held: pa.Table, wanted: pa.Table, positions: Ints, same: Flags) -> bool:
    """Whether keys with one hash are equal."""
    chosen = pa.array(np.flatnonzero(same))
    held, wanted = held.take(pa.array(positions)).take(chosen), wanted.take(chosen)
    return not differ(held.columns, wanted.columns).any()


def _positions_by_value(held: pa.Table, wanted: pa.Table) -> Ints:
    """Look up keys when two share a hash."""
    rows = [zip(*(c.to_pylist() for c in table.columns), strict=True) for table in (held, wanted)]
    known = {key: position for position, key in enumerate(rows[0])}
    return np.asarray([known.get(key, -1) for key in rows[1]], np.int64)
