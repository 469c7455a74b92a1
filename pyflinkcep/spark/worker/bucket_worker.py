# SPDX-License-Identifier: Apache-2.0
"""The stateful operator's work in a task: events and timers, bucket by bucket."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

import attrs
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle
from pyspark.sql.types import ArrayType, BinaryType, LongType, StructField, StructType

from pyflinkcep.errors import InputError
from pyflinkcep.spark.arrow.internals import arrow_schema
from pyflinkcep.spark.state.pages import read_table, write_table
from pyflinkcep.spark.state.storage import BucketStorage
from pyflinkcep.spark.worker.bucket import NEVER, Arrivals, BucketOutput, BucketWork
from pyflinkcep.spark.worker.bucket_task import BucketPlan, BucketTask
from pyflinkcep.spark.worker.pack import (
    AHEAD,
    LATE,
    NULLS,
    PARTS,
    PUBLISHED,
    TOLD,
    pack_results,
    read_spans,
    stored_buckets,
)
from pyflinkcep.spark.worker.progress import NO_TIME, RECORDS, Stopwatch, numbers_of
from pyflinkcep.spark.worker.runtime import (
    errors_in,
    fewer_collections,
    prepare_worker,
    running,
    runtime_context,
)
from pyflinkcep.time import MAX_WATERMARK, MIN_WATERMARK

if TYPE_CHECKING:
    import pandas as pd


# The schema of the operator's output for a bucket: its :data:`PARTS`, and its counters, which begin
# with :data:`RECORDS`. Few columns, since PySpark takes a quarter of a millisecond for each of a
# bucket.
RESULTS = StructType(
    [
        StructField("parts", ArrayType(BinaryType()), False),
        StructField("counts", ArrayType(LongType()), False),
    ]
)


class BucketWorker:
    """Hands buckets' events and timers to :class:`~pyflinkcep.spark.worker.bucket.BucketWork`."""

    def __init__(
        self,
        plan: BucketPlan,
        sides: frozenset[str],
        handle: StatefulProcessorHandle,
        storage: BucketStorage,
    ) -> None:
        self._plan = plan
        self._sides = sides
        self._handle = handle
        self._storage = storage
        self._unpacking = Stopwatch()
        self._first = min(plan.key_groups.bucket_ids())  # Of what all buckets know it tells
        self._task = plan.task(runtime_context(plan.layout.pattern))
        prepare_worker()

    def take(self, key: Any, rows: Iterator[pd.DataFrame], timers: Any) -> pd.DataFrame:
        """Process a bucket's new events, and the watermark of the micro-batch."""
        packed = [row for frame in rows for row in _rows(frame)]
        packed.sort(key=lambda row: row[:2])
        now, latest = self._now(timers), max(int(row[4]) for row in packed)
        published, packed = divided(packed)
        if self._plan.delay_ms is None:
            self._refuse_unreachable(now, latest)
            latest = MIN_WATERMARK
        with self._unpacking:
            arrivals = Arrivals(
                [read_table(row[2]) for row in packed if row[2] is not None],
                latest,
                [row[3] for row in packed if row[3] is not None],
                [read_spans(row[5]) for row in packed if row[5] is not None],
                published,
            )
        results = self._run(key, arrivals, now, is_expired=False)
        nulls = [row[6] for row in packed if row[6] is not None]
        if nulls and NULLS in self._sides:
            results[0][NULLS] = write_table(pa.concat_tables(map(read_table, nulls)))
        results[0]["nullRecords"] = sum(int(row[7]) for row in packed)
        return _frame(results)

    def wake(self, key: Any, timers: Any) -> pd.DataFrame:
        """Advance time for a bucket whose timer has expired."""
        return _frame(self._run(key, Arrivals(), self._now(timers), is_expired=True))

    def close(self) -> None:
        """End a task."""
        self._task.close()

    def _run(
        self, key: Any, arrivals: Arrivals, now: int, *, is_expired: bool
    ) -> list[dict[str, Any]]:
        begun = time.perf_counter_ns()
        self._storage.read = self._storage.written = 0
        work = BucketWork(self._task, self._storage, self._plan.key_groups.of_bucket(int(key[0])))
        reached = self._as_event_time(now)
        with errors_in(self._plan.layout.pattern), fewer_collections():
            outputs = work.run(arrivals, reached)
        before = None if is_expired else work.index.timer
        work.close(self._set_timer(before, work.timer(reached), now), reached)
        rows = [result_row(self._task, output, self._storage, self._sides) for output in outputs]
        matching = work.matching.nanos
        state_nanos = time.perf_counter_ns() - begun - matching
        spent = (self._unpacking.take(), matching, state_nanos)
        for row, output in zip(rows, outputs, strict=True):
            last = output is outputs[-1]
            state, nanos = (work.state, spent) if last else (None, NO_TIME)
            row["counts"] = numbers_of(output.found, state, work.reached, nanos)
            if output.told is not None and int(key[0]) == self._first:
                row[TOLD] = write_table(output.told)
        return rows

    def _refuse_unreachable(self, now: int, latest: int) -> None:
        """Refuse events that Spark's watermark, which begins in 1970, does not reach."""
        if self._plan.processing_time or now != MIN_WATERMARK or not MIN_WATERMARK < latest < 0:
            return
        raise InputError(
            f"pattern {self._plan.layout.pattern}: all events are before 1970, where the watermark "
            "of Spark begins, which the pattern follows; no match would ever come",
            "move the times, as in ts + INTERVAL 100 YEARS; explain() says why the pattern follows "
            "that watermark: the one of its own events may be before 1970",
        )

    def _set_timer(self, before: int | None, wanted: int | None, now: int) -> int | None:
        """Ensure that Spark calls no later than necessary; return the registered timer."""
        if wanted is not None:
            if self._plan.clock is not None:
                wanted = self._plan.clock.reaches(wanted)
            if wanted != NEVER:
                wanted -= self._plan.ahead_ms
            wanted = max(wanted, now + 1, 1)
            if before is not None and now < before <= wanted:
                return before  # an early call costs less than two calls now
        if before != wanted:
            if before is not None:
                self._handle.deleteTimer(before)
            if wanted is not None:
                self._handle.registerTimer(wanted)
        return wanted

    def _as_event_time(self, now: int) -> int:
        """Return Spark's watermark as the events' times are counted."""
        clock = self._plan.clock
        if now == MIN_WATERMARK:
            return now
        ahead = now + self._plan.ahead_ms
        return ahead if clock is None else clock.shows(ahead)

    def _now(self, timer_values: Any) -> int:
        if self._plan.processing_time:
            return int(timer_values.getCurrentProcessingTimeInMs())
        watermark = int(timer_values.getCurrentWatermarkInMs())
        return watermark if watermark > 0 else MIN_WATERMARK


