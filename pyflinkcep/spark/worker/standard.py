# SPDX-License-Identifier: Apache-2.0
"""Tasks with the standard's meaning: sorted rows in, many keys matched at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.engines.flink.operator.state_format import damaged_state
from pyflinkcep.engines.lists.ranges import later
from pyflinkcep.engines.rows.matching import Place
from pyflinkcep.errors import CepRuntimeError
from pyflinkcep.functions import RuntimeContext
from pyflinkcep.matching.columns import Ints
from pyflinkcep.matching.event_store import EventStore
from pyflinkcep.matching.layout import KeyText, Layout
from pyflinkcep.matching.matcher import NO_DEADLINE, Items, States, Written
from pyflinkcep.matching.order import OrderColumns
from pyflinkcep.matching.results import Found
from pyflinkcep.matching.standard_rows import StandardRows
from pyflinkcep.matching.stretches import Events
from pyflinkcep.spark.state.pages import AT_THE_END
from pyflinkcep.spark.worker.bucket_task import BucketPlan, BucketTask, Matching
from pyflinkcep.spark.worker.sorting import whole_keys
from pyflinkcep.time import MAX_WATERMARK


@attrs.frozen(eq=False)
class StandardTask:
    """The work on one partition of a bounded job."""

    rows: StandardRows  # How a key's rows become output
    layout: Layout  # The key's columns
    order: Layout | None = None  # By what time to sort the rows of a key; None if they come sorted

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Match the rows of a partition; yield its output."""
        compiled = self.rows.plan.compiled()
        if self.order is not None:
            tables = whole_keys(batches, self.order)
            batches = (batch for table in tables for batch in table.combine_chunks().to_batches())
        for rows, ends in self._keys(batches):
            places = [Place() for _ in ends]
            key_of = partial(self._key, rows, ends)
            try:
                yield from self.rows.matched(rows, ends, compiled, places, key_of)
            except CepRuntimeError as error:
                raise error.in_pattern(self.layout.pattern) from error.__cause__

    def _key(self, rows: pa.Table, ends: Ints, number: int) -> KeyText | None:
        return KeyText(self.layout, rows, ends[number] - 1) if self.layout.key_columns else None

    def _keys(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[pa.Table, Ints]]:
        """Yield the rows of several keys at a time, and where each key's end."""
        held: list[pa.Table] = []
        for batch in batches:
            table = pa.Table.from_batches([batch])
            if not table.num_rows:
                continue
            changes = self.layout.key_changes(table)
            if held and self.layout.is_other_key(held[-1], table):
                changes = np.r_[0, changes]
            if not len(changes):
                held.append(table)
                continue
            before, last = sum(part.num_rows for part in held), int(changes[-1])
            yield pa.concat_tables([*held, table.slice(0, last)]), before + changes
            held = [table.slice(last)]
        if held:
            rows = pa.concat_tables(held)
            yield rows, np.array([rows.num_rows])


_FORMAT = 1
_NUMBERS = 5


@attrs.frozen(eq=False, kw_only=True)
class ClauseMatching(Matching):
    """A clause with the standard's meaning on a stream; see :class:`BucketPlan`."""

    rows: StandardRows  # How a key's rows become output
    order: OrderColumns | None = None  # The order of rows of equal time

    def task(self, plan: BucketPlan, context: RuntimeContext) -> StandardStreamTask:
        """Return the plan ready to run."""
        return StandardStreamTask(plan, self)


class StandardStreamTask(BucketTask):
    """A plan of :class:`ClauseMatching` ready to run on a worker."""

    def __init__(self, plan: BucketPlan, matching: ClauseMatching) -> None:
        super().__init__(plan)
        self.order = matching.order
        self.matcher = ClausePages(matching.rows)

    def requeued(self, table: pa.Table, fingerprint: Mapping[str, str]) -> pa.Table:
        """Return queued rows, which every clause over the same columns can use."""
        return table.select(self.schema.names)

    def still_droppable(self, dropped: Iterable[int], fingerprint: Mapping[str, str]) -> list[int]:
        """Return nothing: no row is dropped."""
        return []

    def close(self) -> None:
        """End the task; nothing was opened."""


