# SPDX-License-Identifier: Apache-2.0
"""
The events of the benchmark: made from their numbers alone, kept as Parquet files.

Event i happens i milliseconds after the epoch. Its other fields are taken from a chain of 64-bit
hashes that begins with i and the seed, so that any engine can make the same stream.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Protocol

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SCHEMA = "key int, type int, price double, volume bigint, ts timestamp"

_STRIDE = np.uint64(0x9E3779B97F4A7C15)
_ROUNDS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
_START_TYPE, _END_TYPE, _OTHER_TYPE = 0, 1, 2


class EventSource(Protocol):
    """A stream that can be made in parts."""

    @property
    def events(self) -> int: ...

    @property
    def name(self) -> str:
        """Return a name for its folder that says everything about it."""

    def part(self, start: int, end: int) -> pa.Table:
        """Make the events with these numbers."""


@attrs.frozen
class RandomEvents:
    """The stream of the six workloads."""

    events: int  # how many events, keys and types of events; keys and types are evenly spread
    keys: int
    types: int = 10
    seed: int = 7

    @property
    def name(self) -> str:
        return f"random-{self.events}-{self.keys}-{self.types}-{self.seed}"

    def part(self, start: int, end: int) -> pa.Table:
        number = np.arange(start, end, dtype=np.uint64)
        hashes = [_mixed(number * _STRIDE + np.uint64(self.seed))]
        for _ in range(3):
            hashes.append(_mixed(hashes[-1]))
        ranges = (self.keys, self.types, 10_000, 2_000)
        key, kind, cents, volume = (h % np.uint64(n) for h, n in zip(hashes, ranges, strict=True))
        return _table(key, kind, cents.astype(np.float64) / 100, volume, number)


@attrs.frozen
class PendingEvents:
    """
    One key with many partial matches: events that begin one, others, and one that ends them all.
    """

    partials: int  # how many partial matches are pending at the end
    others: int  # how many events that no stage takes come while they are

    @property
    def events(self) -> int:
        return self.partials + self.others + 1

    @property
    def name(self) -> str:
        return f"pending-{self.partials}-{self.others}"

    def part(self, start: int, end: int) -> pa.Table:
        number = np.arange(start, end, dtype=np.uint64)
        kind = np.where(number < self.partials, _START_TYPE, _OTHER_TYPE)
        kind[number == self.events - 1] = _END_TYPE
        zero = np.zeros(len(number))
        return _table(zero, kind, zero, zero, number)


def write_events(source: EventSource, cache: Path, per_file: int) -> Path:
    """
    Write a stream as Parquet files, unless a run before has; return their folder.

    Files have increasing times of modification, by which a file stream orders them.
    """
    folder = cache / f"{source.name}-{per_file}"
    if folder.is_dir():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix="unfinished-", dir=cache))
    for number, start in enumerate(range(0, source.events, per_file)):
        path = unfinished / f"{number:06d}.parquet"
        pq.write_table(source.part(start, min(start + per_file, source.events)), path)
        os.utime(path, (1_000_000 + number,) * 2)
    try:
        unfinished.rename(folder)
    except OSError:  # another run was faster
        shutil.rmtree(unfinished)
    return folder


def _mixed(z: np.ndarray) -> np.ndarray:
    """Spread 64-bit numbers: the finaliser of SplitMix64."""
    for shift, factor in _ROUNDS:
        z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
    return z ^ (z >> np.uint64(31))


def _table(
    key: np.ndarray, kind: np.ndarray, price: np.ndarray, volume: np.ndarray, ts_ms: np.ndarray
) -> pa.Table:
    micros = pa.array(ts_ms.astype(np.int64) * 1000, pa.timestamp("us", tz="UTC"))
    return pa.table(
        {
            "key": key.astype(np.int32),
            "type": kind.astype(np.int32),
            "price": price,
            "volume": volume.astype(np.int64),
            "ts": micros,
        }
    )
