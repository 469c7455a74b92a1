# SPDX-License-Identifier: Apache-2.0
"""The events of keys, in the form that the compressed matches of a pattern need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from pyflinkcep.engines.compressed.bridge import KeyedEvents
from pyflinkcep.engines.compressed.patterns import (
    CompressiblePattern,
    EventViews,
    PatternMatches,
)
from pyflinkcep.matching.answers import as_integers
from pyflinkcep.matching.columns import VALUE, Ints
from pyflinkcep.matching.event_store import EventStore
from pyflinkcep.matching.fields import field_array
from pyflinkcep.matching.layout import Layout
from pyflinkcep.spark.matching.ending_rows import Ending
from pyflinkcep.time import MAX_WATERMARK

__all__ = ["dated", "pattern_matches"]


def pattern_matches(
    pattern: CompressiblePattern,
    layout: Layout,
    table: pa.Table,
    store: EventStore,
    handles: Ints,
    events: KeyedEvents,
) -> PatternMatches:
    """
    Return the matches of a pattern on events.

    Parameters
    ----------
    pattern : CompressiblePattern
        The pattern.
    layout : Layout
        The columns of the events.
    table : pyarrow.Table
        The events.
    store : EventStore
        Holds them as Rows.
    handles : array of int64
        Their handles in the store.
    events : KeyedEvents
        Their times and answers, by key.
    """

    def answers() -> Sequence[int]:
        return [0] * len(handles) if events.bits is None else as_integers(events.bits)

    fields = [name for name in layout.payload if name.startswith(VALUE)]
    views = EventViews(
        lambda at: store.row(int(handles[at])),
        lambda at: store.fields(int(handles[at])),
        tuple(field_array(table.column(name)) for name in fields),
        answers,
    )
    return PatternMatches(pattern, events, views)


def dated(found: Iterable[tuple[Any, ...]], events: KeyedEvents) -> Iterator[Ending]:
    """Yield endings in the form of rows: the event's position, the time, the results."""
    end = None if events.watermark == MAX_WATERMARK else events.watermark
    for place, *ending in found:
        yield (place, int(events.times[place]), ending) if place >= 0 else (-place - 1, end, ending)
