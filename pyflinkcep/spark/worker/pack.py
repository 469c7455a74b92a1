# SPDX-License-Identifier: Apache-2.0
"""Events and results as bytes, for a shuffle: of streams, and packets of bounded events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
from pyspark.sql.types import BinaryType, IntegerType, LongType, StructField, StructType

from pyflinkcep.engines.flink.operator import is_late
from pyflinkcep.errors import InputError
from pyflinkcep.functions import opened
from pyflinkcep.matching.columns import HASH, POSITION, Flags, Ints, integers, table_of
from pyflinkcep.matching.event_store import EventStore
from pyflinkcep.matching.keys import mixed
from pyflinkcep.matching.layout import Layout, is_among
from pyflinkcep.matching.matcher import ranges
from pyflinkcep.matching.order import order_by
from pyflinkcep.matching.results import Found
from pyflinkcep.spark.arrow.internals import arrow_schema
from pyflinkcep.spark.arrow.rows import RowReader
from pyflinkcep.spark.state.key_groups import KeyGroups
from pyflinkcep.spark.state.pages import read_table, write_table, write_tables
from pyflinkcep.spark.state.storage import MemoryStorage
from pyflinkcep.spark.worker.consumers import Consumer, batches_of, to_batches
from pyflinkcep.spark.worker.runtime import partition_number, running
from pyflinkcep.time import MIN_WATERMARK


def spans_of(times: Ints, gap: int) -> Ints:
    """Return the spans that times lie in, as rows of (earliest, latest, number of times)."""
    ordered = np.sort(times)
    return joined(np.column_stack([ordered, ordered, np.ones_like(ordered)]), gap)


def joined(spans: Ints, gap: int) -> Ints:
    """Join spans no further apart than a gap; those of all parts give those of the whole."""
    if len(spans) < 2:
        return spans
    spans = spans[np.argsort(spans[:, 0], kind="stable")]
    latest = np.maximum.accumulate(spans[:, 1])
    # Unsigned distances cannot overflow.
    apart = spans[1:, 0].view(np.uint64) - latest[:-1].view(np.uint64)
    is_next = (spans[1:, 0] > latest[:-1]) & (apart > np.uint64(gap))
    starts = np.flatnonzero(np.r_[True, is_next])
    counts = np.add.reduceat(spans[:, 2], starts)
    return np.column_stack([spans[starts, 0], latest[np.r_[starts[1:], len(spans)] - 1], counts])


def believed(spans: Sequence[Ints], last: int | None, gap: int) -> int | None:
    """Return the latest event time that is not too far ahead of the others."""
    whole = joined(np.concatenate(spans), gap) if spans else np.empty((0, 3), np.int64)
    if last is None:
        return int(whole[np.argmax(whole[:, 2]), 1]) if len(whole) else None
    for first, latest, _ in whole.tolist():
        if first > last + gap:
            break
        last = max(last, latest)
    return last


BUCKET = "bucket"

# The schema of packed rows: events of a bucket, and where in the source they came from. Any of them
# may carry the times of dropped events, since late ones must be counted, and events without key or
# time. If the watermark moves within the micro-batch, each partition's last rows go to every
# bucket, with the latest event time of the partition, so that each bucket knows that of the whole
# micro-batch; otherwise a bucket knows that of the partitions it has events from. With ``maxAhead``
# they have the spans of its event times too.
PACKED = StructType(
    [
        StructField(BUCKET, IntegerType(), False),
        StructField("partition", IntegerType(), False),
        StructField("position", IntegerType(), False),
        StructField("data", BinaryType()),
        StructField("dropped", BinaryType()),
        StructField("latest", LongType(), False),
        StructField("spans", BinaryType()),
        StructField("nulls", BinaryType()),
        StructField("nullRecords", LongType(), False),
    ]
)

PUBLISHED = -1
"""In place of a partition: the row is no events but a publication of rules, by its number."""

_PACKED_BYTES = 8 << 20  # How much input is packed together: fewer, larger rows cost less
ARRIVED = 3  # The kind of rows that are not state but packed events; see `stored_buckets`


def stored_buckets(
    batches: Iterator[pa.RecordBatch], key_groups: KeyGroups
) -> Iterator[tuple[MemoryStorage, list[bytes], list[int]]]:
    """Yield the state of each bucket, the packed events that follow, and its key groups."""
    rows = (row for batch in batches for row in batch.to_pylist())
    for bucket_id, bucket in groupby(rows, key=lambda row: row[BUCKET]):
        storage, arrived = MemoryStorage(), []
        for row in bucket:
            if row["kind"] == ARRIVED:
                arrived.append(row["data"])
            else:
                storage.add(row["kind"], row["first"], row["second"], row["data"])
        yield storage, arrived, key_groups.of_bucket(bucket_id)


def write_times(times: Ints) -> bytes:
    """Return times as bytes: the earliest, and the distances from it in the fewest bytes."""
    earliest = times.min()
    # Unsigned distances cannot overflow.
    distances = times.view(np.uint64) - earliest.view(np.uint64)
    size = np.min_scalar_type(distances.max()).itemsize
    head: bytes = np.asarray([earliest, size], "<i8").tobytes()
    return head + bytes(distances.astype(f"<u{size}"))


def read_times(data: bytes) -> Ints:
    """Read times written by :func:`write_times`."""
    earliest, size = np.frombuffer(data, "<i8", 2)
    distances = np.frombuffer(data, f"<u{size}", offset=16).astype(np.uint64)
    times: Ints = (distances + earliest.view(np.uint64)).view(np.int64)
    return times


def count_late(data: bytes, watermark: int) -> int:
    """Count the late times among those written by :func:`write_times`."""
    return int(np.count_nonzero(is_late(read_times(data), watermark)))


def count_ahead(data: bytes, latest: int) -> int:
    """Count the times after one among those written by :func:`write_times`."""
    return int(np.count_nonzero(read_times(data) > latest))


def read_spans(data: bytes) -> Ints:
    """Return the spans of event times in a packed row."""
    spans: Ints = np.frombuffer(data, "<i8").astype(np.int64, copy=False).reshape(-1, 3)
    return spans


@attrs.frozen(eq=False)
class PackTask:
    """The work on one partition of a stream's source."""

    layout: Layout  # Where things are in the input
    schema: pa.Schema  # What is kept of the input; times in UTC, whatever the session's time zone
    key_groups: KeyGroups  # Which bucket a key belongs to
    # Events to drop, by the bits of the conditions that Spark evaluated.
    dropped: frozenset[int] = frozenset()
    # Whether every bucket is to know the latest event time, with events or without.
    tells_latest: bool = True
    allows_null_keys: bool = False  # Whether a key may be null altogether
    # How far an event may be ahead of the others; None for any distance.
    max_ahead_ms: int | None = None
    # Whether events without key or time are counted and passed on; else they are refused.
    drops_nulls: bool = False

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Pack Arrow batches, some at a time, into one row for each bucket with events."""
        # The rows are the same whenever they are made of the same batches: if a shuffle file is
        # lost, Spark compares what it makes again with what others have read, and fails the query
        # if that differs.
        number = partition_number()
        ids = np.asarray(self.key_groups.bucket_ids(), np.int32)
        position = size = 0
        latest, spans = MIN_WATERMARK, np.empty((0, 3), np.int64)
        kept: list[pa.Table] = []
        dropped: list[Ints] = []
        nulls: list[pa.Table] = []
        for batch in batches:
            if not batch.num_rows:
                continue
            if size >= _PACKED_BYTES:
                yield self._pack(kept, dropped, nulls, ids, (number, position), latest)
                kept, dropped, nulls, size, position = [], [], [], 0, position + 1
            whole = pa.Table.from_batches([batch])
            if self.drops_nulls:
                whole, without = self._without_nulls(whole)
                nulls.append(without)
                latest = max(latest, self._latest(without))
            times = self._times(whole)
            if len(times):
                latest = max(latest, int(times.max()))
            if self.max_ahead_ms is not None:
                more = spans_of(times, self.max_ahead_ms)
                spans = joined(np.concatenate([spans, more]), self.max_ahead_ms)
            table, others = self._divide(whole, times)
            kept.append(table)
            dropped.append(others)
            size += table.nbytes + others.nbytes
        if kept:
            place = (number, position)
            yield self._pack(kept, dropped, nulls, ids, place, latest, spans, self.tells_latest)

    def _without_nulls(self, table: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Return the events with key and time, and the others."""
        is_null = self._has_null_key(table)
        if self.layout.time_column is not None:
            is_null |= table.column(self.layout.time_column).is_null().to_numpy()
        if not is_null.any():
            return table, table.slice(0, 0)
        return table.filter(pa.array(~is_null)), table.filter(pa.array(is_null))

    def _latest(self, nulls: pa.Table) -> int:
        """Return the latest time of events without a key, which move the watermark like others."""
        if self.layout.time_column is None:
            return MIN_WATERMARK
        timed = nulls.filter(nulls.column(self.layout.time_column).is_valid())
        return int(self.layout.times_ms(timed).max()) if timed.num_rows else MIN_WATERMARK

    def _times(self, table: pa.Table) -> Ints:
        """Return the events' times; refuse null times and keys while the event can be named."""
        times = np.empty(0, np.int64)
        if self.layout.time_column is not None:
            times = self.layout.times_ms(table)
        self._refuse_null_keys(table)
        return times

    def _divide(self, table: pa.Table, times: Ints) -> tuple[pa.Table, Ints]:
        """Return the events to keep, and the times of the others."""
        bits = self.layout.bits(table) if self.dropped else None
        table = table.select(self.schema.names)
        if bits is None:
            return table, times[:0]
        dropped = is_among(bits, self.dropped)
        return table.filter(pa.array(~dropped)), times[dropped]

    def _pack(
        self,
        kept: Sequence[pa.Table],
        dropped: Sequence[Ints],
        nulls: Sequence[pa.Table],
        ids: np.ndarray[Any, Any],
        place: tuple[int, int],
        latest: int,
        spans: Ints | None = None,
        for_all: bool = False,
    ) -> pa.RecordBatch:
        """Return a row for each bucket with events, or for all."""
        table = table_of(pa.concat_tables(kept).columns, self.schema)
        times = np.concatenate(dropped)
        groups = self.key_groups.groups(table.column(HASH).to_numpy())
        buckets = self.key_groups.buckets(groups)
        order = order_by([buckets])
        ordered = table.take(pa.array(order)).combine_chunks()
        bounds = np.searchsorted(buckets[order], np.arange(len(ids) + 1))
        sizes = np.diff(bounds)
        chosen = np.arange(len(ids)) if for_all else np.flatnonzero(sizes)
        if not len(chosen):  # then any bucket may count the late ones
            chosen = np.asarray([place[1] % len(ids)])
        data = write_tables(
            [
                ordered.slice(start, size)
                for start, size in zip(bounds[chosen].tolist(), sizes[chosen].tolist(), strict=True)
            ]
        )
        rest = [None] * (len(data) - 1)
        others = [write_times(times) if len(times) else None, *rest]
        null_count, without = sum(part.num_rows for part in nulls), None
        if null_count:  # with the user's columns
            whole = pa.concat_tables([part.select(self.schema.names) for part in nulls])
            own = self.layout.schema.fieldNames()
            without = write_table(table_of(whole.columns, self.schema).select(own))
        told = None if spans is None or not len(spans) else spans.astype("<i8").tobytes()
        columns = [
            pa.array(ids[chosen]),
            pa.array(np.full(len(data), place[0], np.int32)),
            pa.array(np.full(len(data), place[1], np.int32)),
            data,
            pa.array(others, pa.binary()),
            pa.array([latest] * len(data), pa.int64()),
            pa.array([told] * len(data), pa.binary()),
            pa.array([without, *rest], pa.binary()),
            pa.array([null_count] + [0] * len(rest), pa.int64()),
        ]
        return pa.RecordBatch.from_arrays(columns, names=PACKED.fieldNames())

    def _has_null_key(self, table: pa.Table) -> Flags:
        """Return for each event whether its key is null altogether."""
        columns = [table.column(name) for name in self.layout.key_columns]
        if self.allows_null_keys or not columns or not all(column.null_count for column in columns):
            return np.zeros(table.num_rows, np.bool_)
        nulls: Flags = np.logical_and.reduce([column.is_null().to_numpy() for column in columns])
        return nulls

    def _refuse_null_keys(self, table: pa.Table) -> None:
        nulls = self._has_null_key(table)
        if nulls.any():
            row = int(np.flatnonzero(nulls)[0])
            raise InputError(
                f"pattern {self.layout.pattern}: null key {self.layout.key_text(table, row)}"
                f"{self.layout.time_text(table, row)}",
                "filter such events out, or set a key with coalesce(), before CEP.pattern; or "
                'write onNullKey="drop" there',
            )


