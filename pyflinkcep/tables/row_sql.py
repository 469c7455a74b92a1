# SPDX-License-Identifier: Apache-2.0
"""SQL about one row of a table: for all rows at once if a program can say it, or row by row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from pyflinkcep.errors import CepError
from pyflinkcep.expressions.arrays import Values
from pyflinkcep.expressions.evaluator import (
    event_value,
    kind_of_values,
    machine_value,
    without_kind,
)
from pyflinkcep.expressions.program import Kind, Type
from pyflinkcep.expressions.sql_types import VOID, WITHOUT_KIND
from pyflinkcep.expressions.values import Typed
from pyflinkcep.tables.order import lazily
from pyflinkcep.tables.records import FieldSource
from pyflinkcep.tables.typed_columns import (
    NumberColumn,
    SqlColumns,
    arrow_type,
    as_array,
    as_column,
    clock_zone,
    kind_of,
    row_types,
)


class OnlyByRow(Exception):
    """Something can only be computed event by event, or by Spark."""


class RowSql:
    """SQL about one row of a table."""

    def __init__(
        self,
        table: pa.Table,
        texts: Iterable[str] = (),
        zone: str = "",
        fails: bool = True,
    ) -> None:
        self._table = table
        # Whether what cannot be computed for a row is an error; else it is NULL.
        self._fails = fails
        self._zone = zone or clock_zone(table.schema)
        self._types = row_types(table.schema, self._zone)
        known = list(texts)
        columns = SqlColumns(table, known, self._types)
        self._columns = dict.fromkeys(known, columns)
        self._functions: dict[str, Typed] = {}
        self._listed: dict[str, list[Any]] = {}

    def _of(self, sql: str) -> SqlColumns:
        if sql not in self._columns:
            self._columns[sql] = SqlColumns(self._table, [sql], self._types)
        return self._columns[sql]

    def _function(self, sql: str) -> Typed:
        if sql not in self._functions:
            try:
                self._functions[sql] = event_value(sql, self._types)
            except CepError as cause:
                raise OnlyByRow from cause
        return self._functions[sql]

    def kind(self, sql: str) -> Kind | None:
        """Return the type of a part; None if it is always NULL."""
        column = self._of(sql).own_column(sql)
        kind = None if column is None else kind_of(column.type)
        if kind is not None:
            return kind
        type_ = self._function(sql).type
        if type_ is not None and type_.name in WITHOUT_KIND:
            raise without_kind(sql, type_.sql)  # whatever values there are
        if type_ is None or (type_.kind is None and type_ != VOID):
            return kind_of_values(sql, self._values(sql))
        if type_.kind is Kind.DECIMAL:
            return kind_of_values(sql, self._values(sql))
        return type_.kind

    def field(self, sql: str, kind: Kind) -> FieldSource:
        """Return the values of a part."""
        column = self._of(sql).plain(sql, kind)
        if column is not None:
            return column
        program = self._of(sql).program(sql, is_condition=False)
        if program is not None and program.kind is kind and kind is not Kind.STRING:
            numbers = as_array(self._of(sql).values(program))
            if kind is Kind.BOOLEAN:
                numbers = numbers.cast(pa.int8())
            return NumberColumn(pa.chunked_array([numbers]), numbers.type == pa.float64())
        listed = [machine_value(value, kind) for value in self._values(sql)]
        if kind is Kind.STRING:
            return pa.chunked_array([pa.array(listed, pa.string())])
        if kind.type is Type.DECIMAL:
            assert kind.digits is not None
            return pa.chunked_array([pa.array(listed, pa.decimal128(*kind.digits))])
        is_float = kind.type is Type.FLOAT
        type_ = pa.float64() if is_float else pa.int64()
        try:
            return NumberColumn(pa.chunked_array([pa.array(listed, type_)]), is_float)
        except OverflowError as cause:
            raise OnlyByRow from cause

    def _values(self, sql: str) -> list[Any]:
        """Return the values that Python computes."""
        if sql not in self._listed:
            function = self._function(sql).function

            def value_of(event: Any) -> Any:
                try:
                    return function(event)
                except (CepError, ArithmeticError) as cause:
                    if self._fails:
                        raise OnlyByRow from cause
                    return None

            self._listed[sql] = [value_of(event) for event in lazily(self._table)]
        return self._listed[sql]

    def column(self, sql: str) -> pa.ChunkedArray:
        """Return the values of an expression, in the type that Spark gives them."""
        column = self.by_program(sql)
        if column is not None:
            return column
        try:
            return as_column(self._values(sql), self._function(sql).type, self._zone)
        except pa.ArrowException as cause:
            raise OnlyByRow from cause

    def partial(self, sql: str) -> tuple[pa.ChunkedArray, dict[int, Exception]]:
        """Return the values of an expression, and why it has none for some rows."""
        try:
            return self.column(sql), {}
        except (OnlyByRow, CepError, ArithmeticError):
            typed = self._function(sql)
            values, failed = list[Any](), dict[int, Exception]()
            for row, event in enumerate(lazily(self._table)):
                try:
                    values.append(typed.function(event))
                except (CepError, ArithmeticError) as cause:
                    failed[row] = cause
                    values.append(None)
            if not failed:
                raise
        return as_column(values, typed.type, self._zone), failed

    def by_program(self, sql: str) -> pa.ChunkedArray | None:
        """Return the values of an expression; None if no program can say it for all rows."""
        own = self._of(sql)
        column = own.own_column(sql)
        if column is not None:
            return column
        program = own.program(sql, is_condition=False)
        if program is None or program.kind is None or program.kind is Kind.STRING:
            return None
        of = self._function(sql).type
        type_ = arrow_type(of, self._zone)
        if of is None or type_ is None or of.kind is not program.kind:
            return None
        found = own.values(program)
        wanted = _DATA.get(program.kind) or (np.int64 if program.kind.type is Type.INT else None)
        data = np.asarray(found.data, wanted)
        return pa.chunked_array([as_array(Values(data, found.nulls)).cast(type_)])


_DATA = {Kind.BOOLEAN: bool, Kind.DATE: np.int32}
"""What represents values that Arrow casts to their type."""
