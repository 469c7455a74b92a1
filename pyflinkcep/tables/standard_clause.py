# SPDX-License-Identifier: Apache-2.0
"""A clause with the standard's meaning on a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyflinkcep.engines.rows.defines import Defines, error_of
from pyflinkcep.engines.rows.plan import StandardClause, StandardPlan, read_clause
from pyflinkcep.engines.rows.successive import Place
from pyflinkcep.errors import CepError, CepRuntimeError, InputError, NotSupportedError
from pyflinkcep.expressions.program import Kind
from pyflinkcep.match_recognize.expressions import Expression
from pyflinkcep.match_recognize.interval import standard_window_ms
from pyflinkcep.match_recognize.leaves import LEAF, Leaf
from pyflinkcep.match_recognize.names import Names
from pyflinkcep.match_recognize.parser import COMPUTE_FIRST
from pyflinkcep.match_recognize.scalar import condition_leaves
from pyflinkcep.match_recognize.tokens import Source
from pyflinkcep.match_recognize.tree import Clause, Rows
from pyflinkcep.matching.columns import MATCHED, VALUE, Ints
from pyflinkcep.matching.order import OrderColumns
from pyflinkcep.matching.ordering import order_by_group_and_time
from pyflinkcep.matching.pieces import integers, plain_numbers
from pyflinkcep.matching.standard_rows import StandardRows
from pyflinkcep.tables.measured import all_parts, cause_of, measure_error, measured, type_of
from pyflinkcep.tables.order import PER_MS, Keys
from pyflinkcep.tables.row_sql import OnlyByRow, RowSql
from pyflinkcep.tables.typed_columns import NumberColumn, clock_zone
from pyflinkcep.tables.values import warn_of_unit

__all__ = ["standard_output", "with_computed"]

_PORTION = 1 << 20
_ARGUMENT = "__cep_argument"
_TIME = "__cep_time"


def standard_output(table: pa.Table, clause: Clause, names: Names) -> pa.Table:
    """
    Return the output of a clause.

    Raises
    ------
    CepError
        If the clause is meaningless, or something in it needs Spark.
    """
    read = read_clause(clause, names)
    within = standard_window_ms(clause, names.source)
    time = _time(table, clause, names) if within else None
    sql = RowSql(table)
    defines = Defines.of(read, names, _Types(sql, read, names), None, True)
    read = defines.read
    first, rest = _shown(clause, names)
    values = all_parts(read.measures)
    if not first and not rest and not values:
        values = {Leaf.of("count"): ""}  # so that the matches are counted
    plan = read.plan(defines.kinds, True, within, tuple(values), defines.evaluated).with_casts()
    columns = _Columns(table, sql, read, plan, values)
    arguments = columns.of_measures(defines.evaluated_arguments())
    rows = StandardRows(
        plan,
        columns.schema([*first, *rest]),
        [*first, *rest],
        columns.of_conditions(),
        arguments,
        _TIME if time is not None else None,
        1 if time is None else time[1],
    )
    if time is not None:
        columns.added[_TIME] = time[0]
    taken = _matched(rows, columns.table([*first, *rest]), _order(table, clause, names))
    of_values = {leaf: f"{LEAF}{number}" for number, leaf in enumerate(values)}
    is_matched = taken.column(MATCHED) if clause.rows is Rows.WITH_UNMATCHED else None
    made = measured(taken, of_values, read.measures, names, clock_zone(table.schema), is_matched)
    shown = {name: taken.column(name) for name in first}
    output = {**shown, **made, **{name: taken.column(name) for name in rest}}
    return pa.table(output) if output else taken.select([])  # which keeps the number of rows


def with_computed(table: pa.Table, clause: Clause, source: Source) -> pa.Table:
    """
    Return a table with the expressions of PARTITION BY and ORDER BY as columns.

    Raises
    ------
    CepError
        If one cannot be computed without Spark.
    """
    for one in clause.computed():
        try:
            table = table.append_column(one.text, RowSql(table, [one.text]).column(one.text))
        except (OnlyByRow, CepError, pa.ArrowException) as raised:
            cause = cause_of(raised)
            hint = (cause.hint if isinstance(cause, CepError) else None) or COMPUTE_FIRST
            message = cause.message if isinstance(cause, CepError) else str(cause)
            raise source.error(message, hint, *one.span, InputError) from raised
    return table


def _shown(clause: Clause, names: Names) -> tuple[list[str], list[str]]:
    """Return the input's columns in the output, before and after the measures."""
    first = [names.own_column(key.text) for key in clause.partition]
    if clause.rows is Rows.ONE:
        return first, []
    first += [names.own_column(column.name.text) for column in clause.order]
    first = list(dict.fromkeys(first))
    return first, [name for name in names.columns if name not in first]


