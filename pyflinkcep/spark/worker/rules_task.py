# SPDX-License-Identifier: Apache-2.0
"""The tasks of many rules: which events they want, before the shuffle, and their matches after."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import attrs
import numpy as np
import pyarrow as pa
from pyspark.sql.types import StructType

from pyflinkcep.matching.columns import HASH, PREFIX, in_one_piece, integers, plain_numbers
from pyflinkcep.matching.layout import Layout
from pyflinkcep.matching.matcher import MOST_EVENTS
from pyflinkcep.matching.sorting import whole_keys
from pyflinkcep.rules.routes import RoutedRules
from pyflinkcep.spark.arrow.internals import arrow_schema
from pyflinkcep.spark.worker.runtime import running

HOLDING = f"{PREFIX}holding"
"""The column with the numbers of the conditions that hold for an event."""

_AT_ONCE = MOST_EVENTS
_MOST_BYTES = 64 << 20


@attrs.frozen(eq=False)
class SendingTask:
    """The work on one partition before the shuffle: a row for each place that wants an event."""

    rules: RoutedRules
    kept: Sequence[str]  # The columns of events that are sent

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the events that rules want."""
        for table in _tables(batches):
            sent = self.rules.sent(table)
            if len(sent.rows):
                rows = table.select(list(self.kept)).take(integers(sent.rows))
                rows = rows.append_column(HASH, integers(sent.targets))
                yield from rows.append_column(HOLDING, sent.holding).to_batches()


def _tables(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield events in tables of many, since each rule costs something for each table."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= _AT_ONCE or size >= _MOST_BYTES:
            yield pa.Table.from_batches(held).combine_chunks()
            held, rows, size = [], 0, 0
    if rows:
        yield pa.Table.from_batches(held).combine_chunks()


@attrs.frozen(eq=False)
class RulesTask:
    """The work on one partition after the shuffle."""

    rules: RoutedRules
    layout: Layout  # Events are of one key if they were sent to one place
    columns: Sequence[str]  # Those of an event
    schema: StructType  # Of matches

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Match the events of a partition; yield its matches."""
        schema = arrow_schema(self.schema)
        with running(self.layout.pattern):
            for events, _ in whole_keys(batches, self.layout):
                targets = plain_numbers(events.column(HASH))
                routes = targets >> 32
                bounds = [0, *(np.flatnonzero(np.diff(routes)) + 1).tolist(), len(routes)]
                for begin, end in pairwise(bounds):
                    own = events.slice(begin, end - begin)
                    found = self.rules.found(
                        own.select(list(self.columns)),
                        targets[begin:end],
                        in_one_piece(own.column(HOLDING)),
                    )
                    if len(found):
                        yield from found.toArrow().cast(schema).to_batches()