# The parts of the operator's output with events that came too late, or are too far ahead.
LATE, AHEAD, NULLS = "late", "ahead", "nulls"
TOLD = "told"  # The part with what became of publications of rules
# What a bucket returns as bytes: its results and their events, or rows; events left out.
PARTS = ("numbers", "events", LATE, AHEAD, NULLS, TOLD)
_PORTION_BYTES = 4 << 20  # The least bytes of results to turn into rows at a time


@attrs.frozen(eq=False)
class UnpackTask:
    """The work after the stateful operator: the user's functions, or columns."""

    layout: Layout  # The events' columns
    stages: Sequence[str]  # The names of stages in matches
    consumer: Consumer  # Turns matches into rows
    sides: Mapping[str, str]  # The outputs for events left out, by the parts that they come in

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Make the output of packed results."""
        reader = RowReader(self.layout.schema)
        with (
            running(self.layout.pattern) as context,
            opened(self.consumer, context, "a function"),
        ):
            for batch in batches:
                rows = parts_of(batch)
                for results in _portions([row for row in rows if row["numbers"] is not None]):
                    yield from self._consumed(results, reader)
                for side, output in self.sides.items():
                    tables = [row[side] for row in rows if row[side] is not None]
                    yield from self._left_out(tables, output)

    def _consumed(
        self, results: Sequence[dict[str, Any]], reader: RowReader
    ) -> Iterator[pa.RecordBatch]:
        """Make the output of the results of some buckets."""
        parts, tables, base = [], [], 0
        for row in results:
            found, table = unpack_results(row["numbers"], row["events"], self.stages, base)
            parts.append(found)
            tables.append(table)
            base += table.num_rows
        events = pa.concat_tables(tables).combine_chunks()
        store = EventStore(reader, events.schema)
        store.add(events)
        yield from batches_of(self.consumer, Found.concat(parts), store)

    def _left_out(self, tables: Sequence[bytes], output: str) -> Iterator[pa.RecordBatch]:
        """Make the output of events that were left out."""
        schema = arrow_schema(self.consumer.schemas[output])
        for data in tables:
            rows = table_of(read_table(data).columns, schema)
            yield from to_batches(self.consumer, {output: rows})


def parts_of(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Return what buckets returned: :data:`PARTS` by name, None for one that is missing."""
    return [dict(zip(PARTS, parts, strict=True)) for parts in batch.column("parts").to_pylist()]


