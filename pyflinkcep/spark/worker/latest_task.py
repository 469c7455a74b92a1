# SPDX-License-Identifier: Apache-2.0
"""Tasks of patterns and sequences whose latest runs live, and sequences on a stream's buckets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.engines.latest.columns import FoundRuns, RunningRules, latest_rules
from pyflinkcep.engines.latest.machine import END
from pyflinkcep.errors import PatternChangedError
from pyflinkcep.functions import RuntimeContext, opened
from pyflinkcep.matching.event_store import EventStore
from pyflinkcep.matching.latest import LatestEvents
from pyflinkcep.matching.latest_pages import LatestPages
from pyflinkcep.matching.layout import Layout
from pyflinkcep.matching.sorting import BUDGET_BYTES, by_chunks, sorted_chunks
from pyflinkcep.spark.arrow.rows import RowReader
from pyflinkcep.spark.worker.bucket_task import BucketPlan, BucketTask, Matching
from pyflinkcep.spark.worker.consumers import Consumer, batches_of
from pyflinkcep.spark.worker.runtime import running


@attrs.frozen(eq=False)
class LatestTask:
    """The work on one partition, by chunks of sorted events."""

    latest: Callable[[], LatestEvents]  # Returns what the rule reads from events
    consumer: Consumer  # Turns matches into rows
    sort_bytes: int = BUDGET_BYTES  # How many bytes of events to sort in memory

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Match the events of a partition; yield its output."""
        latest = self.latest()
        rules, layout = latest_rules([latest.rule]), latest.layout
        with (
            running(layout.pattern) as context,
            opened(self.consumer, context, "a function"),
            closing(sorted_chunks(batches, layout, self.sort_bytes)) as chunks,
        ):
            matched = partial(self._matched, latest, rules)
            ordered, held = map(latest.in_order, chunks), partial(_held, layout, rules)
            kept = yield from by_chunks(ordered, matched, held)
            if kept is not None:
                yield from self._rows(latest, rules.advance(END), kept)

    def _matched(
        self, latest: LatestEvents, rules: RunningRules, events: pa.Table, old: int
    ) -> Iterator[pa.RecordBatch]:
        """Offer all but the first `old` events, which runs hold; the last key may go on."""
        size, layout = events.num_rows, latest.layout
        bits, times = layout.bits(events), layout.times_ms(events)
        assert bits is not None
        offers, changes = (
            latest.offers(bits, layout.key_numbers(events)),
            layout.key_changes(events),
        )
        last = int(changes[-1]) if len(changes) else old
        if len(changes):  # the keys before the last one end here
            found = rules.process(times[old:last], offers.between(old, last), old, is_last=True)
            yield from self._rows(latest, found, events)
            rules.clear()
        found = rules.process(times[last:], offers.between(last, size), last)
        yield from self._rows(latest, found, events)

    def _rows(
        self, latest: LatestEvents, runs: FoundRuns, events: pa.Table
    ) -> Iterator[pa.RecordBatch]:
        if len(runs.ends):
            store = EventStore.of(events, latest.layout, RowReader(latest.layout.schema))
            lasts = latest.layout.times_ms(events)[runs.handles[runs.ends - 1]]
            found = latest.found(runs.handles, runs.ends, lasts)
            yield from batches_of(self.consumer, found, store)


def _held(layout: Layout, rules: RunningRules, events: pa.Table) -> pa.Table:
    """Return the events that runs hold, which are the first ones from now on."""
    states = rules.written()
    held, handles = np.unique(states.handles, return_inverse=True)
    kept = events.take(held)
    times = layout.times_ms(kept)
    rules.clear()
    states = attrs.evolve(states, keys=states.keys * 0, handles=handles.astype(np.int64))
    rules.read(states, times.__getitem__)
    return kept


@attrs.frozen(eq=False, kw_only=True)
class LatestMatching(Matching):
    """A sequence of EQL on a stream; see :class:`BucketPlan`."""

    latest: Callable[[], LatestEvents]  # Returns what it reads from events

    def task(self, plan: BucketPlan, context: RuntimeContext) -> BucketTask:
        """Return the plan ready to run."""
        return BucketTask(plan, LatestPages(self.latest()))

    def requeued(
        self, task: BucketTask, table: pa.Table, fingerprint: Mapping[str, str]
    ) -> pa.Table:
        """Refuse events that wait for the watermark: which steps want them is another question."""
        if table.num_rows:
            raise PatternChangedError(
                "events that wait for the watermark were asked by another query's conditions",
                "start from a new checkpoint, or run the old query until the watermark has passed",
            )
        return table.select(task.plan.schema.names)
