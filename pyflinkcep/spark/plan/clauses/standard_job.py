# SPDX-License-Identifier: Apache-2.0
"""A clause with the standard's meaning on a DataFrame, analysed: for bounded and unbounded jobs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import attrs
from pyspark.sql import Column, DataFrame, Window
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

from pyflinkcep.engines.rows.defines import Defines
from pyflinkcep.engines.rows.plan import StandardClause, StandardPlan, read_clause
from pyflinkcep.errors import InputError
from pyflinkcep.expressions.program import Kind
from pyflinkcep.match_recognize.expressions import Expression
from pyflinkcep.match_recognize.interval import standard_window_ms
from pyflinkcep.match_recognize.leaves import LEAF, Leaf
from pyflinkcep.match_recognize.names import Names
from pyflinkcep.match_recognize.tree import Clause, OrderColumn, Rows
from pyflinkcep.matching.columns import MATCHED, POSITION, RANK, VALUE, quoted, refuse_reserved
from pyflinkcep.matching.held_back import HeldBack
from pyflinkcep.matching.layout import Layout
from pyflinkcep.matching.order import OrderColumns
from pyflinkcep.matching.standard_rows import StandardRows
from pyflinkcep.spark.arrow.internals import arrow_schema
from pyflinkcep.spark.plan.analysis import is_ansi, own_name
from pyflinkcep.spark.plan.clauses.decidable import check_decidable, stream_time
from pyflinkcep.spark.plan.clauses.defines import SparkTypes
from pyflinkcep.spark.plan.clauses.input import order_after_time
from pyflinkcep.spark.plan.clauses.measures import (
    ROW_COUNT,
    Arguments,
    Value,
    measured,
    values_of,
)
from pyflinkcep.spark.plan.engine import engine_of
from pyflinkcep.spark.plan.explained import in_sections, watermark_line
from pyflinkcep.spark.plan.expressions import machine_column
from pyflinkcep.spark.plan.job import Job
from pyflinkcep.spark.plan.keys import check_types, one_zero, resolve_keys
from pyflinkcep.spark.plan.micro_batch import check_micro_batch
from pyflinkcep.spark.plan.settings import StreamSettings
from pyflinkcep.spark.plan.source import EventSource
from pyflinkcep.spark.plan.stream import StreamJob, StreamOutput, watermark_of
from pyflinkcep.spark.state.fingerprint import layout_facts
from pyflinkcep.spark.worker.standard import StandardTask
from pyflinkcep.spark.worker.standard_matching import ClauseMatching
from pyflinkcep.spark.worker.unpack import RowsTask

__all__ = ["StandardJob"]

LANGUAGE = "MATCH_RECOGNIZE"
"""What jobs without a name are named by."""


@attrs.frozen(eq=False)
class StandardJob:
    """
    A clause on a DataFrame, analysed.

    Attributes
    ----------
    job : Job
        The rows and the user's settings.
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
    schema : StructType
        What workers return.
    values : dict of Leaf to (str, DataType)
        The columns of what workers take from matches.
    order : OrderColumns or None
        On a stream, the order of rows of equal time.
    """

    job: Job
    read: StandardClause
    plan: StandardPlan
    arguments: Arguments
    kinds: dict[str, Kind]
    shown: list[str]
    rest: list[str]
    rows: StandardRows
    schema: StructType
    values: dict[Leaf, tuple[str, DataType]]
    order: OrderColumns | None

    @classmethod
    def analyse(
        cls, dataframe: DataFrame, clause: Clause, names: Names, settings: StreamSettings
    ) -> StandardJob:
        """
        Check a clause against its input.

        Raises
        ------
        CepError
            If the clause is meaningless, Spark cannot compute something, or a stream cannot decide
            it in time.
        """
        read = read_clause(clause, names)
        within = standard_window_ms(clause, names.source)
        time, unit = _time(dataframe, clause, names) if within else (None, 1)
        ansi = is_ansi(dataframe)
        numbered, over = _windowed(dataframe, clause)
        defines = Defines.of(read, names, SparkTypes(numbered, names), over, ansi)
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
        rows = StandardRows(
            plan, arrow_schema(schema), [*shown, *rest], conditions, measures, time, unit
        )
        order = order_after_time(dataframe, clause) if dataframe.isStreaming else None
        if dataframe.isStreaming:
            check_decidable(read)
            source = _stream_source(dataframe, read, arguments, order, rows)
            settings = attrs.evolve(settings, allows_null_keys=True)
        else:
            source = _bounded_source(dataframe, clause, defines.uses_window)
        job = Job.of(source, settings)
        return cls(job, read, plan, arguments, kinds, shown, rest, rows, schema, columns, order)

    def run(self) -> DataFrame:
        """Return what workers take from the matches of bounded rows."""
        added = {**self.arguments.computed, **self._condition_columns()}
        source = self.job.source
        if POSITION not in source.event_columns:
            added[POSITION] = F.monotonically_increasing_id()
        prepared = self.job.prepared(added, always_hash=bool(source.keys))
        layout, clause = prepared.layout, self.read.clause
        key = [F.col(quoted(name)) for name in layout.key_signature]
        if engine_of(source.dataframe.sparkSession).keeps_order:
            task = StandardTask(self.rows, layout)
            order = [*key, *_order(clause)]
        else:
            task = StandardTask(self.rows, layout, attrs.evolve(layout, time_column=RANK))
            order, ranked = [], _ranked(prepared.events, clause, key, layout.has_order)
            prepared = attrs.evolve(prepared, events=ranked)
        return self.job.run(prepared, task.run, self.schema, order)

    def stream(self) -> StreamJob:
        """Return the job on unbounded rows."""
        conditions = self._condition_columns()
        prepared = self.job.prepared(conditions, tuple(conditions))
        bound = None if self.plan.looks_back else self.plan.within or None
        return StreamJob.of(
            self.job,
            prepared,
            ClauseMatching(rows=self.rows, order=self.order),
            self._fingerprint(prepared.layout),
            StreamOutput(RowsTask(), self.schema, HeldBack(bound, None)),
        )

    def explained(self, statement: str) -> str:
        """Return how the clause of a statement will run, and the statement, which says the rest."""
        lines = ["matched by the standard's rules"]
        if self.job.is_stream:
            lines.append(watermark_line(watermark_of(self.job.source)))
        return f"{in_sections({self.job.name: lines})}\n{statement}"

    def _fingerprint(self, layout: Layout) -> dict[str, str]:
        """Return what must stay the same for stored state to be reused."""
        plan = self.plan
        defined = {name: expression.text for name, expression in plan.conditions.items()}
        return {
            "pattern": str(self.read.clause.pattern),
            "after match": f"{plan.skip.to.name} {plan.skip.variable or ''}".strip(),
            "window": f"{plan.within} ms",
            "rows per match": plan.rows.name,
            "subsets": json.dumps(plan.subsets),
            **{f"DEFINE {name}": text for name, text in defined.items()},
            "rows looked back": str(plan.looks_back),
            "counts rows": str(plan.counts_rows),
            "order": "" if self.order is None else str(self.order),
            **layout_facts(layout, self.job.settings.groups),
            "computed columns": json.dumps([self.arguments.sql, list(self.kinds)]),
        }

    def _condition_columns(self) -> dict[str, Column]:
        """Return the columns to add to the input for conditions."""
        return {
            self.rows.conditions[sql]: machine_column(sql, kind, self.job.source.dataframe)
            for sql, kind in self.kinds.items()
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
        return F.when(F.col(MATCHED), column)


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
        fields.append(StructField(MATCHED, BooleanType()))
    columns = {}
    for number, leaf in enumerate(plan.leaves):
        columns[leaf] = (f"{LEAF}{number}", values[leaf].type)
        fields.append(StructField(*columns[leaf]))
    return StructType(fields), columns


# --- the input


def _stream_source(
    dataframe: DataFrame,
    read: StandardClause,
    arguments: Arguments,
    order: OrderColumns | None,
    rows: StandardRows,
) -> EventSource:
    """Return the rows of a stream."""
    clause, time = read.clause, stream_time(dataframe, read)
    keys = [own_name(dataframe, key.text) for key in clause.partition]
    source = EventSource.of(arguments.added_to(dataframe), keys, time, str(clause.pattern))
    kept = [*keys, time, *([] if order is None else order.names), *rows.shown]
    kept += rows.measures.values()
    return attrs.evolve(source, kept=tuple(dict.fromkeys(kept)), language=LANGUAGE)


def _bounded_source(dataframe: DataFrame, clause: Clause, uses_window: bool) -> EventSource:
    """Return bounded rows, which need no time; with positions if conditions read these."""
    pattern = str(clause.pattern)
    check_micro_batch(dataframe, pattern)
    refuse_reserved(dataframe.columns, LANGUAGE)
    names = [own_name(dataframe, key.text) for key in clause.partition]
    check_types([dataframe.schema[name] for name in names], "key column", LANGUAGE)
    keys, expressions = resolve_keys(dataframe, names, LANGUAGE)
    if uses_window:
        dataframe = dataframe.withColumn(POSITION, F.monotonically_increasing_id())
    return EventSource(dataframe, pattern, keys, None, None, expressions, language=LANGUAGE)


def _ranked(rows: DataFrame, clause: Clause, key: Sequence[Column], known: bool) -> DataFrame:
    """
    Add the place of each row in its key, for an engine that does not keep the order of rows.

    Equal rows have one place if the order of their source is not known.
    """
    names = {column.name.text: own_name(rows, column.name.text) for column in clause.order}
    types = {field.name: field.dataType for field in rows.schema.fields}
    same = {text: one_zero(F.col(quoted(own)), types[own]) for text, own in names.items()}
    order = _order(clause, same)
    window = Window.partitionBy(*(key or [F.lit(0)])).orderBy(*(order if known else order[:-1]))
    place = F.row_number() if known else F.rank()
    return rows.select("*", place.over(window).cast("bigint").alias(RANK))


def _order(clause: Clause, values: Mapping[str, Column] | None = None) -> list[Column]:
    """Return the order of the rows of a key, by columns or given values of them."""
    names = (column.name.text for column in clause.order)
    by = [(values or {}).get(name, F.col(quoted(name))) for name in names]
    order = [_ordered(value, column) for value, column in zip(by, clause.order, strict=True)]
    return [*order, F.col(POSITION)]


def _ordered(name: Column, column: OrderColumn) -> Column:
    first = not column.descending if column.nulls_first is None else column.nulls_first
    if column.descending:
        return name.desc_nulls_first() if first else name.desc_nulls_last()
    return name.asc_nulls_first() if first else name.asc_nulls_last()


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
