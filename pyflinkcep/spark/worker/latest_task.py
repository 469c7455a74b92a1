# SPDX-License-Identifier: Apache-2.0
"""Tasks of sequences of which the latest run lives: on a partition, and on a stream's buckets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs
import pyarrow as pa

from pyflinkcep.errors import PatternChangedError
from pyflinkcep.functions import RuntimeContext, opened
from pyflinkcep.matching.event_store import EventStore
from pyflinkcep.matching.latest import LatestColumnsOf
from pyflinkcep.matching.latest_pages import LatestPages
from pyflinkcep.matching.sorting import whole_keys
from pyflinkcep.spark.arrow.rows import RowReader
from pyflinkcep.spark.worker.bucket_task import BucketPlan, BucketTask, Matching
from pyflinkcep.spark.worker.consumers import Consumer, batches_of
from pyflinkcep.spark.worker.runtime import running


@attrs.frozen(eq=False)
class LatestTask:
    """The work on one partition."""

    latest: LatestColumnsOf  # The sequence, and what it reads from events
    consumer: Consumer  # Turns matches into rows

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Match the events of a partition; yield its output."""
        layout = self.latest.layout
        reader = RowReader(layout.schema)
        with running(layout.pattern) as context, opened(self.consumer, context, "a function"):
            for events, ends in whole_keys(batches, layout):
                store = EventStore.of(events, layout, reader)
                yield from batches_of(self.consumer, self.latest.found(events, ends), store)


@attrs.frozen(eq=False, kw_only=True)
class LatestMatching(Matching):
    """A sequence on a stream; see :class:`BucketPlan`."""

    latest: LatestColumnsOf  # The sequence, and what it reads from events

    def task(self, plan: BucketPlan, context: RuntimeContext) -> BucketTask:
        """Return the plan ready to run."""
        return BucketTask(plan, LatestPages(self.latest))

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
