# SPDX-License-Identifier: Apache-2.0
"""The events of a partition in order: sorted in memory or in runs on disk, and cut by key."""

from __future__ import annotations

import os
import random
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

from pyflinkcep.matching.columns import POSITION, Ints, in_one_piece, integers, plain_numbers, taken
from pyflinkcep.matching.event_store import SortedEvents
from pyflinkcep.matching.keys import has_mixed_hashes, ranks
from pyflinkcep.matching.layout import Layout
from pyflinkcep.matching.order import order_by, order_with_ties, pieces_in_order

BUDGET_BYTES = 96 * 1024 * 1024
_RUNS = 3  # per budget: so that events that do not fit take little more memory than it
_BLOCKS = 16  # per run: how finely runs can be cut
_SAMPLES = 2  # per block: how finely its size is known
# (the key's parts, time in milliseconds), comparable; null parts sort first.
Place = tuple[Any, ...]


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
    chosen: Callable[[pa.Table], Ints | None] = lambda _: None,
) -> Generator[SortedEvents, None, None]:
    """
    Sort the events of a partition by key, time and position.

    If they are within the budget, only the rows that `chosen` returns of them; None is all.
    """
    # Cost: about twice the budget in memory, the events and their sorted copy, and some numbers for
    # each event. If they exceed it, half as much, and all events of the partition on disk.
    with ExitStack() as stack:
        runs: list[_Run] = []
        path = Path()
        for piece, is_last in _pieces(batches, budget_bytes):
            if is_last and not runs:
                events = _sorted(piece, layout, late, chosen)
                del piece
                if events.num_rows:
                    yield events
                return
            table = _sorted(piece, layout, has_position=True).table
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
    batches: Iterable[pa.RecordBatch], layout: Layout
) -> Iterator[tuple[pa.Table, Ints]]:
    """Sort the events of a partition; yield those of several keys, and where each key's end."""
    with closing(sorted_chunks(batches, layout)) as chunks:
        yield from cut_by_key(chunks, layout)


def cut_by_key(tables: Iterable[pa.Table], layout: Layout) -> Iterator[tuple[pa.Table, Ints]]:
    """Yield sorted events in tables of whole keys, and where each key's end."""
    held: list[pa.Table] = []
    for table, is_last in _telling_last(table for table in tables if table.num_rows):
        changes = layout.key_changes(table)
        if held and layout.is_other_key(held[-1], table):
            changes = np.r_[0, changes]
        before, size = sum(part.num_rows for part in held), table.num_rows
        whole = size if is_last else int(changes[-1]) if len(changes) else 0
        if whole or (held and len(changes)):
            ends = np.append(changes, size) if is_last else changes
            yield pa.concat_tables([*held, table.slice(0, whole)]).combine_chunks(), before + ends
            held = []
        held.append(table.slice(whole))


def by_chunks(
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


def _telling_last(tables: Iterable[pa.Table]) -> Iterator[tuple[pa.Table, bool]]:
    """Yield tables, and whether there is none after each."""
    before: pa.Table | None = None
    for table in tables:
        if before is not None:
            yield before, False
        before = table
    if before is not None:
        yield before, True


def _pieces(
    batches: Iterable[pa.RecordBatch], budget_bytes: int
) -> Iterator[tuple[pa.Table, bool]]:
    """Yield the events in tables; tell which is the last."""
    # It is one table if they are within the budget; otherwise each is of one batch or a run's size.
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


def _sorted(
    table: pa.Table,
    layout: Layout,
    late: Sequence[str] = (),
    chosen: Callable[[pa.Table], Ints | None] = lambda _: None,
    *,
    has_position: bool = False,
) -> SortedEvents:
    """Return events in order, with their positions if these will be asked for again."""
    table = _in_pieces(table, layout)
    rows = chosen(table)
    if rows is not None:
        table = _some_rows(table, rows)
    order = _order(table, layout, by_values=False)
    if _has_mixed_keys(table, order, layout):
        order = _order(table, layout, by_values=True)
    left = {*late} if has_position else {*late, POSITION}
    result = _taken(table.drop_columns([*left.intersection(table.column_names)]), order)
    layout.check_order(result)
    if not late:
        return SortedEvents(result, nested=layout.nested)
    return SortedEvents(result, table.select(list(late)).combine_chunks(), order, layout.nested)


def _taken(table: pa.Table, rows: Ints) -> pa.Table:
    """Return rows of a table, column by column, so that the chunks of one are joined at a time."""
    own = integers(rows)
    columns = [taken(in_one_piece(table.column(at)), own) for at in range(table.num_columns)]
    return pa.table(columns, schema=table.schema)


def _some_rows(table: pa.Table, rows: Ints) -> pa.Table:
    """Return ascending rows of a table, whose chunks Arrow would join to take them."""
    parts, begin = [], 0
    for batch in table.to_batches():
        own = rows[slice(*np.searchsorted(rows, [begin, begin + batch.num_rows]))]
        parts.append(batch.take(integers(own - begin)))
        begin += batch.num_rows
    return pa.Table.from_batches(parts, table.schema)


def _in_pieces(table: pa.Table, layout: Layout) -> pa.Table:
    """Return events in order of time if pieces of them are, for which none is copied."""
    pieces = pieces_in_order(layout.times(table))
    if pieces is None or len(pieces) < 2:
        return table
    return pa.concat_tables([table.slice(begin, end - begin) for begin, end in pieces])


def _order(table: pa.Table, layout: Layout, by_values: bool) -> Ints:
    """Return the order by the key's hash, then optionally its values, then time and position."""
    keys = [layout.times(table)]
    number, *values = layout.key_signature or (None,)
    if by_values:
        keys += [ranks(table.column(name), _comparable) for name in reversed(values)]
    if number is not None:
        column = table.column(number)
        keys.append(plain_numbers(column.fill_null(0) if column.null_count else column))
        if column.null_count:
            keys.append(column.is_valid().to_numpy().astype(np.int64))
    if POSITION not in table.column_names:
        return order_by(keys)
    return order_with_ties(keys, ties=plain_numbers(table.column(POSITION)))


def _has_mixed_keys(table: pa.Table, order: Ints, layout: Layout) -> bool:
    """Whether different keys, sorted by hash, share a hash, which is very rare."""
    if len(layout.key_signature) < 2:
        return False
    signature = table.select(layout.key_signature).take(integers(order))
    number, *values = signature.columns
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

        rows = _blocks(table, block_bytes)
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


def _blocks(table: pa.Table, block_bytes: int) -> list[int]:
    """Return where blocks of about a size begin, and where the last one ends."""
    # Arrow counts the bytes of each column anew each time, so they are asked of few places.
    most = max(block_bytes, 1)
    count = min(_SAMPLES * (table.nbytes // most + 1), table.num_rows)
    places = np.linspace(0, table.num_rows, count + 1).astype(np.int64)
    sizes = [table.slice(0, place).nbytes for place in places.tolist()]
    targets = np.arange(most, sizes[-1], most)
    inner = np.unique(np.interp(targets, sizes, places).astype(np.int64))
    return [0, *inner[inner > 0].tolist(), table.num_rows]


def _merged(runs: list[_Run], layout: Layout) -> Iterator[SortedEvents]:
    """Yield the events of all runs in order; about a run's size of them between two cuts."""
    fences = sorted(fence for run in runs for fence in run.fences)
    for fence in [*fences[_BLOCKS::_BLOCKS], None]:
        table = pa.concat_tables([run.until(fence) for run in runs])
        if table.num_rows:
            yield _sorted(table, layout)