def _time(table: pa.Table, clause: Clause, names: Names) -> tuple[pa.ChunkedArray, int]:
    """Return the time that WITHIN measures, and its units per millisecond."""
    hint = "write ORDER BY ts first, a timestamp or epoch milliseconds as bigint, ascending"
    if not clause.order or clause.order[0].descending:
        raise names.source.error("WITHIN without a time", hint, *clause.pattern_span, InputError)
    column = table.column(names.own_column(clause.order[0].name.text))
    type_ = column.type
    if pa.types.is_int64(type_):
        found = pc.min_max(column).as_py()
        if found["min"] is not None:
            warn_of_unit(found["min"], found["max"], f"ORDER BY {clause.order[0].name.text}")
        return column, 1
    if pa.types.is_timestamp(type_):
        own = column.cast(pa.timestamp("ms", type_.tz)) if type_.unit == "s" else column
        return own, PER_MS[own.type.unit]
    raise names.source.error(
        f"WITHIN over {clause.order[0].name.text}, which is {type_}",
        hint,
        *clause.order[0].name.span,
        InputError,
    )


# --- columns


@attrs.frozen(eq=False)
class _Types:
    """See :class:`~pyflinkcep.engines.rows.defines.RowTypes`."""

    sql: RowSql
    read: StandardClause
    names: Names

    def kinds(self, read: StandardClause) -> dict[str, Kind]:
        """Return the types of the conditions' arguments."""
        kinds = {}
        for variable, expression in read.conditions.items():
            for sql in read.arguments_of(condition_leaves(expression)):
                try:
                    kind = self.sql.kind(sql)
                except (OnlyByRow, CepError) as raised:
                    raise _condition_error(self.names, variable, expression, raised) from raised
                if kind is not None:
                    kinds[sql] = kind
        return kinds

    def check(self, variable: str, expression: Expression) -> None:
        """Refuse a condition that is not one, as far as its type is known."""
        one = attrs.evolve(self.read, conditions={variable: expression})
        try:
            kind = one.plan(self.kinds(one), True).kind_of(expression)
        except CepError:
            return  # which is said when it is evaluated
        if kind not in (Kind.BOOLEAN, None):
            raise error_of(self.names, variable, expression)(
                f"not a condition: expected boolean, got {kind.value}", "compare it with a value"
            )


def _condition_error(
    names: Names, variable: str, expression: Expression, raised: Exception
) -> CepError:
    """Return an error about a condition, for a reason in SQL over a row."""
    cause = cause_of(raised)
    message = cause.message if isinstance(cause, CepError) else str(cause)
    hint = cause.hint if isinstance(cause, CepError) else None
    kind = NotSupportedError if isinstance(cause, NotSupportedError) else InputError
    error = error_of(names, variable, expression)
    return error(message, hint or "use another expression", kind)


class _Columns:
    """The columns that are computed from rows before matching."""

    def __init__(
        self,
        table: pa.Table,
        sql: RowSql,
        read: StandardClause,
        plan: StandardPlan,
        values: Mapping[Leaf, str],
    ) -> None:
        self._table = table
        self._sql = sql
        self._read = read
        self._plan = plan
        self._values = values
        self.added: dict[str, pa.ChunkedArray] = {}
        self._names: dict[str, str] = {}

    def of_conditions(self) -> dict[str, str]:
        """Return the columns of the conditions' arguments."""
        found = {}
        for number, (sql, kind) in enumerate(self._plan.kinds.items()):
            found[sql] = f"{VALUE}{number}"
            try:
                self.added[found[sql]] = self._machine(sql, kind)
            except (OnlyByRow, CepError) as cause:
                raise self._error(sql, cause) from cause
        return found

    def _machine(self, sql: str, kind: Kind) -> pa.ChunkedArray:
        field = self._sql.field(sql, kind)
        if not isinstance(field, NumberColumn):
            return field.cast(pa.string())
        values = field.values(0, self._table.num_rows)
        mask = None if values.nulls is False else np.array(values.nulls)
        return pa.chunked_array([pa.array(np.array(values.data), mask=mask)])

    def of_measures(self, others: list[str]) -> dict[str, str]:
        """Return the columns of the arguments of measures, and of further SQL."""
        for leaf, name in self._values.items():
            try:
                for sql in self._read.arguments_of([leaf]):
                    self._argument(sql)
            except (OnlyByRow, CepError) as cause:
                error = measure_error(self._read.names, name, self._read.measures[name])
                raise error(cause) from cause
        for sql in others:
            try:
                self._argument(sql)
            except (OnlyByRow, CepError) as cause:
                raise self._error(sql, cause) from cause
        return self._names

    def _error(self, sql: str, raised: Exception) -> CepError:
        """Return an error about the condition that needs a value of rows."""
        read = self._read
        variable, expression = next(
            (variable, expression)
            for variable, expression in read.conditions.items()
            if sql in read.arguments_of(self._leaves(expression))
        )
        return _condition_error(read.names, variable, expression, raised)

    def _leaves(self, expression: Expression) -> list[Leaf]:
        return [*expression.leaves, *condition_leaves(expression)]

    def _argument(self, sql: str) -> str:
        if sql not in self._names:
            name = f"{_ARGUMENT}{len(self._names)}"
            self.added[name] = self._sql.column(sql)
            self._names[sql] = name
        return self._names[sql]

    def schema(self, shown: list[str]) -> pa.Schema:
        """Return the schema of what is taken from matches."""
        fields = [self._table.schema.field(name) for name in shown]
        if self._plan.rows is Rows.WITH_UNMATCHED:
            fields.append(pa.field(MATCHED, pa.bool_()))
        for number, (leaf, name) in enumerate(self._values.items()):
            asked = leaf.arguments_for(self._read.names.variables)
            type_ = self.added[self._names[asked[0]]].type if asked else None
            try:
                fields.append(pa.field(f"{LEAF}{number}", type_of(leaf, type_, None)))
            except CepError as cause:
                error = measure_error(self._read.names, name, self._read.measures[name])
                raise error(cause) from cause
        return pa.schema([field.with_nullable(True) for field in fields])

    def table(self, shown: list[str]) -> pa.Table:
        """Return the rows with the columns that matching and output need."""
        own = {name: self._table.column(name) for name in shown}
        return pa.table({**own, **self.added})


