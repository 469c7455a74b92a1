# SPDX-License-Identifier: Apache-2.0
"""Rows whose fields are made when they are first asked for: conditions look at few of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.conversion import ArrowTableToRowsConversion
from pyspark.sql.types import StructType

__all__ = ["LazyRows"]

_new = tuple.__new__
_item = tuple.__getitem__


class _Block:
    """Some events, column by column; each column is converted as a whole, when it is needed."""

    __slots__ = ("_schema", "_table", "columns")

    def __init__(self, table: pa.Table, schema: StructType) -> None:
        self._table = table
        self._schema = schema
        self.columns: list[list[Any] | None] = [None] * len(schema)

    def load(self, position: int) -> list[Any]:
        one = StructType([self._schema.fields[position]])
        rows = ArrowTableToRowsConversion.convert(self._table.select([position]), one)
        values = self.columns[position] = [row[0] for row in rows]
        return values


def _values(block: _Block, position: int) -> list[Any]:
    values = block.columns[position]
    return block.load(position) if values is None else values


class _LazyRow(Row):
    """
    A Row that knows where its values are: as a tuple it holds its block and its place there.

    Whatever is done with it beyond asking for a field is done with an ordinary Row of all its
    values, so that nobody can tell the difference.
    """

    __slots__ = ()
    __fields__: list[str] = []  # noqa: RUF012 - PySpark's name; set once for each schema
    _plain: type[Row] = Row

    def _all(self) -> Any:
        block, at = _item(self, 0), _item(self, 1)
        values = [_values(block, position)[at] for position in range(len(self.__fields__))]
        return _new(self._plain, values)

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, str) and item in self.__fields__:
            return _values(_item(self, 0), self.__fields__.index(item))[_item(self, 1)]
        return self._all()[item]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._all(), name)

    def __reduce__(self) -> Any:
        return self._all().__reduce__()


def _delegated(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        plain = [arg._all() if isinstance(arg, _LazyRow) else arg for arg in args]
        return getattr(self._all(), name)(*plain, **kwargs)

    method.__name__ = name
    return method


for _name in (
    "__add__", "__call__", "__contains__", "__eq__", "__ge__", "__gt__", "__hash__", "__iter__",
    "__le__", "__len__", "__lt__", "__mul__", "__ne__", "__repr__", "__rmul__", "asDict", "count",
    "index",
):  # fmt: skip
    setattr(_LazyRow, _name, _delegated(_name))


def _field(position: int) -> property:
    def get(self: Any) -> Any:
        block = _item(self, 0)
        values = block.columns[position]
        return (values if values is not None else block.load(position))[_item(self, 1)]

    return property(get)


class LazyRows:
    """
    Makes lazy Rows of a schema.

    Parameters
    ----------
    schema : StructType
        The schema of the events.
    plain : type of Row
        What a Row becomes when more than single fields are asked of it.
    """

    def __init__(self, schema: StructType, plain: type[Row]) -> None:
        self._schema = schema
        names = schema.fieldNames()
        fields: dict[str, Any] = {"__slots__": (), "__fields__": list(names), "_plain": plain}
        for position, name in enumerate(names):
            if not hasattr(Row, name) and name not in ("_all", "_plain"):
                fields[name] = _field(position)
        self._row: type[Row] = type("Row", (_LazyRow,), fields)

    def rows(self, table: pa.Table) -> Sequence[Row]:
        """Make a lazy Row of each row of a table."""
        block, row = _Block(table, self._schema), self._row
        return [_new(row, (block, at)) for at in range(table.num_rows)]
