# SPDX-License-Identifier: Apache-2.0
"""Sorts the events of a partition in the worker: in memory or in runs on disk."""

from __future__ import annotations

import os
import random
import uuid
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructField, StructType

from pyflinkcep.errors import InputError
from pyflinkcep.matching.columns import POSITION, PREFIX, Ints
from pyflinkcep.matching.event_store import SortedEvents
from pyflinkcep.matching.keys import has_mixed_hashes, ranks
from pyflinkcep.matching.layout import Layout
from pyflinkcep.matching.order import order_by, order_with_ties
from pyflinkcep.spark.arrow.internals import arrow_schema

KEYS = f"{PREFIX}keys"
"""The column with the hashes of the keys that a task has seen; null in rows of results."""

TARGET = f"{PREFIX}target"
"""The column that says which task checks a row."""

_TASK = f"{PREFIX}task"
_TARGETS = 8
_MOST_FRESH = 1 << 16

Batches = Iterator[pa.RecordBatch]


@attrs.frozen(eq=False)
class SeenKeysTask:
    """A task on a partition, whose rows are followed by the keys that it has seen."""

    task: Callable[[Batches], Batches]  # From the events of the partition to rows
    key: str  # The column with the hashes of keys
    rows: StructType  # The schema of the rows

    @property
    def schema(self) -> StructType:
        """The schema of the output."""
        fields = [StructField(f.name, f.dataType, True, f.metadata) for f in self.rows.fields]
        added = {KEYS: BinaryType(), _TASK: StringType(), TARGET: IntegerType()}
        return StructType([*fields, *(StructField(name, type_) for name, type_ in added.items())])

    def run(self, batches: Batches) -> Batches:
        """Run the task; yield its rows, then the keys for each of the tasks that check."""
        schema, seen, task = arrow_schema(self.schema), _Seen(), str(uuid.uuid4())
        target = int(np.random.default_rng().integers(_TARGETS))
        for rows in self.task(seen.watched(batches, self.key)):
            size = rows.num_rows
            added = [pa.nulls(size, pa.binary()), pa.nulls(size, pa.string())]
            targets = pa.array(np.full(size, target, np.int32))
            yield pa.RecordBatch.from_arrays([*rows.columns, *added, targets], schema=schema)
        told = {KEYS: seen.hashes().tobytes(), _TASK: task}
        several = [{**told, TARGET: number} for number in range(_TARGETS)]
        yield pa.RecordBatch.from_pylist(several, schema=schema)


class _Seen:
    """The hashes of the keys that a task has seen."""

    def __init__(self) -> None:
        self._known = np.zeros(0, np.int64)
        self._fresh: list[Ints] = []
        self._count = 0

    def watched(self, batches: Batches, key: str) -> Batches:
        for batch in batches:
            fresh = np.unique(batch.column(key).to_numpy())
            self._fresh.append(fresh)
            self._count += len(fresh)
            if self._count > max(_MOST_FRESH, len(self._known)):
                self.hashes()
            yield batch

    def hashes(self) -> Ints:
        """Return them, each once."""
        self._known = np.unique(np.concatenate([self._known, *self._fresh]))
        self._fresh, self._count = [], 0
        return self._known


@attrs.frozen(eq=False)
class CheckTask:
    """Passes the rows of tasks on if no two of them have seen one key."""

    pattern: str  # The pattern in one line, for errors
    rows: StructType  # The schema of the rows

    def run(self, batches: Batches) -> Batches:
        """Check the keys of all tasks, which come first; yield the rows."""
        schema = arrow_schema(self.rows)
        seen: dict[str, Ints] = {}
        is_checked = False
        for batch in batches:
            is_key = batch.column(KEYS).is_valid().to_numpy(zero_copy_only=False)
            count = int(is_key.sum())
            for row in batch.slice(0, count).select([KEYS, _TASK]).to_pylist():
                seen[row[_TASK]] = np.frombuffer(row[KEYS], np.int64)
            if count < batch.num_rows:
                if not is_checked:
                    self._check(seen)
                    is_checked = True
                rows = batch.slice(count).columns[: len(schema)]
                yield pa.RecordBatch.from_arrays(rows, schema=schema)
        if not is_checked:
            self._check(seen)

    def _check(self, seen: dict[str, Ints]) -> None:
        hashes = np.sort(np.concatenate([np.zeros(0, np.int64), *seen.values()]))
        if (hashes[1:] == hashes[:-1]).any():
            raise InputError(
                f"pattern {self.pattern}: a key has events in two partitions, and "
                "keyBy(…, partitioned=True) says that each key is in one",
                "leave out partitioned=True; df.groupBy(key).agg(F.count_distinct("
                "F.spark_partition_id())) shows where keys are",
            )


