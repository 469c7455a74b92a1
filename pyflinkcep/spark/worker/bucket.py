# SPDX-License-Identifier: Apache-2.0
"""The work on a bucket of keys when events come or time passes; knows no Spark but Rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyflinkcep.operator import is_late
from pyflinkcep.spark.arrow.columns import HASH
from pyflinkcep.spark.arrow.ipc import read_table, write_table
from pyflinkcep.spark.arrow.layout import Layout
from pyflinkcep.spark.matching.event_store import EventStore
from pyflinkcep.spark.matching.results import Found
from pyflinkcep.spark.state.index import BucketIndex, BucketStorage, PageId
from pyflinkcep.spark.state.key_groups import KeyGroups
from pyflinkcep.spark.state.pages import NO_DEADLINE, Page
from pyflinkcep.spark.state.pattern_change import requeued, still_droppable
from pyflinkcep.spark.worker.page_matching import PageWork
from pyflinkcep.spark.worker.stream_worker import StreamTask

__all__ = ["BucketOutput", "BucketWork"]

_LARGE_PAGE = 256 * 1024
_MOST_DEPTH = 10


@attrs.frozen(eq=False)
class BucketOutput:
    """
    What the work on a bucket gave.

    Attributes
    ----------
    found : Found
        Matches and timeouts.
    events : EventStore
        Where their handles lead.
    late : pyarrow.Table or None
        The events that came too late.
    """

    found: Found
    events: EventStore
    late: pa.Table | None


class BucketWork:
    """
    Flink's keyed operator for all keys of a bucket at once, on columns.

    Parameters
    ----------
    task : StreamTask
        What is to be done.
    storage : BucketStorage
        The bucket's state.

    Notes
    -----
    Ports ``CepOperator.processElement`` and ``onEventTime`` (Flink 2.3.0) to micro-batches:
    events that are not late join the queue; those that the watermark has reached are sorted by
    key and time and shown to their key's automaton. The rules themselves are
    :class:`~pyflinkcep.operator.CepOperator`'s.
    """

    def __init__(self, task: StreamTask, storage: BucketStorage) -> None:
        self._task = task
        self._layout: Layout = task.layout
        self._key_groups: KeyGroups = task.key_groups
        self._storage = storage
        self.index = BucketIndex.load(
            storage.read_index(), task.fingerprint, task.on_pattern_change
        )
        self._to_split: list[int] = []
        if self.index.fingerprint != task.fingerprint:
            self._restart()

    def _restart(self) -> None:
        """Forget what another pattern left; events that still wait are this pattern's now."""
        for number, bits in self.index.dropped.items():
            self.index.dropped[number] = still_droppable(
                bits, self.index.fingerprint, self._task.nfa, self._task.droppable
            )
        for number in self.index.segments:
            old = read_table(self._storage.read_segment(number))
            new = requeued(
                old,
                self._task.schema,
                self.index.fingerprint,
                self._task.nfa,
                self._layout.values,
            )
            self._storage.write_segment(number, write_table(new))
        for page in self.index.pages:
            self._storage.write_page(page, None)
        self.index.pages.clear()
        self.index.depths.clear()
        self.index.fingerprint = self._task.fingerprint

    def run(self, tables: Sequence[pa.Table], watermark: int) -> BucketOutput:
        """
        Take in events and let time pass.

        Parameters
        ----------
        tables : sequence of pyarrow.Table
            The new events in order of arrival.
        watermark : int, epoch milliseconds
            The watermark; in processing time the clock.
        """
        late = None
        if self._task.processing_time:
            due = pa.concat_tables(tables) if tables else self._task.schema.empty_table()
            times = np.full(due.num_rows, watermark, np.int64)
        else:
            late = self._queue(pa.concat_tables(tables), watermark) if tables else None
            due = self._take_due(watermark)
            times = self._layout.times_ms(due)
        found, events = self._match(due, times, watermark)
        return BucketOutput(found, events, late)

    # --- the queue

    def _queue(self, table: pa.Table, watermark: int) -> pa.Table | None:
        """Put new events into the queue; give the late ones."""
        times = self._layout.times_ms(table)
        late = is_late(times, watermark)
        late_events = table.filter(pa.array(late)) if late.any() else None
        if not late.all():
            if late_events is not None:
                table, times = table.filter(pa.array(~late)), times[~late]
            number = self.index.add_segment(int(times.min()), self._task.dropped)
            self._storage.write_segment(number, write_table(table))
        return late_events

    def _take_due(self, watermark: int) -> pa.Table:
        """Take the events that the watermark has reached out of the queue."""
        due = [self._task.schema.empty_table()]
        for number, earliest in list(self.index.segments.items()):
            if earliest > watermark:
                continue
            table = read_table(self._storage.read_segment(number))
            times = self._layout.times_ms(table)
            reached = is_late(times, watermark)
            due.append(table.filter(pa.array(reached)))
            if reached.all():
                self.index.remove_segment(number)
                self._storage.write_segment(number, None)
            else:
                self._storage.write_segment(number, write_table(table.filter(pa.array(~reached))))
                self.index.segments[number] = int(times[~reached].min())
        return pa.concat_tables(due)

    # --- matching

    def _match(
        self, due: pa.Table, times: np.ndarray[Any, Any], watermark: int
    ) -> tuple[Found, EventStore]:
        """Show the due events to their keys' automata, and let time pass for keys that wait."""
        task = self._task
        page_ids = self._page_ids(due)
        order = self._order(due, page_ids)
        due, times, page_ids = due.take(pa.array(order)), times[order], page_ids[order]
        touched = self._touched_pages(page_ids, watermark)
        pages = {page: self._load(page) for page in touched}
        held = [page.events for page in pages.values()]
        store = EventStore(task.reader, task.event_schema)
        all_events = pa.concat_tables([*held, due.select(task.event_schema.names)])
        base = store.add(all_events.combine_chunks())  # each page takes some: from one piece
        first_due = base + sum(table.num_rows for table in held)
        work = PageWork(task, store, due, times, first_due, watermark)
        first_held = base
        bounds = self._bounds(page_ids, touched)
        for page_id, page in pages.items():
            start, end = bounds[page_id]
            changed = work.run(page, first_held, start, end)
            first_held += page.events.num_rows
            if changed is not None:
                self._save(page_id, changed)
        for group in self._to_split:
            self._split(group)
        self._to_split.clear()
        return task.matcher.take(), store

    def _page_ids(self, table: pa.Table) -> np.ndarray[Any, Any]:
        """Give each event's (key group, page) as a row of two."""
        hashes = table.column(HASH).to_numpy()
        groups = self._key_groups.groups(hashes)
        depths = np.zeros(self._key_groups.count, np.int64)
        for group, depth in self.index.depths.items():
            depths[group] = depth
        pages = self._key_groups.pages(hashes) & ((1 << depths[groups]) - 1)
        return np.stack([groups, pages], axis=1)

    def _order(self, table: pa.Table, page_ids: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Give the order: page, key, time (in processing time one for all), arrival."""
        codes = [] if self._task.processing_time else [self._layout.times(table)]
        for name in self._layout.key_signature:
            column = table.column(name).combine_chunks()
            if name != HASH:
                encoded = pc.dictionary_encode(column, null_encoding="encode")
                if isinstance(encoded, pa.ChunkedArray):
                    encoded = encoded.combine_chunks()
                codes.append(encoded.indices.to_numpy(zero_copy_only=False))
        order: np.ndarray[Any, Any] = np.lexsort([*codes, page_ids[:, 1], page_ids[:, 0]])
        return order

    def _touched_pages(self, page_ids: np.ndarray[Any, Any], watermark: int) -> list[PageId]:
        starts = np.flatnonzero(np.r_[True, (page_ids[1:] != page_ids[:-1]).any(axis=1)])
        of_events = [] if not len(page_ids) else [(g, p) for g, p in page_ids[starts].tolist()]
        waiting = [
            page
            for page, deadline in self.index.pages.items()
            if deadline <= watermark and deadline != NO_DEADLINE
        ]
        return list(dict.fromkeys([*of_events, *waiting]))

    @staticmethod
    def _bounds(
        page_ids: np.ndarray[Any, Any], touched: Sequence[PageId]
    ) -> dict[PageId, tuple[int, int]]:
        """Give where each page's events begin and end."""
        flat = page_ids[:, 0] << np.int64(32) | page_ids[:, 1]
        wanted = np.asarray([group << 32 | page for group, page in touched], np.int64)
        starts = np.searchsorted(flat, wanted, "left").tolist()
        ends = np.searchsorted(flat, wanted, "right").tolist()
        return dict(zip(touched, zip(starts, ends, strict=True), strict=True))

    # --- pages

    def _load(self, page: PageId) -> Page:
        if page not in self.index.pages:
            return Page.empty(self._task.key_schema, self._task.event_schema)
        return Page.from_bytes(self._storage.read_page(page))

    def _save(self, page_id: PageId, page: Page) -> None:
        if not len(page.lengths):
            if self.index.pages.pop(page_id, None) is not None:
                self._storage.write_page(page_id, None)
            return
        data = page.to_bytes()
        group = page_id[0]
        self.index.pages[page_id] = page.deadline
        self._storage.write_page(page_id, data)
        depth = self.index.depths.get(group, 0)
        if len(data) > _LARGE_PAGE and len(page.lengths) > 1 and depth < _MOST_DEPTH:
            # Not yet: other pages of the group may be at work.
            self._to_split = list(dict.fromkeys([*self._to_split, group]))

    def _split(self, group: int) -> None:
        """Divide every page of a key group in two by the next bit of the keys' hashes."""
        depth = self.index.depths.get(group, 0)
        self.index.depths[group] = depth + 1
        for page_id in [page for page in self.index.pages if page[0] == group]:
            page = Page.from_bytes(self._storage.read_page(page_id))
            bit = self._key_groups.pages(page.keys.column(HASH).to_numpy()) >> depth & 1
            for half in (0, 1):
                part = page.keep(bit == half)
                target = (group, page_id[1] | half << depth)
                if len(part.lengths):
                    self._storage.write_page(target, part.to_bytes())
                    self.index.pages[target] = part.deadline
                elif target in self.index.pages:
                    del self.index.pages[target]
                    self._storage.write_page(target, None)

    # --- the index

    def close(self, timer: int | None) -> None:
        """Write the index with the timer that is registered now."""
        self.index.timer = timer
        if not self.index.pages:
            self.index.depths.clear()
        self._storage.write_index(self.index.to_bytes())

    @property
    def deadline(self) -> int | None:
        """When the bucket must be looked at next, epoch milliseconds; None for never."""
        deadline = self.index.deadline
        return None if deadline == NO_DEADLINE else deadline
