# SPDX-License-Identifier: Apache-2.0
"""A bucket's state as pages and events, independent of storage and division."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.engines.flink.stored_state import (
    StateCounts,
    damaged_state,
    pack,
    refuse_damage,
    unpack,
)
from pyflinkcep.errors import PatternChangedError
from pyflinkcep.matching.columns import HASH, Ints
from pyflinkcep.matching.matcher import NO_DEADLINE
from pyflinkcep.spark.state.fingerprint import CLOCK, KEY_GROUPS, LASTING, changes
from pyflinkcep.spark.state.key_groups import KeyGroups
from pyflinkcep.spark.state.pages import (
    Page,
    PageCounts,
    PageNumbers,
    counts_from_bytes,
    counts_to_bytes,
    naming_damage,
    read_stored,
    seal,
    sealed_length,
    unseal,
    write_table,
)
from pyflinkcep.spark.state.storage import BucketStorage, PageId, there

# The page of all keys whose key group has no page of its own; kept in the index if small.
COMMON: PageId = (-1, 0)
RECENT = -1  # The segment of the queue kept in the index, always the last in order of arrival
MOST_DEPTH = 10  # How many bits of the keys' hashes may divide a key group
_INT64 = range(-(1 << 63), 1 << 63)


@attrs.define(eq=False)
class BucketIndex:
    """The table of contents of a bucket's state; read and written as a whole."""

    # `counts` and `queued` are told to users and decide nothing. Releases without them read the
    # index all the same.

    fingerprint: dict[str, Any]  # The fingerprint of the pattern that the state was written for
    # Each page that exists, with its deadline in epoch milliseconds.
    pages: dict[PageId, int] = attrs.field(factory=dict)
    # Key groups with pages of their own, and the number of hash bits that divide them.
    depths: dict[int, int] = attrs.field(factory=dict)
    # Each segment of the queue in order of arrival, with the earliest time in it.
    segments: dict[int, int] = attrs.field(factory=dict)
    timer: int | None = None  # The timer that is registered
    # Segments that came without some events, and the bits of those events.
    dropped: dict[int, list[int]] = attrs.field(factory=dict)
    watermark: int | None = None  # The watermark that the bucket has reached, if stored
    # The page :data:`COMMON`, if it is kept here, and the segment :data:`RECENT`.
    common: bytes | None = None
    recent: bytes | None = None
    # What pages hold, by ``PageCounts.of_page``; pages that were last written before there were
    # counts are missing.
    counts: dict[PageId, PageNumbers] = attrs.field(factory=dict)
    # The number of events in each segment; those written before there were counts are missing.
    queued: dict[int, int] = attrs.field(factory=dict)

    @classmethod
    def load(
        cls,
        data: bytes | None,
        fingerprint: dict[str, str],
        on_change: str,
        unsaid: Mapping[str, str] | None = None,
    ) -> BucketIndex:
        """Read the index, or make a new one; `unsaid` are facts that it did not always have."""
        if data is None:
            return cls(fingerprint)
        with refuse_damage():
            index = cls._of(*unpack(unseal(data)))
        index.fingerprint = {**(unsaid or {}), **index.fingerprint}
        _check_fingerprint(index.fingerprint, fingerprint, on_change)
        return index

    @classmethod
    def _of(cls, header: Mapping[str, Any], sections: list[bytes]) -> BucketIndex:
        pages = {(group, page): deadline for group, page, deadline in header["pages"]}
        held = dict(zip(header.get("held", ()), sections, strict=True))
        depths = dict(header["depths"])
        if "held" not in header:  # written before common pages existed
            depths = {group: depths.get(group, 0) for group, _ in pages}
        index = cls(
            header["fingerprint"],
            pages,
            depths,
            dict(header["segments"]),
            header["timer"],
            dict(header.get("dropped", ())),
            header.get("watermark"),
            held.get("common"),
            held.get("recent"),
            _counts(held.get("counts"), pages),
            dict(header.get("queued", ())),
        )
        index._check()
        return index

    def _check(self) -> None:
        """Check that every number is an integer in its range."""
        numbers = [*self.depths, *self.depths.values(), *self.segments, *self.segments.values()]
        numbers += [number for page in self.pages for number in page] + [*self.pages.values()]
        numbers += [number for number in (self.timer, self.watermark) if number is not None]
        numbers += [*self.queued, *self.queued.values()]
        if any(type(number) is not int or number not in _INT64 for number in numbers):
            raise damaged_state("a value of the index is not a number")
        dropped = [bits for kinds in self.dropped.values() for bits in kinds]
        if any(type(bits) is not int or bits < 0 for bits in dropped):
            raise damaged_state("the bits of dropped events")
        if any(depth not in range(MOST_DEPTH + 1) for depth in self.depths.values()):
            raise damaged_state("a key group is divided too often")
        for page in self.pages:
            depth = self.depths.get(page[0], -1)
            if page != COMMON and (depth < 0 or page[1] not in range(1 << depth)):
                raise damaged_state("the index names an impossible page")
        if self.common is not None and COMMON not in self.pages:
            raise damaged_state("the common page")
        if (RECENT in self.segments) != (self.recent is not None):
            raise damaged_state("the recent events")
        if (
            not isinstance(self.fingerprint, dict)
            or not self.dropped.keys() <= self.segments.keys()
        ):
            raise damaged_state("the index is inconsistent")

    def to_bytes(self) -> bytes | None:
        """Return the index as bytes; None if there is nothing to store."""
        nothing = self.timer is None and self.watermark is None
        if nothing and not self.pages and not self.segments:
            return None
        counts = counts_to_bytes(map(self.counts.get, self.pages)) if self.pages else None
        held = {"common": self.common, "recent": self.recent, "counts": counts}
        sections = {name: data for name, data in held.items() if data is not None}
        header = {
            "fingerprint": self.fingerprint,
            "pages": [[*page, deadline] for page, deadline in self.pages.items()],
            "depths": list(self.depths.items()),
            "segments": list(self.segments.items()),
            "timer": self.timer,
            "dropped": list(self.dropped.items()),
            "watermark": self.watermark,
            "held": list(sections),
            "queued": list(self.queued.items()),
        }
        return seal(pack(header, list(sections.values())))

    @property
    def deadline(self) -> int:
        """The earliest time at which the bucket must be processed even without events."""
        return min([NO_DEADLINE, *self.pages.values(), *self.segments.values()])