def _portions(rows: Sequence[dict[str, Any]]) -> Iterator[Sequence[dict[str, Any]]]:
    """Yield the results of buckets, small ones combined since each portion has a fixed cost."""
    portion: list[dict[str, Any]] = []
    size = 0
    for row in rows:
        portion.append(row)
        size += len(row["numbers"]) + len(row["events"])
        if size >= _PORTION_BYTES:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion


@attrs.frozen(eq=False)
class RowsTask:
    """The work after a stateful operator that makes rows itself: they are only unpacked."""

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        for batch in batches:
            for row in parts_of(batch):
                if row["events"] is not None:
                    yield from read_table(row["events"]).to_batches()


def pack_results(found: Found, events: EventStore) -> tuple[bytes, bytes]:
    """Return results and their events as bytes."""
    unique, positions = np.unique(found.handles, return_inverse=True)
    parts = [[len(found)], found.kinds, found.times, found.ends, found.stage_of, positions]
    numbers = np.concatenate([np.asarray(part, "<i8") for part in parts])
    return numbers.tobytes(), write_table(events.take(unique, events.shown))


def unpack_results(
    numbers: bytes, events: bytes, stages: Sequence[str], base: int
) -> tuple[Found, pa.Table]:
    """Read the output of :func:`pack_results`."""
    values = np.frombuffer(numbers, "<i8").astype(np.int64, copy=False)
    size = int(values[0])
    kinds, times, ends = values[1 : 1 + 3 * size].reshape(3, size)
    stage_of, positions = values[1 + 3 * size :].reshape(2, -1)
    found = Found(
        stages,
        kinds.astype(np.uint8),
        times,
        ends,
        stage_of.astype(np.int32),
        positions + base,
    )
    return found, read_table(events)


