# SPDX-License-Identifier: Apache-2.0
"""A task that counts or enumerates the matches of a pattern from merged partial matches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice, pairwise
from typing import Any

import attrs
import pyarrow as pa

from pyflinkcep.compact.nodes import NodePayloads, paths
from pyflinkcep.compact.pattern_runs import PatternRuns
from pyflinkcep.expressions.codegen import generated
from pyflinkcep.nfa import NFA, EventEvaluation, NFACompiler
from pyflinkcep.nfa.atoms import known_bits
from pyflinkcep.nfa.runs import Payloads
from pyflinkcep.pattern import Pattern
from pyflinkcep.runtime import opened
from pyflinkcep.spark.arrow.answers import as_integers
from pyflinkcep.spark.arrow.layout import Layout
from pyflinkcep.spark.arrow.rows import RowReader
from pyflinkcep.spark.matching.ending_rows import Ending, EndingRows
from pyflinkcep.spark.matching.event_store import EventStore
from pyflinkcep.spark.matching.matcher import MOST_RESULTS
from pyflinkcep.spark.matching.results import Results
from pyflinkcep.spark.worker.consumers import Consumer, to_batches
from pyflinkcep.spark.worker.query_task import whole_keys
from pyflinkcep.spark.worker.runtime import running
from pyflinkcep.time import MAX_WATERMARK

__all__ = ["PatternEndingsTask", "PatternListTask"]

Ended = tuple[int, int | None, Any]
"""(position, time in milliseconds or None at the end of the input, what matches carry)."""


@attrs.frozen(eq=False)
class _KeyedRuns:
    """The merged partial matches of a pattern, key by key."""

    nfa: NFA
    layout: Layout

    def of(
        self, events: pa.Table, payloads: Callable[[pa.Table], Payloads]
    ) -> Iterator[tuple[pa.Table, EventStore, Iterator[Ended]]]:
        """Yield for each key of a sorted table its events, twice, and its completed matches."""
        bounds = [0, *self.layout.key_changes(events).tolist(), events.num_rows]
        for begin, end in pairwise(bounds):
            own = events.slice(begin, end - begin).combine_chunks()
            shown = own.select(list(self.layout.payload))
            store = EventStore(RowReader(self.layout.schema), shown.schema)
            store.add(shown)
            yield own, store, self._ended(own, store, payloads(own))

    def _ended(self, events: pa.Table, store: EventStore, payloads: Payloads) -> Iterator[Ended]:
        expressions = self.layout.expressions
        functions = None if expressions is None else generated(expressions)
        runs = PatternRuns(self.nfa, payloads, expressions, functions)
        known = known_bits(self.nfa.atoms)
        evaluation = EventEvaluation(store.row, known)
        bits = self.layout.bits(events)
        answers = [0] * events.num_rows if bits is None else as_integers(bits)
        at = -1
        moments = zip(self.layout.times_ms(events).tolist(), answers, strict=True)
        for at, (time, holding) in enumerate(moments):
            yield from ((at, time, payload) for payload in runs.advance(time))
            evaluation.begin(at, time, holding)
            found = runs.process(at, time, evaluation, partial(store.fields, at))
            yield from ((at, time, payload) for payload in found)
        yield from ((at, None, payload) for payload in runs.advance(MAX_WATERMARK))


@attrs.frozen(eq=False)
class PatternEndingsTask:
    """
    Gives a row for each event that completes matches of a pattern, and lists none.

    Attributes
    ----------
    pattern : Pattern
        The pattern.
    layout : Layout
        Where things are in the input.
    rows : EndingRows
        What is wanted of the matches that an event completes.
    """

    pattern: Pattern
    layout: Layout
    rows: EndingRows

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a row for each event, or end of a window, that completes matches."""
        nfa = NFACompiler.compile(self.pattern, False)
        keyed = _KeyedRuns(nfa, self.layout)
        with running(self.layout.pattern) as context, opened(nfa, context, "a condition"):
            for events in whole_keys(batches, self.layout):
                runs = keyed.of(events, lambda own: self.rows.payloads(own, nfa.stages))
                for own, _, ended in runs:
                    endings = list(self._endings(ended))
                    if endings:
                        yield from self.rows.table(own, endings).to_batches()

    def _endings(self, ended: Iterator[Ended]) -> Iterator[Ending]:
        by_event: dict[tuple[int, int | None], list[Any]] = {}
        for at, time, payload in ended:
            by_event.setdefault((at, time), []).append(payload)
        for (at, time), carried in by_event.items():
            yield at, time, self.rows.ending(carried)


@attrs.frozen(eq=False)
class PatternListTask:
    """
    Enumerates the matches of a partition, no more of them than are asked for.

    Attributes
    ----------
    pattern : Pattern
        The pattern.
    layout : Layout
        Where things are in the input.
    consumer : Consumer
        What becomes of the matches.
    limit : int or None
        How many matches a key gives at most.
    """

    pattern: Pattern
    layout: Layout
    consumer: Consumer
    limit: int | None

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the matches of a partition as rows."""
        nfa = NFACompiler.compile(self.pattern, False)
        keyed = _KeyedRuns(nfa, self.layout)
        with (
            running(self.layout.pattern) as context,
            opened(nfa, context, "a condition"),
            opened(self.consumer, context, "a function"),
        ):
            for events in whole_keys(batches, self.layout):
                for _, store, ended in keyed.of(events, lambda _: NodePayloads()):
                    for found in self._found(nfa, ended):
                        yield from to_batches(self.consumer, self.consumer.consume(found, store))

    def _found(self, nfa: NFA, ended: Iterator[Ended]) -> Iterator[Any]:
        results = Results(nfa.stages, False)
        ways = ((time, way) for _, time, root in ended for way in paths(root))
        for time, way in islice(ways, self.limit):
            match: dict[str, list[int]] = {}
            for stage, at in way:
                match.setdefault(nfa.stages[stage], []).append(at)
            results.match(None, MAX_WATERMARK if time is None else time, match)
            if len(results) >= MOST_RESULTS:
                yield results.take()
        if len(results):
            yield results.take()
