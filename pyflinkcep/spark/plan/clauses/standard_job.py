# SPDX-License-Identifier: Apache-2.0
"""A clause with the standard's meaning on a DataFrame, analysed: for bounded and unbounded jobs."""

from __future__ import annotations

import attrs
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

from pyflinkcep.engines.rows.plan import StandardClause, StandardPlan, read_clause
from pyflinkcep.errors import InputError
from pyflinkcep.expressions.program import Kind
from pyflinkcep.match_recognize.expressions import Expression
from pyflinkcep.match_recognize.interval import standard_window_ms
from pyflinkcep.match_recognize.leaves import LEAF, Leaf
from pyflinkcep.match_recognize.names import Names
from pyflinkcep.match_recognize.tree import Clause, OrderColumn, Rows
from pyflinkcep.spark.arrow.columns import POSITION, VALUE, quoted
from pyflinkcep.spark.plan.analysis import is_ansi
from pyflinkcep.spark.plan.clauses.defines import Defines
from pyflinkcep.spark.plan.clauses.input import own_name
from pyflinkcep.spark.plan.clauses.measures import (
    ROW_COUNT,
    Arguments,
    Value,
    measured,
    values_of,
)
from pyflinkcep.spark.plan.engine import check_engine
from pyflinkcep.spark.plan.expressions import machine_column
from pyflinkcep.spark.worker.runtime import job_name
from pyflinkcep.spark.worker.standard import StandardRows

__all__ = ["LANGUAGE", "StandardJob"]

LANGUAGE = "MATCH_RECOGNIZE"
"""What jobs without a name are named by."""

_MATCHED = "matched"


@attrs.frozen(eq=False)
class StandardJob:
    """
    A clause on a DataFrame, analysed.

    Attributes
    ----------
    dataframe : DataFrame
        The input.
    read : StandardClause
        The clause.
    plan : StandardPlan
        The plan that workers match by.
    arguments : Arguments
        The columns that measures take values from.
    kinds : dict of str to Kind
        The SQL over a row that conditions read.
    shown, rest : list of str
        The input's columns in the output, before and after the measures.
    rows : StandardRows
        How a key's rows become output.
    values : dict of Leaf to (str, DataType)
        The columns of what workers take from matches.
    uses_window : bool
        Whether conditions read columns that Spark computes by its window functions.
    given_name : str or None
        The name that the user gave the job.
    """

    dataframe: DataFrame
    read: StandardClause
    plan: StandardPlan
    arguments: Arguments
    kinds: dict[str, Kind]
    shown: list[str]
    rest: list[str]
    rows: StandardRows
    values: dict[Leaf, tuple[str, DataType]]
    uses_window: bool = False
    given_name: str | None = None

    @classmethod
    def analyse(cls, dataframe: DataFrame, clause: Clause, names: Names) -> StandardJob:
        """
        Check a clause against its input.

        Raises
        ------
        CepError
            If the clause is meaningless, or Spark cannot compute something.
        """
        check_engine(dataframe)
        read = read_clause(clause, names)
        within = standard_window_ms(clause, names.source)
        time, unit = _time(dataframe, clause, names) if within else (None, 1)
        ansi = is_ansi(dataframe)
        defines = Defines.of(read, names, *_windowed(dataframe, clause), ansi)
        read, kinds = defines.read, defines.kinds
        shown, rest = _shown(dataframe, clause)
        values = values_of(read.measures, names, dataframe, NullType())
        if not shown and not rest and not values:
            values = {ROW_COUNT.leaf: ROW_COUNT}
        plan = read.plan(kinds, ansi, within, tuple(values), defines.evaluated)
        plan = plan.with_casts()
        kinds = plan.kinds
        arguments = Arguments(dataframe)
        taken = [*read.measure_arguments(), *defines.evaluated_arguments()]
        measures = {sql: arguments.column(sql) for sql in taken}
        conditions = {sql: f"{VALUE}{number}" for number, sql in enumerate(kinds)}
        schema, columns = _schema(dataframe, clause, [*shown, *rest], plan, values)
        rows = StandardRows(plan, schema, [*shown, *rest], conditions, measures, time, unit)
        return cls(
            dataframe, read, plan, arguments, kinds, shown, rest, rows, columns,
            defines.uses_window,
        )  # fmt: skip

    @property
    def name(self) -> str:
        """The job's name in Spark's UI."""
        return job_name(str(self.read.clause.pattern), self.given_name, LANGUAGE)

    def condition_columns(self) -> dict[str, Column]:
        """Return the columns to add to the input for conditions."""
        return {
            self.rows.conditions[sql]: machine_column(sql, kind) for sql, kind in self.kinds.items()
        }

    def output(self, result: DataFrame) -> DataFrame:
        """Return the clause's output from that of the workers."""
        return measured(
            result,
            [F.col(quoted(name)) for name in self.shown],
            self.read.measures,
            self.values,
            self.read.names,
            self._finish,
            [F.col(quoted(name)) for name in self.rest],
        )

    def _finish(self, _name: str, _expression: Expression, column: Column) -> Column:
        if self.plan.rows is not Rows.WITH_UNMATCHED:
            return column
        return F.when(F.col(_MATCHED), column)


