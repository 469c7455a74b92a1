# SPDX-License-Identifier: Apache-2.0
"""A task of a bounded job: sorts the events of its partition and matches key by key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import attrs
import pyarrow as pa

from pyflinkcep.engines.flink.nfa import NFA, NFACompiler
from pyflinkcep.engines.flink.nfa.atoms import known_bits
from pyflinkcep.engines.flink.nfa.relevance import KeyNeeds
from pyflinkcep.engines.flink.operator import CepOperator, PartialMatchLimit
from pyflinkcep.functions import opened
from pyflinkcep.matching.event_store import EventStore, SortedEvents
from pyflinkcep.matching.layout import KeyText, Layout
from pyflinkcep.matching.matcher import Portion, make_matcher, matched
from pyflinkcep.matching.order import TieOrder, as_order
from pyflinkcep.matching.stretches import Stretches
from pyflinkcep.pattern import Pattern
from pyflinkcep.spark.arrow.rows import RowReader
from pyflinkcep.spark.worker.consumers import Consumer, batches_of
from pyflinkcep.spark.worker.runtime import running
from pyflinkcep.spark.worker.sorting import BUDGET_BYTES, sorted_events


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
        nfa = NFACompiler.compile(self.pattern, self.consumer.wants_timeouts)
        with (
            running(self.layout.pattern) as context,
            opened(nfa, context, "a condition"),
            opened(self.consumer, context, "a function"),
            closing(
                sorted_events(batches, self.layout, self.layout.late, self.sort_bytes)
            ) as chunks,
        ):
            yield from _Partition(self, nfa).run(chunks)


class _Partition:
    """The work on a partition: key by key, in chunks of sorted events."""

    def __init__(self, task: BatchTask, nfa: NFA) -> None:
        self._layout = task.layout
        self._consumer = task.consumer
        self._order = as_order(task.comparator)
        self._reader = RowReader(task.layout.schema)
        self._rules = CepOperator(nfa)
        self._needs: KeyNeeds | None = None
        others = task.consumer.wants_timeouts or task.consumer.wants_reached
        if not others and task.limit is None:
            self._needs = KeyNeeds.of(nfa, known_bits(nfa.atoms))
        self._matcher = make_matcher(
            nfa,
            task.consumer.wants_timeouts,
            task.limit,
            task.layout.expressions,
            wants_reached=task.consumer.wants_reached,
            by_windows=task.consumer.by_windows,
        )
        self._last: pa.Table | None = None
        self._store: EventStore | None = None

    def run(self, chunks: Iterator[SortedEvents]) -> Iterator[pa.RecordBatch]:
        """Match the events of sorted chunks, which never separate events of equal key and time."""
        for found in matched(self._matcher, self._portions(chunks)):
            if self._store is not None:
                yield from batches_of(self._consumer, found, self._store)

    def _portions(self, chunks: Iterator[SortedEvents]) -> Iterator[Portion]:
        for events in chunks:
            chunk = events.table
            if self._store is None:
                self._store = EventStore(self._reader, events.schema(self._layout.payload))
            base, times = self._store.add(events), self._layout.times_ms(chunk)
            layout, rules, order = self._layout, self._rules, self._order
            stretches = Stretches.of(
                chunk, times, base, layout, rules, order, self._store, self._needs
            )
            continues = self._continues(chunk)
            self._last = chunk.take([chunk.num_rows - 1])
            del chunk, events  # or they would stay in memory while the next ones are made
            yield Portion(self._store, stretches, continues, self._last_key())
            del stretches

    def _continues(self, chunk: pa.Table) -> bool:
        """Whether events begin with the last key of the previous ones."""
        return self._last is not None and not self._layout.is_other_key(self._last, chunk)

    def _last_key(self) -> KeyText | None:
        if self._last is None or not self._layout.key_columns:
            return None
        return KeyText(self._layout, self._last, 0)
