# SPDX-License-Identifier: Apache-2.0
"""Sorted events, of which the columns that only matches need stay as they came."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.matching.columns import Ints

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

    @property
    def num_rows(self) -> int:
        """The number of events."""
        return int(self.table.num_rows)

    def schema(self, names: Sequence[str]) -> pa.Schema:
        """Return the schema of some columns."""
        whole = (
            self.table.schema
            if self.late is None
            else pa.unify_schemas([self.table.schema, self.late.schema])
        )
        return pa.schema([whole.field(name) for name in names])

    def take(self, rows: Ints, names: Sequence[str]) -> pa.Table:
        """Return events by their places in order, with some columns."""
        if self.late is None:
            return self.table.select(list(names)).take(pa.array(rows))
        late = set(self.late.column_names)
        at_once = self.table.select([name for name in names if name not in late])
        behind = self.late.select([name for name in names if name in late])
        taken = (at_once.take(pa.array(rows)), behind.take(pa.array(self.order[rows])))
        columns = {name: part.column(name) for part in taken for name in part.column_names}
        return pa.table({name: columns[name] for name in names})

    def slice(self, start: int, size: int, names: Sequence[str]) -> pa.Table:
        """Return events that follow each other, with some columns."""
        if self.late is None:
            return self.table.select(list(names)).slice(start, size)
        return self.take(np.arange(start, min(start + size, self.num_rows)), names)
