# SPDX-License-Identifier: Apache-2.0
"""Bounded jobs: shuffle by key; each worker sorts its partition and matches key by key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pyflinkcep.errors import CepRuntimeError
from pyflinkcep.nfa import NFA, Expressions, NFACompiler
from pyflinkcep.nfa.generated import generated
from pyflinkcep.operator import (
    CepOperator,
    Comparator,
    KeyState,
    PartialMatchLimit,
    comparator_key,
)
from pyflinkcep.pattern import Pattern
from pyflinkcep.runtime import RuntimeContext, opened
from pyflinkcep.spark.arrow_map import map_in_arrow
from pyflinkcep.spark.beginnings import stretches_that_begin
from pyflinkcep.spark.conditions import bits_column, spark_atoms
from pyflinkcep.spark.consumers import Consumer
from pyflinkcep.spark.event_store import EventStore
from pyflinkcep.spark.filtering import EventFilter
from pyflinkcep.spark.layout import BITS, KeyText, Layout, key_hash
from pyflinkcep.spark.outputs import output_schema, to_batches
from pyflinkcep.spark.results import Results
from pyflinkcep.spark.rows import RowReader
from pyflinkcep.spark.sorting import BUDGET_BYTES, POSITION, sorted_chunks
from pyflinkcep.spark.source import EventSource, quoted
from pyflinkcep.spark.ties import tie_order
from pyflinkcep.spark.values import match_values, value_columns
from pyflinkcep.time import MAX_WATERMARK

__all__ = ["batch_plan"]

_RESULTS_AT_ONCE = 4096
_EVENTS_AT_ONCE = 16384  # whose times and bits are Python objects at the same time


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
                opened(nfa, context, "a condition"),
                opened(self.consumer, context, "a function"),
                closing(sorted_chunks(batches, self.layout, self.sort_bytes)) as chunks,
            ):
                yield from _Partition(self, nfa).run(chunks)
        except CepRuntimeError as error:
            raise error.in_pattern(self.layout.pattern) from error.__cause__


@attrs.frozen(eq=False)
class _Run:
    """A stretch of events of one key in order: their handles, times and bits."""

    handles: list[int]
    times: list[int]
    bits: list[int] | None


class _Partition:
    """The state of the work on a partition: one key at a time, in the order of the input."""

    def __init__(self, task: BatchTask, nfa: NFA) -> None:
        self._layout = task.layout
        self._consumer = task.consumer
        self._order = comparator_key(task.comparator)
        self._reader = RowReader(task.layout.schema)
        self._known = sum(atom.bit for atom in spark_atoms(nfa))
        self._results = Results(task.consumer.wants_timeouts)
        self._operator = CepOperator(nfa)
        self._limit = task.limit
        self._nfa = nfa
        self._state: KeyState | None = None
        self._key: Any = None
        self._last: pa.Table | None = None

    def run(self, chunks: Iterator[pa.Table]) -> Iterator[pa.RecordBatch]:
        """Match the events of sorted chunks, which never part events of equal key and time."""
        store: EventStore | None = None
        for chunk in chunks:
            events = chunk.select(list(self._layout.payload))
            if store is None:
                store = EventStore(self._reader, events.schema)
                self._operator = self._rules(store)
            base = store.add(events)
            for start, end in _portions(chunk, self._layout):
                self._process(chunk.slice(start, end - start), base + start, store)
                if len(self._results.found) >= _RESULTS_AT_ONCE:
                    yield from self._flush(store)
            yield from self._flush(store)
            store.keep([] if self._state is None else self._state.buffer.live_events())
            if self._layout.key_columns:
                self._key = KeyText(self._layout, self._last, 0)  # holds nothing of the chunk
            del chunk, events  # or they would be there while the next ones are made
        if store is not None:
            self._end_key()
            yield from self._flush(store)

    def _rules(self, store: EventStore) -> CepOperator:
        values, expressions = self._layout.values, None
        if values is not None:
            expressions = Expressions(generated(values), store.fields)
        return CepOperator(self._nfa, store.row, limit=self._limit, expressions=expressions)

    def _process(self, table: pa.Table, base: int, store: EventStore) -> None:
        """Match some events in order; `base` is the first one's handle."""
        layout = self._layout
        times = layout.times_ms(table).tolist()
        bits = layout.bits(table)
        values = None if bits is None else bits.tolist()
        continues = self._continues(table)
        firsts = np.r_[0, layout.key_changes(table)]
        needed = stretches_that_begin(self._operator, bits, self._known, firsts, table.num_rows)
        bounds = [*firsts.tolist(), table.num_rows]
        for (start, end), begins in zip(pairwise(bounds), needed.tolist(), strict=True):
            if start or not continues:
                self._end_key()
            if self._state is None:
                if not begins:
                    continue
                self._state = self._operator.new_key()
                self._key = KeyText(layout, table, start) if layout.key_columns else None
            run = _Run(
                list(range(base + start, base + end)),
                times[start:end],
                None if values is None else values[start:end],
            )
            self._match(run if self._order is None else self._sorted(run, store))
        if self._state is not None:
            self._state.timers.clear()  # nothing waits for a watermark here
        self._last = table.take([table.num_rows - 1])

    def _continues(self, table: pa.Table) -> bool:
        """Say whether events begin with the key that the ones before ended with."""
        if self._last is None:
            return False
        both = pa.concat_tables([self._last, table.slice(0, 1)])
        return not len(self._layout.key_changes(both))

    def _sorted(self, run: _Run, store: EventStore) -> _Run:
        """Put events of equal time in the comparator's order."""
        assert self._order is not None
        positions = tie_order(self._order, run.times, run.handles, store, self._key)
        return _Run(
            [run.handles[i] for i in positions],
            run.times,
            None if run.bits is None else [run.bits[i] for i in positions],
        )

    def _match(self, run: _Run) -> None:
        assert self._state is not None
        self._operator.process_events(
            self._key, self._state, run.times, run.handles, self._results, self._known, run.bits
        )

    def _end_key(self) -> None:
        """Give the key at work its final watermark."""
        if self._state is not None:
            self._operator.advance_time(self._key, self._state, MAX_WATERMARK, self._results)
            self._state = None

    def _flush(self, store: EventStore) -> Iterator[pa.RecordBatch]:
        found = self._results.found
        self._results.clear()
        for at in range(0, len(found), _RESULTS_AT_ONCE):
            part = found[at : at + _RESULTS_AT_ONCE]
            yield from to_batches(self._consumer, self._consumer.consume(part, store))


def _portions(chunk: pa.Table, layout: Layout) -> Iterator[tuple[int, int]]:
    """Cut a chunk where key or time changes; a portion's values are Python objects for a while."""
    begins = _new_key_or_time(chunk, layout)
    start, size = 0, chunk.num_rows
    while start < size:
        rest = begins[start + _EVENTS_AT_ONCE :]
        end = start + _EVENTS_AT_ONCE + int(rest.argmax()) if rest.any() else size
        yield start, end
        start = end


def _new_key_or_time(chunk: pa.Table, layout: Layout) -> np.ndarray[Any, np.dtype[np.bool_]]:
    times = layout.times_ms(chunk)
    begins: np.ndarray[Any, np.dtype[np.bool_]] = np.r_[True, times[1:] != times[:-1]]
    begins[layout.key_changes(chunk)] = True
    return begins
