# SPDX-License-Identifier: Apache-2.0
"""Matches that are not listed: a row for each event that completes some."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from decimal import Decimal
from functools import partial
from itertools import islice, pairwise
from typing import Any, ClassVar

import attrs
import numpy as np
import pyarrow as pa
from pyspark.sql.types import DataType, DecimalType, DoubleType, LongType, StructType

from pyflinkcep.engines.compressed.counting import (
    NOTHING,
    Compressed,
    MeasuredValues,
    NodePayloads,
    Packed,
    Total,
    packed,
    paths,
)
from pyflinkcep.engines.compressed.matches import Measured, totals_by_window
from pyflinkcep.engines.compressed.patterns import (
    CompressiblePattern,
    EventViews,
    KeyedEvents,
    PatternMatches,
)
from pyflinkcep.engines.flink.nfa import NFA, NFACompiler
from pyflinkcep.expressions.numbers import MOST_DIGITS, Digits, fitted
from pyflinkcep.functions import opened
from pyflinkcep.matching.columns import PREFIX, VALUE, WINDOW, Ints, field_array, structs, table_of
from pyflinkcep.matching.event_store import EventStore
from pyflinkcep.matching.layout import KeyText, Layout, as_integers, naming_key
from pyflinkcep.matching.matcher import MOST_EVENTS, NO_DEADLINE, EventPages, KeptEvents, KeyEvents
from pyflinkcep.matching.results import Results
from pyflinkcep.matching.sorting import whole_keys
from pyflinkcep.pattern import Pattern
from pyflinkcep.spark.arrow.internals import arrow_schema
from pyflinkcep.spark.arrow.rows import RowReader
from pyflinkcep.spark.worker.consumers import Consumer, batches_of
from pyflinkcep.spark.worker.runtime import running
from pyflinkcep.time import MAX_WATERMARK

COUNT_TEXT = f"{PREFIX}count"  # The column with the count as text, exact to any size

# (position of the completing event, time in milliseconds or None for the end of the input, the
# result for its matches).
Ending = tuple[int, int | None, Sequence[Any]]
Endings = Iterator[tuple[Any, ...]]


_MOST = 10**38


@attrs.frozen(eq=False)
class EndingRows(ABC):
    """Makes the rows."""

    schema: StructType  # The key, the time, and what subclasses add
    key_columns: tuple[str, ...]  # The key's columns
    # Units of the time column in a millisecond; None if it is in milliseconds.
    time_unit: int | None

    what: ClassVar[str]  # Their content, in a word, to distinguish the outputs of a query

    @abstractmethod
    def endings(self, found: Compressed, events: pa.Table, keys: Sequence[int] = ()) -> Endings:
        """Yield endings: the position of the completing event, then the results for its matches."""

    @abstractmethod
    def columns(self, events: pa.Table, found: Sequence[Any]) -> list[pa.Array]:
        """Return the columns after key and time, given the results of endings."""

    def times(self, events: pa.Table, listed: Sequence[Ending]) -> list[pa.Array]:
        """Return the columns of times after the key."""
        times = [None if time is None else time * (self.time_unit or 1) for _, time, _ in listed]
        return [pa.array(times, pa.int64())]

    def table(self, events: pa.Table, listed: Sequence[Ending]) -> pa.Table:
        """Return the rows of endings."""
        last = events.select(list(self.key_columns)).take(
            pa.array([at for at, _, _ in listed], pa.int64())
        )
        columns = [
            *last.columns,
            *self.times(events, listed),
            *self.columns(events, [found for _, _, found in listed]),
        ]
        return table_of(columns, arrow_schema(self.schema))


@attrs.frozen(eq=False)
class TotalRows(EndingRows):
    """Rows of counts of matches and aggregates over them."""

    measured: tuple[Measured, ...]  # The aggregates; their columns are the last ones of the schema

    what = "totals"

    def endings(self, found: Compressed, events: pa.Table, _keys: Sequence[int] = ()) -> Endings:
        """Yield counts and totals."""
        return found.totals_by_event(self._measures(events))

    def _measures(self, events: pa.Table) -> list[MeasuredValues]:
        """Return the aggregates over events, not just over matches, with the values of these."""
        return [
            (
                m.variable,
                None if m.attribute is None else events.column(m.attribute).to_pylist(),
                m.function,
            )
            for m in self.measured
            if m.variable is not None
        ]

    def columns(self, events: pa.Table, found: Sequence[Any]) -> list[pa.Array]:
        """Return the count, its logarithm, its text, and the aggregates."""
        counts = [count for count, _ in found]
        fields = list(zip(self.schema.fields, arrow_schema(self.schema).types, strict=True))
        fields = fields[len(fields) - len(self.measured) :]
        values = [self._values(count, totals) for count, totals in found]
        return [
            pa.array([_decimal(count) for count in counts], pa.decimal128(38, 0)),
            pa.array([_log10(count) for count in counts], pa.float64()),
            pa.array([str(count) for count in counts]),
            *(
                pa.array([_as(row[n], field.dataType) for row in values], type_)
                for n, (field, type_) in enumerate(fields)
            ),
        ]

    def _values(self, count: int, totals: Iterable[Total]) -> list[Any]:
        own = iter(totals)
        return [
            m.result(count, NOTHING if m.variable is None else next(own)) for m in self.measured
        ]


@attrs.frozen(eq=False)
class PackedRows(EndingRows):
    """Rows of matches in packed form."""

    event_columns: tuple[str, ...]  # The events' own columns

    what = "packed"

    def endings(self, found: Compressed, events: pa.Table, _keys: Sequence[int] = ()) -> Endings:
        """Yield the nodes of last events."""
        return found.roots_by_event()

    def columns(self, events: pa.Table, found: Sequence[Any]) -> list[pa.Array]:
        """Return the count, the events, the nodes and the roots."""
        rows = [packed(roots) for (roots,) in found]
        shown = events.select(list(self.event_columns))
        taken = shown.take(pa.array([at for row in rows for at in row.events], pa.int64()))
        return [
            pa.array([_decimal(row.count) for row in rows], pa.decimal128(38, 0)),
            pa.ListArray.from_arrays(_offsets(len(row.events) for row in rows), structs(taken)),
            _nodes(rows),
            pa.array([row.roots for row in rows], pa.list_(pa.int32())),
        ]


def _nodes(rows: Sequence[Packed]) -> pa.Array:
    nodes = [node for row in rows for node in row.nodes]
    columns = [
        pa.array([stage for stage, _, _ in nodes], pa.int32()),
        pa.array([event for _, event, _ in nodes], pa.int32()),
        pa.array([following for _, _, following in nodes], pa.list_(pa.int32())),
    ]
    own = pa.StructArray.from_arrays(columns, names=["stage", "event", "next"])
    return pa.ListArray.from_arrays(_offsets(len(row.nodes) for row in rows), own)


def _offsets(sizes: Iterable[int]) -> pa.Array:
    return pa.array(np.r_[0, np.cumsum(list(sizes), dtype=np.int64)], pa.int32())


def _as(value: Any, type_: DataType) -> Any:
    if value is None:
        return value
    if isinstance(type_, DecimalType):  # NULL beyond its range
        exact = Decimal(value)
        is_long = exact.adjusted() >= MOST_DIGITS
        return None if is_long else fitted(exact, Digits(type_.precision, type_.scale))
    if isinstance(type_, DoubleType):
        return float(value)
    return int(value) if isinstance(type_, LongType) else value


def _decimal(value: int) -> Decimal | None:
    """Return a number as decimal(38,0); None beyond its range."""
    return Decimal(value) if abs(value) < _MOST else None


def _log10(count: int) -> float:
    """Return the logarithm of a count that may be too large for a float."""
    shift = max(count.bit_length() - 1000, 0)
    return math.log10(count >> shift) + shift * math.log10(2)


@attrs.frozen(eq=False)
class WindowRows(TotalRows):
    """Rows of counts of matches and aggregates over them, by key and window."""

    # The schema has the key, the window's start and end, and what `TotalRows` adds.

    window_ms: int  # The length of the windows

    what = "windows"

    def endings(self, found: Compressed, events: pa.Table, keys: Sequence[int] = ()) -> Endings:
        """Yield what ends in each window, added up, at one of these events."""
        return totals_by_window(found.totals_by_event, self._measures(events), keys)

    def times(self, events: pa.Table, listed: Sequence[Ending]) -> list[pa.Array]:
        """Return the starts and the ends of windows."""
        starts = events.column(WINDOW).take(pa.array([at for at, _, _ in listed], pa.int64()))
        unit = self.time_unit or 1
        return [
            pa.array([(start + after) * unit for start in starts.to_pylist()], pa.int64())
            for after in (0, self.window_ms)
        ]


def pattern_matches(
    pattern: CompressiblePattern,
    layout: Layout,
    table: pa.Table,
    store: EventStore,
    handles: Ints,
    events: KeyedEvents,
) -> PatternMatches:
    """Return the matches of a pattern on events."""

    def answers() -> Sequence[int]:
        return [0] * len(handles) if events.bits is None else as_integers(events.bits)

    fields = [name for name in layout.payload if name.startswith(VALUE)]
    views = EventViews(
        lambda at: store.row(int(handles[at])),
        lambda at: store.fields(int(handles[at])),
        tuple(field_array(table.column(name)) for name in fields),
        answers,
    )
    return PatternMatches(pattern, events, views)


def dated(found: Iterable[tuple[Any, ...]], events: KeyedEvents) -> Iterator[Ending]:
    """Yield endings in the form of rows: the event's position, the time, the results."""
    end = None if events.watermark == MAX_WATERMARK else events.watermark
    for place, *ending in found:
        yield (place, int(events.times[place]), ending) if place >= 0 else (-place - 1, end, ending)


