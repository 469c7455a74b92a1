# SPDX-License-Identifier: Apache-2.0
"""Windows that count events, as windows of time."""

from __future__ import annotations

import attrs
import numpy as np

from pyflinkcep.engines.table import EventTable, Numbers
from pyflinkcep.sase.model import Query

__all__ = ["by_numbers"]


def by_numbers(query: Query, table: EventTable) -> tuple[Query, EventTable]:
    """Return a query whose window counts events, and its events with their numbers as times."""
    if query.most_events is None:
        return query, table
    numbers = np.zeros(len(table.times), np.int64)
    for positions, _ in table.partitions(query):
        numbers[np.asarray(positions, np.int64)] = np.arange(len(positions))
    timed = attrs.evolve(query, window=query.most_events - 1, most_events=None)
    return timed, attrs.evolve(table, times=Numbers(numbers))
