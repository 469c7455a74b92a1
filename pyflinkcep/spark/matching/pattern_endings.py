# SPDX-License-Identifier: Apache-2.0
"""A matcher of patterns on streams that returns a row for each event that completes matches."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pyflinkcep.engines.compressed.bridge import KeyedEvents
from pyflinkcep.engines.compressed.patterns import CompressiblePattern
from pyflinkcep.errors import CepRuntimeError
from pyflinkcep.matching.columns import Ints
from pyflinkcep.matching.event_store import EventStore
from pyflinkcep.matching.layout import Layout
from pyflinkcep.matching.matcher import NO_DEADLINE, Items, States, Written
from pyflinkcep.matching.results import Found
from pyflinkcep.matching.stretches import Events
from pyflinkcep.spark.matching.ending_rows import EndingRows
from pyflinkcep.spark.matching.keyed_events import dated, pattern_matches

__all__ = ["PATTERN_ENDINGS_FORMAT", "PatternEndingPages"]

PATTERN_ENDINGS_FORMAT = 1
"""The version of a key's numbers: itself, and the watermark that the key has reached."""


class PatternEndingPages:
    """
    Processes the events of pages' keys with merged partial matches.

    A key's state is the events since its first live partial match began, with the answers of their
    conditions, and the watermark up to which their output has been emitted. They are processed
    again before new ones.

    Parameters
    ----------
    pattern : CompressiblePattern
        The pattern.
    layout : Layout
        The columns of the events, including the answers of conditions.
    rows : EndingRows
        Summarizes the matches that an event completes.
    """

    def __init__(self, pattern: CompressiblePattern, layout: Layout, rows: EndingRows) -> None:
        self._pattern = pattern
        self._layout = layout
        self._rows = rows
        self._made: list[pa.Table] = []

    def set_events(self, store: EventStore) -> None:
        """Use another store: the events that handles refer to from now on."""
        self._store = store

    def run_page(
        self, events: Events, items: Items, page: States, first_held: int, watermark: int
    ) -> Written:
        """Match events of a page's keys, and advance their time to the watermark."""
        assert events.handles is None  # compressed patterns have no comparator
        ends = np.r_[0, np.cumsum(page.counts)]
        reached = page.fields("compressed matches", PATTERN_ENDINGS_FORMAT, 1)[:, 0]
        kept: list[tuple[int, int, Ints]] = []
        columns = (items.positions.tolist(), items.starts.tolist(), items.ends.tolist())
        for item, (position, start, end) in enumerate(zip(*columns, strict=True)):
            held, before = np.empty(0, np.int64), None
            if position >= 0:
                held = first_held + np.arange(ends[position], ends[position + 1])
                before = int(reached[position])
            handles = np.r_[held, events.base + np.arange(start, end)]
            try:
                deadline, since = self._run(handles, len(held), before, watermark)
            except CepRuntimeError as error:
                raise error.at_key(items.key_of(item)) from error.__cause__
            if deadline is not None:
                kept.append((item, deadline, handles[since:]))
        return _written(kept, watermark)

    def count(self, page: States) -> None:
        """Return nothing: it keeps events, no partial matches."""

    def take(self) -> Found:
        """Return the rows so far, and clear them."""
        made, self._made = self._made, []
        return Found.of_rows(pa.concat_tables(made) if made else None)

    def _run(
        self, handles: Ints, held: int, before: int | None, watermark: int
    ) -> tuple[int | None, int]:
        """Return when to process the key again, None for never, and from which event on."""
        own = self._store.take(handles).combine_chunks()
        times = self._layout.times_ms(own)
        bounds = np.asarray([0, len(handles)])
        events = KeyedEvents(times, self._layout.bits(own), bounds, held, before, watermark)
        matches = pattern_matches(self._pattern, self._layout, own, self._store, handles, events)
        endings = list(dated(self._rows.asked(own)(matches), events))
        if endings:
            self._made.append(self._rows.table(own, endings))
        if matches.begun is None:
            return None, len(handles)
        deadline = NO_DEADLINE if matches.deadline is None else matches.deadline
        return deadline, int(np.searchsorted(times, matches.begun))


def _written(kept: list[tuple[int, int, Ints]], watermark: int) -> Written:
    items = np.asarray([item for item, _, _ in kept], np.int64)
    numbers = np.full((len(kept), 2), PATTERN_ENDINGS_FORMAT, np.int64)
    numbers[:, 1] = watermark
    handles = [own for _, _, own in kept]
    return Written(
        items,
        np.asarray([deadline for _, deadline, _ in kept], np.int64),
        np.full(len(kept), 2, np.int64),
        np.asarray([len(own) for own in handles], np.int64),
        numbers.reshape(-1),
        np.concatenate(handles) if handles else np.empty(0, np.int64),
    )
