# SPDX-License-Identifier: Apache-2.0
"""Tasks of patterns beside `batch.py`: by lists on a partition, and on a stream's buckets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from functools import partial
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.engines.choice import EVENT_LISTS
from pyflinkcep.engines.compressed.patterns import CompressiblePattern
from pyflinkcep.engines.flink.nfa import NFA, NFACompiler
from pyflinkcep.engines.flink.operator import CepOperator
from pyflinkcep.engines.lists.chain import ChainEvents, PatternChain
from pyflinkcep.engines.lists.frame import earlier
from pyflinkcep.engines.queries import chain_frames
from pyflinkcep.functions import RuntimeContext, opened
from pyflinkcep.matching.columns import VALUE, field_array, owned
from pyflinkcep.matching.event_store import EventStore
from pyflinkcep.matching.latest import LatestEvents
from pyflinkcep.matching.latest_pages import LatestPages
from pyflinkcep.matching.layout import Layout, holding
from pyflinkcep.matching.matcher import PageMatcher, Wanted, make_matcher
from pyflinkcep.matching.order import TieOrder, as_order
from pyflinkcep.matching.queries import found_of_columns
from pyflinkcep.matching.sorting import BUDGET_BYTES, by_chunks, sorted_chunks
from pyflinkcep.pattern import Pattern
from pyflinkcep.spark.arrow.rows import RowReader
from pyflinkcep.spark.state.fingerprint import requeued, still_droppable
from pyflinkcep.spark.worker.bucket_task import BucketPlan, BucketTask, Matching
from pyflinkcep.spark.worker.consumers import Consumer, batches_of
from pyflinkcep.spark.worker.endings import EndingRows, PatternEndingPages
from pyflinkcep.spark.worker.runtime import errors_in, running


@attrs.frozen(eq=False)
class ChainTask:
    """The work on one partition, by lists."""

    # A match is emitted with the chunk of its last event. If a key continues in the next chunk, the
    # events of its last window are kept.

    pattern: Pattern  # The pattern, a chain
    layout: Layout  # The columns of the input
    consumer: Consumer  # Turns matches into rows
    sort_bytes: int = BUDGET_BYTES  # How many bytes of events to sort in memory
    # How matches are found: by lists, or "auto" if the events decide.
    evaluation: str = EVENT_LISTS

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Match the events of a partition; yield its output."""
        nfa = NFACompiler.compile(self.pattern)
        with (
            running(self.layout.pattern) as context,
            opened(self.consumer, context, "a function"),
            closing(sorted_chunks(batches, self.layout, self.sort_bytes)) as chunks,
        ):
            chain = PatternChain.of(self.pattern, nfa, self.layout.expressions)
            matched, held = partial(self._matched, chain), partial(self._last_window, chain)
            yield from by_chunks(chunks, matched, held)

    def _matched(self, chain: PatternChain, events: pa.Table, old: int) -> Iterator[pa.RecordBatch]:
        """Yield the output of the matches that end after the first `old` events."""
        if not events.num_rows:
            return
        store = EventStore.of(events, self.layout, RowReader(self.layout.schema))
        seen = self._seen(events, old)
        for frame in chain_frames(chain, seen, self.evaluation):
            columns = [frame.singles[stage] for stage in chain.stages]
            found = found_of_columns(chain.stages, columns, seen.times)
            yield from batches_of(self.consumer, found, store)

    def _seen(self, events: pa.Table, old: int) -> ChainEvents:
        size, bits = events.num_rows, self.layout.bits(events)
        keys = self.layout.key_numbers(events)
        return ChainEvents(
            self.layout.times_ms(events),
            lambda atom: holding(bits, atom),
            lambda number: _values(events, number),
            keys if keys[-1] else None,
            owned(events),
            np.arange(size) >= old if old else None,
        )

    def _last_window(self, chain: PatternChain, events: pa.Table) -> pa.Table:
        """Return the events that matches with later events may use."""
        changes = self.layout.key_changes(events)
        first = int(changes[-1]) if len(changes) else 0
        times = self.layout.times_ms(events.slice(first))
        if chain.query.window is not None and len(times):
            first += int(np.searchsorted(times, earlier(times[-1:], chain.query.window)[0]))
        return events.slice(first)


def _values(events: pa.Table, number: int) -> Any:
    """Return a field of match expressions: masked where it is NULL, texts as a list."""
    values, valid, _ = field_array(events.column(f"{VALUE}{number}"))
    return values if valid is None else np.ma.MaskedArray(values, ~valid)


@attrs.frozen(eq=False, kw_only=True)
class PatternMatching(Matching):
    """A pattern on a stream; see :class:`BucketPlan`."""

    pattern: Pattern  # The pattern; compiled on each worker
    comparator: TieOrder | None  # Orders events of equal time
    wanted: Wanted  # What is wanted of the matcher
    # Events that matching does not need, as bits of the conditions that Spark evaluated.
    droppable: frozenset[int] = frozenset()
    # Summarizes the matches that an event completes; None to list them.
    rows: EndingRows | None = None
    variables: tuple[str, ...] = ()  # The stages that take events, for `rows`
    # The stages that take events, and their numbers; empty for endings and latest runs.
    counted_stages: Mapping[str, int] = attrs.field(factory=dict)
    is_latest: bool = False  # Whether only the latest partial match of each stage lives

    def task(self, plan: BucketPlan, context: RuntimeContext) -> BucketTask:
        """Return the plan ready to run."""
        if self.is_latest:
            return BucketTask(plan, LatestPages(LatestEvents.of_pattern(self.pattern, plan.layout)))
        nfa, stack, expressions = self.nfa(), ExitStack(), plan.layout.expressions
        with errors_in(plan.layout.pattern):
            stack.enter_context(opened(nfa, context, "a condition"))
        rules = CepOperator(nfa, None, plan.processing_time, self.wanted.limit)
        matcher: PageMatcher
        if self.rows is not None:
            compressible = CompressiblePattern.of(nfa, expressions, self.variables)
            matcher = PatternEndingPages(compressible, plan.layout, self.rows)
        else:
            matcher = make_matcher(
                nfa, self.wanted, expressions, plan.processing_time, is_stream=True
            )
        return BucketTask(plan, matcher, rules, as_order(self.comparator), stack)

    def requeued(
        self, task: BucketTask, table: pa.Table, fingerprint: Mapping[str, str]
    ) -> pa.Table:
        """Return queued events with the answers to this pattern's conditions."""
        plan = task.plan
        return requeued(table, plan.schema, fingerprint, self.nfa(), plan.layout.expressions)

    def still_droppable(
        self, task: BucketTask, dropped: Iterable[int], fingerprint: Mapping[str, str]
    ) -> list[int]:
        """Return the bits of dropped events as this pattern counts conditions."""
        return still_droppable(dropped, fingerprint, self.nfa(), self.droppable)

    def nfa(self) -> NFA:
        """Compile the pattern."""
        return NFACompiler.compile(self.pattern, self.wanted.timeouts)
