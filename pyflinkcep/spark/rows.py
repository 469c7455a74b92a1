# SPDX-License-Identifier: Apache-2.0
"""Between Arrow and Python: events as Rows, and users' rows as Arrow; the one place that does."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.conversion import ArrowTableToRowsConversion, LocalDataToArrowConversion
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from pyflinkcep.errors import FunctionError

__all__ = ["RowReader", "RowWriter", "arrow_schema"]


def arrow_schema(schema: StructType) -> pa.Schema:
    """Give the Arrow schema that Spark uses for a schema; timestamps in UTC."""
    return to_arrow_schema(schema, timezone="UTC")


class RowReader:
    """
    Makes Rows of Arrow data, with the Python types that PySpark's own functions see.

    Parameters
    ----------
    schema : StructType
        The schema of the events.

    Notes
    -----
    The Rows are of a subclass with a property for each field, since looking a field up by name
    takes ten times as long on a plain Row.
    """

    def __init__(self, schema: StructType) -> None:
        self._schema = schema
        names = schema.fieldNames()
        fields: dict[str, Any] = {"__slots__": (), "__fields__": list(names)}
        for position, name in enumerate(names):
            if not hasattr(Row, name):  # such as count and index, which stay methods
                fields[name] = property(itemgetter(position))
        self._row: type[Row] = type("Row", (Row,), fields)

    def rows(self, table: pa.Table) -> list[Row]:
        """Make a Row of each row of a table."""
        new, row = tuple.__new__, self._row
        converted = ArrowTableToRowsConversion.convert(table, self._schema)
        return [new(row, values) for values in converted]


class RowWriter:
    """
    Makes Arrow data of the rows that users' functions return.

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
        self.arrow_schema = arrow_schema(schema)

    def table(self, rows: Sequence[Any]) -> pa.Table:
        """
        Make a table of rows: tuples, lists, Rows or dicts; plain values for a single column.

        Raises
        ------
        FunctionError
            When a row does not fit the schema; names the row and the column.
        """
        if not rows:
            return self.arrow_schema.empty_table()
        tuples = [self._as_tuple(row) for row in rows]
        try:
            return self._convert(tuples)
        except Exception as cause:
            for given, row in zip(rows, tuples, strict=True):
                self._check(given, row)
            raise FunctionError(
                f"the rows of {self._source} do not fit {self._ddl()}: {cause}"
            ) from cause

    def _convert(self, rows: list[tuple[Any, ...]]) -> pa.Table:
        table = LocalDataToArrowConversion.convert(rows, self._schema, False)
        return table.cast(self.arrow_schema)

    def _as_tuple(self, row: Any) -> tuple[Any, ...]:
        fields = self._schema.fieldNames()
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
                    f"{self._source} returned {row!r} with {unknown}, the schema is {self._ddl()}",
                    "name only columns of the output schema",
                )
            values = tuple(row.get(name) for name in fields)
        elif isinstance(row, list) and len(row) == len(fields) and not self._single:
            values = tuple(row)
        else:
            values = (row,)
        if len(values) != len(fields):
            raise FunctionError(
                f"{self._source} returned {row!r}: {len(values)} values, "
                f"the schema has {len(fields)}: {self._ddl()}",
                "return a tuple with one value for each column",
            )
        return values

    def _check(self, given: Any, row: tuple[Any, ...]) -> None:
        for field, value in zip(self._schema.fields, row, strict=True):
            try:
                RowWriter(StructType([field]), self._source)._convert([(value,)])
            except Exception as cause:
                raise FunctionError(
                    f"{self._source} returned {given!r}: column {field.name!r} is "
                    f"{field.dataType.simpleString()}{'' if field.nullable else ' NOT NULL'}, "
                    f"got {value!r}",
                    "return values of the output schema's types, or change the schema",
                ) from cause

    def _ddl(self) -> str:
        return ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in self._schema.fields)
