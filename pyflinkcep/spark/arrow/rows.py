# SPDX-License-Identifier: Apache-2.0
"""The only conversions between Arrow and Python: events to Rows, and users' rows to Arrow."""

from __future__ import annotations

import array
import datetime
import decimal
import functools
from collections import namedtuple
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkAttributeError, PySparkValueError
from pyspark.sql import Row
from pyspark.sql import types as T

from pyflinkcep.errors import FunctionError, counted
from pyflinkcep.functions import no_such_column
from pyflinkcep.spark.arrow.internals import arrow_schema, local_rows, local_table

Fits = Callable[[Any], bool]  # Says whether a value fits
_NOTHING: tuple[type, ...] = ()
# The first entry that a type is an instance of applies: (type, what fits, exceptions).
_SCALARS: tuple[tuple[type[T.DataType], tuple[type, ...], tuple[type, ...]], ...] = (
    (T.StringType, (str,), _NOTHING),
    (T.BooleanType, (bool, np.bool_), _NOTHING),
    (T.IntegralType, (int, np.integer), (bool,)),
    (T.DecimalType, (decimal.Decimal,), _NOTHING),
    (T.FractionalType, (float, int, np.floating, np.integer), (bool,)),
    (T.BinaryType, (bytes, bytearray), _NOTHING),
    (T.DateType, (datetime.date,), (datetime.datetime,)),
    (T.TimestampType, (datetime.datetime,), _NOTHING),
    (T.TimestampNTZType, (datetime.datetime,), _NOTHING),
    (T.DayTimeIntervalType, (datetime.timedelta,), _NOTHING),
)
_LISTS = (list, tuple, array.array, np.ndarray)


def field_fits(field: T.StructField) -> Fits:
    """Return the test for values of a column; None fits if the column may be null."""
    return _or_none(fits(field.dataType), field.nullable)


def fits(type_: T.DataType) -> Fits:
    """Return the test for values of a type that are not None."""
    if isinstance(type_, T.ArrayType):
        element = _or_none(fits(type_.elementType), type_.containsNull)
        return lambda value: isinstance(value, _LISTS) and all(map(element, value))
    if isinstance(type_, T.MapType):
        key, item = fits(type_.keyType), _or_none(fits(type_.valueType), type_.valueContainsNull)
        return lambda value: (
            isinstance(value, dict) and all(map(key, value)) and all(map(item, value.values()))
        )
    if isinstance(type_, T.StructType):
        return _struct_fits(type_)
    for kind, good, bad in _SCALARS:
        if isinstance(type_, kind):
            return _is_a(good, bad)
    return _is_a((object,), _NOTHING)  # rare types: left to PySpark


def _is_a(good: tuple[type, ...], bad: tuple[type, ...]) -> Fits:
    if bad:
        return lambda value: isinstance(value, good) and not isinstance(value, bad)
    return lambda value: isinstance(value, good)


def _or_none(test: Fits, nullable: bool) -> Fits:
    if nullable:
        return lambda value: value is None or test(value)
    return lambda value: value is not None and test(value)


def _struct_fits(type_: T.StructType) -> Fits:
    tests = [field_fits(field) for field in type_.fields]
    names = type_.fieldNames()

    def test(value: Any) -> bool:
        if isinstance(value, tuple):
            values: Any = value
        elif isinstance(value, dict):
            values = [value.get(name) for name in names]
        else:
            values = [getattr(value, name, None) for name in names]
        return len(values) == len(tests) and all(
            fits_field(item) for fits_field, item in zip(tests, values, strict=True)
        )

    return test


_PLAIN = (T.BooleanType, T.FractionalType, T.IntegralType, T.StringType)
_MOST_AT_ONCE = 16
_new = tuple.__new__
_item = tuple.__getitem__


class _Block:
    """Some events, column by column; each column is converted as a whole when needed."""

    __slots__ = ("_schema", "_table", "columns", "places", "plain")

    def __init__(
        self,
        table: pa.Table,
        schema: T.StructType,
        plain: type[Row],
        places: Sequence[int | None],
    ) -> None:
        self._table = table
        self._schema = schema
        self.columns: list[list[Any] | None] = [None] * len(schema)
        self.plain = plain
        self.places = places  # the index of a field in a row's tuple, None if it is in the block

    def load(self, position: int) -> list[Any]:
        one = T.StructType([self._schema.fields[position]])
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
    """A Row that knows where its values are."""

    # As a tuple it holds the values of the plain columns, then its block and its index there, from
    # which the others are made. Anything but access to a field is delegated to an ordinary Row of
    # all its values, so that the difference is invisible. It has no members that a Row does not
    # have, since they would hide columns of the same name.

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


def _is_plain(type_: T.DataType) -> bool:
    return isinstance(type_, _PLAIN) and not isinstance(type_, T.DecimalType)


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
    """Makes lazy Rows of a schema."""

    def __init__(self, schema: T.StructType, plain: type[Row]) -> None:
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


