# SPDX-License-Identifier: Apache-2.0
"""A clause on a table, in both dialects; and on files that do not fit memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from itertools import chain, pairwise
from typing import Any, TypeVar

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyflinkcep.engines.flink.operator import PartialMatchLimit
from pyflinkcep.engines.rows.matching import PLACE, OutputRows
from pyflinkcep.engines.rows.plan import Compiled, Defines, StandardClause, error_of, read_clause
from pyflinkcep.engines.rows.values import fold_function
from pyflinkcep.errors import CepError, CepRuntimeError, InputError, NotSupportedError
from pyflinkcep.expressions.evaluator import RowTypes, part_value
from pyflinkcep.expressions.numbers import Digits, averaged_sum, computed, summed
from pyflinkcep.expressions.program import Kind, Type
from pyflinkcep.expressions.sql_types import BIGINT
from pyflinkcep.expressions.sql_values import zone_of
from pyflinkcep.match_recognize.checks import check_time, within_time
from pyflinkcep.match_recognize.expressions import Expression, condition_leaves
from pyflinkcep.match_recognize.flink import FlinkClause, read_flink_clause
from pyflinkcep.match_recognize.leaves import LEAF, NUMBER, Leaf, parts_of
from pyflinkcep.match_recognize.names import Names
from pyflinkcep.match_recognize.parser import COMPUTE_FIRST, standard_window_ms, window_ms
from pyflinkcep.match_recognize.tokens import Source
from pyflinkcep.match_recognize.tree import Clause, Rows
from pyflinkcep.matching.columns import VALUE, Ints, integers, plain_numbers, quoted
from pyflinkcep.matching.leaf_columns import FoundMatches, LeafColumn, LeafColumns, Matches
from pyflinkcep.matching.order import OrderColumns, order_by
from pyflinkcep.matching.results import Found
from pyflinkcep.matching.spill import SpillFile
from pyflinkcep.matching.standard_rows import RowMatches, StandardRows, leaf_column
from pyflinkcep.matching.threads import cuts, results
from pyflinkcep.tables.column_match import ColumnMatch
from pyflinkcep.tables.found_rows import OutputWriter, Results, Run, match_times
from pyflinkcep.tables.matches import OutputTable
from pyflinkcep.tables.order import PER_MS, Keys, Times
from pyflinkcep.tables.row_sql import OnlyByRow, RowSql
from pyflinkcep.tables.spilled_match import SpilledMatch
from pyflinkcep.tables.spilling import Spilling
from pyflinkcep.tables.typed_columns import NumberColumn, as_column, clock_zone, sql_type
from pyflinkcep.tables.values import warn_of_unit

_MATCH_NUMBER = Leaf.of("match_number")
_T = TypeVar("_T")


def _parts(leaf: Leaf) -> tuple[Leaf, ...]:
    """Return what is taken from the match for a leaf: an array for each field of a fold."""
    if leaf.fold is None:
        return parts_of(leaf)
    fields = leaf.fold.fields or ("0",)
    arrays = [Leaf.of("array_agg", leaf.variable, field, final=leaf.final) for field in fields]
    return (*arrays, _MATCH_NUMBER) if leaf.has_number else tuple(arrays)


def type_of(leaf: Leaf, argument: pa.DataType | None, time: pa.DataType | None) -> pa.DataType:
    """Return the type of a value that is taken from a match, as Spark gives it."""
    if leaf.function == "rowtime":
        return time
    if leaf.function in ("count", "match_number"):
        return pa.int64()
    given = pa.string() if argument is None else argument
    if leaf.function == "array_agg":
        return pa.list_(given)
    if leaf.function in ("min", "max") and pa.types.is_nested(given):
        raise InputError(
            f"{leaf.function.upper()} of {leaf.argument}, which is {given}",
            "use a field that is a number, text or time",
        )
    if leaf.function not in ("sum", "total") or pa.types.is_null(given):
        return given
    if pa.types.is_decimal(given):
        return pa.decimal128(*summed(Digits(given.precision, given.scale)))
    if not pa.types.is_integer(given) and not pa.types.is_floating(given):
        function = "SUM" if leaf.function == "sum" else "AVG"
        raise InputError(f"{function} of {leaf.argument}, which is {given}", "sum numbers")
    is_whole = leaf.function == "sum" and pa.types.is_integer(given)
    return pa.int64() if is_whole else pa.float64()


def measured(
    taken: pa.Table,
    values: Mapping[Leaf, str],
    measures: Mapping[str, Expression],
    names: Names,
    zone: str,
    is_matched: pa.ChunkedArray | None = None,
) -> dict[str, pa.ChunkedArray]:
    """Compute the measures from what was taken from matches."""
    columns = {}
    for name, expression in measures.items():
        try:
            column = _value(expression, _values(expression, taken, values, zone), zone)
        except (OnlyByRow, CepError, ArithmeticError, pa.ArrowException) as cause:
            raise measure_error(names, name, expression)(cause) from cause
        if is_matched is not None:
            column = pc.if_else(is_matched, column, pa.scalar(None, column.type))
        columns[name] = column
    return columns


def measure_error(
    names: Names, name: str, expression: Expression
) -> Callable[[Exception], CepError]:
    """Return what makes an error about a measure of another error."""

    def error(raised: Exception) -> CepError:
        message, hint, kind = _reason(raised, "compute it after matching")
        return names.error(expression.span, f"measure {name}: {message}", hint, kind)

    return error


def _reason(raised: Exception, usual: str) -> tuple[str, str, type[CepError]]:
    """Return why something cannot be computed, what to write instead, and the kind of the error."""
    cause = cause_of(raised)
    kind = type(cause) if isinstance(cause, NotSupportedError) else InputError
    if isinstance(cause, CepError):
        return cause.message, cause.hint or usual, kind
    return str(cause), usual, kind


def cause_of(raised: Exception) -> BaseException:
    """Return why something can only be computed by Spark."""
    is_wrapped = isinstance(raised, OnlyByRow) and raised.__cause__ is not None
    return raised.__cause__ or raised if is_wrapped else raised


def _values(
    expression: Expression, taken: pa.Table, values: Mapping[Leaf, str], zone: str
) -> pa.Table:
    """Return the values of the leaves of an expression, in columns."""
    columns = []
    for leaf in expression.leaves:
        if leaf.fold is not None:
            columns.append(_folded(leaf, taken, values, zone))
        elif leaf.function == "avg":
            total, count = (taken.column(values[part]) for part in _parts(leaf))
            columns.append(_average(total, count))
        else:
            columns.append(taken.column(values[leaf]))
    columns = columns or [taken.column(0)]  # a table without columns has no rows either
    return pa.table(columns, names=[f"{LEAF}{number}" for number in range(len(columns))])


def _value(expression: Expression, leaves: pa.Table, zone: str) -> pa.ChunkedArray:
    """Return the value of an expression in each row, given those of its leaves."""
    if expression.lone_leaf is not None:
        return leaves.column(0)
    numbers = {leaf: number for number, leaf in enumerate(expression.leaves)}
    sql = expression.sql(lambda leaf: quoted(f"{LEAF}{numbers[leaf]}"))
    column = RowSql(leaves, [sql], zone).by_program(sql)
    if column is not None:
        return column
    known = {str(number): sql_type(field.type) for number, field in enumerate(leaves.schema)}
    types = RowTypes(known, zone_of(zone))
    made = part_value(expression.read, expression.syntax, dict(expression.placed), types)
    rows = zip(*(column.to_pylist() for column in leaves.columns), strict=True)
    return as_column(map(made.function, rows), made.type, zone)


def _average(total: pa.ChunkedArray, count: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return averages; those of decimals have four digits more than the numbers."""
    if not pa.types.is_decimal(total.type):
        known = pc.if_else(pc.equal(count, 0), None, count)
        return pc.divide(total.cast(pa.float64()), known.cast(pa.float64()))
    digits = averaged_sum(Digits(total.type.precision, total.type.scale))
    found = [
        None if value is None else computed("/", value, Decimal(number), digits)
        for value, number in zip(total.to_pylist(), count.to_pylist(), strict=True)
    ]
    return pa.chunked_array([pa.array(found, pa.decimal128(*digits))])


