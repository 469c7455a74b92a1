# SPDX-License-Identifier: Apache-2.0
"""How far the tasks of bounded jobs are: each writes numbers into a file of its own."""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["CountedTask", "SoFar", "read_so_far"]

_EVERY = 0.2
"""How often a task writes, in seconds."""


@attrs.frozen
class SoFar:
    """
    How far bounded jobs are.

    Attributes
    ----------
    events : int
        The events that tasks have read.
    matches : int
        The rows that tasks have given: matches, unless a function makes others of them.
    tasks : int
        The tasks that are done.
    keys : int
        The keys of these tasks.
    """

    events: int = 0
    matches: int = 0
    tasks: int = 0
    keys: int = 0


@attrs.frozen(eq=False)
class CountedTask:
    """
    A task that tells how far it is, to who reads its folder on the same machine.

    Attributes
    ----------
    task : callable
        From the Arrow batches of a partition to batches of rows.
    folder : str
        The folder; where there is none, nothing is told.
    key : str or None
        The column that tells keys apart; None if there is no key.
    """

    task: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
    folder: str
    key: str | None

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Do the task's work."""
        path = Path(self.folder, uuid.uuid4().hex)
        try:
            path.touch(exist_ok=False)
        except OSError:
            yield from self.task(batches)
            return
        counts = _Counts(path)
        try:
            for rows in self.task(self._read(batches, counts)):
                counts.matches += rows.num_rows
                counts.tell()
                yield rows
            counts.end()
        except BaseException:
            with contextlib.suppress(OSError):
                path.unlink()  # it may be tried again
            raise

    def _read(self, batches: Iterator[pa.RecordBatch], counts: _Counts) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows and self.key is not None:
                own = batch.column(self.key)
                if not pa.types.is_nested(own.type):
                    counts.keys.append(pc.unique(own))
            counts.events += batch.num_rows
            counts.tell()
            yield batch


@attrs.define(eq=False)
class _Counts:
    path: Path
    events: int = 0
    matches: int = 0
    keys: list[pa.Array] = attrs.field(factory=list)
    _told: float = 0.0

    def tell(self) -> None:
        """Write the numbers, if that is some time ago."""
        now = time.monotonic()
        if now - self._told >= _EVERY:
            self._told = now
            self._write(0, 0)

    def end(self) -> None:
        """Write the numbers of a task that is done."""
        keys = len(pc.unique(pa.chunked_array(self.keys))) if self.keys else 0
        self._write(1, keys)

    def _write(self, done: int, keys: int) -> None:
        numbers = np.asarray([self.events, self.matches, done, keys], "<i8")
        with contextlib.suppress(OSError), self.path.open("r+b") as file:
            file.write(numbers.tobytes())  # over what is there, which others may read meanwhile


def read_so_far(folder: str) -> SoFar:
    """Return the sum of what the tasks of a folder have told."""
    total = np.zeros(4, np.int64)
    with os.scandir(folder) as files:
        for file in files:
            data = Path(file.path).read_bytes()
            if len(data) == total.nbytes:  # else the task has just begun
                total += np.frombuffer(data, "<i8")
    return SoFar(*total.tolist())
