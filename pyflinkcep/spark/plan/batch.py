# SPDX-License-Identifier: Apache-2.0
"""Bounded jobs: shuffle by key; each worker sorts its partition and matches key by key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import attrs
import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pyflinkcep.errors import CepRuntimeError
from pyflinkcep.nfa import NFA, NFACompiler
from pyflinkcep.nfa.atoms import known_bits
from pyflinkcep.operator import CepOperator, Comparator, PartialMatchLimit, comparator_key
from pyflinkcep.pattern import Pattern
from pyflinkcep.runtime import RuntimeContext, opened
from pyflinkcep.spark.arrow.layout import BITS, KeyText, Layout, key_hash
from pyflinkcep.spark.arrow.rows import RowReader
from pyflinkcep.spark.matching.beginnings import stretches_that_begin
from pyflinkcep.spark.matching.choice import make_matcher
from pyflinkcep.spark.matching.event_store import EventStore
from pyflinkcep.spark.matching.matcher import MOST_RESULTS, Events, Stretches
from pyflinkcep.spark.matching.results import Found
from pyflinkcep.spark.matching.stretches import in_final_order
from pyflinkcep.spark.plan.arrow_map import map_in_arrow
from pyflinkcep.spark.plan.conditions import bits_column
from pyflinkcep.spark.plan.expressions import match_values, value_columns
from pyflinkcep.spark.plan.outputs import output_schema, to_batches
from pyflinkcep.spark.plan.prefilter import EventFilter
from pyflinkcep.spark.plan.source import EventSource, quoted
from pyflinkcep.spark.worker.consumers import Consumer
from pyflinkcep.spark.worker.runtime import fewer_collections
from pyflinkcep.spark.worker.sorting import BUDGET_BYTES, POSITION, sorted_chunks

__all__ = ["batch_plan"]


def batch_plan(
    source: EventSource,
    pattern: Pattern,
    nfa: NFA,
    comparator: Comparator | None,
    consumer: Consumer,
    limit: PartialMatchLimit | None = None,
) -> DataFrame:
    """
    Plan a bounded job.

    Parameters
    ----------
    source : EventSource
        The events.
    pattern : Pattern
        The pattern; it is compiled again on the workers.
    nfa : NFA
        The pattern compiled on the driver, for its conditions.
    comparator : callable or None
        Orders events of equal time, which otherwise keep their order in the source.
    consumer : Consumer
        What becomes of the matches.
    limit : PartialMatchLimit or None
        How many partial matches a key may have.

    Returns
    -------
    DataFrame
        The main output alone, or all outputs tagged; see :func:`output_schema`.
    """
    bits = bits_column(nfa)
    events = EventFilter.of(nfa, consumer, source.dataframe)
    source = events.before(source)
    values = match_values(nfa, source.dataframe)
    layout = Layout.of(source, bits is not None, values=values)
    extra = {
        **key_hash(source),
        **value_columns(values),
        POSITION: F.monotonically_increasing_id(),
    }
    if bits is not None:
        extra[BITS] = bits
    prepared = events.after(source, source.prepare(extra))
    signature = [F.col(quoted(name)) for name in layout.key_signature]
    shuffled = prepared.repartition(signature[0]) if signature else prepared.coalesce(1)
    task = BatchTask(pattern, layout, comparator, consumer, limit)
    return map_in_arrow(shuffled, task.run, output_schema(consumer), f"CEP: {layout.pattern}")


@attrs.frozen(eq=False)
class BatchTask:
    """
    The work on one partition.

    Attributes
    ----------
    pattern : Pattern
        The pattern.
    layout : Layout
        Where things are in the input.
    comparator : callable or None
        Orders events of equal time.
    consumer : Consumer
        What becomes of the matches.
    limit : PartialMatchLimit or None
        How many partial matches a key may have.
    sort_bytes : int
        How many bytes of events to sort in memory.
    """

    pattern: Pattern
    layout: Layout
    comparator: Comparator | None
    consumer: Consumer
    limit: PartialMatchLimit | None = None
    sort_bytes: int = BUDGET_BYTES

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Match the events of a partition; give its output."""
        partition = TaskContext.get()
        context = RuntimeContext(
            f"CEP: {self.layout.pattern}", partition.partitionId() if partition else 0
        )
        nfa = NFACompiler.compile(self.pattern, self.consumer.wants_timeouts)
        try:
            with (
                fewer_collections(),
                opened(nfa, context, "a condition"),
                opened(self.consumer, context, "a function"),
                closing(sorted_chunks(batches, self.layout, self.sort_bytes)) as chunks,
            ):
                yield from _Partition(self, nfa).run(chunks)
        except CepRuntimeError as error:
            raise error.in_pattern(self.layout.pattern) from error.__cause__


class _Partition:
    """The work on a partition: one key after another, in chunks of sorted events."""

    def __init__(self, task: BatchTask, nfa: NFA) -> None:
        self._layout = task.layout
        self._consumer = task.consumer
        self._order = comparator_key(task.comparator)
        self._reader = RowReader(task.layout.schema)
        self._rules = CepOperator(nfa)
        self._known = known_bits(nfa.atoms)
        self._matcher = make_matcher(
            nfa, task.consumer.wants_timeouts, task.limit, task.layout.values
        )
        self._last: pa.Table | None = None

    def run(self, chunks: Iterator[pa.Table]) -> Iterator[pa.RecordBatch]:
        """Match the events of sorted chunks, which never part events of equal key and time."""
        store: EventStore | None = None
        for chunk in chunks:
            events = chunk.select(list(self._layout.payload))
            if store is None:
                store = EventStore(self._reader, events.schema)
            base = store.add(events)
            self._matcher.set_events(store)
            for found in self._matcher.run(self._stretches(chunk, base, store)):
                yield from self._rows(found, store)
            self._last = chunk.take([chunk.num_rows - 1])
            store.keep(self._matcher.live())
            del chunk, events  # or they would be there while the next ones are made
        if store is not None:
            yield from self._rows(self._matcher.finish(self._last_key()), store)

    def _stretches(self, chunk: pa.Table, base: int, store: EventStore) -> Stretches:
        layout = self._layout
        bits = layout.bits(chunk)
        firsts = np.r_[0, layout.key_changes(chunk)]

        def key_of(number: int) -> KeyText | None:
            return KeyText(layout, chunk, int(firsts[number])) if layout.key_columns else None

        events = Events(layout.times_ms(chunk), None, base, bits)
        if self._order is not None:
            events = in_final_order(self._order, events, firsts, store, key_of)
        return Stretches(
            events,
            np.r_[firsts, chunk.num_rows],
            stretches_that_begin(self._rules, bits, self._known, firsts, chunk.num_rows),
            self._continues(chunk),
            key_of,
            self._last_key(),
        )

    def _continues(self, chunk: pa.Table) -> bool:
        """Say whether events begin with the key that the ones before ended with."""
        if self._last is None:
            return False
        both = pa.concat_tables([self._last, chunk.slice(0, 1)])
        return not len(self._layout.key_changes(both))

    def _last_key(self) -> KeyText | None:
        if self._last is None or not self._layout.key_columns:
            return None
        return KeyText(self._layout, self._last, 0)

    def _rows(self, found: Found, store: EventStore) -> Iterator[pa.RecordBatch]:
        for part in found.parts(MOST_RESULTS):
            yield from to_batches(self._consumer, self._consumer.consume(part, store))
