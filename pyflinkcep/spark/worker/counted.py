# SPDX-License-Identifier: Apache-2.0
"""The counters of a bucket's work: numbers in a row of its output, which Spark adds up."""

from __future__ import annotations

import time

import attrs
import numpy as np

from pyflinkcep.matching.results import Found
from pyflinkcep.spark.state.bucket_state import BucketState
from pyflinkcep.time import MIN_WATERMARK

__all__ = [
    "EARLIEST",
    "LARGEST",
    "NO_TIME",
    "PATTERN_SUMS",
    "STAGES",
    "SUMS",
    "Stopwatch",
    "numbers_of",
]

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
"""What is added up, of any stream."""

PATTERN_SUMS = (
    "numMatchesHeldBack",
    "endedByWindow",
    "endedBySkipStrategy",
    "endedByContiguity",
    "endedByUntil",
    "endedByNotStage",
)
"""What is added up, of a pattern."""

NO_TIME = (0, 0, 0)
"""The time spent in unpacking, in matching, and with state, where it is not told."""

LARGEST = "largestKey"
"""That of which the greatest is wanted."""

EARLIEST = ("oldestPartialMatch", "oldestQueuedEvent", "watermark")
"""Times of which the earliest is wanted."""

STAGES = len(SUMS) + len(PATTERN_SUMS) + 1 + len(EARLIEST)
"""Where the partial matches by stage begin among the numbers of a row."""


@attrs.define(eq=False)
class Stopwatch:
    """
    Adds up the time spent in its ``with`` blocks.

    Attributes
    ----------
    nanos : int
        The time of those that have ended and were not taken.
    """

    nanos: int = 0
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
    """
    Return the counters of a row, in the order of the names above and then by stage.

    Parameters
    ----------
    found : Found
        The results in the row.
    state : BucketState or None
        The bucket's state after its work; None in all rows but the last, for what it holds is told
        once.
    watermark : int, epoch milliseconds
        The watermark that the bucket has reached.
    nanos : tuple of int
        The time spent in unpacking, in matching, and with state.
    """
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
