# SPDX-License-Identifier: Apache-2.0
"""A clause with Flink's meaning on a table: its pattern's matches, and measures of these."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.engines.flink.operator import PartialMatchLimit
from pyflinkcep.errors import CepError, NotSupportedError
from pyflinkcep.match_recognize.checks import check_time
from pyflinkcep.match_recognize.flink import FlinkClause, read_flink_clause
from pyflinkcep.match_recognize.interval import window_ms
from pyflinkcep.match_recognize.leaves import LEAF, Leaf
from pyflinkcep.match_recognize.names import Names
from pyflinkcep.match_recognize.tree import Clause
from pyflinkcep.matching.columns import Ints
from pyflinkcep.matching.leaf_columns import LeafColumn, LeafColumns
from pyflinkcep.matching.order import OrderColumns
from pyflinkcep.matching.pieces import integers
from pyflinkcep.matching.results import Found
from pyflinkcep.tables.column_match import ColumnMatch
from pyflinkcep.tables.found_rows import match_times
from pyflinkcep.tables.measured import all_parts, cause_of, measure_error, measured, type_of
from pyflinkcep.tables.row_sql import OnlyByRow, RowSql
from pyflinkcep.tables.typed_columns import clock_zone

__all__ = ["flink_output"]


def flink_output(
    table: pa.Table, clause: Clause, names: Names, limit: PartialMatchLimit | None
) -> tuple[pa.Table, int]:
    """
    Return the output of a clause, and how many partial matches were dropped.

    Raises
    ------
    CepError
        If Flink refuses the clause, or something in it needs Spark.
    """

    def column_type(name: str) -> tuple[bool, str]:
        type_ = table.schema.field(names.own_column(name)).type
        return pa.types.is_timestamp(type_) or pa.types.is_int64(type_), str(type_)

    check_time(clause, names, column_type, is_stream=False)
    within = window_ms(clause, names.source)
    read = read_flink_clause(clause, names, within, lambda sql: _is_decimal(table, sql))
    keys = [names.own_column(key.text) for key in clause.partition]
    order = [
        (names.own_column(one.name.text), one.descending, one.nulls_first)
        for one in clause.order[1:]
    ]
    time = names.own_column(clause.order[0].name.text)
    try:
        matched = ColumnMatch.analysed(
            read.pattern, table, time, keys or None, OrderColumns.of(order) if order else None
        )
    except OnlyByRow as raised:
        cause = cause_of(raised)
        raise names.source.error(
            cause.message if isinstance(cause, CepError) else str(cause),
            "start from a DataFrame of Spark, which computes it",
            *clause.pattern_span,
            NotSupportedError,
        ) from raised
    except CepError as refused:
        raise read.placed(refused) from refused
    found, _, dropped = matched.run(limit)
    return _Output(table, read, matched, found).table(keys), dropped


def _is_decimal(table: pa.Table, sql: str) -> bool:
    """Whether an expression over one row is a decimal."""
    try:
        return bool(pa.types.is_decimal(RowSql(table.slice(0, 1), [sql]).column(sql).type))
    except (OnlyByRow, CepError, pa.ArrowException):
        return False  # refused later, when its position is known


@attrs.frozen(eq=False)
class _Output:
    """The matches of a clause, whose handles are rows."""

    rows: pa.Table
    read: FlinkClause
    matched: ColumnMatch
    found: Found

    def table(self, keys: Sequence[str]) -> pa.Table:
        """Return the keys and measures of the matches."""
        read, found = self.read, self.found
        wanted = all_parts(read.measures) or {Leaf.of("count"): ""}
        events = _Matched(self.rows, found)
        columns, types = {}, {}
        for leaf, name in wanted.items():
            try:
                if leaf.argument is not None:
                    columns[leaf] = events.column(leaf.argument)
                types[leaf] = self._type(leaf, events)
            except (OnlyByRow, CepError) as cause:
                raise measure_error(read.names, name, read.measures[name])(cause) from cause
        leaves = [
            LeafColumn(
                leaf.function, leaf.variable, columns.get(leaf), leaf.offset, leaf.argument or ""
            )
            for leaf in wanted
        ]
        values: list[pa.Array] = [pa.array([], type_) for type_ in types.values()]
        if len(found):
            values = LeafColumns(leaves, True).of(found, events, self._times)
        named = {f"{LEAF}{number}": column for number, column in enumerate(values)}
        cast = [
            column.cast(type_) for column, type_ in zip(named.values(), types.values(), strict=True)
        ]
        taken = pa.table(cast, names=list(named))
        places = dict(zip(wanted, named, strict=True))
        first = integers(found.handles[found.firsts])
        shown = {key: self.rows.column(key).take(first) for key in keys}
        return pa.table(
            {
                **shown,
                **measured(taken, places, read.measures, read.names, clock_zone(self.rows.schema)),
            }
        )

    def _times(self) -> pa.Array:
        return match_times(self.found, self.matched.times)

    def _type(self, leaf: Leaf, events: _Matched) -> pa.DataType:
        argument = None if leaf.argument is None else events.type(leaf.argument)
        return type_of(leaf, argument, self.matched.times.type)


class _Matched:
    """The rows of matches, with what SQL computes from them."""

    def __init__(self, rows: pa.Table, found: Found) -> None:
        self._places = np.unique(found.handles)
        self._rows = rows.take(integers(self._places))
        self._sql = RowSql(self._rows)
        self._columns: dict[str, pa.ChunkedArray] = {}

    def column(self, sql: str) -> str:
        """Return the name of a column of values."""
        if sql not in self._columns:
            self._columns[sql] = self._sql.column(sql)
        return sql

    def type(self, sql: str) -> pa.DataType:
        """Return the type of values."""
        return self._columns[self.column(sql)].type

    def take(self, handles: Ints, names: Sequence[str]) -> pa.Table:
        """Return values of rows."""
        places = integers(np.searchsorted(self._places, handles))
        columns = {name: self._columns[name].take(places) for name in dict.fromkeys(names)}
        return pa.table(columns)