# --- the order


@attrs.frozen(eq=False)
class _Order:
    """
    The order of rows.

    Attributes
    ----------
    rows : array of int64
        The rows in order, the key of the first row first.
    ends : array of int64
        Where the rows of each key end.
    key_of : callable
        Returns the key of a row.
    """

    rows: Ints
    ends: Ints
    key_of: Callable[[int], Any]


def _order(table: pa.Table, clause: Clause, names: Names) -> _Order:
    own = [names.own_column(key.text) for key in clause.partition]
    keys = Keys.of(table, own or None)
    size = table.num_rows
    codes: Ints = np.zeros(size, np.int64) if keys.codes is None else keys.codes
    by = [
        (names.own_column(one.name.text), one.descending, one.nulls_first) for one in clause.order
    ]
    time = _plain_time(table, by)
    if time is not None:
        rows = order_by_group_and_time(codes, time)
    else:
        rows = OrderColumns.of(by).ranked(codes.astype(np.int64), table)
    ends: Ints = np.cumsum(np.bincount(codes)) if size else np.zeros(0, np.int64)
    return _Order(rows, ends, keys.value_of)


def _plain_time(table: pa.Table, by: Sequence[tuple[str, bool, bool | None]]) -> Ints | None:
    """Return whole numbers by which rows are ordered; None if these do not say the order."""
    if not by:
        return np.arange(table.num_rows)
    column = table.column(by[0][0])
    is_whole = pa.types.is_timestamp(column.type) or pa.types.is_signed_integer(column.type)
    if len(by) > 1 or by[0][1] or column.null_count or not is_whole:
        return None
    times: Ints = plain_numbers(column.cast(pa.int64()))
    return times


def _matched(rows: StandardRows, table: pa.Table, order: _Order) -> pa.Table:
    """Return what is taken from matches."""
    compiled = rows.plan.compiled()
    batches: list[pa.RecordBatch] = []
    for begin, ends in _portions(order.ends):
        taken = order.rows[begin : int(ends[-1])]
        own = table.take(integers(taken))

        def key_of(number: int, taken: Ints, ends: Ints) -> Any:
            return order.key_of(int(taken[ends[number] - 1]))

        own_ends = ends - begin
        keys = partial(key_of, taken=taken, ends=own_ends)
        try:
            batches += rows.matched(own, own_ends, compiled, [Place() for _ in ends], keys)
        except CepRuntimeError as error:
            raise error.in_pattern("MATCH_RECOGNIZE") from error.__cause__
    return pa.Table.from_batches(batches, schema=rows.schema)


def _portions(ends: Ints) -> Iterator[tuple[int, Ints]]:
    """Yield where portions of whole keys begin, and where the keys in them end."""
    begin = first = 0
    while first < len(ends):
        last = max(int(np.searchsorted(ends, begin + _PORTION, "right")), first + 1)
        yield begin, ends[first:last]
        begin, first = int(ends[last - 1]), last
