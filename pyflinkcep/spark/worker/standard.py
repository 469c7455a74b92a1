# SPDX-License-Identifier: Apache-2.0
"""Tasks with the standard's meaning: sorted rows in, many keys matched at a time."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.engines.flink.stored_state import damaged_state
from pyflinkcep.engines.lists.frame import later
from pyflinkcep.engines.rows.matching import PLACE, forget
from pyflinkcep.matching.columns import Ints
from pyflinkcep.matching.layout import KeyText, Layout
from pyflinkcep.matching.matcher import NO_DEADLINE, EventPages, KeptEvents, KeyEvents
from pyflinkcep.matching.sorting import cut_by_key, whole_keys
from pyflinkcep.matching.standard_rows import StandardRows
from pyflinkcep.spark.state.pages import AT_THE_END
from pyflinkcep.spark.worker.runtime import errors_in
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
        if self.order is None:
            tables = cut_by_key((pa.Table.from_batches([b]) for b in batches), self.layout)
        else:
            tables = whole_keys(batches, self.order)
        for rows, ends in tables:
            places = np.zeros((len(ends), PLACE), np.int64)
            key_of = partial(self._key, rows, ends)
            found = self.rows.found(rows, ends, compiled, places, key_of)
            with errors_in(self.layout.pattern):
                yield from self.rows.batches(rows, found)

    def _key(self, rows: pa.Table, ends: Ints, number: int) -> KeyText | None:
        return KeyText(self.layout, rows, ends[number] - 1) if self.layout.key_columns else None


class ClausePages(EventPages):
    """Finds the decided output of keys' rows."""

    # A key's state is the rows from the first that may begin a match, those before it that PREV may
    # read, and the place of the search. The search restarts at that row with each portion of rows.
    # The keys of a page are searched together.

    what, version, width = "MATCH_RECOGNIZE", 1, PLACE

    def __init__(self, rows: StandardRows) -> None:
        super().__init__()
        self._rows = rows
        self._compiled = rows.plan.compiled()

    def check(self, numbers: Ints, counts: Ints) -> None:
        """Refuse damaged state."""
        if (numbers < 0).any() or (numbers[:, 0] > counts).any():
            raise damaged_state("a search begins after the stored rows")

    def matched(self, keys: KeyEvents) -> KeptEvents:
        """Collect the output that the rows decide; return what to keep."""
        plan, ends = self._rows.plan, keys.bounds[1:]
        numbers = np.array(keys.numbers, np.int64).reshape(-1, PLACE)
        rows = self._store.take(keys.handles).combine_chunks()
        until = None if keys.watermark == MAX_WATERMARK else keys.watermark
        found = self._rows.found(rows, ends, self._compiled, numbers, keys.key_of, until)
        self._made += [pa.Table.from_batches([batch]) for batch in self._rows.batches(rows, found)]
        deadlines = self._deadlines(rows, keys.bounds, numbers[:, 0])
        forgotten = np.maximum(numbers[:, 0] - plan.looks_back, 0)
        forget(numbers, forgotten)
        since = keys.bounds[:-1] + forgotten
        goes_on = since < ends
        if plan.counts_rows:
            goes_on |= numbers[:, 3] != 0
        return KeptEvents(goes_on, since, deadlines, numbers)

    def _deadlines(self, rows: pa.Table, bounds: Ints, starts: Ints) -> Ints:
        """Return for each key when time alone decides more of its output."""
        begins = bounds[:-1] + starts
        deadlines = np.full(len(starts), AT_THE_END)
        waiting = begins < bounds[1:]
        times = self._rows.times(rows)
        if times is not None:
            ends_at = later(times[begins[waiting]], self._rows.plan.within - 1)
            deadlines[waiting] = np.minimum(ends_at, AT_THE_END)
        deadlines[~waiting] = NO_DEADLINE
        return deadlines
