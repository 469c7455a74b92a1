# SPDX-License-Identifier: Apache-2.0
"""Rows of tables as records, whose fields are read when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from pyflinkcep.functions import no_such_column
from pyflinkcep.matching.columns import (
    PREFIX,
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
    """A record that knows where its fields are until more than a field is read of it."""

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


FieldSource: TypeAlias = NumberColumn | pa.ChunkedArray
"""The values of a field of match expressions: numbers, or texts."""

ROW = f"{PREFIX}row"
"""The column with the row of an event in its table."""


class RecordReader:
    """See :class:`~pyflinkcep.matching.event_store.Reader`; events are known by :data:`ROW`."""

    def __init__(self, table: pa.Table) -> None:
        self._cells = Cells(table)

    def lazy_rows(self, table: pa.Table) -> Sequence[Record]:
        """Make records whose fields are read when they are asked for."""
        block = RecordBlock(self._cells, plain_numbers(table.column(ROW)))
        return list(map(block.record, range(table.num_rows)))

    rows = lazy_rows
