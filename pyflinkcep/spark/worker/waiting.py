# SPDX-License-Identifier: Apache-2.0
"""What the state of a stream holds: partial matches, matches held back, and queued events."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import attrs
import pyarrow as pa

from pyflinkcep.engines.flink.nfa import NFA, ComputationState
from pyflinkcep.engines.flink.nfa.partial_matches import NEVER
from pyflinkcep.matching.columns import retyped
from pyflinkcep.matching.matcher import StoredStates
from pyflinkcep.spark.state.bucket_state import BucketState
from pyflinkcep.spark.state.pages import Page
from pyflinkcep.spark.worker.bucket_task import BucketPlan, BucketTask
from pyflinkcep.spark.worker.pack import stored_buckets
from pyflinkcep.spark.worker.runtime import running
from pyflinkcep.traces.recorder import wanted

PARTIAL, HELD, QUEUED = "partial match", "match held back", "queued events"  # What a row is about


@attrs.frozen(eq=False)
class WaitingTask:
    """Reads some buckets' state."""

    plan: BucketPlan  # The settings that the stream ran with
    schema: pa.Schema  # The columns of the result: those of the key, then facts about what waits

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return a row for each partial match and match held back, and for each queue."""
        with (
            running(self.plan.layout.pattern) as context,
            closing(self.plan.task(context)) as task,
        ):
            for storage, _, groups in stored_buckets(batches, self.plan.key_groups):
                state = BucketState(task.shape, storage, self.plan.fingerprint, "fail", groups)
                yield from self._of_bucket(task, state)

    def _of_bucket(self, task: BucketTask, state: BucketState) -> Iterator[pa.RecordBatch]:
        watermark = state.index.watermark
        assert task.rules is not None
        for page_id in state.index.pages:
            page = state.read_page(page_id)
            found = list(_of_page(task.rules.nfa, page))
            if found:
                handles = pa.array([handle for handle, _ in found])
                columns = self.plan.layout.key_columns
                keys = [page.events.column(name).take(handles) for name in columns]
                yield self._batch(keys, [facts for _, facts in found], watermark)
        times = [
            int(time)
            for number in state.index.segments
            for time in self.plan.layout.times_ms(state.read_segment(number))
        ]
        if times:
            width = len(self.plan.layout.key_columns)
            nulls = [pa.nulls(1, field.type) for field in self.schema][:width]
            yield self._batch(
                nulls, [(QUEUED, None, None, len(times), min(times), None)], watermark
            )

    def _batch(self, keys: list[Any], facts: list[Any], watermark: int | None) -> pa.RecordBatch:
        columns = [
            *(key.combine_chunks() if isinstance(key, pa.ChunkedArray) else key for key in keys),
            *(pa.array(column) for column in zip(*facts, strict=True)),
            pa.array([watermark] * len(facts)),
        ]
        cast = [
            retyped(column, field.type) for column, field in zip(columns, self.schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(cast, schema=self.schema)


# What it is, the last stage taken, what it waits for, the number of events, begin and end.
_Facts = tuple[str, str | None, str | None, int, int, int | None]


def _of_page(nfa: NFA, page: Page) -> Iterator[tuple[int, _Facts]]:
    """Yield what waits in a page, each with its first event in the page."""
    stored = StoredStates(nfa, page, 0)
    for position in range(len(page)):
        key = stored.state(position)
        accessor = key.buffer.get_accessor()
        for what, states in (
            (PARTIAL, key.nfa_state.partial_matches),
            (HELD, key.nfa_state.completed_matches),
        ):
            for state in states:
                if state.previous_node is None or state.start_event_id is None:
                    continue
                match = accessor.materialize_match(state.previous_node, state.version)
                handles = [handle for taken in match.values() for handle in taken]
                yield handles[0], _facts(nfa, what, state, len(handles))


def _facts(nfa: NFA, what: str, state: ComputationState, events: int) -> _Facts:
    node, start = state.previous_node, state.start_event_id
    assert node is not None
    assert start is not None
    end = nfa.windows.deadline(state)
    waits_for = "partial matches that began earlier"
    if what == PARTIAL:
        table = state.table
        waits_for = f"not {table.state.stage}" if table.is_pending else " or ".join(wanted(table))
    return what, node.stage, waits_for, events, start.timestamp, None if end >= NEVER else end