class _EventRow(Row):
    """A Row of an event; the error for a missing field names the nearest column."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__") and name not in self.__fields__:
            message = no_such_column(name, self.__fields__)
            raise PySparkAttributeError(message)
        return super().__getattr__(name)

    def __getitem__(self, item: Any) -> Any:
        if not isinstance(item, str):
            return _item(self, item)
        if item not in self.__fields__:
            raise PySparkValueError(no_such_column(item, self.__fields__))
        return _item(self, self.__fields__.index(item))


class RowReader:
    """Makes Rows from Arrow data, with the Python types that PySpark's own functions receive."""

    # The Rows are of a subclass with a descriptor for each field, since looking up a field by name
    # takes ten times as long on a plain Row.

    def __init__(self, schema: T.StructType) -> None:
        self._schema = schema
        names = schema.fieldNames()
        fields: dict[str, Any] = {"__slots__": (), "__fields__": list(names)}
        for name, getter in zip(names, item_getters(len(names)), strict=True):
            if not hasattr(Row, name):  # such as count and index, which stay methods
                fields[name] = getter
        self._row: type[Row] = type("Row", (_EventRow,), fields)
        self._lazy = LazyRows(schema, self._row)

    def lazy_rows(self, table: pa.Table) -> Sequence[Row]:
        """Make Rows whose fields are converted on first access."""
        return self._lazy.rows(table)

    def rows(self, table: pa.Table) -> list[Row]:
        """Make a Row from each row of a table, which may have more columns than a Row."""
        new, row = tuple.__new__, self._row
        converted = local_rows(table.select(self._schema.fieldNames()), self._schema)
        return [new(row, values) for values in converted]


class RowWriter:
    """Makes Arrow data from the rows that users' functions return."""

    def __init__(self, schema: T.StructType, source: str) -> None:
        self._schema = schema
        self._source = source
        self._single = len(schema) == 1
        self._fits = [field_fits(field) for field in schema.fields]
        self.arrow_schema = arrow_schema(schema)

    def row(self, given: Any) -> tuple[Any, ...]:
        """
        Check a row returned by a user's function: a tuple, list, Row or dict, a dataclass or attrs
        object, or a plain value for a single column.
        """
        values = self._as_tuple(given)
        for field, fits, value in zip(self._schema.fields, self._fits, values, strict=True):
            if not fits(value):
                raise self._misfit(field, value, given)
        return values

    def table(self, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
        """Make a table of rows checked by :meth:`row`."""
        if not rows:
            return self.arrow_schema.empty_table()
        try:
            return local_table(rows, self._schema).cast(self.arrow_schema)
        except Exception as cause:
            raise self._culprit(rows) or FunctionError(
                f"the rows of {self._source} do not fit {self._ddl()}: {cause}"
            ) from cause

    def _culprit(self, rows: Sequence[tuple[Any, ...]]) -> FunctionError | None:
        for row in rows:
            for field, value in zip(self._schema.fields, row, strict=True):
                column = T.StructType([field])
                try:
                    local_table([(value,)], column).cast(arrow_schema(column))
                except Exception:
                    return self._misfit(field, value, row)
        return None

    def _misfit(self, field: T.StructField, value: Any, given: Any) -> FunctionError:
        return FunctionError(
            f"{self._source} returned {shortened(given)}: column {field.name!r} is "
            f"{field.dataType.simpleString()}{'' if field.nullable else ' NOT NULL'}, "
            f"got {shortened(value)} ({type(value).__name__})",
            _hint(given, "return values of the output schema's types, or change the schema"),
        )

    def _as_tuple(self, row: Any) -> tuple[Any, ...]:
        fields = self._schema.fieldNames()
        row = _as_dict(row) if _is_record(row) else row
        if isinstance(row, Row) and hasattr(row, "__fields__"):
            values: tuple[Any, ...] = tuple(row)
            if set(row.__fields__) == set(fields):
                values = tuple(row[name] for name in fields)
        elif isinstance(row, tuple):
            values = row
        elif isinstance(row, dict):
            unknown = [name for name in row if name not in fields]
            if unknown:
                raise FunctionError(
                    f"{self._source} returned {shortened(row)} with {unknown}, "
                    f"the schema is {self._ddl()}",
                    "use only columns of the output schema",
                )
            values = tuple(row.get(name) for name in fields)
        elif isinstance(row, list) and len(row) == len(fields) and not self._single:
            values = tuple(row)
        else:
            values = (row,)
        if len(values) != len(fields):
            wanted = f"{counted(len(fields), 'value')} ({self._ddl()})"
            got = "None" if row is None else counted(len(values), "value")
            raise FunctionError(
                f"{self._source} returned {shortened(row)}: expected {wanted}, got {got}",
                _hint(row, "return a tuple with one value for each column"),
            )
        return values

    def _ddl(self) -> str:
        return ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in self._schema.fields)


def _is_record(row: Any) -> bool:
    """Whether a row is an object of a dataclass or attrs class."""
    kind = type(row)
    return hasattr(kind, "__dataclass_fields__") or hasattr(kind, "__attrs_attrs__")


def _as_dict(row: Any) -> dict[str, Any]:
    names = getattr(type(row), "__dataclass_fields__", None)
    if names is None:
        names = [field.name for field in type(row).__attrs_attrs__]
    return {name: getattr(row, name) for name in names}


def _hint(row: Any, hint: str) -> str:
    """Return the hint, or another one if a function of one row returned several."""
    is_list = isinstance(row, list) and row and isinstance(row[0], tuple | dict)
    several = is_list or isinstance(row, Iterator)
    return "use flatSelect(function, schema) to return several rows" if several else hint


def shortened(value: Any, length: int = 300) -> str:
    """Return the text of a value for an error message, abbreviated in the middle if long."""
    text = repr(value)
    half = length // 2
    return text if len(text) <= length else f"{text[:half]} ... {text[-half:]}"
