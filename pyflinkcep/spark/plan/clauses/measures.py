# SPDX-License-Identifier: Apache-2.0
"""MEASURES on Spark: arguments before matching, values in the workers, the rest after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain

import attrs
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from pyflinkcep.errors import CepError, InputError, NotSupportedError
from pyflinkcep.expressions.numbers import Digits
from pyflinkcep.expressions.tokens import TokenKind, tokenized
from pyflinkcep.match_recognize.expressions import Expression
from pyflinkcep.match_recognize.leaves import LEAF, NUMBER, Leaf, item, parts_of
from pyflinkcep.match_recognize.names import Names
from pyflinkcep.match_recognize.tree import Clause
from pyflinkcep.matching.columns import PREFIX, quoted
from pyflinkcep.matching.order import OrderColumns
from pyflinkcep.spark.plan.analysis import first_line, is_about, is_ansi, is_case_sensitive
from pyflinkcep.spark.plan.conditions import sql_column, types_of
from pyflinkcep.spark.plan.engine import SPARK, engine_of
from pyflinkcep.spark.plan.exact_decimals import quotient

# Stands for NULL in a key, next to the flag that it is NULL; a struct for other types.
_DEFAULTS: dict[type[T.DataType], Callable[[], Column]] = {
    T.StringType: lambda: F.lit(""),
    T.ByteType: lambda: F.lit(0).cast("tinyint"),
    T.ShortType: lambda: F.lit(0).cast("smallint"),
    T.IntegerType: lambda: F.lit(0),
    T.LongType: lambda: F.lit(0).cast("bigint"),
    T.BooleanType: lambda: F.lit(False),
}


def order_after_time(clause: Clause) -> OrderColumns | None:
    """Return the order of events of equal time: the columns of ORDER BY after the first."""
    return OrderColumns.of(clause.ordering[1:]) if clause.order[1:] else None


def time_type(dataframe: DataFrame) -> Callable[[str], tuple[bool, str]]:
    """Return what tells whether a column may be a time, and its type."""

    def type_of(name: str) -> tuple[bool, str]:
        type_ = dataframe.schema[name].dataType
        is_time = isinstance(type_, T.TimestampType | T.TimestampNTZType | T.LongType)
        return is_time, type_.simpleString()

    return type_of


def partition_keys(
    dataframe: DataFrame, keys: Sequence[str], *, is_stream: bool
) -> list[str | Column]:
    """Return the key; on a stream, where keys must not be null, with whether each is NULL."""
    if not is_stream:
        return list(keys)
    by: list[str | Column] = []
    for key in keys:
        field, column = dataframe.schema[key], F.col(quoted(key))
        if field.nullable:
            default = _DEFAULTS.get(type(field.dataType))
            filled = F.struct(column) if default is None else F.coalesce(column, default())
            by += [filled.alias(key), column.isNull().alias(f"{key} IS NULL")]
        else:
            by.append(key)
    return by


_ROW, _WHOLE, _ITEM = "__cep_row", "__cep_whole", "__cep_item"
_FOLD, _LATE = "__cep_fold", "__cep_late"

# What Spark says of aggregates that WITHIN GROUP does not fit.
_OF_ORDER = (
    "INVALID_WITHIN_GROUP_EXPRESSION",
    "INVALID_SQL_SYNTAX.FUNCTION_WITH_UNSUPPORTED_SYNTAX",
)

# Those that have Spark's values on other engines.
_ELSEWHERE = (
    "array_agg", "collect_list", "collect_set", "listagg", "string_agg", "count", "bool_and",
    "bool_or", "every", "some", "any", "max_by", "min_by", "stddev",
    "stddev_samp", "stddev_pop", "variance", "var_samp", "var_pop",
)  # fmt: skip

_Error = Callable[[str, str], CepError]


@attrs.frozen
class Value:
    """A column with the values of a leaf, in what workers return."""

    name: str  # Its name
    type: T.DataType  # Its type
    summed: T.DataType | None = None  # The type in which events hold what is summed


# What workers take from a match if nothing of it is shown: an Arrow table without columns has no
# rows either.
ROW_COUNT = {Leaf.of("count"): Value(f"{LEAF}0", T.LongType())}
# What workers take from a match; of what is made of several values, each of these.
Values = Mapping[Leaf, Value]


def with_folds(
    result: DataFrame, folds: Mapping[Leaf, _Error], values: Values
) -> tuple[DataFrame, dict[Leaf, Value]]:
    """Add a column for each fold."""
    # Each row of the result is grouped by itself, its array taken apart, so that Spark's aggregates
    # see the rows of its match. Folds over the same rows are computed together.
    by_array: dict[str, list[Leaf]] = {}
    for leaf in folds:
        by_array.setdefault(values[parts_of(leaf)[0]].name, []).append(leaf)
    if not by_array:
        return result, {}
    names = {leaf: f"{_FOLD}{number}" for number, leaf in enumerate(folds)}
    columns = list(result.columns)
    rows = result.select(F.monotonically_increasing_id().alias(_ROW), "*")
    for array, leaves in by_array.items():
        taken = rows.select(
            _ROW,
            F.struct(*(F.col(quoted(name)) for name in columns)).alias(_WHOLE),
            F.explode_outer(F.col(quoted(array))).alias(_ITEM),
        )
        computed = {names[leaf]: _computed(taken, leaf, values, folds[leaf]) for leaf in leaves}
        grouped = taken.groupBy(_ROW).agg(
            F.first(_WHOLE).alias(_WHOLE), *(one.alias(name) for name, one in computed.items())
        )
        rows = grouped.select(_ROW, f"{_WHOLE}.*", *computed)
        columns += computed
    schema = rows.schema
    return rows, {leaf: Value(name, schema[name].dataType) for leaf, name in names.items()}


def _computed(taken: DataFrame, leaf: Leaf, values: Values, error: _Error) -> Column:
    fold, number = leaf.fold, [values[part].name for part in parts_of(leaf)[1:]]
    assert fold is not None

    def name(piece: int) -> str:
        return f"{_WHOLE}.{number[0]}" if piece == NUMBER else f"{_ITEM}.{item(piece)}"

    engine = engine_of(taken.sparkSession)
    if engine is not SPARK and fold.name not in _ELSEWHERE:
        raise NotSupportedError(
            f"{engine.name} is not known to have Spark's values of {fold.name}",
            "write ARRAY_AGG, and compute with the array",
        )
    sql = fold.rendered(name)
    # Without rows it is NULL in the standard, and empty in Spark.
    column = F.expr(f"nullif({sql}, array())" if fold.name == "array_agg" else sql)
    try:
        taken.groupBy(_ROW).agg(column)
    except Exception as cause:
        hint = "see Spark's page of the aggregate"
        if is_about(cause, *_OF_ORDER):
            hint = "write sort_array(ARRAY_AGG(x)), or LISTAGG for texts"
        raise error(f"Spark cannot compute it: {first_line(cause)}", hint) from cause
    return column


def _with_late(
    result: DataFrame, late: Mapping[Leaf, _Error], values: Values
) -> tuple[DataFrame, dict[Leaf, Value]]:
    """Add a column for each value that is computed from the rows of matches alone."""
    taken = {leaf: quoted(values[parts_of(leaf)[0]].name) for leaf in late}
    of_rows = {
        leaf: column if leaf.is_row else f"element_at({column}, 1)"
        for leaf, column in taken.items()
    }
    each = {leaf: leaf.late.over(of_rows[leaf]) for leaf in late if leaf.late is not None}
    types = argument_types(result, {sql: late[leaf] for leaf, sql in each.items()})
    names, columns = {}, []
    for number, (leaf, sql) in enumerate(each.items()):
        total = leaf if leaf.function != "avg" else attrs.evolve(leaf, function="total")
        type_ = _type(total, types[sql], T.NullType(), result, late[leaf])
        names[leaf] = f"{_LATE}{number}"
        columns.append(F.expr(_over_rows(leaf, taken[leaf], type_)).alias(names[leaf]))
    result = result.select("*", *columns) if columns else result
    return result, {leaf: Value(name, result.schema[name].dataType) for leaf, name in names.items()}


def _over_rows(leaf: Leaf, rows: str, type_: T.DataType) -> str:
    """Return a value as SQL over a struct of the fields of its row, or an array of these."""
    assert leaf.late is not None
    if leaf.is_row:
        return f"CASE WHEN {rows} IS NOT NULL THEN {leaf.late.over(rows)} END"
    each = f"transform({rows}, {_ITEM} -> {leaf.late.over(_ITEM)})"
    known = f"filter({each}, v -> v IS NOT NULL)"
    count = f"CASE WHEN {rows} IS NULL THEN 0L ELSE cast(size({known}) AS bigint) END"
    if leaf.function == "count":
        return count
    if leaf.function == "array_agg":
        return each
    if leaf.function in ("min", "max"):
        return f"array_{leaf.function}({each})"
    is_mean = leaf.function == "avg" and not isinstance(type_, T.DecimalType)
    summed = "double" if is_mean else type_.simpleString()
    total = f"aggregate({known}, cast(0 AS {summed}), (a, v) -> cast(a + v AS {summed}))"
    total = f"CASE WHEN exists({each}, v -> v IS NOT NULL) THEN {total} END"
    return total if leaf.function == "sum" else _quotient(f"({total})", f"({count})", type_)


# The hint for some of Spark's error conditions.
_WAYS_OUT = {
    "TABLE_OR_VIEW_NOT_FOUND": "inside the clause, subqueries read tables, views and queries of "
    "WITH without MATCH_RECOGNIZE",
    "UNRESOLVED_ROUTINE": "write a function that Spark has, or register your own with "
    "spark.udf.register",
    "MISSING_GROUP_BY": "write an aggregate of Spark's own, or ARRAY_AGG and a function of arrays",
}


class Arguments:
    """The columns that measures need: the events' own, or computed from one event."""

    def __init__(self, dataframe: DataFrame) -> None:
        self._spelled: Callable[[str], str] = str if is_case_sensitive(dataframe) else str.lower
        self._own = {self._spelled(name): name for name in dataframe.columns}
        self._dataframe = dataframe
        self.computed: dict[str, Column] = {}
        self.sql: dict[str, str] = {}
        self._names: dict[str, str] = {}

    def column(self, sql: str, cast: T.DataType | None = None) -> str:
        """Return the column name of an expression over one event."""
        key = f"{sql} as {cast.simpleString()}" if cast is not None else sql
        if key not in self._names:
            self._names[key] = self._added(sql, cast)
        return self._names[key]

    def added_to(self, dataframe: DataFrame) -> DataFrame:
        """Return events with the computed columns."""
        columns = (column.alias(name) for name, column in self.computed.items())
        return dataframe.select("*", *columns)

    def _added(self, sql: str, cast: T.DataType | None) -> str:
        own = self._own.get(self._spelled(_name_of(sql))) if cast is None else None
        if own is not None:
            return own
        name = f"argument {len(self.computed)}"
        while name in self._own:
            name += "_"
        column = sql_column(sql, self._dataframe)
        self.computed[name] = column if cast is None else column.cast(cast)
        self.sql[name] = sql
        return name


