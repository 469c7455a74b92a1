# SPDX-License-Identifier: Apache-2.0
"""The work on one page of a bucket: each key that has due events, or whose time has come."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyflinkcep.spark.arrow.columns import HASH, Ints
from pyflinkcep.spark.arrow.layout import KeyText
from pyflinkcep.spark.matching.event_store import EventStore
from pyflinkcep.spark.matching.matcher import Items, Written
from pyflinkcep.spark.matching.stretches import Stretches
from pyflinkcep.spark.state.pages import NO_DEADLINE, Page
from pyflinkcep.spark.worker.stream_worker import StreamTask

__all__ = ["PageWork"]


class PageWork:
    """
    Runs the automata of a page's keys.

    Parameters
    ----------
    task : StreamTask
        What is to be done.
    store : EventStore
        The events: those that pages hold, then the due ones.
    due : pyarrow.Table
        The due events, sorted by page, key, time and arrival.
    times : array of int, epoch milliseconds
        Their times.
    first_due : int
        The handle of the first due event.
    watermark : int, epoch milliseconds
        The watermark; in processing time the clock.
    """

    def __init__(
        self,
        task: StreamTask,
        store: EventStore,
        due: pa.Table,
        times: Ints,
        first_due: int,
        watermark: int,
    ) -> None:
        self._task = task
        self._store = store
        self._due = due
        self._watermark = watermark
        self._stretches = Stretches.of(
            due, times, first_due, task.layout, task.rules, task.order, store
        )
        self._firsts, self._lasts = self._stretches.bounds[:-1], self._stretches.bounds[1:]
        task.matcher.set_events(store)

    def run(self, page: Page, first_held: int, start: int, end: int) -> Page | None:
        """
        Process a page.

        Parameters
        ----------
        page : Page
            The page.
        first_held : int
            The handle of the page's first event.
        start, end : int
            Where the page's due events are.

        Returns
        -------
        Page or None
            The page as it is now, None when nothing changed.
        """
        runs = np.arange(*np.searchsorted(self._firsts, [start, end]))
        positions = self._positions(page, runs)
        wanted = (positions >= 0) | self._stretches.needed[runs]
        runs, positions = runs[wanted], positions[wanted]
        untouched = np.ones(len(page.lengths), bool)
        untouched[positions[positions >= 0]] = False
        waiting = untouched & (page.deadlines <= self._watermark)
        waiting &= page.deadlines != NO_DEADLINE
        untouched[waiting] = False
        late = np.flatnonzero(waiting)
        nothing = np.zeros(len(late), np.int64)
        if not len(runs) and not len(late):
            return None
        event_ends = np.r_[0, np.cumsum(page.counts)]

        def key_of(item: int) -> KeyText | None:
            if item < len(runs):
                return self._stretches.key_of(int(runs[item]))
            row = int(event_ends[late[item - len(runs)]])
            return KeyText(self._task.layout, page.events, row)

        items = Items(
            np.r_[positions, late],
            np.r_[self._firsts[runs], nothing],
            np.r_[self._lasts[runs], nothing],
            key_of,
        )
        written = self._task.matcher.run_page(
            self._stretches.events, items, page, first_held, self._watermark
        )
        return self._page(page, untouched, written, runs, late)

    def _positions(self, page: Page, runs: Ints) -> Ints:
        """Give the position in the page of each run's key, -1 for one that is not there."""
        if not len(page.lengths) or not len(runs):
            return np.full(len(runs), -1, np.int64)
        names = self._task.key_schema.names
        wanted = self._due.select(names).take(pa.array(self._firsts[runs]))
        held = page.keys.column(HASH).to_numpy()
        order = np.argsort(held, kind="stable")
        ranked = held[order]
        hashes = wanted.column(HASH).to_numpy()
        found = np.searchsorted(ranked, hashes)
        positions = order[np.minimum(found, len(order) - 1)]
        same = held[positions] == hashes
        if (ranked[1:] == ranked[:-1]).any() or not _same_keys(page.keys, wanted, positions, same):
            return _positions_by_value(page.keys, wanted)
        return np.where(same, positions, -1)

    def _page(
        self, old: Page, untouched: np.ndarray[Any, Any], written: Written, runs: Ints, late: Ints
    ) -> Page:
        """Give the page: keys that nothing happened to, then those that go on."""
        kept = old.keep(untouched)
        if not len(written.items):
            return kept
        due_items = written.items[written.items < len(runs)]
        late_items = written.items[written.items >= len(runs)] - len(runs)
        columns = self._task.key_schema.names
        changed = Page(
            pa.concat_tables(
                [
                    self._due.select(columns).take(pa.array(self._firsts[runs[due_items]])),
                    old.keys.take(pa.array(late[late_items])),
                ]
            ),
            written.deadlines,
            written.lengths,
            written.counts,
            written.numbers,
            self._store.take(written.handles),
        )
        return Page.concat([kept, changed])


def _same_keys(held: pa.Table, wanted: pa.Table, positions: Ints, same: Any) -> bool:
    """Say whether keys of one hash are one key."""
    chosen = pa.array(np.flatnonzero(same))
    held, wanted = held.take(pa.array(positions)).take(chosen), wanted.take(chosen)
    for name in held.column_names:
        left, right = held.column(name), wanted.column(name)
        differ = pc.not_equal(left, right)
        if pc.any(differ).as_py() or not left.is_null().equals(right.is_null()):
            return False
    return True


def _positions_by_value(held: pa.Table, wanted: pa.Table) -> Ints:
    """Find keys where two have one hash."""
    rows = [zip(*(c.to_pylist() for c in table.columns), strict=True) for table in (held, wanted)]
    known = {key: position for position, key in enumerate(rows[0])}
    return np.asarray([known.get(key, -1) for key in rows[1]], np.int64)
