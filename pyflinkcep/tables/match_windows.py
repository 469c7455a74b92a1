# SPDX-License-Identifier: Apache-2.0
"""Totals of the matches of a query in windows, on lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import attrs

from pyflinkcep.engines.compressed.counting import Total
from pyflinkcep.engines.compressed.matches import Measured
from pyflinkcep.engines.compressed.windows import (
    WINDOW_END,
    WINDOW_START,
    TimeWindows,
    listing,
    refuse_outside,
    totals_by_window,
)
from pyflinkcep.engines.queries import compressed_matches
from pyflinkcep.engines.table import EventTable
from pyflinkcep.sase.model import Query
from pyflinkcep.tables.event_list import EventObjects
from pyflinkcep.tables.values import grouping_key

__all__ = ["window_totals"]

Window = tuple[int, tuple[Any, ...]]
"""The start of a window, and what its events have in common, as Spark groups by it."""


def window_totals(
    query: Query, objects: EventObjects, windows: TimeWindows, measures: Sequence[Measured]
) -> Iterator[tuple[dict[str, Any], int, Sequence[Total]]]:
    """Yield for each window with matches its columns, their number and the requested totals."""
    refuse_outside(query)
    columns = [objects.values(name) for name in query.key]
    every = _events_by_window(objects.table.times, columns, windows)
    positions = list(chain.from_iterable(every.values()))
    numbers = [number for number, own in enumerate(every.values()) for _ in own]
    plain = query if query.totals is None else listing(query)
    found = compressed_matches(plain, _copied(objects.table, positions, numbers))
    values = [
        (str(m.variable), _taken(objects.measured(m), positions), m.function) for m in measures
    ]
    starts = [start for start, _ in every]
    firsts = [own[0] for own in every.values()]
    ended = {
        numbers[at]: (count, totals)
        for at, count, totals in totals_by_window(found.totals_by_event, values, numbers)
    }
    for number in sorted(ended):
        group = {name: own[firsts[number]] for name, own in zip(query.key, columns, strict=True)}
        times = {WINDOW_START: starts[number], WINDOW_END: starts[number] + windows.length}
        yield {**group, **times}, *ended[number]


def _events_by_window(
    times: Sequence[int], columns: Sequence[Sequence[Any]], windows: TimeWindows
) -> dict[Window, list[int]]:
    """Return the positions of the events of each window, windows in order of time."""
    found: dict[Window, list[int]] = {}
    for at, time in enumerate(times):
        group = tuple(grouping_key(column[at]) for column in columns)
        for start in windows.starts(time):
            found.setdefault((start, group), []).append(at)
    return dict(sorted(found.items(), key=lambda item: item[0][0]))


def _copied(table: EventTable, positions: Sequence[int], keys: Sequence[int]) -> EventTable:
    """Return a table of copies of events, each of a key."""
    return attrs.evolve(
        table,
        times=[table.times[at] for at in positions],
        types=[table.types[at] for at in positions],
        columns={n: [v[at] for at in positions] for n, v in table.columns.items()},
        keys=keys,
    )


def _taken(values: Sequence[Any] | None, positions: Sequence[int]) -> list[Any] | None:
    return None if values is None else [values[at] for at in positions]