def _name_of(sql: str) -> str:
    """Return the name that SQL consists of; empty for anything else."""
    name, *others = tokenized(sql)
    is_name = name.kind is TokenKind.NAME and others[0].kind is TokenKind.END
    return name.text if is_name else ""


def argument_types(dataframe: DataFrame, arguments: Mapping[str, _Error]) -> dict[str, T.DataType]:
    """Return the types of expressions over the events."""
    errors = list(arguments.values())

    columns = [name for name in dataframe.columns if not name.startswith(PREFIX)]
    hint = f"the columns are {columns}" if columns else "see Spark's page of the function"

    def refusal(number: int, cause: Exception) -> CepError:
        known = [way for condition, way in _WAYS_OUT.items() if is_about(cause, condition)]
        if _has_day_interval(cause):
            known = ["write datediff(later, earlier), or compare with INTERVAL '2' DAY"]
        words = tokenized(list(arguments)[number])
        if is_about(cause, "UNRESOLVED_COLUMN") and any(word.word == "SELECT" for word in words):
            known = ["a subquery inside the clause cannot read its rows: join before the clause"]
        if isinstance(cause, NotSupportedError):
            return errors[number](cause.message, cause.hint or hint)
        message = f"Spark cannot compute it: {first_line(cause)}"
        return errors[number](message, (*known, hint)[0])

    return dict(zip(arguments, types_of(list(arguments), dataframe, refusal), strict=True))


