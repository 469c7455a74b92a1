# SPDX-License-Identifier: Apache-2.0
"""The order of a key's events of equal time, where the user brings a comparator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice, pairwise
from typing import Any

import numpy as np
from pyspark.sql import Row

from pyflinkcep.errors import CepRuntimeError
from pyflinkcep.spark.matching.event_store import EventStore
from pyflinkcep.spark.matching.matcher import Events

__all__ = ["in_final_order", "tie_order"]


def in_final_order(
    order: Callable[[Any], Any],
    events: Events,
    firsts: np.ndarray[Any, Any],
    store: EventStore,
    key_of: Callable[[int], Any],
) -> Events:
    """
    Put events of equal key and time in the comparator's order.

    Parameters
    ----------
    order : callable
        The comparator as a sort key.
    events : Events
        The events, sorted by key, time and arrival.
    firsts : array of int
        Where another key begins.
    store : EventStore
        Where the handles lead.
    key_of : callable
        Gives the key of a stretch by its number, for errors.
    """
    size = len(events.times)
    positions = np.arange(size)
    for number, (start, end) in enumerate(pairwise([*firsts.tolist(), size])):
        times = events.times[start:end]
        if (times[1:] == times[:-1]).any():
            handles = range(events.base + start, events.base + end)
            chosen = tie_order(order, times.tolist(), handles, store, key_of(number))
            positions[start:end] = start + np.asarray(chosen)
    bits = None if events.bits is None else events.bits[positions]
    return Events(events.times, events.base + positions, events.base, bits)


def tie_order(
    order: Callable[[Any], Any],
    times: Sequence[int],
    handles: Sequence[int],
    store: EventStore,
    key: Any,
) -> list[int]:
    """
    Give the positions of events in their final order; the comparator sees only ties.

    Parameters
    ----------
    order : callable
        The comparator as a sort key.
    times : sequence of int, epoch milliseconds
        The times of a key's events, never falling.
    handles : sequence of int
        The events.
    store : EventStore
        Where the handles lead.
    key : object
        The key, for errors.

    Raises
    ------
    CepRuntimeError
        When the comparator fails; names key and time.
    """
    bounds = [0, *(np.flatnonzero(np.diff(times)) + 1).tolist(), len(times)]
    ties = [(start, end) for start, end in pairwise(bounds) if end - start > 1]
    tied = [handle for start, end in ties for handle in handles[start:end]]
    rows = iter(store.rows(tied) if tied else ())
    positions = list(range(len(handles)))
    for start, end in ties:
        ranked = _rank(order, list(islice(rows, end - start)), times[start], key)
        positions[start:end] = [start + i for i in ranked]
    return positions


def _rank(
    order: Callable[[Any], Any], rows: Sequence[Row], timestamp_ms: int, key: Any
) -> list[int]:
    try:
        ranks = [order(row) for row in rows]
        return sorted(range(len(ranks)), key=ranks.__getitem__)
    except Exception as cause:
        raise CepRuntimeError(
            f"the comparator failed. {type(cause).__name__}: {cause}",
            "it must order any two events of a key",
            timestamp_ms=timestamp_ms,
        ).at_key(key) from cause