def _folded(leaf: Leaf, taken: pa.Table, values: Mapping[Leaf, str], zone: str) -> pa.ChunkedArray:
    """Return a fold for each row, computed from the arrays of its fields."""
    fold = leaf.fold
    assert fold is not None
    columns = [taken.column(values[part]) for part in _parts(leaf)]
    known = {
        str(place): sql_type(column.type.value_type)
        for place, column in enumerate(columns[: len(columns) - leaf.has_number])
    }
    function, type_ = fold_function(fold, RowTypes({**known, str(NUMBER): BIGINT}, zone_of(zone)))
    arrays = [column.to_pylist() for column in columns]
    numbers = arrays.pop() if leaf.has_number else None
    reads_number = NUMBER in fold.inputs.values()
    found: list[Any] = []
    for place, own in enumerate(zip(*arrays, strict=True)):
        rows: list[Sequence[Any]] = list(zip(*(values or () for values in own), strict=True))
        if reads_number and numbers is not None:
            rows = [(*row, numbers[place]) for row in rows]
        found.append(function(rows))
    return as_column(found, type_, zone)


def all_parts(measures: Mapping[str, Expression]) -> dict[Leaf, str]:
    """Return what is taken from a match, each with the name of the first measure that needs it."""
    found: dict[Leaf, str] = {}
    for name, expression in measures.items():
        for part in chain.from_iterable(map(_parts, expression.leaves)):
            found.setdefault(part, name)
    return found or {Leaf.of("count"): name for name in measures}  # the length of constants