def _has_day_interval(error: Exception) -> bool:
    """Whether an error of Spark is about an operand that is the difference of two dates."""
    found = error.getMessageParameters() if isinstance(error, PySparkException) else None
    return '"INTERVAL DAY"' in (found or {}).values()


def values_of(
    measures: Mapping[str, Expression],
    names: Names,
    dataframe: DataFrame,
    time: T.DataType,
    what: str = "measure",
) -> dict[Leaf, Value]:
    """Return what workers take from a match; an ``avg`` becomes a ``total`` and a ``count``."""
    arguments: dict[str, _Error] = {}
    errors: dict[Leaf, _Error] = {}
    for name, expression in measures.items():
        error = _error_of(names, name, expression, what)
        for part in chain.from_iterable(map(parts_of, expression.leaves)):
            errors.setdefault(part, error)
            for sql in part.arguments_for(names.variables):
                arguments.setdefault(sql, error)
    types = argument_types(dataframe, arguments)
    values: dict[Leaf, Value] = {}
    for leaf, error in errors.items():
        asked = leaf.arguments_for(names.variables)
        type_ = types[asked[0]] if asked else None
        own = _type(leaf, type_, time, dataframe, error)
        summed = own if leaf.function in ("sum", "total") else None
        is_whole = leaf.function == "total" and isinstance(own, T.LongType)
        name = f"{LEAF}{len(values)}"
        values[leaf] = Value(name, T.DoubleType() if is_whole else own, summed)
    return values


