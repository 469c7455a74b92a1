# SPDX-License-Identifier: Apache-2.0
"""Results on their way from the stateful operator to the users' functions: numbers and events."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from pyflinkcep.spark.event_store import EventStore
from pyflinkcep.spark.packing import read_table, write_table
from pyflinkcep.spark.results import Result

__all__ = ["pack_results", "unpack_results"]


def pack_results(
    results: Sequence[Result], stages: Sequence[str], events: EventStore
) -> tuple[bytes, bytes]:
    """
    Give results and their events as bytes.

    Parameters
    ----------
    results : sequence of Result
        Matches and timeouts.
    stages : sequence of str
        All names that a match can have.
    events : EventStore
        Where the results' handles lead.

    Returns
    -------
    tuple of bytes
        The results as integers, each event once as Arrow.
    """
    number = {stage: position for position, stage in enumerate(stages)}
    numbers: list[int] = []
    handles: list[int] = []
    for is_match, timestamp, match in results:
        numbers += (is_match, timestamp, len(match))
        for stage, taken in match.items():
            numbers += (number[stage], len(taken))
            handles += taken
    unique, positions = np.unique(np.asarray(handles, np.int64), return_inverse=True)
    head = np.asarray([len(numbers)], np.int64)
    body = np.concatenate([head, np.asarray(numbers, np.int64), positions.astype(np.int64)])
    return body.astype("<i8").tobytes(), write_table(events.take(unique).select(events.shown))


def unpack_results(
    numbers: bytes, events: bytes, stages: Sequence[str], base: int
) -> tuple[list[Result], pa.Table]:
    """
    Read what :func:`pack_results` gave.

    Parameters
    ----------
    numbers, events : bytes
        The results and their events.
    stages : sequence of str
        The names, as when they were packed.
    base : int
        What to add to the events' positions to make handles of them.

    Returns
    -------
    tuple of (list of Result, pyarrow.Table)
        The results, and the table that their handles lead into.
    """
    values = np.frombuffer(numbers, "<i8")
    size = int(values[0])
    shape = iter(values[1 : size + 1].tolist())
    handles = (values[size + 1 :] + base).tolist()
    results: list[Result] = []
    at = 0
    for is_match in shape:
        timestamp, count = next(shape), next(shape)
        match = {}
        for _ in range(count):
            stage, taken = stages[next(shape)], next(shape)
            match[stage] = handles[at : at + taken]
            at += taken
        results.append((bool(is_match), timestamp, match))
    return results, read_table(events)