@attrs.frozen(eq=False)
class FlinkJob:
    """A clause in Flink's dialect."""

    clause: Clause
    names: Names
    read: FlinkClause
    time: str  # The column of the time
    ties: OrderColumns | None  # The order of rows of one key and time

    @classmethod
    def of(cls, table: pa.Table, clause: Clause, names: Names) -> FlinkJob:
        """Read a clause on the columns of a table."""
        check_time(clause, names, partial(_time_type, table), is_stream=False)
        read = read_flink_clause(clause, names, window_ms(clause, names.source))
        order, time = clause.ordering[1:], clause.order[0].name.text
        return cls(clause, names, read, time, OrderColumns.of(order) if order else None)

    @contextmanager
    def analysing(self) -> Iterator[None]:
        """Say of what is refused while a pattern is analysed where the clause has it."""
        try:
            yield
        except OnlyByRow as raised:
            usual = "test for it in the condition, with CASE or nullif"
            message, hint, kind = _reason(raised, usual)
            if isinstance(cause_of(raised), NotSupportedError | OnlyByRow):
                hint, kind = "start from a DataFrame of Spark, which computes it", NotSupportedError
            raise self.names.error(self.clause.pattern_span, message, hint, kind) from raised
        except CepError as refused:
            raise self.read.placed(refused) from refused

    def output(self, table: pa.Table, found: Found, times: Times) -> pa.Table:
        """Return the output for matches of rows of a table."""
        measures, names = self.read.measures, self.names
        matches = FoundMatches(found, lambda: match_times(found, times))
        rows = _RowsOfMatches(table, found.handles)
        taken, places = _taken(matches, rows, measures, names, times.type)
        first = integers(found.handles[found.firsts])
        shown = {key: table.column(key).take(first) for key in self.clause.keys}
        made = measured(taken, places, measures, names, clock_zone(table.schema))
        return pa.table({**shown, **made})


def flink_output(
    table: pa.Table, clause: Clause, names: Names, limit: PartialMatchLimit | None, threads: int
) -> tuple[pa.Table, int]:
    """Return the output of a clause, and how many partial matches were dropped."""
    job = FlinkJob.of(table, clause, names)
    with job.analysing():
        matched = ColumnMatch.analysed(
            job.read.pattern, table, job.time, clause.keys or None, job.ties
        )
    found, _, dropped = matched.run(limit, threads)
    return job.output(table, found, matched.times), dropped


def _taken(
    matches: Matches,
    rows: _RowsOfMatches,
    measures: Mapping[str, Expression],
    names: Names,
    time: pa.DataType | None,
) -> tuple[pa.Table, dict[Leaf, str]]:
    """Return what is taken from matches for measures, and the column of each value."""
    columns: list[LeafColumn] = []
    types: list[pa.DataType] = []
    wanted = all_parts(measures)
    for leaf, name in wanted.items():
        error = measure_error(names, name, measures[name])
        try:
            column = leaf_column(leaf, partial(rows.column, error=error), names.variables)
            argument = column.column or next(iter(column.by_variable), None)
            types.append(type_of(leaf, argument and rows.type(argument), time))
        except (OnlyByRow, CepError) as cause:
            raise error(cause) from cause
        columns.append(column)
    taken = LeafColumns(columns, True).of(matches, rows.take)
    values = [value.cast(type_) for value, type_ in zip(taken, types, strict=True)]
    places = {leaf: f"{LEAF}{number}" for number, leaf in enumerate(wanted)}
    return pa.table(values, names=list(places.values())), places


