# SPDX-License-Identifier: Apache-2.0
"""How far the tasks of bounded jobs are: each writes numbers into a file of its own."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyflinkcep.matching.progress import Counts
from pyflinkcep.matching.results import Found
from pyflinkcep.spark.state.bucket_state import BucketState
from pyflinkcep.time import MIN_WATERMARK


@attrs.frozen(eq=False)
class CountedTask:
    """A task that tells how far it is, to who reads its folder on the same machine."""

    # From the Arrow batches of a partition to batches of rows.
    task: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
    folder: str  # The folder; where there is none, nothing is told
    key: str | None  # The column that tells keys apart; None if there is no key

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Do the task's work."""
        path = Path(self.folder, uuid.uuid4().hex)
        try:
            path.touch(exist_ok=False)
        except OSError:
            yield from self.task(batches)
            return
        counts, keys = Counts(path), list[pa.Array]()
        try:
            for rows in self.task(self._read(batches, counts, keys)):
                counts.matches += rows.num_rows
                counts.tell()
                yield rows
            counts.keys = len(pc.unique(pa.chunked_array(keys))) if keys else 0
            counts.tasks = 1
            counts.write()
        except BaseException:
            with contextlib.suppress(OSError):
                path.unlink()  # it may be tried again
            raise

    def _read(
        self, batches: Iterator[pa.RecordBatch], counts: Counts, keys: list[pa.Array]
    ) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows and self.key is not None:
                own = batch.column(self.key)
                if not pa.types.is_nested(own.type):
                    keys.append(pc.unique(own))
            counts.events += batch.num_rows
            counts.tell()
            yield batch


# What is added up of any stream, first of all counters.
RECORDS = (
    "lateRecords",
    "aheadRecords",
    "nullRecords",
    "droppedMatches",
    "stateBytesRead",
    "stateBytesWritten",
)

# What is added up, of any stream.
SUMS = (
    "numMatches",
    "numKeys",
    "numEventsHeld",
    "numEventsQueued",
    "numBuckets",
    "unpackingNanos",
    "matchingNanos",
    "stateNanos",
)

# What is added up, of a pattern.
PATTERN_SUMS = (
    "numMatchesHeldBack",
    "endedByWindow",
    "endedBySkipStrategy",
    "endedByContiguity",
    "endedByUntil",
    "endedByNotStage",
)

# The time spent in unpacking, in matching, and with state, where it is not told.
NO_TIME = (0, 0, 0)
LARGEST = "largestKey"  # That of which the greatest is wanted
# Times of which the earliest is wanted.
EARLIEST = ("oldestPartialMatch", "oldestQueuedEvent", "watermark")
# Where the partial matches by stage begin among the numbers of a row.
STAGES = len(SUMS) + len(PATTERN_SUMS) + 1 + len(EARLIEST)


@attrs.define(eq=False)
class Stopwatch:
    """Adds up the time spent in its ``with`` blocks."""

    nanos: int = 0  # The time of those that have ended and were not taken
    _begun: int = 0

    def __enter__(self) -> None:
        self._begun = time.perf_counter_ns()

    def __exit__(self, *_: object) -> None:
        self.nanos += time.perf_counter_ns() - self._begun

    def take(self) -> int:
        """Return the time so far, and begin at zero."""
        nanos, self.nanos = self.nanos, 0
        return nanos


def numbers_of(
    found: Found,
    state: BucketState | None,
    watermark: int,
    nanos: tuple[int, int, int] = NO_TIME,
) -> list[int | None]:
    """Return the counters of a row, in the order of the names above and then by stage."""
    matches = int(np.count_nonzero(found.kinds))
    if found.rows is not None:
        matches += found.rows.num_rows
    ended = found.ended
    by_reason = (ended.window, ended.skipped, *ended.by_event)
    if state is None:
        return [matches, 0, 0, 0, 0, *nanos, 0, *by_reason, 0, None, None, None]
    held, index = state.held, state.index
    return [
        matches,
        held.keys,
        held.events,
        sum(index.queued.values()),
        1,
        *nanos,
        held.held,
        *by_reason,
        held.largest,
        held.oldest,
        min(index.segments.values(), default=None),
        None if watermark == MIN_WATERMARK else watermark,
        *held.by_stage,
    ]
