# SPDX-License-Identifier: Apache-2.0
"""A clause with the standard's meaning on a DataFrame: Spark sorts, a task matches key by key."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DataType,
    LongType,
    NullType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyflinkcep.errors import CepError, InputError, NotSupportedError
from pyflinkcep.expressions.program import Kind
from pyflinkcep.match_recognize.expressions import Expression
from pyflinkcep.match_recognize.interval import window_ms
from pyflinkcep.match_recognize.leaves import LEAF, Leaf
from pyflinkcep.match_recognize.names import Names
from pyflinkcep.match_recognize.standard.plan import StandardClause, StandardPlan, read_clause
from pyflinkcep.match_recognize.tree import Clause, OrderColumn, Rows
from pyflinkcep.spark.arrow.columns import HASH, POSITION, VALUE, quoted
from pyflinkcep.spark.arrow.layout import Layout
from pyflinkcep.spark.plan.arrow_map import map_in_arrow
from pyflinkcep.spark.plan.expressions import kind_of, machine_column
from pyflinkcep.spark.plan.keys import KeyColumn, resolve_keys
from pyflinkcep.spark.plan.matched import Matched
from pyflinkcep.spark.plan.measures import Arguments, Value, measured, types_of, values_of
from pyflinkcep.spark.worker.standard import StandardTask

__all__ = ["standard_clause"]

_MATCHED = "matched"


def standard_clause(dataframe: DataFrame, clause: Clause, names: Names) -> Matched:
    """
    Plan a clause.

    Parameters
    ----------
    dataframe : DataFrame
        The input.
    clause : Clause
        The clause.
    names : Names
        What its names mean.

    Raises
    ------
    CepError
        If the clause means nothing, the input is a stream, or Spark cannot compute something.
    """
    if dataframe.isStreaming:
        raise names.source.error(
            'dialect="standard" on a stream',
            'on streams there is dialect="flink"; write the stream to a table to match it so',
            *clause.pattern_span,
            NotSupportedError,
        )
    read = read_clause(clause, names)
    within = window_ms(clause, names.source)
    time, unit = _time(dataframe, clause, names) if within else (None, 1)
    kinds = _kinds(dataframe, read, names)
    ansi = dataframe.sparkSession.conf.get("spark.sql.ansi.enabled") == "true"
    values = values_of(read.measures, names, dataframe, NullType())
    plan = read.plan(kinds, ansi, within, tuple(values))
    _check(read, plan)
    arguments = Arguments(dataframe)
    measures = {sql: arguments.column(sql) for sql in read.measure_arguments()}
    conditions = {sql: f"{VALUE}{number}" for number, sql in enumerate(kinds)}
    keys, expressions = resolve_keys(
        dataframe, [_own(dataframe, key.text) for key in clause.partition], "MATCH_RECOGNIZE"
    )
    shown, rest = _shown(dataframe, clause, keys)
    schema, columns = _schema(dataframe, clause, [*shown, *rest], plan, values)
    layout = _layout(dataframe, str(clause.pattern), keys)
    task = StandardTask(plan, layout, schema, [*shown, *rest], conditions, measures, time, unit)
    added = {
        **expressions,
        **arguments.computed,
        **{conditions[sql]: machine_column(sql, kind) for sql, kind in kinds.items()},
        HASH: _hash(keys, expressions),
        POSITION: F.monotonically_increasing_id(),
    }
    result = map_in_arrow(
        _sorted(dataframe.select("*", *(c.alias(n) for n, c in added.items())), clause, layout),
        task.run,
        schema,
        f"MATCH_RECOGNIZE: {clause.pattern}",
    )

    def finish(_name: str, _expression: Expression, column: Column) -> Column:
        if clause.rows is not Rows.WITH_UNMATCHED:
            return column
        return F.when(F.col(_MATCHED), column)

    frame = measured(
        result,
        [F.col(quoted(name)) for name in shown],
        read.measures,
        columns,
        names,
        finish,
        [F.col(quoted(name)) for name in rest],
    )
    return Matched(frame, f"MATCH_RECOGNIZE: {clause.pattern}")


# --- types


def _kinds(dataframe: DataFrame, read: StandardClause, names: Names) -> dict[str, Kind]:
    """Return what the conditions' arguments give."""
    errors: dict[str, Callable[[str, str], CepError]] = {}
    for variable, expression in read.conditions.items():
        for sql in read.arguments_of(expression.leaves):
            errors.setdefault(sql, _error_of(names, variable, expression))
    kinds = {}
    for sql, type_ in types_of(dataframe, errors).items():
        kind = Kind.STRING if isinstance(type_, NullType) else kind_of(type_)
        if kind is None:
            raise errors[sql](
                f"{sql} is {type_.simpleString()}",
                "take a number, boolean, string, date, timestamp or day-time interval of it",
            )
        kinds[sql] = kind
    return kinds