def _counts(data: bytes | None, pages: Collection[PageId]) -> dict[PageId, PageNumbers]:
    if data is None:
        return {}
    found = zip(pages, counts_from_bytes(data, len(pages)), strict=True)
    return {page: own for page, own in found if own is not None}


def _check_fingerprint(stored: dict[str, Any], current: dict[str, str], on_change: str) -> None:
    lasting = changes(*({fact: f.get(fact) for fact in LASTING} for f in (stored, current)))
    if lasting:
        facts = [fact for fact in LASTING if stored.get(fact) != current.get(fact)]
        count, _, tasks = str(stored.get(KEY_GROUPS)).removesuffix(" tasks").partition(" for ")
        words = {KEY_GROUPS: f"keyGroups={count}" + (f", parallelTasks={tasks}" if tasks else "")}
        again = [words.get(fact, f"the same {fact}") for fact in facts]
        raise PatternChangedError(
            "the checkpoint holds state that depends on what is different now: "
            + "; ".join(lasting),
            "start a new checkpoint: an older release kept the events of this one by the times "
            "that the session's clock showed"
            if CLOCK in facts
            else f"use {', '.join(again)} as when the checkpoint was created, or start a new one",
        )
    differences = changes(stored, current)
    if differences and on_change != "restart":
        raise PatternChangedError(
            "the checkpoint holds partial matches of another pattern: " + "; ".join(differences),
            'run the old pattern, or drop its partial matches with onPatternChange="restart"',
        )


