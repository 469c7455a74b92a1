# SPDX-License-Identifier: Apache-2.0
"""What queries have told of their micro-batches, the last of them; it knows no library."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import attrs

COUNTERS = (
    "numMatches",
    "numLateRecordsDropped",
    "numAheadRecordsDropped",
    "numNullRecordsDropped",
    "numPartialMatchesDropped",
    "endedByWindow",
    "endedBySkipStrategy",
    "endedByContiguity",
    "endedByUntil",
    "endedByNotStage",
    "stateBytesRead",
    "stateBytesWritten",
    "unpackingMs",
    "matchingMs",
    "stateMs",
)
"""The observed metrics that add up."""

GAUGES = (
    "numKeys",
    "numEventsHeld",
    "numEventsQueued",
    "numMatchesHeldBack",
    "largestKey",
    "numBuckets",
    "oldestPartialMatch",
    "oldestQueuedEvent",
    "watermark",
)
"""The observed metrics that are about what is left after a micro-batch; times in milliseconds."""

_OWN = frozenset(["numMatches", "unpackingMs", "stateBytesRead"])
"""What tells the metrics of a pattern from those that users observe."""

_MOST_ENDED = 20


@attrs.frozen(eq=False)
class PatternPoint:
    """What a micro-batch told of a pattern."""

    counters: dict[str, float]  # What is in :data:`COUNTERS`, of this micro-batch
    gauges: dict[str, int | None]  # What is in :data:`GAUGES`, after this micro-batch
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

    time: float  # When it ended
    seconds: float  # How long it took
    rows: int  # Its input
    patterns: dict[str, PatternPoint]  # What it told of each pattern


@attrs.define(eq=False)
class Query:
    """A query."""

    run: str  # What identifies its run
    name: str  # Its name, or what identifies it
    points: deque[Point]  # The last micro-batches
    status: str = "running"  # Whether it runs
    # How many micro-batches and input rows there were.
    batches: int = 0
    rows: int = 0
    seconds: float = 0.0  # How long the micro-batches took
    # The counters of each pattern, added up.
    totals: dict[str, dict[str, float]] = attrs.field(factory=dict)

    @property
    def last(self) -> dict[str, PatternPoint]:
        """What was told last of each pattern."""
        return self.points[-1].patterns if self.points else {}

    def add(self, progress: Mapping[str, Any]) -> None:
        """Add the progress of a micro-batch."""
        before, found = self.last, {}
        for name, row in (progress.get("observedMetrics") or {}).items():
            if row.keys() >= _OWN:
                found[name] = PatternPoint.of(row, before.get(name))
                totals = self.totals.setdefault(name, dict.fromkeys(COUNTERS, 0.0))
                for counter, value in found[name].counters.items():
                    totals[counter] += value
        seconds = float(progress.get("batchDuration") or 0) / 1000
        begun = datetime.fromisoformat(str(progress["timestamp"])).timestamp()
        rows = int(progress.get("numInputRows") or 0)
        self.points.append(Point(begun + seconds, seconds, rows, {**before, **found}))
        self.batches += 1
        self.rows += rows
        self.seconds += seconds


@attrs.define(eq=False)
class History:
    """The queries of a session; a listener writes it while pages read it."""

    most: int = 300  # The micro-batches of a query to keep
    version: int = 0  # How often it has changed
    _queries: dict[str, Query] = attrs.field(factory=dict, init=False)
    _lock: Any = attrs.field(factory=threading.RLock, init=False)

    def started(self, run: str, name: str) -> None:
        """Note that a query has started; `run` identifies its run."""
        with self._lock:
            self._queries[run] = Query(run, name, deque(maxlen=self.most))
            ended = [query.run for query in self._queries.values() if query.status != "running"]
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

    def ended(self, run: str, failed: bool) -> None:
        """Note that a query has ended."""
        with self._lock:
            if run in self._queries:
                self._queries[run].status = "failed" if failed else "stopped"
                self.version += 1

    def read(self) -> Iterator[Query]:
        """Yield the queries, the last first; nothing changes meanwhile."""
        with self._lock:
            yield from reversed(list(self._queries.values()))
