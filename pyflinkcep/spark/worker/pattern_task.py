# SPDX-License-Identifier: Apache-2.0
"""Tasks of patterns beside `batch.py`: by lists on a partition, and on a stream's buckets."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from functools import partial
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.engines.choice import EVENT_LISTS
from pyflinkcep.engines.compressed.counting import MatchArrays
from pyflinkcep.engines.compressed.patterns import CompressiblePattern
from pyflinkcep.engines.flink.nfa import NFA, NFACompiler
from pyflinkcep.engines.flink.operator import CepOperator
from pyflinkcep.engines.latest.chain import LatestChain
from pyflinkcep.engines.latest.columns import FoundRuns, RunningRules, latest_rules
from pyflinkcep.engines.latest.machine import END
from pyflinkcep.engines.lists.chain import ChainEvents, PatternChain
from pyflinkcep.engines.lists.frame import earlier
from pyflinkcep.engines.queries import chain_frames
from pyflinkcep.functions import RuntimeContext, opened
from pyflinkcep.matching.columns import VALUE, Ints, field_array, owned
from pyflinkcep.matching.event_store import EventStore
from pyflinkcep.matching.latest import LatestStagesOf
from pyflinkcep.matching.latest_pages import LatestPages
from pyflinkcep.matching.layout import Layout, holding
from pyflinkcep.matching.matcher import MOST_EVENTS, PageMatcher, Wanted, make_matcher
from pyflinkcep.matching.order import TieOrder, as_order
from pyflinkcep.matching.queries import found_of_arrays, found_of_columns
from pyflinkcep.matching.sorting import BUDGET_BYTES, sorted_chunks
from pyflinkcep.pattern import Pattern
from pyflinkcep.spark.arrow.rows import RowReader
from pyflinkcep.spark.state.fingerprint import requeued, still_droppable
from pyflinkcep.spark.worker.bucket_task import BucketPlan, BucketTask, Matching
from pyflinkcep.spark.worker.consumers import Consumer, batches_of
from pyflinkcep.spark.worker.endings import EndingRows, PatternEndingPages
from pyflinkcep.spark.worker.runtime import errors_in, running


def _by_chunks(
    chunks: Iterable[pa.Table],
    matched: Callable[[pa.Table, int], Iterator[pa.RecordBatch]],
    held: Callable[[pa.Table], pa.Table],
) -> Generator[pa.RecordBatch, None, pa.Table | None]:
    """
    Yield what is matched of each chunk, below the events that are held of those before.

    Return what is held in the end; None if there was no chunk.
    """
    kept: pa.Table | None = None
    for chunk in chunks:
        events, old = chunk, 0
        if kept is not None:
            events, old = pa.concat_tables([kept, chunk]).combine_chunks(), kept.num_rows
        yield from matched(events, old)
        kept = held(events)
    return kept


def _key_numbers(changes: Ints, size: int) -> Ints:
    """Return the number of each event's key, in the order of keys."""
    begins = np.zeros(size, np.int64)
    begins[changes] = 1
    return np.cumsum(begins)


@attrs.frozen(eq=False)
class _ChunksTask:
    """The work on one partition, by chunks of sorted events."""

    pattern: Pattern  # The pattern, a chain
    layout: Layout  # The columns of the input
    consumer: Consumer  # Turns matches into rows
    sort_bytes: int = BUDGET_BYTES  # How many bytes of events to sort in memory

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Match the events of a partition; yield its output."""
        nfa = NFACompiler.compile(self.pattern)
        with (
            running(self.layout.pattern) as context,
            opened(self.consumer, context, "a function"),
            closing(sorted_chunks(batches, self.layout, self.sort_bytes)) as chunks,
        ):
            yield from self._output(nfa, chunks)

    def _output(self, nfa: NFA, chunks: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        raise NotImplementedError


@attrs.frozen(eq=False)
class ChainTask(_ChunksTask):
    """The work on one partition, by lists."""

    # A match is emitted with the chunk of its last event. If a key continues in the next chunk, the
    # events of its last window are kept.

    # How matches are found: by lists, or "auto" if the events decide.
    evaluation: str = EVENT_LISTS

    def _output(self, nfa: NFA, chunks: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        chain = PatternChain.of(self.pattern, nfa, self.layout.expressions)
        matched, held = partial(self._matched, chain), partial(self._last_window, chain)
        yield from _by_chunks(chunks, matched, held)

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
        changes = self.layout.key_changes(events)
        return ChainEvents(
            self.layout.times_ms(events),
            lambda atom: holding(bits, atom),
            lambda number: _values(events, number),
            _key_numbers(changes, size) if len(changes) else None,
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


@attrs.frozen(eq=False)
class LatestTask(_ChunksTask):
    """The work on one partition, by the latest runs."""

    def _output(self, nfa: NFA, chunks: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        chain = LatestChain.of(self.pattern, nfa)
        stages, rules = LatestStagesOf(chain, nfa, self.layout), latest_rules([chain.rule])
        matched = partial(self._matched, stages, rules)
        kept = yield from _by_chunks(chunks, matched, partial(self._held, rules))
        if kept is not None:
            yield from self._rows(chain, rules.advance(END), kept)

    def _matched(
        self, stages: LatestStagesOf, rules: RunningRules, events: pa.Table, old: int
    ) -> Iterator[pa.RecordBatch]:
        """Offer all but the first `old` events, which runs hold; the last key may go on."""
        size, bits = events.num_rows, self.layout.bits(events)
        changes = self.layout.key_changes(events)
        keys, times = _key_numbers(changes, size), self.layout.times_ms(events)
        assert bits is not None
        chain, offers = stages.chain, stages.offers(bits, keys)
        last = int(changes[-1]) if len(changes) else old
        if len(changes):  # the keys before the last one end here
            found = rules.process(times[old:last], offers.between(old, last), old, is_last=True)
            yield from self._rows(chain, found, events)
            rules.clear()
        found = rules.process(times[last:], offers.between(last, size), last)
        yield from self._rows(chain, found, events)

    def _held(self, rules: RunningRules, events: pa.Table) -> pa.Table:
        """Return the events that runs hold, which are the first ones from now on."""
        states = rules.written()
        held, handles = np.unique(states.handles, return_inverse=True)
        kept = events.take(held)
        times = self.layout.times_ms(kept)
        rules.clear()
        states = attrs.evolve(states, keys=states.keys * 0, handles=handles.astype(np.int64))
        rules.read(states, times.__getitem__)
        return kept

    def _rows(
        self, chain: LatestChain, runs: FoundRuns, events: pa.Table
    ) -> Iterator[pa.RecordBatch]:
        if not len(runs.ends):
            return
        components = np.tile(chain.components, len(runs.ends))
        matches = MatchArrays(runs.handles, runs.ends, components)
        times = self.layout.times_ms(events)
        store = EventStore.of(events, self.layout, RowReader(self.layout.schema))
        for found in found_of_arrays(chain.stages, matches, times).parts(MOST_EVENTS):
            yield from batches_of(self.consumer, found, store)


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
        nfa, stack, expressions = self.nfa(), ExitStack(), plan.layout.expressions
        with errors_in(plan.layout.pattern):
            stack.enter_context(opened(nfa, context, "a condition"))
        if self.is_latest:
            chain = LatestChain.of(self.pattern, nfa)
            return BucketTask(plan, LatestPages(LatestStagesOf(chain, nfa, plan.layout)))
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
