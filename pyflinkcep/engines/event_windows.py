# SPDX-License-Identifier: Apache-2.0
"""Windows that count events, as windows of time."""

from __future__ import annotations

import attrs
import numpy as np

from pyflinkcep.engines.sequences.limit import RunLimit
from pyflinkcep.engines.table import EventTable, Numbers
from pyflinkcep.sase.model import Query

__all__ = ["LAST_NUMBER", "limit_of", "numbered", "timed"]

LAST_NUMBER = 0
"""The number of the last event of each partition."""


def timed(query: Query) -> Query:
    """Return a query whose window counts events as one for events with their numbers as times."""
    if query.most_events is None:
        return query
    most = query.most_events
    return attrs.evolve(query, window=most - 1, most_events=None, most_taken=most)


def limit_of(query: Query, limit: RunLimit | None) -> RunLimit | None:
    """Return a bound on the runs of a query whose events may have numbers as times."""
    if limit is None or query.most_events is None:
        return limit
    return attrs.evolve(limit, has_times=False)


def numbered(query: Query, table: EventTable) -> EventTable:
    """
    Return the events of a query.

    If its window counts events, they have their numbers in its partition as times, up to
    LAST_NUMBER.
    """
    if query.most_events is None:
        return table
    numbers = np.zeros(len(table.times), np.int64)
    for positions, _ in table.partitions(query):
        size = len(positions)
        numbers[np.asarray(positions, np.int64)] = np.arange(LAST_NUMBER - size, LAST_NUMBER) + 1
    return attrs.evolve(table, times=Numbers(numbers))
