# SPDX-License-Identifier: Apache-2.0
"""Rows matched with the standard's meaning, and their output in columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyflinkcep.engines.rows.matching import Matching, OutputRows, Partitions, Place, is_picked
from pyflinkcep.engines.rows.plan import Compiled, StandardPlan
from pyflinkcep.engines.rows.values import FieldArray
from pyflinkcep.errors import CepError, CepRuntimeError, InputError
from pyflinkcep.expressions.tokens import LEAST, MOST, wrapped
from pyflinkcep.matching.columns import MATCHED, Ints, field_array, field_columns


@attrs.frozen(eq=False)
class StandardRows:
    """How a key's rows become output."""

    plan: StandardPlan  # The clause
    # The output: `shown`, then :data:`MATCHED` if there are unmatched rows, then the values.
    schema: pa.Schema
    shown: Sequence[str]  # The input's columns that are part of the output
    conditions: dict[str, str]  # The columns of the conditions' arguments
    measures: dict[str, str]  # The columns of the measures' arguments
    time_column: str | None  # The time that WITHIN measures
    time_unit: int  # Units of that column per millisecond
    # For a measure's argument that fails for some rows: the column that says which, and the error.
    failed: Mapping[str, tuple[str, CepError]] = attrs.field(factory=dict)

    def matched(
        self,
        rows: pa.Table,
        ends: Ints,
        compiled: Compiled,
        places: Sequence[Place],
        key_of: Callable[[int], Any],
        watermark: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Match the rows of keys; yield their output."""
        measured: dict[str, Sequence[Any]] = {}

        def argument(sql: str) -> Sequence[Any]:
            if sql not in measured:
                values = rows.column(self.measures[sql]).to_pylist()
                if sql in self.failed:
                    name, error = self.failed[sql]
                    values = _Partial(values, rows.column(name).to_pylist(), error)
                measured[sql] = values
            return measured[sql]

        columns = _TableColumns(rows, self.conditions)
        partitions = Partitions(ends, columns, argument, self.times(rows), watermark)
        matching = Matching(self.plan, compiled, partitions)
        for number, place in enumerate(places):
            try:
                for output in matching.partition(number, place):
                    yield from self._output(rows, output).to_batches()
            except CepRuntimeError as error:
                raise error.at_key(key_of(number)) from error.__cause__
        rest = matching.rest()
        if rest.rows:
            yield from self._output(rows, rest).to_batches()

    def times(self, rows: pa.Table) -> Ints | None:
        """Return the times that WITHIN measures, epoch milliseconds; None without it."""
        if self.time_column is None:
            return None
        column = rows.column(self.time_column)
        if column.null_count:
            raise InputError(
                f"null in {self.time_column!r}, the time that WITHIN measures",
                "filter such rows out, or set their time",
            )
        times: Ints = np.floor_divide(column.cast(pa.int64()).to_numpy(), self.time_unit)
        return times

    def _output(self, rows: pa.Table, output: OutputRows) -> pa.Table:
        schema = self.schema
        shown = rows.select(list(self.shown)).take(pa.array(output.rows, pa.int64()))
        columns: list[Any] = list(shown.columns)
        if MATCHED in self.schema.names[len(columns) : len(columns) + 1]:
            columns.append(pa.array(output.matched))
        fields = list(schema)[len(columns) :]
        for leaf, values, field in zip(self.plan.leaves, output.values, fields, strict=True):
            if is_picked(leaf):
                places = np.asarray(values, np.int64)
                indices = pa.array(np.maximum(places, 0), mask=places < 0)
                argument = leaf.argument or ""
                if argument in self.failed:
                    name, error = self.failed[argument]
                    if pc.any(rows.column(name).take(indices)).as_py():
                        raise error
                columns.append(rows.column(self.measures[argument]).take(indices))
            else:
                if leaf.function == "sum" and pa.types.is_int64(field.type):
                    values = [self._in_range(value, leaf.argument) for value in values]
                columns.append(pa.array(values, field.type))
        cast = [column.cast(field.type) for column, field in zip(columns, schema, strict=True)]
        return pa.table(cast, schema=schema)

    def _in_range(self, total: int | None, argument: str | None) -> int | None:
        """Return a sum if it fits into 64 bits."""
        if total is None or LEAST <= total <= MOST:
            return total
        if self.plan.ansi:
            raise CepRuntimeError(
                f"SUM of {argument} overflows bigint",
                "sum a decimal or a double: SUM(cast(A.x AS double))",
            )
        return wrapped(total)


class _Partial(Sequence[Any]):
    """Values of rows, some of which are errors."""

    def __init__(self, values: list[Any], failed: list[bool], error: CepError) -> None:
        self._values = values
        self._failed = failed
        self._error = error

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, row: Any) -> Any:
        if self._failed[row]:
            raise self._error
        return self._values[row]


class _TableColumns:
    """The columns of a table, by the SQL they were computed from."""

    def __init__(self, table: pa.Table, names: dict[str, str]) -> None:
        self._table = table
        self._names = names
        self._plain: dict[str, list[Any]] = {}

    def plain(self, argument: str) -> Sequence[Any]:
        """Return the values of an argument."""
        name = self._names[argument]
        if name not in self._plain:
            self._plain |= field_columns(self._table.select([name]))
        return self._plain[name]

    def array(self, argument: str) -> FieldArray:
        """Return the same as an array."""
        return field_array(self._table.column(self._names[argument]))
