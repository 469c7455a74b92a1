# SPDX-License-Identifier: Apache-2.0
"""Sorted events, of which the columns that only matches need stay as they came."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.matching.columns import WHOLE, Ints
from pyflinkcep.matching.pieces import in_one_piece

__all__ = ["SortedEvents"]


@attrs.frozen(eq=False)
class SortedEvents:
    """
    Events in order, some of their columns behind an index.

    Most events are in no match, so most rows of most columns need not be moved.

    Attributes
    ----------
    table : pyarrow.Table
        The columns in order.
    late : pyarrow.Table or None
        The columns that are not; None without such columns.
    order : array of int64
        The row in `late` of each event; empty without such columns.
    nested : tuple of str
        The columns in the structs of :data:`WHOLE`, a column of one of the tables.

    Examples
    --------
    >>> table, late = pa.table({"time": [1, 2]}), pa.table({"name": ["b", "a"]})
    >>> events = SortedEvents(table, late, np.array([1, 0]))
    >>> events.take(np.array([1]), ["name", "time"]).to_pylist()
    [{'name': 'b', 'time': 2}]
    """

    table: pa.Table
    late: pa.Table | None = None
    order: Ints = attrs.field(factory=lambda: np.empty(0, np.int64))
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
            taken = own.take(pa.array(places))
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