class _RowsOfMatches:
    """The rows of matches, with what SQL computes from them."""

    def __init__(self, table: pa.Table, handles: Ints, order: Ints | None = None) -> None:
        self._places = np.unique(handles)
        places = self._places if order is None else order[self._places]
        self._sql = RowSql(table.take(integers(places)))
        self._columns: dict[str, pa.ChunkedArray] = {}
        self._failed: dict[str, dict[int, CepError]] = {}

    def column(self, sql: str, error: Callable[[Exception], CepError]) -> str:
        """Return the name of a column of values; those that fail are errors once they are taken."""
        if sql not in self._columns:
            self._columns[sql], failed = self._sql.partial(sql)
            self._failed[sql] = {row: error(cause) for row, cause in failed.items()}
        return sql

    def type(self, sql: str) -> pa.DataType:
        """Return the type of values."""
        return self._columns[sql].type

    def take(self, handles: Ints, columns: Sequence[str]) -> pa.Table:
        """Return values of rows."""
        rows = np.searchsorted(self._places, handles)
        for name in columns:
            failed = self._failed[name]
            for row in rows.tolist() if failed else ():
                if row in failed:
                    raise failed[row]
        places = integers(rows)
        return pa.table({name: self._columns[name].take(places) for name in columns})


_PORTION = 1 << 20
_ARGUMENT = "__cep_argument"
_TIME = "__cep_time"


@attrs.frozen(eq=False)
class StandardOutput:
    """The output of a clause with the standard's meaning."""

    table: pa.Table  # The rows of output
    of_rows: Ints  # For each the place of its row in the order of matching
    order: _Order  # That order

    @property
    def keys(self) -> int:
        """How many keys there are."""
        return len(self.order.ends)

    @property
    def first_rows(self) -> Ints:
        """For each row of output the first row that its key has in the table."""
        begins = np.r_[0, self.order.ends][:-1]
        firsts = np.minimum.reduceat(self.order.rows, begins) if len(begins) else begins
        own: Ints = firsts[np.searchsorted(self.order.ends, self.of_rows, "right")]
        return own


def standard_output(table: pa.Table, clause: Clause, names: Names, threads: int) -> StandardOutput:
    """Return the output of a clause."""
    read = read_clause(clause, names)
    within = standard_window_ms(clause, names.source)
    time = _time(table, clause, names) if within else None
    conditions = _Conditions(RowSql(table), read)
    defines = Defines.of(read, names, conditions, None, True)
    read = defines.read
    plan = read.plan(
        defines.kinds, True, within, tuple(all_parts(read.measures)), defines.evaluated
    )
    plan = plan.with_casts()
    rows = StandardRows(
        plan,
        pa.schema([]),
        [],
        conditions.of_programs(read, plan.kinds),
        conditions.of_evaluated(read, defines.evaluated_arguments()),
        _TIME if time is not None else None,
        1 if time is None else time[1],
        conditions.failed,
    )
    if time is not None:
        conditions.columns[_TIME] = time[0]
    order = _order(table, clause)
    matches = RowMatches(plan, _matched(rows, pa.table(conditions.columns), order, threads))
    handles = matches.handles
    if any(leaf.shift for leaf in plan.leaves):
        handles = np.arange(table.num_rows)
    of_matches = _RowsOfMatches(table, handles, order.rows)
    taken, places = _taken(matches, of_matches, read.measures, names, None)
    is_matched = matches.is_matched if clause.rows is Rows.WITH_UNMATCHED else None
    made = measured(taken, places, read.measures, names, clock_zone(table.schema), is_matched)
    first, rest = clause.shown(names.columns)
    at = integers(order.rows).take(matches.rows)
    shown = {name: table.column(name).take(at) for name in first}
    output = {**shown, **made, **{name: table.column(name).take(at) for name in rest}}
    # Also a table without columns keeps the number of rows.
    every = pa.table(output) if output else pa.table({_ARGUMENT: at}).select([])
    return StandardOutput(every, plain_numbers(matches.rows), order)


def with_computed(table: pa.Table, clause: Clause, source: Source) -> pa.Table:
    """Return a table with the expressions of PARTITION BY and ORDER BY as columns."""
    for one in clause.computed():
        try:
            table = table.append_column(one.text, RowSql(table, [one.text]).column(one.text))
        except (OnlyByRow, CepError, pa.ArrowException) as raised:
            message, hint, _ = _reason(raised, COMPUTE_FIRST)
            raise source.error(message, hint, *one.span, InputError) from raised
    return table


