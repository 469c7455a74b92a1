# SPDX-License-Identifier: Apache-2.0
"""MEASURES in memory: from the values taken of matches to the columns of the output."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal, localcontext
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyflinkcep.engines.rows.folding import fold_function
from pyflinkcep.errors import CepError, InputError, NotSupportedError
from pyflinkcep.expressions.evaluator import RowTypes, part_value
from pyflinkcep.expressions.text_values import zone_of
from pyflinkcep.match_recognize.expressions import Expression
from pyflinkcep.match_recognize.leaves import LEAF, NUMBER, Leaf, parts_of
from pyflinkcep.match_recognize.names import Names
from pyflinkcep.matching.columns import quoted
from pyflinkcep.tables.row_sql import OnlyByRow, RowSql, listed
from pyflinkcep.tables.typed_columns import as_column, sql_type

__all__ = ["all_parts", "cause_of", "measure_error", "measured", "type_of"]

_MATCH_NUMBER = Leaf.of("match_number")
_MOST_DIGITS = 38


def _parts(leaf: Leaf) -> tuple[Leaf, ...]:
    """Return what is taken from the match for a leaf: an array for each field of a fold."""
    if leaf.fold is None:
        return parts_of(leaf)
    fields = leaf.fold.fields or ("0",)
    arrays = [Leaf.of("array_agg", leaf.variable, field, final=leaf.final) for field in fields]
    return (*arrays, _MATCH_NUMBER) if leaf.has_number else tuple(arrays)


def type_of(leaf: Leaf, argument: pa.DataType | None, time: pa.DataType | None) -> pa.DataType:
    """
    Return the type of a value that is taken from a match, as Spark gives it.

    Parameters
    ----------
    leaf : Leaf
        The value.
    argument : pyarrow.DataType or None
        The type of its argument, if it has one.
    time : pyarrow.DataType or None
        The type of the time of a match.

    Raises
    ------
    InputError
        If the argument has no sum, or no order.
    """
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
        return pa.decimal128(min(given.precision + 10, _MOST_DIGITS), given.scale)
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
    """
    Compute the measures from what was taken from matches.

    Parameters
    ----------
    taken : pyarrow.Table
        The values.
    values : mapping of Leaf to str
        The column of each.
    measures : mapping of str to Expression
        MEASURES.
    names : Names
        The names of the clause.
    zone : str
        The zone of the table's clocks.
    is_matched : pyarrow.ChunkedArray, optional
        Which rows are of a match; the measures of others are NULL.

    Raises
    ------
    CepError
        If a measure cannot be computed without Spark, or fails.
    """
    columns = {}
    for name, expression in measures.items():
        try:
            column = _value(expression, _values(expression, taken, values), zone)
        except (OnlyByRow, CepError, ArithmeticError, pa.ArrowException) as cause:
            raise measure_error(names, name, expression)(cause) from cause
        if is_matched is not None:
            column = pc.if_else(is_matched, column, pa.scalar(None, column.type))
        columns[name] = column
    return columns


def measure_error(
    names: Names, name: str, expression: Expression, what: str = "measure"
) -> Callable[[Exception], CepError]:
    """Return what makes an error about an expression of another error."""

    def error(raised: Exception) -> CepError:
        cause = cause_of(raised)
        kind = type(cause) if isinstance(cause, NotSupportedError) else InputError
        hint = "compute it after matching"
        message = cause.message if isinstance(cause, CepError) else str(cause)
        if isinstance(cause, CepError) and cause.hint:
            hint = cause.hint
        span = expression.span
        return names.source.error(f"{what} {name}: {message}", hint, *span, kind)

    return error


def cause_of(raised: Exception) -> BaseException:
    """Return why something can only be computed by Spark."""
    is_wrapped = isinstance(raised, OnlyByRow) and raised.__cause__ is not None
    return raised.__cause__ or raised if is_wrapped else raised


def _values(expression: Expression, taken: pa.Table, values: Mapping[Leaf, str]) -> pa.Table:
    """Return the values of the leaves of an expression, in columns."""
    columns = []
    for leaf in expression.leaves:
        if leaf.fold is not None:
            columns.append(_folded(leaf, taken, values))
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
    digits = total.type.precision
    precision = digits - 6 if digits < _MOST_DIGITS else _MOST_DIGITS
    scale = min(total.type.scale + 4, precision)
    unit, found = Decimal(1).scaleb(-scale), []
    pairs = zip(total.to_pylist(), count.to_pylist(), strict=True)
    with localcontext(prec=2 * _MOST_DIGITS, rounding=ROUND_HALF_UP):
        for value, number in pairs:
            found.append(None if value is None else (value / number).quantize(unit))
    return pa.chunked_array([pa.array(found, pa.decimal128(precision, scale))])


def _folded(leaf: Leaf, taken: pa.Table, values: Mapping[Leaf, str]) -> pa.ChunkedArray:
    """Return a fold for each row, computed from the arrays of its fields."""
    fold = leaf.fold
    assert fold is not None
    function = fold_function(fold)
    arrays = [taken.column(values[part]).to_pylist() for part in _parts(leaf)]
    numbers = arrays.pop() if leaf.has_number else None
    reads_number = NUMBER in fold.inputs.values()
    found: list[Any] = []
    for place, own in enumerate(zip(*arrays, strict=True)):
        rows: list[Sequence[Any]] = list(zip(*(values or () for values in own), strict=True))
        if reads_number and numbers is not None:
            rows = [(*row, numbers[place]) for row in rows]
        found.append(function(rows))
    return listed(found)


def all_parts(measures: Mapping[str, Expression]) -> dict[Leaf, str]:
    """Return what is taken from a match, each with the name of the first measure that needs it."""
    found: dict[Leaf, str] = {}
    for name, expression in measures.items():
        for part in chain.from_iterable(map(_parts, expression.leaves)):
            found.setdefault(part, name)
    return found