def divided(packed: list[tuple[Any, ...]]) -> tuple[dict[int, str], list[tuple[Any, ...]]]:
    """Return publications, which are texts whatever is in their files, and rows of events."""
    own = [row for row in packed if row[0] == PUBLISHED]
    texts = {int(row[1]): bytes(row[2]).decode(errors="replace") for row in own}
    return texts, packed[len(own) :]


def result_row(
    task: BucketTask,
    output: BucketOutput,
    storage: BucketStorage,
    sides: frozenset[str] = frozenset(),
) -> dict[str, Any]:
    """Return the results of the work on a bucket: :data:`PARTS`, :data:`RECORDS`, counts."""
    numbers = events = None
    if output.found.rows is not None:
        events = write_table(output.found.rows)
    elif len(output.found):
        numbers, events = pack_results(output.found, output.events)
    left_out = {LATE: output.late, AHEAD: output.ahead}
    names = task.plan.layout.schema.fieldNames()
    returned = {
        side: write_table(table.select(names))
        for side, table in left_out.items()
        if side in sides and table is not None and table.num_rows
    }
    read, storage.read = storage.read, 0
    written, storage.written = storage.written, 0
    return {
        "numbers": numbers,
        "events": events,
        LATE: returned.get(LATE),
        AHEAD: returned.get(AHEAD),
        NULLS: None,
        TOLD: None,
        "lateRecords": output.late_count,
        "aheadRecords": output.ahead_count,
        "nullRecords": 0,
        "droppedMatches": output.found.dropped,
        "stateBytesRead": read,
        "stateBytesWritten": written,
        "counts": [],
    }


_NAMES = ("partition", "position", "data", "dropped", "latest", "spans", NULLS, "nullRecords")


def _rows(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    """Return packed rows, with the columns :data:`_NAMES`."""
    # As objects at once: pandas takes longer to find a column than all of this does.
    at = [frame.columns.get_loc(name) for name in _NAMES]
    return [tuple(row[place] for place in at) for row in frame.to_numpy(object).tolist()]


def _columns(rows: list[dict[str, Any]]) -> list[list[list[Any]]]:
    """Return results as the columns of :data:`RESULTS`."""
    return [
        [[row[name] for name in PARTS] for row in rows],
        [[*(row[name] for name in RECORDS), *row["counts"]] for row in rows],
    ]


def _frame(rows: list[dict[str, Any]]) -> pd.DataFrame:
    import pandas as pd  # Spark has loaded it; on the driver nobody waits for it

    # Columns by number, which PySpark takes in their order, and need not look for by name.
    return pd.DataFrame(dict(enumerate(_columns(rows))))


@attrs.frozen(eq=False)
class FlushTask:
    """The work on some buckets' state, and on the last events."""

    plan: BucketPlan  # The settings that the stream ran with

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Process the final watermark for each bucket."""
        with (
            running(self.plan.layout.pattern) as context,
            closing(self.plan.task(context)) as task,
        ):
            for storage, data, groups in stored_buckets(batches, self.plan.key_groups):
                arrivals = Arrivals(list(map(read_table, data)))
                outputs = BucketWork(task, storage, groups).run(arrivals, MAX_WATERMARK)
                results = [result_row(task, output, storage) for output in outputs]
                columns = dict(zip(RESULTS.names, _columns(results), strict=True))
                yield pa.RecordBatch.from_pydict(columns, arrow_schema(RESULTS))