class ClausePages:
    """
    Finds the decided output of keys' rows.

    See :class:`~pyflinkcep.matching.matcher.PageMatcher`.

    A key's state is the rows from the first that may begin a match, those before it that PREV may
    read, and five numbers: the version of this format and the fields of a
    :class:`~pyflinkcep.engines.rows.matching.Place`. The search restarts at that row
    with each portion of rows. The keys of a page are concatenated and searched together.
    """

    def __init__(self, rows: StandardRows) -> None:
        self._rows = rows
        self._compiled = rows.plan.compiled()
        self._looks_back = rows.plan.looks_back
        self._counts_rows = rows.plan.counts_rows
        self._found: list[pa.RecordBatch] = []

    def set_events(self, store: EventStore) -> None:
        """Use another store: the events that handles refer to from now on."""
        self._store = store

    def run_page(
        self, events: Events, items: Items, page: States, first_held: int, watermark: int
    ) -> Written:
        """Match rows of a page's keys, and advance their time to the watermark."""
        places = _stored_places(page)
        ends = np.r_[0, np.cumsum(page.counts)]
        handles, begun = [], []
        columns = (items.positions.tolist(), items.starts.tolist(), items.ends.tolist())
        for position, start, end in zip(*columns, strict=True):
            due = np.arange(events.base + start, events.base + end)
            if events.handles is not None:
                due = events.handles[start:end]
            held = np.empty(0, np.int64)
            if position >= 0:
                held = first_held + np.arange(ends[position], ends[position + 1])
            handles.append(np.concatenate([held, due]))
            begun.append(Place(*places[position]) if position >= 0 else Place())
        all_handles = np.concatenate(handles)
        rows = self._store.take(all_handles).combine_chunks()
        own_ends = np.cumsum([len(own) for own in handles], dtype=np.int64)
        is_end = watermark == MAX_WATERMARK
        self._found += self._rows.matched(
            rows, own_ends, self._compiled, begun, items.key_of, None if is_end else watermark
        )
        own_starts = np.r_[0, own_ends[:-1]]
        deadlines = self._deadlines(rows, own_starts, own_ends, begun)
        written = _Writer()
        for item, (own, place, deadline) in enumerate(zip(handles, begun, deadlines, strict=True)):
            forgotten = max(place.start - self._looks_back, 0)
            place.forget(forgotten)
            kept = own[forgotten:]
            if len(kept) or (self._counts_rows and place.before):
                written.add(item, deadline, place, kept)
        return written.written()

    def take(self) -> Found:
        """Return the output so far, and clear it."""
        found, self._found = self._found, []
        return Found.of_rows(pa.Table.from_batches(found) if found else None)

    def count(self, page: States) -> None:
        """Return nothing: it keeps events, no partial matches."""

    def _deadlines(
        self, rows: pa.Table, starts: Ints, ends: Ints, places: Sequence[Place]
    ) -> list[int]:
        """Return for each key when time alone decides more of its output."""
        begins = starts + [place.start for place in places]
        deadlines = np.full(len(places), AT_THE_END)
        waiting = begins < ends
        times = self._rows.times(rows)
        if times is not None:
            ends_at = later(times[begins[waiting]], self._rows.plan.within - 1)
            deadlines[waiting] = np.minimum(ends_at, AT_THE_END)
        deadlines[~waiting] = NO_DEADLINE
        return deadlines.tolist()


def _stored_places(page: States) -> list[list[int]]:
    """Return the fields of a place for each key of a page."""
    fields = page.fields("MATCH_RECOGNIZE", _FORMAT, _NUMBERS - 1)
    if (fields < 0).any() or (fields[:, 0] > page.counts).any():
        raise damaged_state("a search begins after the stored rows")
    places: list[list[int]] = fields.tolist()
    return places


class _Writer:
    """Collects the states of the keys that continue."""

    def __init__(self) -> None:
        self._columns: list[list[int]] = [[], [], [], []]
        self._numbers: list[int] = []
        self._handles: list[Ints] = [np.empty(0, np.int64)]

    def add(self, item: int, deadline: int, place: Place, handles: Ints) -> None:
        """Add a key's state."""
        for column, value in zip(
            self._columns, (item, deadline, _NUMBERS, len(handles)), strict=True
        ):
            column.append(value)
        self._numbers += (_FORMAT, place.start, place.number, place.settled, place.before)
        self._handles.append(handles)

    def written(self) -> Written:
        """Return them as columns."""
        items, deadlines, lengths, counts = (np.asarray(c, np.int64) for c in self._columns)
        numbers, handles = np.asarray(self._numbers, np.int64), np.concatenate(self._handles)
        return Written(items, deadlines, lengths, counts, numbers, handles)
