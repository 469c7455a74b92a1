# SPDX-License-Identifier: Apache-2.0
"""Results on their way from the stateful operator to the users' functions: numbers and events."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from pyflinkcep.spark.matching.event_store import EventStore
from pyflinkcep.spark.matching.results import Found
from pyflinkcep.spark.worker.pack import read_table, write_table

__all__ = ["pack_results", "unpack_results"]


def pack_results(found: Found, events: EventStore) -> tuple[bytes, bytes]:
    """
    Give results and their events as bytes.

    Parameters
    ----------
    found : Found
        Matches and timeouts.
    events : EventStore
        Where their handles lead.

    Returns
    -------
    tuple of bytes
        The results as integers, each event once as Arrow.
    """
    unique, positions = np.unique(found.handles, return_inverse=True)
    parts = [[len(found)], found.kinds, found.times, found.ends, found.stage_of, positions]
    numbers = np.concatenate([np.asarray(part, "<i8") for part in parts])
    return numbers.tobytes(), write_table(events.take(unique, events.shown))


def unpack_results(
    numbers: bytes, events: bytes, stages: Sequence[str], base: int
) -> tuple[Found, pa.Table]:
    """
    Read what :func:`pack_results` gave.

    Parameters
    ----------
    numbers, events : bytes
        The results and their events.
    stages : sequence of str
        The stages by their number, as when they were packed.
    base : int
        What to add to the events' positions to make handles of them.

    Returns
    -------
    tuple of (Found, pyarrow.Table)
        The results, and the table that their handles lead into.
    """
    values = np.frombuffer(numbers, "<i8").astype(np.int64, copy=False)
    size = int(values[0])
    kinds, times, ends = values[1 : 1 + 3 * size].reshape(3, size)
    stage_of, positions = values[1 + 3 * size :].reshape(2, -1)
    found = Found(
        stages,
        kinds.astype(np.uint8),
        times,
        ends,
        stage_of.astype(np.int32),
        positions + base,
    )
    return found, read_table(events)
