# SPDX-License-Identifier: Apache-2.0
"""What queries told of their micro-batches, and how they ended."""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import attrs

# By observed metric: the name for Prometheus, its labels, the factor, and the help.
_DROPPED, _ENDED = "Events dropped", "Partial matches that ended"
COUNTERS = {
    "numMatches": ("matches_total", {}, 1, "Matches"),
    "numLateRecordsDropped": ("dropped_events_total", {"reason": "late"}, 1, _DROPPED),
    "numAheadRecordsDropped": ("dropped_events_total", {"reason": "ahead"}, 1, _DROPPED),
    "numNullRecordsDropped": ("dropped_events_total", {"reason": "null"}, 1, _DROPPED),
    "endedByWindow": ("ended_total", {"reason": "window"}, 1, _ENDED),
    "endedBySkipStrategy": ("ended_total", {"reason": "skip"}, 1, _ENDED),
    "endedByContiguity": ("ended_total", {"reason": "contiguity"}, 1, _ENDED),
    "endedByUntil": ("ended_total", {"reason": "until"}, 1, _ENDED),
    "endedByNotStage": ("ended_total", {"reason": "not"}, 1, _ENDED),
    "numPartialMatchesDropped": ("ended_total", {"reason": "limit"}, 1, _ENDED),
    "stateBytesRead": ("state_read_bytes_total", {}, 1, "State read"),
    "stateBytesWritten": ("state_written_bytes_total", {}, 1, "State written"),
    "unpackingMs": ("work_seconds_total", {"part": "unpacking"}, 1e-3, "Time of all tasks"),
    "matchingMs": ("work_seconds_total", {"part": "matching"}, 1e-3, "Time of all tasks"),
    "stateMs": ("work_seconds_total", {"part": "state"}, 1e-3, "Time of all tasks"),
}
"""The observed metrics that add up."""

GAUGES = {
    "numKeys": ("keys", 1, "Keys with state"),
    "numEventsHeld": ("held_events", 1, "Events that partial matches hold"),
    "numEventsQueued": ("queued_events", 1, "Events that the watermark has not reached"),
    "numMatchesHeldBack": ("held_back_matches", 1, "Matches that a skip strategy holds back"),
    "largestKey": ("largest_key", 1, "Partial matches of the key with the most"),
    "numBuckets": ("buckets", 1, "Parts of the state that were worked on, and are told of"),
    "oldestPartialMatch": ("oldest_partial_match_seconds", 1e-3, "When it began, epoch seconds"),
    "oldestQueuedEvent": ("oldest_queued_event_seconds", 1e-3, "Its time, epoch seconds"),
    "watermark": ("watermark_seconds", 1e-3, "The watermark of the pattern, epoch seconds"),
}
"""The observed metrics of what is left after a micro-batch; times in milliseconds."""

_OWN = frozenset(["numMatches", "unpackingMs", "stateBytesRead"])
"""What tells the metrics of a pattern from those that users observe."""

_MOST_ENDED = 20


@attrs.frozen(eq=False)
class PatternPoint:
    """What a micro-batch told of a pattern."""

    counters: dict[str, float]  # What is in ``COUNTERS``, of this micro-batch
    gauges: dict[str, int | None]  # What is in ``GAUGES``, after this micro-batch
    stages: dict[str, int]  # The partial matches by stage; empty if there are no stages

    @classmethod
    def of(cls, row: Mapping[str, Any], before: PatternPoint | None) -> PatternPoint:
        """
        Read observed metrics.

        A micro-batch that worked on no part of the state has no watermark and knows of nothing
        that is left; then it is what was left before.
        """
        counters = {name: float(row.get(name) or 0) for name in COUNTERS}
        if row.get("watermark") is None and before is not None:
            return cls(counters, before.gauges, before.stages)
        gauges = {name: row[name] for name in GAUGES if name in row}
        return cls(counters, gauges, dict(row.get("partialMatches") or {}))


@attrs.frozen(eq=False)
class Point:
    """A micro-batch."""

    number: int  # Which of the query, counted by Spark
    time: float  # When it ended, in epoch seconds
    seconds: float  # How long it took
    rows: int  # Its input
    patterns: dict[str, PatternPoint]  # What it told of each pattern


