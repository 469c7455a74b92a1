# SPDX-License-Identifier: Apache-2.0
"""A task of a bounded job: sorts the events of its partition and matches key by key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import attrs
import pyarrow as pa

from pyflinkcep.engines.flink.nfa import NFA, NFACompiler
from pyflinkcep.engines.flink.nfa.analysis import KeyNeeds
from pyflinkcep.engines.flink.nfa.atoms import known_bits
from pyflinkcep.engines.flink.operator import CepOperator, PartialMatchLimit
from pyflinkcep.functions import opened
from pyflinkcep.matching.layout import Layout
from pyflinkcep.matching.matcher import ChunkMatching, make_matcher
from pyflinkcep.matching.order import TieOrder, as_order
from pyflinkcep.matching.sorting import BUDGET_BYTES, sorted_events
from pyflinkcep.pattern import Pattern
from pyflinkcep.spark.arrow.rows import RowReader
from pyflinkcep.spark.worker.consumers import Consumer, batches_of, wanted_by
from pyflinkcep.spark.worker.runtime import running


@attrs.frozen(eq=False)
class BatchTask:
    """The work on one partition."""

    pattern: Pattern  # The pattern
    layout: Layout  # The columns of the input
    comparator: TieOrder | None  # Orders events of equal time
    consumer: Consumer  # Turns matches into rows
    limit: PartialMatchLimit | None = None  # How many partial matches a key may have
    sort_bytes: int = BUDGET_BYTES  # How many bytes of events to sort in memory

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Match the events of a partition; yield its output."""
        nfa, layout = NFACompiler.compile(self.pattern, self.consumer.wants_timeouts), self.layout
        with (
            running(layout.pattern) as context,
            opened(nfa, context, "a condition"),
            opened(self.consumer, context, "a function"),
        ):
            job = self._matching(nfa)
            chunks = sorted_events(
                batches, layout, layout.late, self.sort_bytes, chosen=job.rows_needed
            )
            with closing(chunks):
                for found in job.found(chunks):
                    if job.store is not None:
                        yield from batches_of(self.consumer, found, job.store)

    def _matching(self, nfa: NFA) -> ChunkMatching:
        consumer, layout = self.consumer, self.layout
        needs = None
        if not consumer.wants_timeouts and not consumer.wants_reached and self.limit is None:
            needs = KeyNeeds.of(nfa, known_bits(nfa.atoms))
        matcher = make_matcher(nfa, wanted_by(consumer, self.limit), layout.expressions)
        reader, order = RowReader(layout.schema), as_order(self.comparator)
        return ChunkMatching(layout, reader, CepOperator(nfa), matcher, order, needs)
