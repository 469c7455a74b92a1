# SPDX-License-Identifier: Apache-2.0
"""The events of a table in the order of matching, as matchers ask for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from pyflinkcep.matching.columns import Ints
from pyflinkcep.matching.fields import FieldArray
from pyflinkcep.matching.pieces import integers
from pyflinkcep.tables.events import Record
from pyflinkcep.tables.records import Cells, RecordBlock
from pyflinkcep.tables.typed_columns import NumberColumn

__all__ = ["FieldSource", "TableStore"]

_BLOCK = 1024
_MOST_BLOCKS = 256

FieldSource: TypeAlias = NumberColumn | pa.ChunkedArray
"""The values of a field of match expressions: numbers, or texts."""


class TableStore:
    """
    See :class:`~pyflinkcep.matching.matcher.Store`; a handle is a place in the order.

    Parameters
    ----------
    table : pyarrow.Table
        The events.
    order : array of int32 or None
        Their rows in the order of matching; None if they are in order.
    fields : sequence of FieldSource
        The fields that match expressions use, by row.
    """

    def __init__(self, table: pa.Table, order: Any, fields: Sequence[FieldSource]) -> None:
        self._cells = Cells(table)
        self._order = order
        self._size = table.num_rows
        self._fields = fields
        self._portion = 0, 0
        self._blocks: dict[int, RecordBlock] = {}
        self._field_blocks: dict[int, list[tuple[Any, ...]]] = {}

    def rows(self, begin: int, end: int) -> Ints:
        """Return the rows of some events in the order of matching."""
        end = min(end, self._size)
        return np.arange(begin, end) if self._order is None else self._order[begin:end]

    def begin(self, begin: int, end: int) -> None:
        """Set which events are matched next."""
        self._portion = begin, end

    def row(self, handle: int) -> Record:
        """Return an event as the user's conditions see it."""
        number, place = divmod(handle, _BLOCK)
        block = self._blocks.get(number)
        if block is None:
            rows = self.rows(number * _BLOCK, (number + 1) * _BLOCK)
            block = RecordBlock(self._cells, rows)
            if len(self._blocks) >= _MOST_BLOCKS:
                del self._blocks[next(iter(self._blocks))]
            self._blocks[number] = block
        return block.record(place)

    def fields(self, handle: int) -> Sequence[Any]:
        """Return what match expressions need of an event."""
        number, place = divmod(handle, _BLOCK)
        found = self._field_blocks.get(number)
        if found is None:
            rows = self.rows(number * _BLOCK, (number + 1) * _BLOCK)
            columns = [_listed(_array(field, rows)) for field in self._fields]
            found = list(zip(*columns, strict=True)) if columns else [()] * len(rows)
            if len(self._field_blocks) >= _MOST_BLOCKS:
                del self._field_blocks[next(iter(self._field_blocks))]
            self._field_blocks[number] = found
        return found[place]

    def field_arrays(self) -> tuple[int, int, tuple[FieldArray, ...]]:
        """Return the handle of the first of the newest events, their number, and their fields."""
        begin, end = self._portion
        rows = self.rows(begin, end) if self._fields else np.empty(0, np.int64)
        return begin, end - begin, tuple(_array(field, rows) for field in self._fields)

    def keep(self, handles: Iterable[int]) -> None:
        """Do nothing: the table has all events."""


def _array(field: FieldSource, rows: Ints) -> FieldArray:
    """Return the values of a field in some rows, as the kernel takes them."""
    if isinstance(field, NumberColumn):
        values = field.taken(rows)
        valid = None if values.nulls is False else ~values.nulls
        return np.ascontiguousarray(values.data), valid, field.is_float
    return field.take(integers(rows)).to_pylist(), None, False


def _listed(field: FieldArray) -> list[Any]:
    values, valid, _ = field
    if isinstance(values, list) or valid is None:
        return values if isinstance(values, list) else values.tolist()
    pairs = zip(values.tolist(), valid.tolist(), strict=True)
    return [value if known else None for value, known in pairs]
