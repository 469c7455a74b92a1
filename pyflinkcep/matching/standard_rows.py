# SPDX-License-Identifier: Apache-2.0
"""Rows matched with the standard's meaning, and their output in columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.engines.rows.matching import Matching, OutputRows, Partitions
from pyflinkcep.engines.rows.plan import Compiled, StandardPlan
from pyflinkcep.errors import CepError, InputError
from pyflinkcep.match_recognize.leaves import LABEL, Leaf, has_label, labelled
from pyflinkcep.matching.columns import (
    MATCHED,
    FieldArray,
    Ints,
    field_array,
    field_columns,
    table_of,
)
from pyflinkcep.matching.layout import naming_key
from pyflinkcep.matching.leaf_columns import LeafColumn, LeafColumns, Seen


@attrs.frozen(eq=False)
class StandardRows:
    """How a key's rows become output."""

    plan: StandardPlan  # The clause
    # The output: `shown`, then :data:`MATCHED` if there are unmatched rows, then the values.
    schema: pa.Schema
    shown: Sequence[str]  # The input's columns that are part of the output
    conditions: dict[str, str]  # The columns of the conditions' arguments
    # The columns of the arguments of measures, and of conditions without a program.
    measures: dict[str, str]
    time_column: str | None  # The time that WITHIN measures
    time_unit: int  # Units of that column per millisecond
    # For an argument that fails for some rows: the column that says which, and the error.
    failed: Mapping[str, tuple[str, CepError]] = attrs.field(factory=dict)

    def batches(self, rows: pa.Table, found: Iterable[OutputRows]) -> Iterator[pa.RecordBatch]:
        """Yield the output of matches found in rows."""
        for part in found:
            yield from self._output(rows, part).to_batches()

    def found(
        self,
        rows: pa.Table,
        ends: Ints,
        compiled: Compiled,
        places: Ints,
        key_of: Callable[[int], Any],
        watermark: int | None = None,
    ) -> Iterator[OutputRows]:
        """
        Match the rows of keys; yield matches with what is to be shown of them.

        The places of the search in the keys, rows of four numbers, are changed.
        """
        evaluated: dict[str, Sequence[Any]] = {}

        def argument(sql: str) -> Sequence[Any]:
            if sql not in evaluated:
                values = rows.column(self.measures[sql]).to_pylist()
                if sql in self.failed:
                    name, error = self.failed[sql]
                    failed = zip(values, rows.column(name).to_pylist(), strict=True)
                    values = [error if is_failed else value for value, is_failed in failed]
                evaluated[sql] = values
            return evaluated[sql]

        columns = _TableColumns(rows, self.conditions)
        partitions = Partitions(ends, columns, argument, self.times(rows), watermark)
        matching = Matching(self.plan, compiled, partitions)
        with naming_key(lambda: key_of(matching.number)):
            yield from matching.run(places)

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

    def _output(self, rows: pa.Table, found: OutputRows) -> pa.Table:
        matches = RowMatches(self.plan, found)
        columns: list[Any] = list(rows.select(list(self.shown)).take(matches.rows).columns)
        if MATCHED in self.schema.names[len(columns) : len(columns) + 1]:
            columns.append(matches.is_matched)
        names = self.plan.program.variables
        leaves = [leaf_column(leaf, self.measures.__getitem__, names) for leaf in self.plan.leaves]

        def take(numbers: Ints, names: Sequence[str]) -> pa.Table:
            return rows.select(names).take(pa.array(numbers))

        columns += LeafColumns(leaves, self.plan.ansi).of(matches, take)
        return table_of(columns, self.schema)


def leaf_column(
    leaf: Leaf, column: Callable[[str], str], variables: Sequence[str] = ()
) -> LeafColumn:
    """Return the column of a value, given that of an expression over an event."""
    argument, name, names = leaf.argument, None, list[str]()
    if argument is not None and has_label(argument):
        if argument != LABEL:
            names = [column(labelled(argument, variable)) for variable in variables]
    elif argument is not None:
        name = column(argument)
    return LeafColumn(
        leaf.function, leaf.variable, name, leaf.offset, argument or "", leaf.shift,
        leaf.is_inside, leaf.final, tuple(names),
    )  # fmt: skip


class RowMatches:
    """See :class:`~pyflinkcep.matching.leaf_columns.Matches`; handles are the numbers of rows."""

    def __init__(self, plan: StandardPlan, found: OutputRows) -> None:
        self.names = plan.program.variables
        self._members = plan.subsets
        self._found = found
        self._starts = found.starts
        self._sizes = found.sizes
        self._begins = np.r_[0, np.cumsum(self._sizes)]
        self._labels = found.labels.astype(np.int64)
        # The rows of the matches.
        self.handles: Ints = np.arange(len(self._labels)) + np.repeat(
            self._starts - self._begins[:-1], self._sizes
        )
        matches = found.matches
        self._matched = matches >= 0
        self._matches = np.maximum(matches, 0)
        self._seen = found.seen
        self._stages: dict[tuple[str | None, bool], Seen] = {}

    @property
    def rows(self) -> pa.Array:
        """The row that each row of output shows."""
        return pa.array(self._found.rows)

    @property
    def is_matched(self) -> pa.Array:
        """Whether each row of output is of a match; if not, all measures are NULL."""
        return pa.array(self._matched)

    def seen(self, leaf: LeafColumn) -> Seen:
        """See :class:`~pyflinkcep.matching.leaf_columns.Matches`."""
        what = leaf.stage, leaf.final
        if what not in self._stages:
            self._stages[what] = self._seen_of(*what)
        return self._stages[what]

    def _seen_of(self, variable: str | None, final: bool) -> Seen:
        """Return the rows of a variable, and which of them each row of output sees."""
        own = np.ones(len(self._labels), bool)
        if variable is not None:
            names = self._members.get(variable, (variable,))
            own = np.isin(self._labels, [self.names.index(name) for name in names])
        before = np.r_[0, np.cumsum(own)]
        begins, rows = before[self._begins], self._begins[self._matches]
        last = rows + self._seen
        if final:
            last = self._begins[self._matches + self._matched]
        handles, labels = self.handles[own], self._labels[own]
        return Seen(begins, handles, before[rows], before[last], labels)

    def moved(self, leaf: LeafColumn, handles: Ints, rows: Ints) -> tuple[Ints, Ints, Ints]:
        """See :class:`~pyflinkcep.matching.leaf_columns.Matches`."""
        handles, matches = handles + leaf.shift, self._matches[rows]
        at = handles - self._starts[matches]
        is_inside = (at >= 0) & (at < self._sizes[matches])
        there = is_inside
        if not leaf.is_inside:
            begins, stops = self._found.begins, self._found.stops
            there = (handles >= begins[matches]) & (handles < stops[matches])
        labels = np.full(len(rows), -1)
        labels[is_inside] = self._labels[(self._begins[matches] + at)[is_inside]]
        return handles[there], rows[there], labels[there]

    def of_match(self, function: str) -> pa.Array:
        """Return the number of the match of each row of output, of any for those without."""
        return pa.array(np.r_[self._found.numbers, 0][self._matches].astype(np.int64))


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