class PatternEndingPages(EventPages):
    """Processes the events of pages' keys with merged partial matches."""

    # A key's state is the events since its first live partial match began, with the answers of
    # their conditions, and the watermark up to which their output has been emitted. They are
    # processed again before new ones.

    what, version, width = "compressed matches", 1, 1

    def __init__(self, pattern: CompressiblePattern, layout: Layout, rows: EndingRows) -> None:
        super().__init__()
        self._pattern = pattern
        self._layout = layout
        self._rows = rows

    def matched(self, keys: KeyEvents) -> KeptEvents:
        """Collect the rows that the events add; return what to keep."""
        goes_on = np.zeros(len(keys.held), bool)
        since, deadlines = keys.bounds[1:].copy(), np.full(len(keys.held), NO_DEADLINE)
        for key, (begin, end) in enumerate(pairwise(keys.bounds.tolist())):
            before = int(keys.numbers[key, 0]) if keys.is_known[key] else None
            with naming_key(partial(keys.key_of, key)):
                matches, times = self._run(
                    keys.handles[begin:end], int(keys.held[key]), before, keys.watermark
                )
            if matches.begun is None:
                continue
            goes_on[key] = True
            since[key] = begin + int(np.searchsorted(times, matches.begun))
            if matches.deadline is not None:
                deadlines[key] = matches.deadline
        return KeptEvents(goes_on, since, deadlines, np.full((len(since), 1), keys.watermark))

    def _run(
        self, handles: Ints, held: int, before: int | None, watermark: int
    ) -> tuple[PatternMatches, Ints]:
        """Collect the rows of a key; return its matches, and the times of its events."""
        own = self._store.take(handles).combine_chunks()
        times = self._layout.times_ms(own)
        bounds = np.asarray([0, len(handles)])
        events = KeyedEvents(times, self._layout.bits(own), bounds, held, before, watermark)
        matches = pattern_matches(self._pattern, self._layout, own, self._store, handles, events)
        endings = list(dated(self._rows.endings(matches, own), events))
        if endings:
            self._made.append(self._rows.table(own, endings))
        return matches, times


