# SPDX-License-Identifier: Apache-2.0
"""The task of sequences of which the latest run lives, on a partition of a bounded job."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import pyarrow as pa

from pyflinkcep.functions import opened
from pyflinkcep.matching.event_store import EventStore
from pyflinkcep.matching.latest import LatestColumnsOf
from pyflinkcep.matching.sorting import whole_keys
from pyflinkcep.spark.arrow.rows import RowReader
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