BUDGET_BYTES = 96 * 1024 * 1024

_RUNS = 3  # per budget: so that events that do not fit take little more memory than it
_BLOCKS = 16  # per run: how finely runs can be cut

Place = tuple[Any, ...]
"""(the key's parts, time in milliseconds), comparable; null parts sort first."""


def sorted_chunks(
    batches: Iterable[pa.RecordBatch],
    layout: Layout,
    budget_bytes: int = BUDGET_BYTES,
    folder: str | None = None,
) -> Generator[pa.Table, None, None]:
    """Sort the events of a partition, all columns of them; see :func:`sorted_events`."""
    with closing(sorted_events(batches, layout, (), budget_bytes, folder)) as chunks:
        for chunk in chunks:
            yield chunk.table


def sorted_events(
    batches: Iterable[pa.RecordBatch],
    layout: Layout,
    late: Sequence[str],
    budget_bytes: int = BUDGET_BYTES,
    folder: str | None = None,
) -> Generator[SortedEvents, None, None]:
    """
    Sort the events of a partition by key, time and position.

    Notes
    -----
    Cost: about twice the budget in memory, the events and their sorted copy, and some numbers
    for each event. If they exceed it, half as much, and all events of the partition on disk.
    """
    with ExitStack() as stack:
        runs: list[_Run] = []
        path = Path()
        for piece, is_last in _pieces(batches, budget_bytes):
            if is_last and not runs:
                events = _without_position(_sorted(piece, layout, late))
                del piece
                yield events
                return
            table = _sorted(piece, layout).table
            del piece
            if not runs:
                scratch = TemporaryDirectory(
                    prefix="pyflinkcep-", dir=folder or _local_folder(), ignore_cleanup_errors=True
                )
                path = Path(stack.enter_context(scratch))
            block = budget_bytes // (_RUNS * _BLOCKS)
            runs.append(_Run.write(table, layout, path / str(len(runs)), block))
            del table
        if runs:
            yield from _merged(runs, layout)


def whole_keys(
    batches: Iterator[pa.RecordBatch], layout: Layout, sort_bytes: int = BUDGET_BYTES
) -> Iterator[pa.Table]:
    """Yield the events of a partition in tables of whole keys, sorted by key, time and position."""
    rest: list[pa.Table] = []
    with closing(sorted_chunks(batches, layout, sort_bytes)) as chunks:
        for chunk in chunks:
            rest.append(chunk)
            both = pa.concat_tables(rest[-2:])
            changes = layout.key_changes(both)
            if len(changes):
                cut = int(changes[-1])
                yield pa.concat_tables([*rest[:-2], both.slice(0, cut)])
                rest = [both.slice(cut)]
    if sum(table.num_rows for table in rest):
        yield pa.concat_tables(rest)


def _pieces(
    batches: Iterable[pa.RecordBatch], budget_bytes: int
) -> Iterator[tuple[pa.Table, bool]]:
    """
    Yield the events in tables; tell which is the last.

    It is one table if they are within the budget; otherwise each is of one batch or a run's size.
    """
    held: deque[pa.RecordBatch] = deque()
    size, most = 0, budget_bytes
    for batch in batches:
        if held and size + batch.nbytes > most:
            most = budget_bytes // _RUNS
            while held:
                yield _joined(held, most), False
            size = 0
        if batch.num_rows:
            held.append(batch)
            size += batch.nbytes
    if held:
        yield _joined(held, size), True


def _joined(held: deque[pa.RecordBatch], most_bytes: int) -> pa.Table:
    """Make a table from the first batches, and drop them, so that nothing else holds them."""
    taken = [held.popleft()]
    size = taken[0].nbytes
    while held and size + held[0].nbytes <= most_bytes:
        size += held[0].nbytes
        taken.append(held.popleft())
    return pa.Table.from_batches(taken)


def _local_folder() -> str | None:
    """Return one of Spark's directories for temporary files; None if there are none."""
    named = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")
    usable = [name for name in named if os.path.isdir(name) and os.access(name, os.W_OK)]
    return random.choice(usable) if usable else None