_MOST_ROWS = 1 << 14


def _keyed_matches(
    pattern: CompressiblePattern, layout: Layout, batches: Iterator[pa.RecordBatch]
) -> Iterator[tuple[pa.Table, EventStore, PatternMatches]]:
    """Yield the events of whole keys, sorted, with a pattern's matches on them."""
    for table, ends in whole_keys(batches, layout):
        store = EventStore.of(table, layout, RowReader(layout.schema))
        events = KeyedEvents(layout.times_ms(table), layout.bits(table), np.r_[0, ends])
        handles = np.arange(table.num_rows)
        yield table, store, pattern_matches(pattern, layout, table, store, handles, events)


def _naming_keys(
    layout: Layout, table: pa.Table, matches: PatternMatches
) -> AbstractContextManager[None]:
    """Name the key in errors."""
    bounds = matches.events.bounds
    return naming_key(lambda: KeyText(layout, table, int(bounds[matches.failed])))


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
            for table, _, matches in _keyed_matches(pattern, layout, batches):
                with _naming_keys(layout, table, matches):
                    endings = dated(self.rows.endings(matches, table), matches.events)
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
            pattern = CompressiblePattern.of(nfa, layout.expressions, ())
            for table, store, matches in _keyed_matches(pattern, layout, batches):
                with _naming_keys(layout, table, matches):
                    for found in self._found(nfa, matches):
                        yield from batches_of(self.consumer, found, store)

    def _found(self, nfa: NFA, matches: PatternMatches) -> Iterator[Any]:
        for key in range(len(matches.events.bounds) - 1):
            results = Results(nfa.stages, wants_timeouts=False)
            ended = dated(matches.ended_of(key, NodePayloads()), matches.events)
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
