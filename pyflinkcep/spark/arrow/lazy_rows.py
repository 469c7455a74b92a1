# SPDX-License-Identifier: Apache-2.0
"""Rows whose costly fields are made on first access, since conditions read few of them."""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DecimalType,
    FractionalType,
    IntegralType,
    StringType,
    StructType,
)

from pyflinkcep.spark.arrow.internals import local_rows

__all__ = ["LazyRows", "item_getters"]

_PLAIN = (BooleanType, FractionalType, IntegralType, StringType)
_MOST_AT_ONCE = 16

_new = tuple.__new__
_item = tuple.__getitem__


class _Block:
    """Some events, column by column; each column is converted as a whole when needed."""

    __slots__ = ("_schema", "_table", "columns", "places", "plain")

    def __init__(
        self,
        table: pa.Table,
        schema: StructType,
        plain: type[Row],
        places: Sequence[int | None],
    ) -> None:
        self._table = table
        self._schema = schema
        self.columns: list[list[Any] | None] = [None] * len(schema)
        self.plain = plain
        self.places = places  # the index of a field in a row's tuple, None if it is in the block

    def load(self, position: int) -> list[Any]:
        one = StructType([self._schema.fields[position]])
        rows = local_rows(self._table.select([position]), one)
        values = self.columns[position] = [row[0] for row in rows]
        return values


def _values(block: _Block, position: int) -> list[Any]:
    values = block.columns[position]
    return block.load(position) if values is None else values


def _at_once(column: pa.ChunkedArray) -> list[Any]:
    """Convert a column whose values are the same in Arrow, Python and Spark."""
    is_number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    values: list[Any]
    if is_number and not column.null_count:
        values = column.to_numpy().tolist()
    else:
        values = column.to_pylist()
    return values


def _value(row: tuple[Any, ...], position: int) -> Any:
    block = _item(row, -2)
    place = block.places[position]
    return _values(block, position)[_item(row, -1)] if place is None else _item(row, place)


def _ordinary(row: Any) -> Any:
    """Return the ordinary Row of a lazy one."""
    values = [_value(row, position) for position in range(len(row.__fields__))]
    return _new(_item(row, -2).plain, values)


class _LazyRow(Row):
    """
    A Row that knows where its values are.

    As a tuple it holds the values of the plain columns, then its block and its index there, from
    which the others are made. Anything but access to a field is delegated to an ordinary Row of all
    its values, so that the difference is invisible. It has no members that a Row does not have,
    since they would hide columns of the same name.
    """

    __slots__ = ()
    __fields__: list[str] = []  # noqa: RUF012 - PySpark's name; set once for each schema

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, str) and item in self.__fields__:
            return _value(self, self.__fields__.index(item))
        return _ordinary(self)[item]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(_ordinary(self), name)

    def __reduce__(self) -> Any:
        return _ordinary(self).__reduce__()


def _delegated(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        plain = [_ordinary(arg) if isinstance(arg, _LazyRow) else arg for arg in args]
        return getattr(_ordinary(self), name)(*plain, **kwargs)

    method.__name__ = name
    return method


for _name in (
    "__add__", "__call__", "__contains__", "__eq__", "__ge__", "__gt__", "__hash__", "__iter__",
    "__le__", "__len__", "__lt__", "__mul__", "__ne__", "__repr__", "__rmul__", "asDict", "count",
    "index",
):  # fmt: skip
    setattr(_LazyRow, _name, _delegated(_name))


def _is_plain(type_: DataType) -> bool:
    return isinstance(type_, _PLAIN) and not isinstance(type_, DecimalType)


def _field(position: int) -> property:
    def get(self: Any) -> Any:
        return _values(_item(self, -2), position)[_item(self, -1)]

    return property(get)


@functools.cache
def item_getters(count: int) -> tuple[Any, ...]:
    """Return fast descriptors of a tuple's items, independent of how its class indexes."""
    names = [f"item{number}" for number in range(count)]
    # Kept alive: otherwise garbage collection would clear the dict of the class.
    items = namedtuple("Items", names)  # type: ignore[misc]
    return tuple(vars(items)[name] for name in names)


class LazyRows:
    """
    Makes lazy Rows of a schema.

    Parameters
    ----------
    schema : StructType
        The schema of the events.
    plain : type of Row
        The class of the ordinary Rows.
    """

    def __init__(self, schema: StructType, plain: type[Row]) -> None:
        self._schema = schema
        names = schema.fieldNames()
        own = [p for p, field in enumerate(schema.fields) if _is_plain(field.dataType)]
        self._at_once = own[:_MOST_AT_ONCE]
        places = {position: place for place, position in enumerate(self._at_once)}
        getters = item_getters(len(places))
        self._plain = plain
        self._places = tuple(places.get(position) for position in range(len(names)))
        fields: dict[str, Any] = {"__slots__": (), "__fields__": list(names)}
        for position, name in enumerate(names):
            if not hasattr(_LazyRow, name):
                place = places.get(position)
                fields[name] = _field(position) if place is None else getters[place]
        self._row: type[Row] = type("Row", (_LazyRow,), fields)

    def rows(self, table: pa.Table) -> Sequence[Row]:
        """Make a lazy Row from each row of a table."""
        block, row = _Block(table, self._schema, self._plain, self._places), self._row
        columns = [_at_once(table.column(position)) for position in self._at_once]
        places = range(table.num_rows)
        return [_new(row, items) for items in zip(*columns, repeat(block), places, strict=False)]