# --- the order


def _sorted(table: pa.Table, layout: Layout, late: Sequence[str] = ()) -> SortedEvents:
    order = _order(table, layout, by_values=False)
    if _has_mixed_keys(table.select(layout.key_signature).take(pa.array(order)), layout):
        order = _order(table, layout, by_values=True)
    result = table.drop_columns(list(late)).take(pa.array(order)).combine_chunks()
    layout.check_order(result)
    if not late:
        return SortedEvents(result, nested=layout.nested)
    return SortedEvents(result, table.select(list(late)).combine_chunks(), order, layout.nested)


def _order(table: pa.Table, layout: Layout, by_values: bool) -> Ints:
    """Return the order by the key's hash, then optionally its values, then time and position."""
    keys = [layout.times(table)]
    number, *values = layout.key_signature or (None,)
    if by_values:
        keys += [ranks(table.column(name), _comparable) for name in reversed(values)]
    if number is not None:
        column = table.column(number)
        keys.append(column.fill_null(0).to_numpy())
        if column.null_count:
            keys.append(column.is_valid().to_numpy().astype(np.int64))
    if POSITION not in table.column_names:
        return order_by(keys)
    return order_with_ties(keys, ties=table.column(POSITION).to_numpy())


def _without_position(events: SortedEvents) -> SortedEvents:
    kept = [name for name in events.table.column_names if name != POSITION]
    return attrs.evolve(events, table=events.table.select(kept))


def _has_mixed_keys(table: pa.Table, layout: Layout) -> bool:
    """Whether different keys, sorted by hash, share a hash, which is very rare."""
    if len(layout.key_signature) < 2:
        return False
    number, *values = (table.column(name) for name in layout.key_signature)
    return has_mixed_hashes(values, number.to_numpy())


def _place(table: pa.Table, layout: Layout, row: int) -> Place:
    """Return a number or values that order an event by key and time."""
    key = [_comparable(table.column(name)[row]) for name in layout.key_signature]
    return (*key, int(layout.times_ms(table.slice(row, 1))[0]))


def _comparable(value: pa.Scalar) -> tuple[bool, Any]:
    """Return a value that Python can compare, even for dates and times beyond Python's range."""
    number = getattr(value, "value", None)
    return value.is_valid, value.as_py() if number is None else number


# --- runs on disk


@attrs.define(eq=False)
class _Run:
    """Sorted events in a file, taken piece by piece from the front."""

    path: Path  # The file
    layout: Layout  # Where key and time are
    fences: list[Place]  # Places at about equal distances in bytes
    # The positions of the fences' events, preceded by 0 and followed by the number of events.
    rows: list[int]
    start: int = 0  # The first event that has not been taken

    @classmethod
    def write(cls, table: pa.Table, layout: Layout, path: Path, block_bytes: int) -> _Run:
        """Write sorted events, with a fence after each block."""
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)

        def size(rows: int) -> int:
            return int(table.slice(0, rows).nbytes)

        every, rows = range(table.num_rows), [0]
        while rows[-1] < len(every):
            target = size(rows[-1]) + block_bytes
            rows.append(bisect_left(every, target, rows[-1] + 1, key=size))
        fences = [_place(table, layout, row) for row in rows[1:-1]]
        return cls(path, layout, fences, rows)

    def until(self, fence: Place | None) -> pa.Table:
        """Take the events before a place, or all that are left."""
        # Mapped anew each time: pages that stay mapped count as the process's memory.
        with pa.memory_map(str(self.path)) as file:
            table = pa.ipc.open_file(file).read_all()
        start, self.start = self.start, table.num_rows
        if fence is not None:
            block = bisect_left(self.fences, fence)  # to touch few pages of the file
            self.start = bisect_left(
                range(table.num_rows),
                fence,
                self.rows[block],
                self.rows[block + 1],
                key=lambda row: _place(table, self.layout, row),
            )
        return table.slice(start, self.start - start)


def _merged(runs: list[_Run], layout: Layout) -> Iterator[SortedEvents]:
    """Yield the events of all runs in order; about a run's size of them between two cuts."""
    fences = sorted(fence for run in runs for fence in run.fences)
    for fence in [*fences[_BLOCKS::_BLOCKS], None]:
        table = pa.concat_tables([run.until(fence) for run in runs])
        if table.num_rows:
            yield _without_position(_sorted(table, layout))
