# SPDX-License-Identifier: Apache-2.0
"""Windows that count events, as windows of time."""

from __future__ import annotations

import attrs
import numpy as np

from pyflinkcep.engines.table import EventTable, Numbers
from pyflinkcep.sase.model import Query

__all__ = ["LAST_NUMBER", "by_numbers", "numbered", "timed"]

LAST_NUMBER = 0
"""The number of the last event of each partition."""


def by_numbers(query: Query, table: EventTable) -> tuple[Query, EventTable]:
    """Return a query whose window counts events, and its events with their numbers as times."""
    if query.most_events is None:
        return query, table
    return timed(query), numbered(query, table)


def timed(query: Query) -> Query:
    """Return a query whose window counts events as one for events with their numbers as times."""
    if query.most_events is None:
        return query
    return attrs.evolve(query, window=query.most_events - 1, most_events=None)


def numbered(query: Query, table: EventTable) -> EventTable:
    """Return events with their numbers in a query's partition as times, up to LAST_NUMBER."""
    numbers = np.zeros(len(table.times), np.int64)
    for positions, _ in table.partitions(query):
        size = len(positions)
        numbers[np.asarray(positions, np.int64)] = np.arange(LAST_NUMBER - size, LAST_NUMBER) + 1
    return attrs.evolve(table, times=Numbers(numbers))
