# SPDX-License-Identifier: Apache-2.0
"""Bounded jobs: shuffle by key, sort by time, and match partition by partition."""

from __future__ import annotations

from collections.abc import Iterator
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
from pyflinkcep.spark.source import PREFIX, EventSource, quoted
from pyflinkcep.spark.ties import tie_order
from pyflinkcep.spark.values import match_values, value_columns
from pyflinkcep.time import MAX_WATERMARK

__all__ = ["batch_plan"]

_POSITION = f"{PREFIX}position"
_RESULTS_AT_ONCE = 4096


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
        _POSITION: F.monotonically_increasing_id(),
    }
    if bits is not None:
        extra[BITS] = bits
    prepared = events.after(source, source.prepare(extra))
    signature = [F.col(quoted(name)) for name in layout.key_signature]
    shuffled = prepared.repartition(signature[0]) if signature else prepared.coalesce(1)
    assert layout.time_column is not None
    ordered = shuffled.sortWithinPartitions(
        *signature, F.col(quoted(layout.time_column)), F.col(_POSITION)
    ).drop(_POSITION)
    task = BatchTask(pattern, layout, comparator, consumer, limit)
    return map_in_arrow(ordered, task.run, output_schema(consumer), f"CEP: {layout.pattern}")


@attrs.frozen(eq=False)
class BatchTask:
    """
    The work on one sorted partition.

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
    """

    pattern: Pattern
    layout: Layout
    comparator: Comparator | None
    consumer: Consumer
    limit: PartialMatchLimit | None = None

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Match the events of a partition; give its output."""
        partition = TaskContext.get()
        context = RuntimeContext(
            f"CEP: {self.layout.pattern}", partition.partitionId() if partition else 0
        )
        nfa = NFACompiler.compile(self.pattern, self.consumer.wants_timeouts)
        try:
            with opened(nfa, context, "a condition"), opened(self.consumer, context, "a function"):
                yield from _Partition(self, nfa).run(batches)
        except CepRuntimeError as error:
            raise error.in_pattern(self.layout.pattern) from error.__cause__


@attrs.define(eq=False)
class _Run:
    """A stretch of events of one key in order: their handles, times and bits."""

    handles: list[int]
    times: list[int]
    bits: list[int] | None

    def cut(self, at: int) -> _Run:
        """Split; keep what is before `at` and give the rest."""
        rest = _Run(self.handles[at:], self.times[at:], self.bits and self.bits[at:])
        self.handles, self.times = self.handles[:at], self.times[:at]
        self.bits = self.bits and self.bits[:at]
        return rest

    def prepend(self, other: _Run) -> None:
        self.handles = other.handles + self.handles
        self.times = other.times + self.times
        self.bits = self.bits and (other.bits or []) + self.bits


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
        self._held: _Run | None = None
        self._last: pa.Table | None = None

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        store: EventStore | None = None
        for batch in batches:
            if not batch.num_rows:
                continue
            table = pa.Table.from_batches([batch])
            events = table.select(list(self._layout.payload))
            if store is None:
                store = EventStore(self._reader, events.schema)
                self._operator = self._rules(store)
            self._process(table, events, store.add(events), store)
            yield from self._flush(store)
            store.keep(self._live())
            if self._state is not None:
                self._state.timers.clear()  # nothing waits for a watermark here
        if store is not None:
            self._end_key(store)
            yield from self._flush(store)

    def _rules(self, store: EventStore) -> CepOperator:
        values, expressions = self._layout.values, None
        if values is not None:
            expressions = Expressions(generated(values), store.fields)
        return CepOperator(self._nfa, store.row, limit=self._limit, expressions=expressions)

    def _process(self, table: pa.Table, events: pa.Table, base: int, store: EventStore) -> None:
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
                self._end_key(store)
            if self._state is None:
                if not begins:
                    continue
                self._state = self._operator.new_key()
                self._key = KeyText(layout, events, start) if layout.key_columns else None
            run = _Run(
                list(range(base + start, base + end)),
                times[start:end],
                None if values is None else values[start:end],
            )
            self._match(run, store)
        self._last = table.slice(table.num_rows - 1)

    def _continues(self, table: pa.Table) -> bool:
        """Say whether a batch begins with the key that the one before ended with."""
        if self._last is None:
            return False
        both = pa.concat_tables([self._last, table.slice(0, 1)])
        return not len(self._layout.key_changes(both))

    def _match(self, run: _Run, store: EventStore) -> None:
        if self._order is not None:
            run = self._ordered(run, store)
        if run.handles:
            assert self._state is not None
            self._operator.process_events(
                self._key, self._state, run.times, run.handles, self._results, self._known, run.bits
            )

    def _ordered(self, run: _Run, store: EventStore) -> _Run:
        """Order events of equal time; hold the last ones back, for more may come."""
        if self._held is not None:
            run.prepend(self._held)
        times = run.times
        self._held = run.cut(times.index(times[-1]))
        return self._sorted(run, store)

    def _sorted(self, run: _Run, store: EventStore) -> _Run:
        """Put events of equal time in the comparator's order."""
        assert self._order is not None
        positions = tie_order(self._order, run.times, run.handles, store, self._key)
        return _Run(
            [run.handles[i] for i in positions],
            run.times,
            None if run.bits is None else [run.bits[i] for i in positions],
        )

    def _end_key(self, store: EventStore) -> None:
        """Give the key at work its final watermark."""
        if self._state is None:
            return
        if self._held is not None:
            held, self._held = self._sorted(self._held, store), None
            self._operator.process_events(
                self._key,
                self._state,
                held.times,
                held.handles,
                self._results,
                self._known,
                held.bits,
            )
        self._operator.advance_time(self._key, self._state, MAX_WATERMARK, self._results)
        self._state = None

    def _live(self) -> list[int]:
        live = [] if self._held is None else list(self._held.handles)
        if self._state is not None:
            live += self._state.buffer.live_events()
        return live

    def _flush(self, store: EventStore) -> Iterator[pa.RecordBatch]:
        found = self._results.found
        self._results.clear()
        for at in range(0, len(found), _RESULTS_AT_ONCE):
            part = found[at : at + _RESULTS_AT_ONCE]
            yield from to_batches(self._consumer, self._consumer.consume(part, store))