def _time(table: pa.Table, clause: Clause, names: Names) -> tuple[pa.ChunkedArray, int]:
    """Return the time that WITHIN measures, and its units per millisecond."""
    name = within_time(clause, names, partial(_time_type, table))
    column = table.column(name)
    type_ = column.type
    if pa.types.is_int64(type_):
        found = pc.min_max(column).as_py()
        if found["min"] is not None:
            warn_of_unit(found["min"], found["max"], f"ORDER BY {name}")
        return column, 1
    own = column.cast(pa.timestamp("ms", type_.tz)) if type_.unit == "s" else column
    return own, PER_MS[own.type.unit]


def _time_type(table: pa.Table, name: str) -> tuple[bool, str]:
    """Return whether a column has times, and its type."""
    type_ = table.schema.field(name).type
    of_text = f"; textTime({name!r}).table(events) makes times of texts"
    is_text = pa.types.is_string(type_) or pa.types.is_large_string(type_)
    is_time = pa.types.is_timestamp(type_) or pa.types.is_int64(type_)
    return is_time, f"{type_}{of_text if is_text else ''}"


# --- columns


@attrs.frozen(eq=False)
class _Conditions:
    """
    What SQL over a row gives to conditions, computed before matching.

    See :class:`~pyflinkcep.engines.rows.plan.RowTypes`.
    """

    sql: RowSql
    read: StandardClause
    columns: dict[str, pa.ChunkedArray] = attrs.field(factory=dict)  # Those computed, by name
    # By the SQL that fails for some rows: the column that says which, and the error.
    failed: dict[str, tuple[str, CepError]] = attrs.field(factory=dict)

    def kinds(self, read: StandardClause) -> dict[str, Kind]:
        """Return the types of the conditions' arguments."""
        leaves = chain.from_iterable(map(condition_leaves, read.conditions.values()))
        arguments = dict.fromkeys(read.arguments_of(leaves))
        kinds = {sql: self._asked(read, sql, partial(self.sql.kind, sql)) for sql in arguments}
        return {sql: kind for sql, kind in kinds.items() if kind is not None}

    def check(self, variable: str, expression: Expression) -> None:
        """Refuse a condition that is not one, as far as its type is known."""
        one = attrs.evolve(self.read, conditions={variable: expression})
        try:
            kind = one.plan(self.kinds(one), True).kind_of(expression)
        except CepError:
            return  # which is said when it is evaluated
        if kind not in (Kind.BOOLEAN, None):
            raise error_of(self.read.names, variable, expression)(
                f"not a condition: expected boolean, got {kind.value}", "compare it with a value"
            )

    def of_programs(self, read: StandardClause, kinds: Mapping[str, Kind]) -> dict[str, str]:
        """Return the columns of the arguments of programs."""
        names = {sql: f"{VALUE}{number}" for number, sql in enumerate(kinds)}
        for sql, name in names.items():
            field = self._asked(read, sql, partial(self.sql.field, sql, kinds[sql]))
            if isinstance(field, NumberColumn):
                self.columns[name] = field.as_column()
            else:
                self.columns[name] = field.cast(pa.string())
        return names

    def of_evaluated(self, read: StandardClause, arguments: list[str]) -> dict[str, str]:
        """Return the columns of the arguments of conditions without a program."""
        names = {sql: f"{_ARGUMENT}{number}" for number, sql in enumerate(arguments)}
        for sql, name in names.items():
            column, failed = self._asked(read, sql, partial(self.sql.partial, sql))
            self.columns[name] = column
            if failed:
                error = self._error(read, sql, next(iter(failed.values())))
                self.failed[sql] = f"{name} failed", error
                told = np.zeros(len(column), bool)
                told[list(failed)] = True
                self.columns[f"{name} failed"] = pa.chunked_array([told])
        return names

    def _asked(self, read: StandardClause, sql: str, ask: Callable[[], _T]) -> _T:
        try:
            return ask()
        except (OnlyByRow, CepError) as raised:
            raise self._error(read, sql, raised) from raised

    def _error(self, read: StandardClause, sql: str, raised: Exception) -> CepError:
        """Return an error about the condition that needs a value of rows."""
        variable, expression = next(
            (variable, expression)
            for variable, expression in read.conditions.items()
            if sql in read.arguments_of([*expression.leaves, *condition_leaves(expression)])
        )
        error = error_of(read.names, variable, expression)
        return error(*_reason(raised, "use another expression"))


