# SPDX-License-Identifier: Apache-2.0
"""SQL about one row of a table: for all rows at once if a program can say it, or row by row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from pyflinkcep.errors import CepError
from pyflinkcep.expressions.evaluator import event_function
from pyflinkcep.expressions.event_arrays import EventTree, Program
from pyflinkcep.expressions.local_match import kind_of_values, machine_value
from pyflinkcep.expressions.program import Kind
from pyflinkcep.expressions.tree import Column, Literal, Operation, Tree
from pyflinkcep.tables.order import lazily
from pyflinkcep.tables.sql_columns import SqlColumns
from pyflinkcep.tables.stored import FieldSource
from pyflinkcep.tables.typed_columns import NumberColumn

__all__ = ["OnlyByRow", "RowSql", "listed"]

_TYPES = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.BIGINT: pa.int64(),
    Kind.DOUBLE: pa.float64(),
    Kind.TIMESTAMP: pa.timestamp("us", "UTC"),
    Kind.TIMESTAMP_NTZ: pa.timestamp("us"),
    Kind.DATE: pa.date32(),
    Kind.INTERVAL: pa.duration("us"),
}
_OF_OPERANDS = ("+", "-", "*", "%", "abs", "coalesce", "least", "greatest")
"""Operations whose whole numbers have the widest type of their operands."""


def listed(values: Iterable[Any]) -> pa.ChunkedArray:
    """Return values of Python as a column."""
    return pa.chunked_array([pa.array(list(values), from_pandas=False)])


class OnlyByRow(Exception):
    """Something can only be computed event by event, or by Spark."""


class RowSql:
    """
    SQL about one row of a table.

    Parameters
    ----------
    table : pyarrow.Table
        The rows.
    texts : iterable of str
        Expressions that will be asked for.

    Raises
    ------
    ConditionError
        If one names a column that there is not.
    """

    def __init__(self, table: pa.Table, texts: Iterable[str] = ()) -> None:
        self._table = table
        known = list(texts)
        columns = SqlColumns(table, known)
        self._columns = dict.fromkeys(known, columns)
        self._listed: dict[str, list[Any]] = {}

    def _of(self, sql: str) -> SqlColumns:
        if sql not in self._columns:
            self._columns[sql] = SqlColumns(self._table, [sql])
        return self._columns[sql]

    def kind(self, sql: str) -> Kind | None:
        """Return the type of a part; None if it is always NULL."""
        column = self._of(sql).plain_kind(sql)
        if column is not None:
            return column
        program = self._of(sql).program(sql, is_condition=False)
        if program is not None and program.kind is not Kind.STRING:
            return program.kind
        return kind_of_values(sql, self._values(sql))

    def field(self, sql: str, kind: Kind) -> FieldSource:
        """Return the values of a part."""
        column = self._of(sql).plain(sql, kind)
        if column is not None:
            return column
        program = self._of(sql).program(sql, is_condition=False)
        if program is not None and program.kind is kind and kind is not Kind.STRING:
            values = self._of(sql).values(program)
            mask = None if values.nulls is False else np.array(values.nulls)
            data = np.array(values.data, np.int8 if kind is Kind.BOOLEAN else None)
            numbers = pa.array(data, mask=mask)
            return NumberColumn(pa.chunked_array([numbers]), numbers.type == pa.float64())
        listed = [machine_value(value, kind) for value in self._values(sql)]
        if kind is Kind.STRING:
            return pa.chunked_array([pa.array(listed, pa.string())])
        is_float = kind in (Kind.DOUBLE, Kind.DECIMAL, Kind.WIDE_DECIMAL)
        type_ = pa.float64() if is_float else pa.int64()
        try:
            return NumberColumn(pa.chunked_array([pa.array(listed, type_)]), is_float)
        except OverflowError as cause:
            raise OnlyByRow from cause

    def _values(self, sql: str) -> list[Any]:
        """Return the values that Python computes."""
        if sql not in self._listed:
            try:
                function = event_function(sql)
                self._listed[sql] = [function(event) for event in lazily(self._table)]
            except (CepError, ArithmeticError) as cause:
                raise OnlyByRow from cause
        return self._listed[sql]

    def column(self, sql: str) -> pa.ChunkedArray:
        """
        Return the values of an expression, in the type that Spark gives them.

        Raises
        ------
        OnlyByRow
            If only Spark can evaluate it, or it fails; the cause says why.
        """
        column = self.by_program(sql)
        return listed(self._values(sql)) if column is None else column

    def by_program(self, sql: str) -> pa.ChunkedArray | None:
        """Return the values of an expression; None if no program can say it for all rows."""
        own = self._of(sql)
        column = own.own_column(sql)
        if column is not None:
            return column
        program = own.program(sql, is_condition=False)
        if program is None or program.kind not in _TYPES:
            return None
        return pa.chunked_array([self._computed(sql, program)])

    def _computed(self, sql: str, program: Program) -> pa.Array:
        values = self._of(sql).values(program)
        kind = program.kind
        assert kind is not None
        mask = None if values.nulls is False else np.array(values.nulls)
        type_ = _TYPES[kind]
        data = np.array(values.data)
        if kind is Kind.BOOLEAN:
            return pa.array(data.astype(bool), type_, mask=mask)
        if kind is Kind.DATE:
            return pa.array(data.astype(np.int32), mask=mask).cast(type_)
        numbers = pa.array(data.astype(np.float64 if kind is Kind.DOUBLE else np.int64), mask=mask)
        if kind is Kind.BIGINT:
            tree = EventTree.of(sql)
            assert tree is not None
            narrow = self._whole(tree.tree)
            return numbers.cast(narrow) if narrow is not None else numbers
        return numbers if kind is Kind.DOUBLE else numbers.cast(type_)

    def _whole(self, part: Tree) -> pa.DataType | None:
        """Return the type of whole numbers; None for 64 bits."""
        if isinstance(part, Column):
            names = {name.casefold(): name for name in self._table.column_names}
            type_ = self._table.schema.field(names[str(part.attribute).casefold()]).type
            return type_ if pa.types.is_signed_integer(type_) else None
        if isinstance(part, Literal):
            is_short = isinstance(part.value, int) and -(2**31) <= part.value < 2**31
            return pa.int32() if is_short and not part.text.upper().endswith("L") else None
        if not isinstance(part, Operation) or part.operator not in _OF_OPERANDS:
            return None
        types = [self._whole(operand) for operand in part.operands]
        known = [type_ for type_ in types if type_ is not None]
        return max(known, key=lambda type_: type_.bit_width) if len(known) == len(types) else None