# --- types


def _schema(
    dataframe: DataFrame,
    clause: Clause,
    shown: list[str],
    plan: StandardPlan,
    values: dict[Leaf, Value],
) -> tuple[StructType, dict[Leaf, tuple[str, DataType]]]:
    """Return the schema of the task's output, and the columns of the values in it."""
    fields = [StructField(name, dataframe.schema[name].dataType) for name in shown]
    if clause.rows is Rows.WITH_UNMATCHED:
        fields.append(StructField(_MATCHED, BooleanType()))
    columns = {}
    for number, leaf in enumerate(plan.leaves):
        columns[leaf] = (f"{LEAF}{number}", values[leaf].type)
        fields.append(StructField(*columns[leaf]))
    return StructType(fields), columns


# --- the input


def _windowed(dataframe: DataFrame, clause: Clause) -> tuple[DataFrame, str | None]:
    """Return the input with positions, and the window that is its partitions in their order."""
    if dataframe.isStreaming:
        return dataframe, None
    keys = [quoted(own_name(dataframe, key.text)) for key in clause.partition]
    order = [*(_order_sql(dataframe, column) for column in clause.order), POSITION]
    over = f"{'PARTITION BY ' if keys else ''}{', '.join(keys)} ORDER BY {', '.join(order)}"
    return dataframe.withColumn(POSITION, F.monotonically_increasing_id()), over


def _order_sql(dataframe: DataFrame, column: OrderColumn) -> str:
    first = not column.descending if column.nulls_first is None else column.nulls_first
    name = quoted(own_name(dataframe, column.name.text))
    return f"{name} {'DESC' if column.descending else 'ASC'} NULLS {'FIRST' if first else 'LAST'}"


def _shown(dataframe: DataFrame, clause: Clause) -> tuple[list[str], list[str]]:
    """Return the input's columns in the output, before and after the measures."""
    first = [own_name(dataframe, key.text) for key in clause.partition]
    if clause.rows is Rows.ONE:
        return first, []
    first += [own_name(dataframe, column.name.text) for column in clause.order]
    first = list(dict.fromkeys(first))
    return first, [name for name in dataframe.columns if name not in first]


def _time(dataframe: DataFrame, clause: Clause, names: Names) -> tuple[str, int]:
    """Return the column that WITHIN measures, and its units per millisecond."""
    hint = "write ORDER BY ts first, a timestamp or epoch milliseconds as bigint, ascending"
    if not clause.order or clause.order[0].descending:
        raise names.source.error("WITHIN without a time", hint, *clause.pattern_span, InputError)
    name = own_name(dataframe, clause.order[0].name.text)
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