@attrs.define(eq=False)
class Query:
    """A query."""

    run: str  # What identifies its run
    name: str  # Its name, or what identifies it
    points: deque[Point]  # The last micro-batches
    # When it ended, in epoch seconds, and the text of the error that it ended with.
    ended: float | None = None
    error: str | None = None
    is_idle: bool = False  # Whether Spark told that no events arrive
    # How many micro-batches and input rows there were.
    batches: int = 0
    rows: int = 0
    seconds: float = 0.0  # How long the micro-batches took
    # The counters of each pattern, added up.
    totals: dict[str, dict[str, float]] = attrs.field(factory=dict)

    @property
    def status(self) -> str:
        """Whether it runs, and how it ended if it does not."""
        if self.ended is None:
            return "running"
        return "stopped" if self.error is None else "failed"

    @property
    def last(self) -> dict[str, PatternPoint]:
        """What was told last of each pattern."""
        return self.points[-1].patterns if self.points else {}

    def add(self, progress: Mapping[str, Any]) -> None:
        """Add the progress of a micro-batch."""
        before = self.last
        # Of a pattern that is not told of, nothing happened, and what was left still is.
        found = {name: PatternPoint.of({}, point) for name, point in before.items()}
        for name, row in (progress.get("observedMetrics") or {}).items():
            if row.keys() >= _OWN:
                found[name] = PatternPoint.of(row, before.get(name))
                totals = self.totals.setdefault(name, dict.fromkeys(COUNTERS, 0.0))
                for counter, value in found[name].counters.items():
                    totals[counter] += value
        seconds = float(progress.get("batchDuration") or 0) / 1000
        begun = datetime.fromisoformat(str(progress["timestamp"])).timestamp()
        rows = int(progress.get("numInputRows") or 0)
        number = int(progress["batchId"])
        self.points.append(Point(number, begun + seconds, seconds, rows, found))
        self.is_idle = False
        self.batches += 1
        self.rows += rows
        self.seconds += seconds


@attrs.define(eq=False)
class History:
    """The queries of a session; a listener writes it while pages read it."""

    application: str = ""  # The name of the session's application
    most: int = 300  # The micro-batches of a query to keep
    version: int = 0  # How often it has changed
    _queries: dict[str, Query] = attrs.field(factory=dict, init=False)
    _lock: Any = attrs.field(factory=threading.RLock, init=False)

    def started(self, run: str, name: str) -> None:
        """Note that a query has started; `run` identifies its run."""
        with self._lock:
            self._queries[run] = Query(run, name, deque(maxlen=self.most))
            ended = [query.run for query in self._queries.values() if query.ended is not None]
            for old in ended[:-_MOST_ENDED]:
                del self._queries[old]
            self.version += 1

    def progressed(self, progress: Mapping[str, Any]) -> None:
        """Note the progress of a micro-batch, as Spark writes it in JSON."""
        with self._lock:
            run = str(progress["runId"])
            if run not in self._queries:  # it had started before anyone listened
                self.started(run, str(progress.get("name") or progress["id"]))
            self._queries[run].add(progress)
            self.version += 1

    def idled(self, run: str) -> None:
        """Note that a query waits for events."""
        with self._lock:
            if run in self._queries and not self._queries[run].is_idle:
                self._queries[run].is_idle = True
                self.version += 1

    def ended(self, run: str, error: str | None = None) -> None:
        """Note that a query has ended, now, with the text of an error if it failed."""
        with self._lock:
            if run in self._queries:
                self._queries[run].ended, self._queries[run].error = time.time(), error
                self.version += 1

    def read(self) -> Iterator[Query]:
        """Yield the queries, the last first; nothing changes meanwhile."""
        with self._lock:
            yield from reversed(list(self._queries.values()))


_LONGEST_REASON = 2_000


def reason_of(error: str) -> str:
    r"""
    Return what an error says, without where it was raised.

    Of Python's errors it is the last, which was made of those before it; of Java's it is the last
    cause.

    Examples
    --------
    >>> reason_of("E: at work\n\tat a.B(C.java)\nCaused by: F: no disk\n\tat d.E(F.java)\n")
    'F: no disk'
    """
    last = re.split(r"Traceback \(most recent call last\):\n|^Caused by: ", error, flags=re.M)[-1]
    said, _, _ = last.partition("\n\tat ")
    lines = [line.rstrip() for line in said.splitlines() if not line.startswith("  ")]
    text = "\n".join(lines).strip() or error.strip()
    return text if len(text) <= _LONGEST_REASON else text[:_LONGEST_REASON] + "…"