def _check(read: StandardClause, plan: StandardPlan) -> None:
    """Compile the conditions, one after another to name the one at fault."""
    for variable in read.conditions:
        try:
            plan.compiled([variable])
        except CepError as refused:
            what = refused.message.rpartition("': ")[2]
            raise _error_of(read.names, variable, read.conditions[variable])(
                f"not a condition: {what}", refused.hint or "compare it with something"
            ) from refused


def _error_of(
    names: Names, variable: str, expression: Expression
) -> Callable[[str, str], CepError]:
    def error(message: str, hint: str) -> CepError:
        return names.source.error(
            f"DEFINE {variable}: {message}", hint, *expression.span, InputError
        )

    return error


def _schema(
    dataframe: DataFrame,
    clause: Clause,
    shown: list[str],
    plan: StandardPlan,
    values: dict[Leaf, Value],
) -> tuple[StructType, dict[Leaf, tuple[str, DataType]]]:
    """Return the schema of the task's output, and in it the columns of the values."""
    fields = [StructField(name, dataframe.schema[name].dataType) for name in shown]
    if clause.rows is Rows.WITH_UNMATCHED:
        fields.append(StructField(_MATCHED, BooleanType()))
    columns = {}
    for number, leaf in enumerate(plan.leaves):
        columns[leaf] = (f"{LEAF}{number}", values[leaf].type)
        fields.append(StructField(*columns[leaf]))
    return StructType(fields), columns


# --- the input


def _own(dataframe: DataFrame, name: str) -> str:
    """Return a column's name as the input spells it."""
    if name in dataframe.columns:
        return name
    return next(column for column in dataframe.columns if column.lower() == name.lower())


def _shown(
    dataframe: DataFrame, clause: Clause, keys: tuple[KeyColumn, ...]
) -> tuple[list[str], list[str]]:
    """Return the input's columns in the output, before and after the measures."""
    first = [key.name for key in keys]
    if clause.rows is Rows.ONE:
        return first, []
    first += [_own(dataframe, column.name.text) for column in clause.order]
    first = list(dict.fromkeys(first))
    return first, [name for name in dataframe.columns if name not in first]


def _layout(dataframe: DataFrame, pattern: str, keys: tuple[KeyColumn, ...]) -> Layout:
    names = tuple(key.name for key in keys)
    return Layout(
        pattern=pattern,
        schema=dataframe.schema,
        payload=(),
        key_names=names,
        key_columns=tuple(key.column for key in keys),
        key_signature=(HASH, *(key.signature for key in keys)),
        time_column=None,
        time_unit=None,
        has_bits=False,
    )


def _hash(keys: tuple[KeyColumn, ...], expressions: dict[str, Column]) -> Column:
    """Return the number by which rows are shuffled."""
    if not keys:
        return F.lit(0).cast("bigint")
    return F.xxhash64(
        *(expressions.get(key.signature, F.col(quoted(key.signature))) for key in keys)
    )


def _sorted(rows: DataFrame, clause: Clause, layout: Layout) -> DataFrame:
    """Sort rows by key, by ORDER BY, and last by their place in the source."""
    key = [F.col(quoted(name)) for name in layout.key_signature]
    parted = rows.repartition(key[0]) if layout.key_columns else rows.coalesce(1)
    order = [_ordered(column) for column in clause.order]
    return parted.sortWithinPartitions(*key, *order, F.col(POSITION))


def _ordered(column: OrderColumn) -> Column:
    name = F.col(quoted(column.name.text))
    first = not column.descending if column.nulls_first is None else column.nulls_first
    if column.descending:
        return name.desc_nulls_first() if first else name.desc_nulls_last()
    return name.asc_nulls_first() if first else name.asc_nulls_last()


def _time(dataframe: DataFrame, clause: Clause, names: Names) -> tuple[str, int]:
    """Return the column that WITHIN is about, and its units in a millisecond."""
    hint = "write ORDER BY ts first, a timestamp or epoch milliseconds as bigint, ascending"
    if not clause.order or clause.order[0].descending:
        raise names.source.error("WITHIN without a time", hint, *clause.pattern_span, InputError)
    name = _own(dataframe, clause.order[0].name.text)
    type_ = dataframe.schema[name].dataType
    if isinstance(type_, TimestampType | TimestampNTZType):
        return name, 1000
    if isinstance(type_, LongType):
        return name, 1
    raise names.source.error(
        f"WITHIN over {name}, which is {type_.simpleString()}",
        hint,
        *clause.order[0].name.span,
        InputError,
    )