# --- the order


@attrs.frozen(eq=False)
class _Order:
    """The order of rows."""

    rows: Ints  # The rows in order, the key of the first row first
    ends: Ints  # Where the rows of each key end
    key_of: Callable[[int], Any]  # Returns the key of a row


def _order(table: pa.Table, clause: Clause) -> _Order:
    keys = Keys.of(table, clause.keys or None)
    size = table.num_rows
    codes: Ints = np.zeros(size, np.int64) if keys.codes is None else keys.codes
    by = clause.ordering
    time = _plain_time(table, by)
    if time is not None:
        rows = order_by([time, codes])
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


def _matched(rows: StandardRows, table: pa.Table, order: _Order, threads: int) -> OutputRows:
    """Return the matches, whose rows are those in order."""
    texts = (kind.type in (Type.TEXT, Type.DECIMAL) for kind in rows.plan.kinds.values())
    if rows.plan.compiled().tables is None or any(texts):  # with these threads would take turns
        threads = 1
    begins = np.r_[0, order.ends][:-1]
    at = np.searchsorted(order.ends, cuts(begins, len(order.rows), threads), "right").tolist()
    shares = [_Share(rows, table, order, first, last).run for first, last in pairwise(at)]
    return OutputRows.concat(list(chain.from_iterable(results(shares, threads))))


@attrs.frozen(eq=False)
class _Share:
    """Some keys, which one thread matches."""

    rows: StandardRows
    table: pa.Table
    order: _Order
    first: int  # The first of them, and the one after the last
    last: int

    def run(self) -> list[OutputRows]:
        """Return the matches, by places in the order of rows."""
        compiled = self.rows.plan.compiled()
        try:
            return [
                some.after(begin)
                for begin, ends in self._portions()
                for some in self._found(begin, ends, compiled)
            ]
        except CepRuntimeError as error:
            raise error.in_pattern("MATCH_RECOGNIZE") from error.__cause__

    def _found(self, begin: int, ends: Ints, compiled: Compiled) -> Iterator[OutputRows]:
        """Yield the matches of some keys, by places from `begin` on."""
        taken = self.order.rows[begin : int(ends[-1])]

        def key_of(number: int) -> Any:
            return self.order.key_of(int(self.order.rows[ends[number] - 1]))

        own = self.table.take(integers(taken)) if self.table.column_names else self.table
        places = np.zeros((len(ends), PLACE), np.int64)
        return self.rows.found(own, ends - begin, compiled, places, key_of)

    def _portions(self) -> Iterator[tuple[int, Ints]]:
        """Yield where portions of whole keys begin, and where the keys in them end."""
        first, ends = self.first, self.order.ends[: self.last]
        begin = int(ends[first - 1]) if first else 0
        while first < self.last:
            last = max(int(np.searchsorted(ends, begin + _PORTION, "right")), first + 1)
            yield begin, ends[first:last]
            begin, first = int(ends[last - 1]), last


def spilled_flink_output(
    events: Spilling,
    clause: Clause,
    names: Names,
    limit: PartialMatchLimit | None,
    threads: int,
    schema: pa.Schema,
) -> OutputTable:
    """Return the output of a clause in Flink's dialect; `schema` is that of no events."""
    job, key = FlinkJob.of(events.nothing, clause, names), clause.keys or None
    with job.analysing():
        match = SpilledMatch(job.read.pattern, events, job.time, key, limit, threads, job.ties)
        matches, dropped = match.rows()
    run, writer = Run(SpillFile()), OutputWriter(schema)
    for part in matches.results.parts():
        output = job.output(part.events, part.found(matches.stages), matches.times)
        writer.write(run, output, *part.places)
    return OutputTable.spilled(writer.output(Results([run])), dropped)


def spilled_standard_output(
    events: Spilling, clause: Clause, names: Names, threads: int, schema: pa.Schema
) -> OutputTable:
    """Return the output of a clause in the standard's dialect; `schema` is that of no events."""
    writer = OutputWriter(schema)

    def match(rows: pa.Table, places: Ints, run: Run) -> int:
        found = standard_output(rows, clause, names, threads)
        first = places[found.first_rows]  # keys are in the order of their first rows
        writer.write(run, found.table, np.zeros_like(first), first)
        return found.keys

    results = events.found(clause.keys, match)
    return OutputTable.spilled(writer.output(results))