def computed_late(
    measures: Mapping[str, Expression], dataframe: DataFrame
) -> dict[str, Expression]:
    """Return measures with what may fail computed for the rows of matches alone."""
    # On a stream and on other engines it is computed for all rows.
    if dataframe.isStreaming or not is_ansi(dataframe):
        return dict(measures)
    if engine_of(dataframe.sparkSession) is not SPARK:
        return dict(measures)
    return {name: expression.after_matching() for name, expression in measures.items()}


def measured(
    result: DataFrame,
    keys: Sequence[Column],
    measures: Mapping[str, Expression],
    values: Values,
    names: Names,
    finish: Callable[[str, Expression, Column], Column],
    rest: Sequence[Column] = (),
) -> DataFrame:
    """Compute the measures from what workers took from the matches."""
    result, written, _ = _analysed(result, measures, values, names)
    columns = [
        finish(name, measures[name], sql_column(sql, result)).alias(name)
        for name, sql in written.items()
    ]
    return result.select(*keys, *columns, *rest)


def type_of_measure(
    result: DataFrame, name: str, expression: Expression, values: Values, names: Names, what: str
) -> T.DataType:
    """Return the type of one measure; see :func:`measured`."""
    (type_,) = _analysed(result, {name: expression}, values, names, what)[2].values()
    return type_


