# SPDX-License-Identifier: Apache-2.0
"""A task that counts or enumerates the matches of a pattern from merged partial matches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.engines.compressed.nodes import NodePayloads, paths
from pyflinkcep.engines.compressed.patterns import CompressiblePattern, KeyedEvents, PatternMatches
from pyflinkcep.engines.flink.nfa import NFA, NFACompiler
from pyflinkcep.errors import CepRuntimeError
from pyflinkcep.functions import opened
from pyflinkcep.matching.columns import Ints
from pyflinkcep.matching.event_store import EventStore
from pyflinkcep.matching.layout import KeyText, Layout
from pyflinkcep.matching.matcher import MOST_EVENTS
from pyflinkcep.matching.results import Results
from pyflinkcep.matching.sorting import whole_keys
from pyflinkcep.pattern import Pattern
from pyflinkcep.spark.arrow.rows import RowReader
from pyflinkcep.spark.worker.consumers import Consumer, batches_of
from pyflinkcep.spark.worker.endings import EndingRows, dated, pattern_matches
from pyflinkcep.spark.worker.runtime import running
from pyflinkcep.time import MAX_WATERMARK

_MOST_ROWS = 1 << 14


@attrs.frozen(eq=False)
class _KeyedMatches:
    """The matches of a pattern in tables of whole keys."""

    pattern: CompressiblePattern
    layout: Layout

    def of(self, table: pa.Table, ends: Ints) -> tuple[PatternMatches, EventStore]:
        """Return the matches in a sorted table, and the store of its events."""
        store = EventStore.of(table, self.layout, RowReader(self.layout.schema))
        handles = np.arange(table.num_rows)
        events = KeyedEvents(self.layout.times_ms(table), self.layout.bits(table), np.r_[0, ends])
        found = pattern_matches(self.pattern, self.layout, table, store, handles, events)
        return found, store


@contextmanager
def _naming_keys(layout: Layout, table: pa.Table, matches: PatternMatches) -> Iterator[None]:
    """Name the key in errors."""
    try:
        yield
    except CepRuntimeError as error:
        row = int(matches.events.bounds[matches.failed])
        raise error.at_key(KeyText(layout, table, row)) from error.__cause__


@attrs.frozen(eq=False)
class PatternEndingsTask:
    """Returns a row for each event that completes matches of a pattern, without listing."""

    pattern: Pattern  # The pattern
    layout: Layout  # The columns of the input
    rows: EndingRows  # Summarizes the matches that an event completes
    variables: tuple[str, ...]  # The stages that take events

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a row for each event, or end of a window, that completes matches."""
        nfa, layout = NFACompiler.compile(self.pattern), self.layout
        with running(layout.pattern) as context, opened(nfa, context, "a condition"):
            pattern = CompressiblePattern.of(nfa, layout.expressions, self.variables)
            keyed = _KeyedMatches(pattern, layout)
            for table, ends in whole_keys(batches, layout):
                matches, _ = keyed.of(table, ends)
                with _naming_keys(layout, table, matches):
                    endings = dated(self.rows.asked(table)(matches), matches.events)
                    while part := list(islice(endings, _MOST_ROWS)):
                        yield from self.rows.table(table, part).to_batches()


@attrs.frozen(eq=False)
class PatternListTask:
    """Enumerates the matches of a partition, no more than requested."""

    pattern: Pattern  # The pattern
    layout: Layout  # The columns of the input
    consumer: Consumer  # Turns matches into rows
    limit: int | None  # The most matches of a key

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the matches of a partition as rows."""
        nfa, layout = NFACompiler.compile(self.pattern), self.layout
        with (
            running(layout.pattern) as context,
            opened(nfa, context, "a condition"),
            opened(self.consumer, context, "a function"),
        ):
            keyed = _KeyedMatches(CompressiblePattern.of(nfa, layout.expressions, ()), layout)
            for table, ends in whole_keys(batches, layout):
                matches, store = keyed.of(table, ends)
                with _naming_keys(layout, table, matches):
                    for found in self._found(nfa, matches):
                        yield from batches_of(self.consumer, found, store)

    def _found(self, nfa: NFA, matches: PatternMatches) -> Iterator[Any]:
        for key in range(len(matches.events.bounds) - 1):
            results = Results(nfa.stages, wants_timeouts=False)
            ended = dated(matches.ended(key, NodePayloads()), matches.events)
            ways = ((time, way) for _, time, (root,) in ended for way in paths(root))
            for time, way in islice(ways, self.limit):
                match: dict[str, list[int]] = {}
                for stage, at in way:
                    match.setdefault(nfa.stages[stage], []).append(at)
                results.match(None, MAX_WATERMARK if time is None else time, match)
                if results.events >= MOST_EVENTS:
                    yield results.take()
            if len(results):
                yield results.take()