_LARGE_PAGE = 256 * 1024
_LARGE_COMMON = 256 * 1024
_FEW_GROUPS = 16  # With more a bucket's common page may be larger: pages are not to be small
_SMALL_COMMON = 16 * 1024
_LARGE_RECENT = 64 * 1024
_COMMON_CODE = -1


@attrs.frozen(eq=False)
class StateShape:
    """The parts common to all state of a pattern."""

    pattern: str  # The pattern in one line, for errors
    key_groups: KeyGroups  # The partition of the keys
    queued: pa.Schema  # The columns of events in the queue
    held: pa.Schema  # The columns of events that partial matches hold
    keys: pa.Schema  # The columns that identify keys


class BucketState:
    """Pages of partial matches, and a queue of events in segments, in order of arrival."""

    # A bucket begins with one page for all of its keys. While small, it is kept in the index
    # together with the most recent events, so that all is read and written in one call. A large
    # page is divided: the common one by key group, others by the next bit of the hashes.

    def __init__(
        self,
        shape: StateShape,
        storage: BucketStorage,
        fingerprint: dict[str, str],
        on_change: str,
        groups: Sequence[int] = (),
        count: Callable[[Page], StateCounts | None] = lambda _: None,
        unsaid: Mapping[str, str] | None = None,
    ) -> None:
        self._shape = shape
        self._count = count
        self._storage = storage
        self.bucket = min(groups, default=0)  # The number of the bucket
        self._groups = group_text(groups)
        with naming_damage(shape.pattern, self._groups):
            self._before = storage.read_index()
            self.index = BucketIndex.load(self._before, fingerprint, on_change, unsaid)
        self._to_split: list[int] = []
        own_groups = shape.key_groups.count // shape.key_groups.bucket_count
        self._large_common = _LARGE_COMMON * max(1, own_groups // _FEW_GROUPS)

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
        (found,) = self.read_pages([page])
        return found

    def read_pages(self, pages: Sequence[PageId]) -> list[Page]:
        """Return several pages."""
        own = self.index.pages
        data: dict[PageId, bytes | None]
        data = {} if self.index.common is None else {COMMON: self.index.common}
        stored = [page for page in pages if page in own and page not in data]
        data |= zip(stored, self._storage.read_pages(stored), strict=True)
        return [self._page(page, data[page]) if page in own else self._empty for page in pages]

    @property
    def _empty(self) -> Page:
        return Page.empty(self._shape.keys, self._shape.held)

    def _page(self, page: PageId, data: bytes | None) -> Page:
        where = self._groups if page == COMMON else f"key group {page[0]}"
        with naming_damage(self._shape.pattern, where):
            return Page.from_bytes(there(data), self._shape.keys, self._shape.held)

    def write_pages(self, pages: Iterable[tuple[PageId, Page]]) -> None:
        """Replace several pages; see :meth:`write_page`."""
        with self._storage.together():
            for page_id, page in pages:
                self.write_page(page_id, page)

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
        if sealed_length(data) > _LARGE_PAGE and len(page) > 1 and depth < MOST_DEPTH:
            # Not yet: other pages of the group may be in use.
            self._to_split = list(dict.fromkeys([*self._to_split, page_id[0]]))

    def _write_common(self, page: Page, data: bytes) -> None:
        length = sealed_length(data)
        if length <= _SMALL_COMMON:
            self._remove_page(COMMON)
            self.index.common = data
        elif length <= self._large_common or len(page) == 1:
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
        """Append events, which came after all others, to the queue."""
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

    # --- rules that change

    def read_rules(self) -> bytes | None:
        """Return what is known of rules that change; None for nothing."""
        with naming_damage(self._shape.pattern, self._groups):
            value = self._storage.read_rules()
            return None if value is None else unseal(value)

    def write_rules(self, data: bytes) -> None:
        """Replace what is known of rules that change."""
        self._storage.write_rules(seal(data))

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


def group_text(groups: Sequence[int]) -> str:
    """Return the names of key groups, for errors."""
    if not groups:
        return "all key groups"
    return f"key group{'s' if len(groups) > 1 else ''} {', '.join(map(str, groups))}"