def _analysed(
    result: DataFrame,
    measures: Mapping[str, Expression],
    values: Values,
    names: Names,
    what: str = "measure",
) -> tuple[DataFrame, dict[str, str], dict[str, T.DataType]]:
    """Return the result with what measures need, these as SQL over it, and the types of it."""
    errors_of = {
        leaf: _error_of(names, name, expression, what)
        for name, expression in measures.items()
        for leaf in expression.leaves
    }
    folds = {leaf: error for leaf, error in errors_of.items() if leaf.fold is not None}
    result, folded = with_folds(result, folds, values)
    late = {leaf: error for leaf, error in errors_of.items() if leaf.is_late}
    result, computed = _with_late(result, late, values)
    values = {**values, **folded, **computed}
    written = {
        name: expression.sql(lambda leaf: _in_column(leaf, values))
        for name, expression in measures.items()
    }
    errors: dict[str, _Error] = {}
    for name, sql in written.items():
        errors.setdefault(sql, _error_over_columns(names, name, measures[name], values, what))
    return result, written, argument_types(result, errors)


def _in_column(leaf: Leaf, values: Values) -> str:
    """Return a leaf as SQL over the columns of values."""
    if leaf.function != "avg" or leaf.is_late:
        return quoted(values[leaf].name)
    total, count = (values[part] for part in parts_of(leaf))
    return _quotient(quoted(total.name), quoted(count.name), total.type)


def _quotient(total: str, count: str, type_: T.DataType) -> str:
    """Return an average as SQL, given the type of the total."""
    known = f"nullif({count}, 0L)"  # some divide NULL by 0
    if not isinstance(type_, T.DecimalType):
        return f"({total} / {known})"
    return quotient(total, known, Digits(type_.precision, type_.scale))


def _error_of(names: Names, name: str, expression: Expression, what: str) -> _Error:
    def error(message: str, hint: str) -> CepError:
        return names.source.error(f"{what} {name}: {message}", hint, *expression.span, InputError)

    return error


def _error_over_columns(
    names: Names,
    name: str,
    expression: Expression,
    values: Values,
    what: str,
) -> _Error:
    """Return what makes an error of a message that names the columns of values."""
    error = _error_of(names, name, expression, what)
    written = {
        shown(leaf, values): text
        for leaf, text in expression.written().items()
        for shown in (_shown, _in_column)
    }

    def told(message: str, hint: str) -> CepError:
        for column in sorted(written, key=len, reverse=True):
            message = message.replace(column, written[column])
        return error(message, hint)

    return told


def _shown(leaf: Leaf, values: Values) -> str:
    """Return a leaf as Spark's messages show :func:`_in_column`."""
    if leaf.function != "avg" or leaf.is_late:
        return values[leaf].name
    total, count = (values[part].name for part in parts_of(leaf))
    return f"({total} / nullif({count}, 0))"


def _type(
    leaf: Leaf,
    argument: T.DataType | None,
    time: T.DataType,
    dataframe: DataFrame,
    error: _Error,
) -> T.DataType:
    if leaf.function == "rowtime":
        return time
    if leaf.function in ("count", "match_number"):
        return T.LongType()
    given = T.StringType() if argument is None else argument
    if leaf.function in ("min", "max") and not isinstance(given, T.AtomicType | T.NullType):
        what = f"{leaf.function.upper()} of {leaf.argument}, which is {given.simpleString()}"
        by = f"{leaf.function}_by(x, y)"
        raise error(what, f"use a field that is a number, text or time, or write {by}")
    if leaf.function == "array_agg":
        return T.ArrayType(given)
    if leaf.function not in ("sum", "total"):
        return given
    if not isinstance(given, T.NumericType):
        function = "SUM" if leaf.function == "sum" else "AVG"
        raise error(
            f"{function} of {leaf.argument}, which is {given.simpleString()}", "sum numbers"
        )
    # Whatever type Spark gives it.
    one = dataframe.sparkSession.createDataFrame([], T.StructType([T.StructField("v", given)]))
    return one.select(F.sum("v")).schema.fields[0].dataType
