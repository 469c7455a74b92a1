# SPDX-License-Identifier: Apache-2.0
"""The only conversions between Arrow and Python: events to Rows, and users' rows to Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkAttributeError, PySparkValueError
from pyspark.sql import Row
from pyspark.sql.types import StructField, StructType

from pyflinkcep.errors import FunctionError, counted
from pyflinkcep.runtime import no_such_column
from pyflinkcep.spark.arrow.internals import arrow_schema, local_rows, local_table
from pyflinkcep.spark.arrow.lazy_rows import LazyRows, item_getters
from pyflinkcep.spark.arrow.type_checks import field_fits

__all__ = ["RowReader", "RowWriter", "shortened"]


_item = tuple.__getitem__


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
    """
    Makes Rows from Arrow data, with the Python types that PySpark's own functions receive.

    Parameters
    ----------
    schema : StructType
        The schema of the events.

    Notes
    -----
    The Rows are of a subclass with a descriptor for each field, since looking up a field by name
    takes ten times as long on a plain Row.
    """

    def __init__(self, schema: StructType) -> None:
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
    """
    Makes Arrow data from the rows that users' functions return.

    Parameters
    ----------
    schema : StructType
        The schema of the output.
    source : str
        What returned the rows; named in errors.
    """

    def __init__(self, schema: StructType, source: str) -> None:
        self._schema = schema
        self._source = source
        self._single = len(schema) == 1
        self._fits = [field_fits(field) for field in schema.fields]
        self.arrow_schema = arrow_schema(schema)

    def row(self, given: Any) -> tuple[Any, ...]:
        """
        Check a row returned by a user's function: a tuple, list, Row or dict, a dataclass or attrs
        object, or a plain value for a single column.

        Raises
        ------
        FunctionError
            If it does not fit the schema; the message names the column.
        """
        values = self._as_tuple(given)
        for field, fits, value in zip(self._schema.fields, self._fits, values, strict=True):
            if not fits(value):
                raise self._misfit(field, value, given)
        return values

    def table(self, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
        """
        Make a table of rows checked by :meth:`row`.

        Raises
        ------
        FunctionError
            If a value is out of the range of its column; the message names the column and the row.
        """
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
                column = StructType([field])
                try:
                    local_table([(value,)], column).cast(arrow_schema(column))
                except Exception:
                    return self._misfit(field, value, row)
        return None

    def _misfit(self, field: StructField, value: Any, given: Any) -> FunctionError:
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
