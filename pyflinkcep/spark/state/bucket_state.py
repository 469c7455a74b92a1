# SPDX-License-Identifier: Apache-2.0
"""A bucket's state as pages and events, independent of storage and division."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.engines.flink.operator.state_counts import StateCounts
from pyflinkcep.matching.columns import HASH, Ints
from pyflinkcep.spark.arrow.ipc import write_table
from pyflinkcep.spark.state.held import PageCounts
from pyflinkcep.spark.state.index import COMMON, MOST_DEPTH, RECENT, BucketIndex
from pyflinkcep.spark.state.key_groups import KeyGroups
from pyflinkcep.spark.state.pages import NO_DEADLINE, Page, read_stored
from pyflinkcep.spark.state.sealed import naming_damage, seal, unseal
from pyflinkcep.spark.state.storage import BucketStorage, PageId

__all__ = ["BucketState", "StateShape"]

_LARGE_PAGE = 256 * 1024
_LARGE_COMMON = 256 * 1024
_SMALL_COMMON = 16 * 1024
_LARGE_RECENT = 64 * 1024
_COMMON_CODE = -1


@attrs.frozen(eq=False)
class StateShape:
    """
    The parts common to all state of a pattern.

    Attributes
    ----------
    pattern : str
        The pattern in one line, for errors.
    key_groups : KeyGroups
        The partition of the keys.
    queued : pyarrow.Schema
        The columns of events in the queue.
    held : pyarrow.Schema
        The columns of events that partial matches hold.
    keys : pyarrow.Schema
        The columns that identify keys.
    """

    pattern: str
    key_groups: KeyGroups
    queued: pa.Schema
    held: pa.Schema
    keys: pa.Schema


class BucketState:
    """
    Pages of partial matches, and a queue of events in segments, in order of arrival.

    Parameters
    ----------
    shape : StateShape
        The form of the state.
    storage : BucketStorage
        The storage of the state.
    fingerprint : dict of str to str
        The fingerprint of the running pattern.
    on_change : {"fail", "restart"}
        The policy if another pattern wrote the state.
    groups : sequence of int
        The bucket's key groups, for errors.
    count : callable, optional
        Returns what a page's states hold, to tell users; by default nothing.

    Notes
    -----
    A bucket begins with one page for all of its keys. While small, it is kept in the index together
    with the most recent events, so that all is read and written in one call. A large page is
    divided: the common one by key group, others by the next bit of the hashes.
    """

    def __init__(
        self,
        shape: StateShape,
        storage: BucketStorage,
        fingerprint: dict[str, str],
        on_change: str,
        groups: Sequence[int] = (),
        count: Callable[[Page], StateCounts | None] = lambda _: None,
    ) -> None:
        self._shape = shape
        self._count = count
        self._storage = storage
        self._groups = _group_text(groups)
        with naming_damage(shape.pattern, self._groups):
            self._before = storage.read_index()
            self.index = BucketIndex.load(self._before, fingerprint, on_change)
        self._to_split: list[int] = []

    # --- pages

    def page_codes(self, hashes: Ints) -> Ints:
        """Return a number for the page of each key hash; see :meth:`page_of_code`."""
        depths = self.index.depths
        if not depths:
            return np.full(len(hashes), _COMMON_CODE, np.int64)
        key_groups = self._shape.key_groups
        groups = key_groups.groups(hashes)
        depth_of = np.full(key_groups.count, -1, np.int64)
        depth_of[list(depths)] = list(depths.values())
        depth = depth_of[groups]
        parts = key_groups.pages(hashes) & ((1 << np.maximum(depth, 0)) - 1)
        codes: Ints = np.where(depth < 0, _COMMON_CODE, groups << MOST_DEPTH | parts)
        return codes

    @staticmethod
    def page_of_code(code: int) -> PageId:
        """Return the page of a number from :meth:`page_codes`."""
        if code == _COMMON_CODE:
            return COMMON
        return code >> MOST_DEPTH, code & ((1 << MOST_DEPTH) - 1)

    @staticmethod
    def code_of_page(page: PageId) -> int:
        """Return the number of a page; see :meth:`page_codes`."""
        return _COMMON_CODE if page == COMMON else page[0] << MOST_DEPTH | page[1]

    def waiting_pages(self, watermark: int) -> list[PageId]:
        """Return the pages with a deadline that the watermark has reached."""
        return [
            page
            for page, deadline in self.index.pages.items()
            if deadline <= watermark and deadline != NO_DEADLINE
        ]

    def read_page(self, page: PageId) -> Page:
        """Return a page; an empty one if there is none."""
        shape = self._shape
        if page not in self.index.pages:
            return Page.empty(shape.keys, shape.held)
        where = self._groups if page == COMMON else f"key group {page[0]}"
        with naming_damage(shape.pattern, where):
            data = self.index.common if page == COMMON else None
            if data is None:
                data = self._storage.read_page(page)
            return Page.from_bytes(data, shape.keys, shape.held)

    def write_page(self, page_id: PageId, page: Page) -> None:
        """Replace a page; one without keys is deleted."""
        if not len(page):
            self._remove_page(page_id)
            return
        data = page.to_bytes()
        if page_id == COMMON:
            self._write_common(page, data)
            return
        self._storage.write_page(page_id, data)
        self._list(page_id, page)
        depth = self.index.depths[page_id[0]]
        if len(data) > _LARGE_PAGE and len(page) > 1 and depth < MOST_DEPTH:
            # Not yet: other pages of the group may be in use.
            self._to_split = list(dict.fromkeys([*self._to_split, page_id[0]]))

    def _write_common(self, page: Page, data: bytes) -> None:
        if len(data) <= _SMALL_COMMON:
            self._remove_page(COMMON)
            self.index.common = data
        elif len(data) <= _LARGE_COMMON or len(page) == 1:
            self.index.common = None
            self._storage.write_page(COMMON, data)
        else:
            self._remove_page(COMMON)
            self._divide_common(page)
            return
        self._list(COMMON, page)

    def _list(self, page_id: PageId, page: Page) -> None:
        """List a page in the index."""
        self.index.pages[page_id] = page.deadline
        self.index.counts[page_id] = PageCounts.of_page(page, self._count(page))

    def forget_pages(self) -> None:
        """Delete all pages."""
        for page_id in list(self.index.pages):
            self._remove_page(page_id)
        self.index.depths.clear()

    def _remove_page(self, page_id: PageId) -> None:
        self.index.counts.pop(page_id, None)
        if self.index.pages.pop(page_id, None) is None:
            return
        if page_id == COMMON and self.index.common is not None:
            self.index.common = None
        else:
            self._storage.write_page(page_id, None)

    def _divide_common(self, page: Page) -> None:
        """Move each key group of the common page to a page of its own."""
        groups = self._shape.key_groups.groups(page.keys.column(HASH).to_numpy())
        for group, part in page.divide(groups).items():
            self.index.depths[group] = 0
            self.write_page((group, 0), part)

    def split_large_pages(self) -> None:
        """Divide every page of key groups with a large one by the next bit of the hashes."""
        for group in self._to_split:
            depth = self.index.depths[group]
            self.index.depths[group] = depth + 1
            for page_id in [page for page in self.index.pages if page[0] == group]:
                page = self.read_page(page_id)
                hashes = page.keys.column(HASH).to_numpy()
                halves = page.divide(self._shape.key_groups.pages(hashes) >> depth & 1)
                self._write_half(page_id, halves.get(0))
                self._write_half((group, page_id[1] | 1 << depth), halves.get(1))
        self._to_split.clear()

    def _write_half(self, page_id: PageId, page: Page | None) -> None:
        if page is None:
            self._remove_page(page_id)
        else:
            self._storage.write_page(page_id, page.to_bytes())
            self._list(page_id, page)

    # --- the queue

    def read_segment(self, number: int, is_same_pattern: bool = True) -> pa.Table:
        """Return the events of a segment; those of another pattern may have different columns."""
        with naming_damage(self._shape.pattern, self._groups):
            if number == RECENT:
                value = self.index.recent
            else:
                value = unseal(self._storage.read_segment(number))
            assert value is not None
            return read_stored(value, self._shape.queued if is_same_pattern else None)

    def write_segment(self, number: int, events: pa.Table, earliest: int) -> None:
        """Replace a segment; `earliest` is the earliest time in it, in epoch milliseconds."""
        if number == RECENT:
            self.index.recent = write_table(events)
        else:
            self._storage.write_segment(number, seal(write_table(events)))
        self.index.segments[number] = earliest
        self.index.queued[number] = events.num_rows

    def remove_segment(self, number: int) -> None:
        """Delete a segment."""
        del self.index.segments[number]
        self.index.dropped.pop(number, None)
        self.index.queued.pop(number, None)
        if number == RECENT:
            self.index.recent = None
        else:
            self._storage.write_segment(number, None)

    def append_events(self, events: pa.Table, earliest: int, dropped: frozenset[int]) -> None:
        """
        Append events, which came after all others, to the queue.

        Parameters
        ----------
        events : pyarrow.Table
            The events.
        earliest : int, epoch milliseconds
            The earliest time among them.
        dropped : frozenset of int
            The bits of events dropped from them.
        """
        index = self.index
        if RECENT in index.segments:
            before = self.read_segment(RECENT)
            events = pa.concat_tables([before, events]).combine_chunks()
            earliest = min(earliest, index.segments[RECENT])
            dropped = dropped.union(index.dropped.get(RECENT, ()))
            self.remove_segment(RECENT)
        number = RECENT
        if events.nbytes > _LARGE_RECENT:
            number = max(index.segments, default=RECENT) + 1
        self.write_segment(number, events, earliest)
        if dropped:
            index.dropped[number] = sorted(dropped)

    # --- the index

    @property
    def held(self) -> PageCounts:
        """What all pages hold."""
        return PageCounts.sum(self.index.counts.values())

    def close(self, timer: int | None, watermark: int | None) -> None:
        """Write the index, with the registered timer and the watermark reached."""
        index = self.index
        index.timer, index.watermark = timer, watermark
        own = {group for group, _ in index.pages}
        index.depths = {group: depth for group, depth in index.depths.items() if group in own}
        data = index.to_bytes()
        if data != self._before:
            self._storage.write_index(data)


def _group_text(groups: Sequence[int]) -> str:
    if not groups:
        return "all key groups"
    return f"key group{'s' if len(groups) > 1 else ''} {', '.join(map(str, groups))}"
