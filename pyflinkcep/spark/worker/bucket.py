# SPDX-License-Identifier: Apache-2.0
"""The work on a bucket of keys when events arrive or time passes; of Spark it knows only Rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.engines.flink.operator import is_late
from pyflinkcep.matching.columns import HASH, Flags, Ints
from pyflinkcep.matching.event_store import EventStore
from pyflinkcep.matching.keys import codes, differ, has_mixed_hashes
from pyflinkcep.matching.layout import KeyText
from pyflinkcep.matching.matcher import NO_DEADLINE, Items, Written
from pyflinkcep.matching.order import order_by
from pyflinkcep.matching.results import Found
from pyflinkcep.matching.stretches import Stretches
from pyflinkcep.spark.state.bucket_state import BucketState, group_text
from pyflinkcep.spark.state.pages import AT_THE_END, Page, naming_damage
from pyflinkcep.spark.state.storage import BucketStorage, PageId
from pyflinkcep.spark.worker.bucket_task import BucketTask
from pyflinkcep.spark.worker.pack import believed, count_ahead, count_late
from pyflinkcep.spark.worker.progress import Stopwatch
from pyflinkcep.time import MAX_WATERMARK, MIN_WATERMARK


@attrs.frozen(eq=False)
class PageWork:
    """Runs the automata of the keys of some pages, all at once."""

    task: BucketTask
    store: EventStore  # The events of the pages and the due ones
    due: pa.Table
    times: Ints  # The times of the due events
    first_held: int  # The handle of the first event of the pages
    watermark: int  # The time reached

    def run(self, held: Page, page_of_key: Ints, page_of_event: Ints) -> dict[int, Page]:
        """Process pages."""
        task = self.task
        first_due = self.first_held + held.events.num_rows
        stretches = Stretches.of(
            self.due, self.times, first_due, task.plan.layout, task.rules, task.order, self.store
        )
        task.matcher.set_events(self.store)
        firsts, lasts = stretches.bounds[:-1], stretches.bounds[1:]
        positions = self._positions(held, firsts)
        runs = np.flatnonzero((positions >= 0) | stretches.needed)
        positions = positions[runs]
        is_untouched = np.ones(len(held), bool)
        is_untouched[positions[positions >= 0]] = False
        is_waiting = is_untouched & (held.deadlines <= self.watermark)
        is_waiting &= held.deadlines != NO_DEADLINE
        waiting = np.flatnonzero(is_waiting)
        if not len(runs) and not len(waiting):
            return {}
        event_ends = np.r_[0, np.cumsum(held.counts)]

        def key_of(item: int) -> Any:
            if item < len(runs):
                return stretches.key_of(int(runs[item]))
            row = int(event_ends[waiting[item - len(runs)]])
            return KeyText(task.plan.layout, held.events, row)

        nothing = np.zeros(len(waiting), np.int64)
        items = Items(
            np.r_[positions, waiting],
            np.r_[firsts[runs], nothing],
            np.r_[lasts[runs], nothing],
            key_of,
            self.due,
        )
        written = task.matcher.run_page(
            stretches.events, items, held, self.first_held, self.watermark
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
        wanted = self.due.select(self.task.shape.keys.names).take(pa.array(firsts))
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
        """Return the pages with items: untouched keys, then those that continue."""
        # `rows` has for each item the row of its key: for the first `runs` among the due events,
        # for the others among the held keys.
        changed = np.unique(page_of_item)
        is_kept = is_kept & np.isin(page_of_key, changed)
        parts, numbers = [held.keep(is_kept)], [page_of_key[is_kept]]
        if len(written.items):
            split = int(np.searchsorted(written.items, runs))  # items are written in order
            rows = rows[written.items]
            columns = self.task.shape.keys.names
            keys = [
                self.due.select(columns).take(pa.array(rows[:split])),
                held.keys.take(pa.array(rows[split:])),
            ]
            goes_on = Page(
                pa.concat_tables(keys),
                written.deadlines,
                written.lengths,
                written.counts,
                written.numbers,
                self.store.take(written.handles),
            )
            parts.append(goes_on)
            numbers.append(page_of_item[written.items])
        divided = Page.concat(parts).divide(np.concatenate(numbers))
        empty = Page.empty(self.task.shape.keys, self.task.shape.held)
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


NEVER = 1 << 62  # The timer of a bucket that waits only for events, epoch milliseconds


@attrs.frozen(eq=False)
class Arrivals:
    """The input of a bucket in a micro-batch."""

    tables: Sequence[pa.Table] = ()  # The new events in order of arrival
    # The latest event time in the whole micro-batch; ``MIN_WATERMARK`` if there is none.
    latest: int = MIN_WATERMARK
    # The times of events that nothing needs, written by ``write_times``.
    dropped: Sequence[bytes] = ()
    # The spans of all event times in the whole micro-batch, if some may be too far ahead.
    spans: Sequence[Ints] = ()
    publications: Mapping[int, str] = attrs.field(factory=dict)  # Of rules that change, by number


@attrs.frozen(eq=False)
class TimedEvents:
    """Events in order of arrival, with their times, which are computed once."""

    table: pa.Table
    times: Ints  # Epoch milliseconds

    def __len__(self) -> int:
        """Return the number of events."""
        return len(self.times)

    @classmethod
    def joined(cls, parts: Sequence[TimedEvents]) -> TimedEvents:
        """Return several parts, at least one, as one."""
        if len(parts) == 1:
            return parts[0]
        tables = pa.concat_tables([part.table for part in parts])
        return cls(tables, np.concatenate([part.times for part in parts]))

    @property
    def earliest(self) -> int:
        """The time of the first event."""
        return int(self.times.min())

    def divide(self, watermark: int) -> tuple[TimedEvents, TimedEvents]:
        """Return the events after a watermark, and the others."""
        reached = is_late(self.times, watermark)
        count = int(np.count_nonzero(reached))
        if reached[:count].all():  # as from most sources, in order of time: nothing is copied
            waiting = TimedEvents(self.table.slice(count), self.times[count:])
            return waiting, TimedEvents(self.table.slice(0, count), self.times[:count])
        return self._only(~reached), self._only(reached)

    def _only(self, chosen: Flags) -> TimedEvents:
        return TimedEvents(self.table.filter(pa.array(chosen)), self.times[chosen])


def divided(
    parts: Sequence[TimedEvents], watermark: int
) -> tuple[list[TimedEvents], list[TimedEvents]]:
    """Return the events of parts after a watermark, and the others; no part is empty."""
    both = [part.divide(watermark) for part in parts]
    return [one for one, _ in both if len(one)], [other for _, other in both if len(other)]


@attrs.frozen(eq=False)
class BucketOutput:
    """The results of the work on a bucket."""

    found: Found  # Matches and timeouts
    events: EventStore  # The events that handles refer to
    late: pa.Table | None = None  # The events that came too late
    late_count: int = 0  # How many events came too late, including those that nothing needs
    ahead: pa.Table | None = None  # The events too far ahead of the others
    ahead_count: int = 0  # How many events were, including those that nothing needs
    told: pa.Table | None = None  # What became of publications


class BucketWork:
    """Flink's keyed operator for all keys of a bucket at once, on columns."""

    # Ports ``CepOperator.processElement`` and ``onEventTime`` (Flink 2.3.0) to micro-batches: first
    # the events arrive; those at or before the watermark of earlier batches are late, and the
    # others join the queue. Then the watermark moves, and the events that it has reached are sorted
    # by key and time and processed by their key's automaton. The rules themselves are
    # `CepOperator`'s.

    def __init__(
        self, task: BucketTask, storage: BucketStorage, groups: Sequence[int] = ()
    ) -> None:
        self._task = task
        self._plan = task.plan
        self.state = BucketState(
            task.shape,
            storage,
            task.plan.fingerprint,
            task.plan.on_pattern_change,
            groups,
            task.matcher.count,
            task.plan.unsaid,
        )
        self.matching = Stopwatch()
        self.index = self.state.index
        self.reached = MIN_WATERMARK if self.index.watermark is None else self.index.watermark
        if self.index.fingerprint != task.plan.fingerprint:
            self._restart()

    def _restart(self) -> None:
        """Discard another pattern's state; its queued events now belong to this pattern."""
        task, index, matching = self._task, self.index, self._plan.matching
        for number, bits in index.dropped.items():
            index.dropped[number] = matching.still_droppable(task, bits, index.fingerprint)
        for number, earliest in index.segments.items():
            old = self.state.read_segment(number, is_same_pattern=False)
            events = matching.requeued(task, old, index.fingerprint)
            self.state.write_segment(number, events, earliest)
        self.state.forget_pages()
        index.fingerprint = task.plan.fingerprint

    def run(self, arrivals: Arrivals, now: int) -> list[BucketOutput]:
        """Process new events and advance time."""
        told = None
        if self._task.arriving is not None:
            tables, told = self._task.arriving(
                self.state, self.reached, arrivals.tables, arrivals.publications
            )
            arrivals = attrs.evolve(arrivals, tables=tables)
        if self._plan.processing_time:
            self.reached = now
            due = pa.concat_tables(arrivals.tables or [self._plan.schema.empty_table()])
            times = np.full(due.num_rows, now, np.int64)
            return [BucketOutput(*self._match(due, times))]
        now, latest = self._believed(arrivals, now)
        outputs = []
        if now > self.reached and not self._plan.is_downstream:
            is_due = any(earliest <= now for earliest in self.index.segments.values())
            if is_due or self.state.waiting_pages(now):
                # The source's watermark passed these before the events arrived, as in Flink.
                outputs.append(BucketOutput(*self._advance((), now)))
            self.reached = now
        late_count = sum(count_late(times, self.reached) for times in arrivals.dropped)
        ahead_count = sum(count_ahead(times, latest) for times in arrivals.dropped)
        fresh, late = divided([self._timed(table) for table in arrivals.tables], self.reached)
        ahead: list[TimedEvents] = []
        if latest < arrivals.latest:
            ahead, fresh = divided(fresh, latest)
        if self._plan.matching.counts_arrived:
            late_count += sum(map(len, late))
            ahead_count += sum(map(len, ahead))
        watermark = max(now, self.reached, self._plan.watermark_of(latest))
        found, events = self._advance(fresh, watermark)
        left_out = [TimedEvents.joined(parts).table if parts else None for parts in (late, ahead)]
        return [
            *outputs,
            BucketOutput(found, events, left_out[0], late_count, left_out[1], ahead_count, told),
        ]

    def _believed(self, arrivals: Arrivals, now: int) -> tuple[int, int]:
        """Return the watermark before the micro-batch, and its latest event time to be believed."""
        # If events may be too far ahead, Spark's watermark is not believed, since they move it.
        task, before = self._task, self.index.watermark
        if task.plan.max_ahead_ms is None or now == MAX_WATERMARK:
            return now, arrivals.latest
        if before is not None:
            now = before
        last = None if now == MIN_WATERMARK else now + (task.plan.delay_ms or 0)
        latest = believed(arrivals.spans, last, task.plan.max_ahead_ms)
        return now, MIN_WATERMARK if latest is None else latest

    def _advance(self, fresh: Sequence[TimedEvents], watermark: int) -> tuple[Found, EventStore]:
        """Advance time to a watermark, for new events too."""
        self.reached = watermark
        due = self._take_due(fresh)
        return self._match(due.table, due.times)

    # --- the queue

    def _timed(self, table: pa.Table) -> TimedEvents:
        return TimedEvents(table, self._plan.layout.times_ms(table))

    def _take_due(self, fresh: Sequence[TimedEvents]) -> TimedEvents:
        """Take the events that the watermark has reached; leave the others in the queue."""
        state, due = self.state, list[TimedEvents]()
        for number, earliest in list(self.index.segments.items()):
            if earliest > self.reached:
                continue
            waiting, reached = self._timed(state.read_segment(number)).divide(self.reached)
            if len(reached):
                due.append(reached)
            if len(waiting):
                state.write_segment(number, waiting.table, waiting.earliest)
            else:
                state.remove_segment(number)
        later, reached_now = divided(fresh, self.reached)
        due += reached_now
        if later:
            waiting = TimedEvents.joined(later)
            state.append_events(waiting.table, waiting.earliest, self._plan.dropped)
        return TimedEvents.joined(due or [self._timed(self._plan.schema.empty_table())])

    # --- matching

    def _match(self, due: pa.Table, times: Ints) -> tuple[Found, EventStore]:
        """Process the due events with their keys' automata, and advance time for keys that wait."""
        task, state = self._task, self.state
        store = EventStore(task.reader, task.shape.held)
        own = state.page_codes(due.column(HASH).to_numpy())
        order = self._order(due, own)
        due, times, own = due.take(pa.array(order)).combine_chunks(), times[order], own[order]
        page_ids = self._touched_pages(own)
        if not page_ids:
            return task.matcher.take(), store
        pages = state.read_pages(page_ids)
        held = Page.concat(pages)
        all_events = pa.concat_tables([held.events, due.select(task.shape.held.names)])
        base = store.add(all_events.combine_chunks())
        page_of_key = np.repeat(np.arange(len(pages)), [len(page) for page in pages])
        wanted = np.asarray([state.code_of_page(page) for page in page_ids])
        by_code = np.argsort(wanted)
        page_of_event = by_code[np.searchsorted(wanted[by_code], own)]
        work = PageWork(task, store, due, times, base, self.reached)
        groups = group_text(sorted({group for group, _ in page_ids if group >= 0}))
        with naming_damage(task.plan.layout.pattern, groups), self.matching:
            changed = work.run(held, page_of_key, page_of_event)
        state.write_pages((page_ids[number], page) for number, page in changed.items())
        state.split_large_pages()
        return task.matcher.take(), store

    def _order(self, table: pa.Table, pages: Ints) -> Ints:
        """Return the order: page, key, time (constant in processing time), arrival."""
        hashes = table.column(HASH).to_numpy()
        times = [] if self._plan.processing_time else [self._plan.layout.times(table)]
        order = order_by([*times, hashes, *([pages] if self.index.depths else [])])
        names = [name for name in self._plan.layout.key_signature if name != HASH]
        values = [table.column(name) for name in names]
        if has_mixed_hashes([value.take(pa.array(order)) for value in values], hashes[order]):
            order = np.lexsort([*times, *map(codes, values), hashes, pages])
        return order

    def _touched_pages(self, pages: Ints) -> list[PageId]:
        """Return the pages of sorted events, then those that wait."""
        starts = np.flatnonzero(np.r_[True, pages[1:] != pages[:-1]])[: len(pages)]
        of_events = [self.state.page_of_code(code) for code in pages[starts].tolist()]
        return list(dict.fromkeys([*of_events, *self.state.waiting_pages(self.reached)]))

    # --- the end

    def timer(self, now: int) -> int | None:
        """Return when the bucket must be processed next, epoch milliseconds; None for never."""
        # An empty bucket ahead of Spark's watermark remembers its own until Spark's has caught up,
        # since events at or before it are late. A bucket that waits only for events has a timer
        # that never expires, because Spark lists the buckets with state by their timers.
        deadline = self.index.deadline
        if deadline not in (NO_DEADLINE, AT_THE_END):
            return deadline
        if self._plan.max_ahead_ms is not None:
            return NEVER
        remembered = self._remembered(now)
        return NEVER if remembered is None and self._is_kept else remembered

    def close(self, timer: int | None, now: int) -> None:
        """Write the index with the registered timer."""
        watermark = self._kept_watermark() if self._is_kept else self._remembered(now)
        self.state.close(timer, watermark)

    @property
    def _is_kept(self) -> bool:
        is_guarded = self._plan.max_ahead_ms is not None  # then Spark's watermark never catches up
        return bool(self.index.pages or self.index.segments or is_guarded)

    def _remembered(self, now: int) -> int | None:
        ahead = self._kept_watermark()
        return ahead if ahead is not None and ahead > now else None

    def _kept_watermark(self) -> int | None:
        is_none = self._plan.processing_time or self.reached == MIN_WATERMARK
        return None if is_none else self.reached