# --- bounded events in packets: a shuffle moves a row of bytes for many, instead of their values

PACKETS = StructType(
    [
        StructField(BUCKET, IntegerType(), False),
        StructField(POSITION, LongType(), False),
        StructField("data", BinaryType(), False),
    ]
)
"""A row for many events of one bucket, with the position of the first, which others follow."""

# Spark hands a worker up to 10,000 rows at once, and releases before 4.1 however large they are.
_PACKET_BYTES = 128 << 10
_READ_BYTES = 4 << 20
_FEWEST, _MOST = 64, 1024


@attrs.frozen(eq=False)
class Packets:
    """How events travel; travels to the workers itself."""

    schema: pa.Schema  # Of events
    buckets: KeyGroups

    @classmethod
    def of(cls, schema: pa.Schema, partitions: int) -> Packets:
        """Return packets for a shuffle into some partitions."""
        count = min(max(1 << (partitions - 1).bit_length(), _FEWEST), _MOST)
        return cls(schema, KeyGroups(count, count))

    def bucket_of(self, places: Ints) -> Ints:
        """Return the buckets of events by numbers that are equal for those of one place."""
        groups = self.buckets.groups(mixed(places.view(np.uint64)))
        return self.buckets.buckets(groups)

    def portions(self, targets: int, row_bytes: int) -> Iterator[slice]:
        """Yield some events at a time: about a packet of them for each bucket."""
        # So few are put in another order by the fast caches of a processor.
        most = max(_PACKET_BYTES * self.buckets.bucket_count // max(row_bytes, 1), 1)
        return (slice(begin, begin + most) for begin in range(0, targets, most))

    def written(self, events: pa.Table, buckets: Ints, position: int) -> pa.RecordBatch:
        """Return events, given in the order of their buckets, as rows: each bucket's in order."""
        (whole,) = table_of(events.columns, self.schema).combine_chunks().to_batches()
        most = max(_PACKET_BYTES * whole.num_rows // max(whole.nbytes, 1), 1)
        ends = np.cumsum(np.bincount(buckets, minlength=self.buckets.bucket_count))
        ids = self.buckets.bucket_ids()
        own: list[int] = []
        firsts: list[int] = []
        data: list[np.ndarray[Any, Any]] = []
        begin = 0
        for bucket, end in zip(ids, ends.tolist(), strict=True):
            for first in range(begin, end, most):
                own.append(bucket)
                firsts.append(position + first - begin)
                packet = whole.slice(first, min(most, end - first)).serialize()
                data.append(np.frombuffer(packet, np.uint8))
            begin = end
        columns = [pa.array(own, pa.int32()), pa.array(firsts, pa.int64()), _binaries(data)]
        return pa.RecordBatch.from_arrays(columns, names=PACKETS.fieldNames())

    def read(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the events of rows."""
        held: list[pa.RecordBatch] = []
        firsts: list[int] = []
        size = 0
        for batch in rows:
            positions = batch.column(POSITION).to_pylist()
            for data, first in zip(batch.column("data"), positions, strict=True):
                packet = data.as_buffer()
                held.append(pa.ipc.read_record_batch(packet, self.schema))
                firsts.append(first)
                size += packet.size
                if size >= _READ_BYTES:
                    yield from self._joined(held, firsts)
                    held, firsts, size = [], [], 0
        if held:
            yield from self._joined(held, firsts)

    def _joined(self, batches: list[pa.RecordBatch], firsts: list[int]) -> list[pa.RecordBatch]:
        """Return events in one piece, with their positions unless they came with others."""
        table = pa.Table.from_batches(batches)
        if POSITION not in self.schema.names:
            sizes = np.asarray([batch.num_rows for batch in batches])
            positions = ranges(np.asarray(firsts, np.int64), sizes)
            table = table.append_column(POSITION, integers(positions))
        found: list[pa.RecordBatch] = table.combine_chunks().to_batches()
        return found

    def reading(
        self, task: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
    ) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        """Return a task on the events of rows."""
        return lambda rows: task(self.read(rows))


def _binaries(parts: Sequence[np.ndarray[Any, Any]]) -> pa.Array:
    """Return bytes as binaries, joined by NumPy, whose memory stays for those that follow."""
    ends = np.cumsum([0, *map(len, parts)]).astype(np.int32)
    whole = np.concatenate([np.empty(0, np.uint8), *parts])
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(whole)]
    return pa.Array.from_buffers(pa.binary(), len(parts), buffers)
