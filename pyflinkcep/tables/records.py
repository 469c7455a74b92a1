# SPDX-License-Identifier: Apache-2.0
"""Rows of tables as records, whose fields are read when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from pyflinkcep.functions import no_such_column
from pyflinkcep.matching.columns import (
    FieldArray,
    Ints,
    in_one_piece,
    integers,
    plain_numbers,
    values_of,
)
from pyflinkcep.tables.events import Record
from pyflinkcep.tables.typed_columns import NumberColumn


class Cells:
    """The values of a table, as Python has them."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self.names: list[str] = table.column_names
        self.places = {name: place for place, name in enumerate(self.names)}
        self._pieces: dict[int, Any] = {}
        is_plain = set(dir(Record)).isdisjoint(self.names)
        self.record: type[Record] | None = _record_class(self.names) if is_plain else None

    def values(self, place: int, rows: Ints) -> list[Any]:
        """Return the values of a column in some rows."""
        piece = self._pieces.get(place)
        if piece is None:
            piece = self._pieces[place] = _piece(self._table.column(place))
        if isinstance(piece, np.ndarray):
            numbers: list[Any] = piece[rows].tolist()
            return numbers
        values: list[Any] = values_of(piece.take(integers(rows)))
        return values


def _piece(column: pa.ChunkedArray) -> Any:
    """Return a column such that a few of its values are taken fast: chunks are searched for."""
    is_number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    if is_number and not column.null_count:
        return plain_numbers(column)
    try:
        return in_one_piece(column)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # more than two gigabytes, or unions
        return column


def records(table: pa.Table, rows: Ints) -> list[Record]:
    """Return rows of a table as records."""
    names = table.column_names
    if not names:
        return [Record() for _ in range(len(rows))]
    taken = integers(rows)
    columns = [values_of(column.take(taken)) for column in table.columns]
    return [Record(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


class RecordBlock:
    """Some rows of a table; a column is converted as a whole when it is asked for."""

    __slots__ = ("_records", "_rows", "cells", "columns")

    def __init__(self, cells: Cells, rows: Ints) -> None:
        self.cells = cells
        self._rows = rows
        self.columns: list[list[Any] | None] = [None] * len(cells.names)
        self._records: list[Record | None] = [None] * len(rows)

    def column(self, place: int) -> list[Any]:
        """Return the values of a column."""
        found = self.columns[place]
        if found is None:
            found = self.columns[place] = self.cells.values(place, self._rows)
        return found

    def record(self, row: int) -> Record:
        """Return a row as a record, always the same one."""
        found = self._records[row]
        if found is None:
            kind = self.cells.record
            if kind is None:
                found = Record(self.items(row))
            else:
                found = kind()
                found.__cep_block__ = self  # type: ignore[attr-defined]
                found.__cep_row__ = row  # type: ignore[attr-defined]
            self._records[row] = found
        return found

    def items(self, row: int) -> list[tuple[str, Any]]:
        """Return the fields of a row."""
        return [(name, self.column(place)[row]) for place, name in enumerate(self.cells.names)]


class _LazyRecord(Record):
    """
    A record that knows where its fields are, for conditions, which read few of them.

    It has no block once it is filled, which anything but reading a field does; it is an ordinary
    record then.
    """

    __slots__ = ("__cep_block__", "__cep_row__")
    __cep_block__: RecordBlock | None
    __cep_row__: int

    __getattribute__ = dict.__getattribute__
    __getitem__ = dict.__getitem__  # type: ignore[assignment]  # __missing__ reads the field

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(no_such_column(name, list(dict.keys(_filled(self)))))

    def __missing__(self, name: Any) -> Any:
        block = self.__cep_block__
        if block is not None:
            place = block.cells.places.get(name) if isinstance(name, str) else None
            if place is not None:
                return block.column(place)[self.__cep_row__]
        if isinstance(name, int):
            return list(dict.values(_filled(self)))[name]
        raise KeyError(no_such_column(str(name), list(dict.keys(_filled(self)))))

    def __contains__(self, name: object) -> bool:
        block = self.__cep_block__
        return dict.__contains__(self, name) if block is None else name in block.cells.places

    def get(self, name: Any, default: Any = None) -> Any:
        return self[name] if name in self else default  # noqa: SIM401 - this is get

    def __reduce_ex__(self, _: Any) -> Any:
        return Record, (list(dict.items(_filled(self))),)


def _filled(record: Any) -> Any:
    """Return a record as a dict with all of its fields."""
    if isinstance(record, _LazyRecord):
        block = record.__cep_block__
        if block is not None:
            dict.update(record, block.items(record.__cep_row__))
            record.__cep_block__ = None
    return record


def _of_dict(name: str) -> Callable[..., Any]:
    own = getattr(dict, name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return own(_filled(self), *map(_filled, args), **kwargs)

    method.__name__ = name
    return method


for _name in (
    "__delitem__", "__eq__", "__ge__", "__gt__", "__ior__", "__iter__", "__le__", "__len__",
    "__lt__", "__ne__", "__or__", "__repr__", "__reversed__", "__ror__", "__setitem__", "clear",
    "copy", "items", "keys", "pop", "popitem", "setdefault", "update", "values",
):  # fmt: skip
    setattr(_LazyRecord, _name, _of_dict(_name))


def _record_class(names: list[str]) -> type[Record]:
    """Return the class of a table's records, with a descriptor for each column."""
    fields: dict[str, Any] = {"__slots__": ()}
    for place, name in enumerate(names):
        if not name.startswith("__"):  # which Python asks for itself
            fields[name] = property(_getter(place, name))
    return type("Record", (_LazyRecord,), fields)


def _getter(place: int, name: str) -> Callable[[Any], Any]:
    def get(self: Any) -> Any:
        block = self.__cep_block__
        if block is None:
            return self[name]
        values = block.columns[place]
        return (block.column(place) if values is None else values)[self.__cep_row__]

    return get


_BLOCK = 1024
_MOST_BLOCKS = 256

FieldSource: TypeAlias = NumberColumn | pa.ChunkedArray
"""The values of a field of match expressions: numbers, or texts."""


class TableStore:
    """See :class:`~pyflinkcep.matching.matcher.Store`; a handle is a place in the order."""

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
