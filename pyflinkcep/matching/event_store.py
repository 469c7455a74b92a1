# SPDX-License-Identifier: Apache-2.0
"""The events that a worker holds, as Arrow; the rest of the library refers to them by handle."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.matching.columns import (
    VALUE,
    WHOLE,
    FieldArray,
    Ints,
    field_array,
    field_rows,
    in_one_piece,
    integers,
)
from pyflinkcep.matching.layout import Layout


@attrs.frozen(eq=False)
class SortedEvents:
    """Events in order, some of their columns behind an index."""

    # Most events are in no match, so most rows of most columns need not be moved.

    table: pa.Table  # The columns in order
    late: pa.Table | None = None  # The columns that are not; None without such columns
    # The row in `late` of each event; empty without such columns.
    order: Ints = attrs.field(factory=lambda: np.empty(0, np.int64))
    # The columns in the structs of :data:`WHOLE`, a column of one of the tables.
    nested: tuple[str, ...] = ()

    @property
    def num_rows(self) -> int:
        """The number of events."""
        return int(self.table.num_rows)

    def schema(self, names: Sequence[str]) -> pa.Schema:
        """Return the schema of some columns."""
        tables = [self.table] if self.late is None else [self.table, self.late]
        fields = {field.name: field for table in tables for field in table.schema}
        if self.nested:
            inner = fields[WHOLE].type.value_type
            fields |= {name: inner.field(at).with_name(name) for at, name in enumerate(self.nested)}
        return pa.schema([fields[name] for name in names])

    def take(self, rows: Ints, names: Sequence[str]) -> pa.Table:
        """Return events by their places in order, with some columns."""
        wanted = {WHOLE if name in self.nested else name for name in names}
        sources = [(self.table, rows)]
        if self.late is not None:
            sources.append((self.late, self.order[rows]))
        columns: dict[str, pa.ChunkedArray | pa.Array] = {}
        for table, places in sources:
            own = table.select([name for name in table.column_names if name in wanted])
            taken = own.take(integers(places))
            columns |= zip(taken.column_names, taken.columns, strict=True)
        if WHOLE in wanted:
            columns |= zip(self.nested, _parts(columns.pop(WHOLE)), strict=True)
        return pa.table({name: columns[name] for name in names})

    def slice(self, start: int, size: int, names: Sequence[str]) -> pa.Table:
        """Return events that follow each other, with some columns."""
        if self.late is None and not self.nested:
            return self.table.select(list(names)).slice(start, size)
        return self.take(np.arange(start, min(start + size, self.num_rows)), names)


def _parts(lists: pa.ChunkedArray) -> list[pa.Array]:
    """Return the fields of structs, each of which is in a list of its own, or missing."""
    whole = in_one_piece(lists)
    parts: list[pa.Array] = whole.flatten().flatten()
    if not whole.null_count:
        return parts
    is_there = whole.is_valid().to_numpy(zero_copy_only=False)
    places = pa.array(np.cumsum(is_there) - 1, mask=~is_there)
    return [part.take(places) for part in parts]


_BLOCK = 256
_MOST_BLOCKS = 256


class Reader(Protocol):
    """Makes the Rows that conditions and functions see."""

    def lazy_rows(self, table: pa.Table) -> Sequence[Any]:
        """Make Rows whose fields are converted on first access."""

    def rows(self, table: pa.Table) -> Sequence[Any]:
        """Make a Row from each row of a table."""


class EventStore:
    """Events in arrival order, each with a handle: its running number."""

    # The newest batch is kept whole, and the events still needed from older ones.

    def __init__(self, reader: Reader, schema: pa.Schema) -> None:
        self._reader = reader
        self._base = 0
        self._names = schema.names
        nothing = pa.Table.from_batches([], schema)
        self._batch = SortedEvents(nothing)
        self._blocks: dict[int, Sequence[Any]] = {}
        self._old_handles = np.empty(0, np.int64)
        self._old = nothing
        self._old_rows: dict[int, Any] = {}
        self._fields = [name for name in schema.names if name.startswith(VALUE)]
        self._field_blocks: dict[int, list[tuple[Any, ...]]] = {}
        self._old_fields: dict[int, tuple[Any, ...]] = {}

    @classmethod
    def of(cls, table: pa.Table, layout: Layout, reader: Reader) -> EventStore:
        """Return a store of the events of one table; their handles are their positions."""
        events = table.select(list(layout.payload))
        store = cls(reader, events.schema)
        store.add(events)
        return store

    def add(self, batch: pa.Table | SortedEvents) -> int:
        """Add a batch; return the handle of its first event. Call :meth:`keep` first."""
        self._base += self._batch.num_rows
        self._batch = batch if isinstance(batch, SortedEvents) else SortedEvents(batch)
        self._blocks = {}
        self._field_blocks = {}
        return self._base

    def keep(self, handles: Iterable[int]) -> None:
        """Drop all events except these."""
        live = np.unique(np.fromiter(handles, np.int64))
        table = self.take(live)
        cached = self._old_rows
        self._old_rows = {h: cached[h] for h in live.tolist() if h in cached} if cached else {}
        self._old_handles, self._old = live, table
        self._old_fields = {}
        self._base += self._batch.num_rows
        self._batch = SortedEvents(table.slice(0, 0))
        self._blocks = {}
        self._field_blocks = {}

    def take(
        self,
        handles: Sequence[int] | np.ndarray[Any, Any],
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """Return the events of these handles, in this order, with all or some of their columns."""
        names = self._names if columns is None else list(columns)
        wanted = np.asarray(handles, np.int64)
        if not self._base:  # the first batch is the newest, and often the only one
            return self._batch.take(wanted, names)
        is_old = wanted < self._base
        if not is_old.any():
            return self._batch.take(wanted - self._base, names)
        assert np.isin(wanted[is_old], self._old_handles).all(), (
            "an event is used that was not kept"
        )
        old = self._old.select(names)
        # Separately, then combined: taking from both at once would copy the whole batch.
        taken = [
            old.take(integers(np.searchsorted(self._old_handles, wanted[is_old]))),
            self._batch.take(wanted[~is_old] - self._base, names),
        ]
        order = np.argsort(np.r_[np.flatnonzero(is_old), np.flatnonzero(~is_old)])
        return pa.concat_tables(taken).take(integers(order))

    def fields(self, handle: int) -> tuple[Any, ...]:
        """Return what Spark computed from an event for match expressions."""
        if handle < self._base:
            if handle not in self._old_fields:
                known = zip(self._old_handles.tolist(), self._field_rows(self._old), strict=True)
                self._old_fields = dict(known)
            return self._old_fields[handle]
        block, offset = divmod(handle - self._base, _BLOCK)
        rows = self._field_blocks.get(block)
        if rows is None:
            rows = self._field_rows(self._batch.table.slice(block * _BLOCK, _BLOCK))
            if len(self._field_blocks) >= _MOST_BLOCKS:
                del self._field_blocks[next(iter(self._field_blocks))]
            self._field_blocks[block] = rows
        return rows[offset]

    def field_arrays(self) -> tuple[int, int, tuple[FieldArray, ...]]:
        """Return the handle of the newest batch's first event, its size, and its fields."""
        columns = self._batch.table.select(self._fields).columns
        return self._base, self._batch.num_rows, tuple(map(field_array, columns))

    def _field_rows(self, table: pa.Table) -> list[tuple[Any, ...]]:
        return field_rows(table.select(self._fields))

    @property
    def shown(self) -> list[str]:
        """The columns needed from an event once it is matched."""
        return [name for name in self._names if not name.startswith(VALUE)]

    def rows(self, handles: Sequence[int] | np.ndarray[Any, Any]) -> list[Any]:
        """Return the events of these handles as Rows; a handle always has the same Row."""
        distinct, inverse = np.unique(np.asarray(handles, np.int64), return_inverse=True)
        rows = self._reader.rows(self.take(distinct))
        return [rows[position] for position in inverse.tolist()]

    def row(self, handle: int) -> Any:
        """Return one event as a Row; its neighbours are made with it, since they come next."""
        if handle < self._base:
            row = self._old_rows.get(handle)
            if row is None:
                row = self._old_rows[handle] = self._reader.lazy_rows(self.take([handle]))[0]
            return row
        block, offset = divmod(handle - self._base, _BLOCK)
        rows = self._blocks.get(block)
        if rows is None:
            rows = self._reader.lazy_rows(self._batch.slice(block * _BLOCK, _BLOCK, self._names))
            if len(self._blocks) >= _MOST_BLOCKS:  # in a large batch; made again if needed
                del self._blocks[next(iter(self._blocks))]
            self._blocks[block] = rows
        return rows[offset]
