# SPDX-License-Identifier: Apache-2.0
"""Tasks with the standard's meaning: sorted rows in, one key matched after another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
from pyspark.sql.types import StructType

from pyflinkcep.errors import CepRuntimeError, InputError
from pyflinkcep.match_recognize.standard.matcher import Place
from pyflinkcep.match_recognize.standard.output import OutputRows, is_picked
from pyflinkcep.match_recognize.standard.plan import StandardPlan
from pyflinkcep.match_recognize.standard.values import Condition
from pyflinkcep.spark.arrow.fields import field_columns
from pyflinkcep.spark.arrow.internals import arrow_schema
from pyflinkcep.spark.arrow.layout import KeyText, Layout

__all__ = ["StandardRows", "StandardTask"]


@attrs.frozen(eq=False)
class StandardRows:
    """
    How rows of a key become output.

    Attributes
    ----------
    plan : StandardPlan
        The clause.
    schema : StructType
        The output: `shown`, then ``matched`` if there are unmatched rows, then the values.
    shown : sequence of str
        The input's columns that are part of the output.
    conditions : dict of str to str
        The columns of the conditions' arguments.
    measures : dict of str to str
        The columns of the measures' arguments.
    time_column : str or None
        The time that WITHIN is about.
    time_unit : int
        Units of that column in a millisecond.
    """

    plan: StandardPlan
    schema: StructType
    shown: Sequence[str]
    conditions: dict[str, str]
    measures: dict[str, str]
    time_column: str | None
    time_unit: int

    def matched(
        self,
        rows: pa.Table,
        conditions: dict[str, Condition],
        place: Place | None = None,
        watermark: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """
        Match the rows of a key; yield its output.

        Parameters
        ----------
        rows : pyarrow.Table
            The rows in their order.
        conditions : dict of str to Condition
            What ``plan.compiled()`` gave.
        place : Place, optional
            Where to begin; it is moved on.
        watermark : int, optional, epoch milliseconds
            The time after which later rows come; none come if not given.
        """
        fields = field_columns(rows.select(list(dict.fromkeys(self.conditions.values()))))
        columns = {sql: fields[name] for sql, name in self.conditions.items()}
        measured: dict[str, list[Any]] = {}

        def argument(sql: str) -> Sequence[Any]:
            if sql not in measured:
                measured[sql] = rows.column(self.measures[sql]).to_pylist()
            return measured[sql]

        times = self.times(rows)
        found = self.plan.match(
            conditions, rows.num_rows, columns, argument, times, place, watermark
        )
        for output in found:
            if output.rows:
                yield from self._output(rows, output).to_batches()

    def times(self, rows: pa.Table) -> Sequence[int] | None:
        """Return the times that WITHIN is about, epoch milliseconds; None without it."""
        if self.time_column is None:
            return None
        column = rows.column(self.time_column)
        if column.null_count:
            raise InputError(
                f"null in {self.time_column!r}, the time that WITHIN is about",
                "filter such rows out, or give them a time",
            )
        times = column.cast(pa.int64()).to_numpy()
        return np.floor_divide(times, self.time_unit).tolist()  # type: ignore[no-any-return]

    def _output(self, rows: pa.Table, output: OutputRows) -> pa.Table:
        schema = arrow_schema(self.schema)
        shown = rows.select(list(self.shown)).take(pa.array(output.rows, pa.int64()))
        columns: list[Any] = list(shown.columns)
        if "matched" in self.schema.names[len(columns) : len(columns) + 1]:
            columns.append(pa.array(output.matched))
        fields = list(schema)[len(columns) :]
        for leaf, values, field in zip(self.plan.leaves, output.values, fields, strict=True):
            if is_picked(leaf):
                places = np.asarray(values, np.int64)
                indices = pa.array(np.maximum(places, 0), mask=places < 0)
                columns.append(rows.column(self.measures[leaf.argument or ""]).take(indices))
            else:
                columns.append(pa.array(values, field.type))
        cast = [column.cast(field.type) for column, field in zip(columns, schema, strict=True)]
        return pa.table(cast, schema=schema)


@attrs.frozen(eq=False)
class StandardTask:
    """
    The work on one partition of a bounded job.

    Attributes
    ----------
    rows : StandardRows
        How rows of a key become output.
    layout : Layout
        Where the key is.
    """

    rows: StandardRows
    layout: Layout

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Match the rows of a partition, which are sorted by key; yield its output."""
        conditions = self.rows.plan.compiled()
        for rows in self._keys(batches):
            key = KeyText(self.layout, rows, 0) if self.layout.key_columns else None
            try:
                yield from self.rows.matched(rows, conditions)
            except CepRuntimeError as error:
                placed = error.at_key(key).in_pattern(self.layout.pattern)
                raise placed from error.__cause__

    def _keys(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Yield the rows of one key after another."""
        held: list[pa.Table] = []
        for batch in batches:
            table = pa.Table.from_batches([batch])
            if not table.num_rows:
                continue
            if held and self._differ(held[-1], table):
                yield pa.concat_tables(held)
                held = []
            start = 0
            for end in self.layout.key_changes(table).tolist():
                yield pa.concat_tables([*held, table.slice(start, end - start)])
                held, start = [], end
            held.append(table.slice(start))
        if held:
            yield pa.concat_tables(held)

    def _differ(self, before: pa.Table, after: pa.Table) -> bool:
        """Whether another key begins with a table."""
        both = pa.concat_tables([before.slice(before.num_rows - 1), after.slice(0, 1)])
        return len(self.layout.key_changes(both)) > 0
