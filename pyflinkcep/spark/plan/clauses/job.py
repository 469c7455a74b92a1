# SPDX-License-Identifier: Apache-2.0
"""Clauses on a DataFrame, analysed: with Flink's meaning a pattern's job, or the standard's."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import attrs
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.engines.rows.plan import (
    Defines,
    StandardClause,
    StandardPlan,
    error_of,
    read_clause,
)
from pyflinkcep.engines.rows.program import Op
from pyflinkcep.errors import CepError, InputError, NotSupportedError
from pyflinkcep.expressions.program import Field, Kind
from pyflinkcep.match_recognize.checks import check_time, within_time
from pyflinkcep.match_recognize.expressions import Expression, condition_leaves
from pyflinkcep.match_recognize.flink import FlinkClause, read_flink_clause
from pyflinkcep.match_recognize.names import Names
from pyflinkcep.match_recognize.parser import standard_window_ms, window_ms
from pyflinkcep.match_recognize.tree import Clause, Rows
from pyflinkcep.matching.columns import MATCHED, POSITION, RANK, VALUE, quoted, refuse_reserved
from pyflinkcep.matching.held_back import HeldBack
from pyflinkcep.matching.layout import Layout
from pyflinkcep.matching.leaf_columns import LeafColumn
from pyflinkcep.matching.order import OrderColumns
from pyflinkcep.matching.standard_rows import StandardRows, leaf_column
from pyflinkcep.spark.arrow.internals import arrow_schema, marks
from pyflinkcep.spark.plan.analysis import is_ansi
from pyflinkcep.spark.plan.clauses.measures import (
    ROW_COUNT,
    Arguments,
    Values,
    argument_types,
    computed_late,
    measured,
    order_after_time,
    partition_keys,
    time_type,
    type_of_measure,
    values_of,
)
from pyflinkcep.spark.plan.conditions import kind_of, machine_column
from pyflinkcep.spark.plan.engine import engine_of
from pyflinkcep.spark.plan.job import Job
from pyflinkcep.spark.plan.outputs import match_times
from pyflinkcep.spark.plan.patterns.explanation import explanation
from pyflinkcep.spark.plan.patterns.job import PatternJob
from pyflinkcep.spark.plan.patterns.prefilter import why_unfiltered
from pyflinkcep.spark.plan.settings import JobSettings, check_bounded
from pyflinkcep.spark.plan.source import (
    EventSource,
    check_micro_batch,
    check_types,
    one_zero,
    resolve_keys,
    sorting,
)
from pyflinkcep.spark.plan.stream import StreamJob, StreamOutput, watermark_of
from pyflinkcep.spark.plan.watermark import in_sections
from pyflinkcep.spark.state.fingerprint import layout_facts
from pyflinkcep.spark.worker.bucket_task import PagesMatching
from pyflinkcep.spark.worker.consumers import ValueConsumer
from pyflinkcep.spark.worker.pack import RowsTask
from pyflinkcep.spark.worker.standard import ClausePages, StandardTask


@attrs.frozen(eq=False)
class FlinkJob:
    """A clause on a DataFrame, analysed."""

    read: FlinkClause  # The clause
    matched: PatternJob  # Its pattern on the events
    keys: tuple[str, ...]  # The partition columns
    time: str  # The time column
    arguments: Arguments  # The columns that measures take values from
    values: Values  # What workers take from matches
    _leaves: tuple[LeafColumn, ...]

    @classmethod
    def analyse(
        cls, dataframe: DataFrame, clause: Clause, names: Names, settings: JobSettings
    ) -> FlinkJob:
        """Check a clause against its input."""
        check_time(clause, names, time_type(dataframe), is_stream=dataframe.isStreaming)
        time = clause.order[0].name.text
        within = window_ms(clause, names.source)
        read = read_flink_clause(clause, names, within)
        read = attrs.evolve(read, measures=computed_late(read.measures, dataframe))
        keys, order = tuple(clause.keys), order_after_time(clause)
        values = values_of(read.measures, names, dataframe, dataframe.schema[time].dataType)
        if not keys and not values:
            values = ROW_COUNT
        arguments = Arguments(dataframe)
        leaves = tuple(
            leaf_column(leaf, partial(arguments.column, cast=value.summed))
            for leaf, value in values.items()
        )
        own = [leaf.column for leaf in leaves if leaf.column and leaf.column in dataframe.columns]
        ordering = [] if order is None else order.names
        kept = dict.fromkeys([*keys, time, *ordering, *own, *arguments.computed])
        events = arguments.added_to(dataframe)
        by = partition_keys(dataframe, keys, is_stream=dataframe.isStreaming)
        nfa = NFACompiler.compile(read.pattern)
        if not dataframe.isStreaming:
            check_bounded(nfa.description, settings.limit, processing_time=False)
        source = EventSource.of(events, by, time, nfa.description)
        job = Job.of(attrs.evolve(source, kept=tuple(kept)), settings)
        try:
            matched = PatternJob.analyse(job, read.pattern, nfa, order)
        except CepError as refused:
            raise read.placed(refused) from refused
        return cls(read, matched, keys, time, arguments, values, leaves)

    @property
    def job(self) -> Job:
        """The rows and the user's settings."""
        return self.matched.job

    def run(self) -> DataFrame:
        """Return what workers take from the matches of bounded rows."""
        return self.matched.run(self._consumer())

    def stream(self) -> StreamJob:
        """Return the job on unbounded rows."""
        return self.matched.stream(self._consumer(), {}, self.arguments.sql)

    def explained(self, _statement: str) -> str:
        """Return how the pattern of the clause will run."""
        unfiltered = why_unfiltered(processing_time=False, limited=self.matched.limit is not None)
        return explanation(self.read.pattern, self._events, self.keys, self.time, unfiltered)

    @property
    def _events(self) -> DataFrame:
        return self.job.source.dataframe

    def _consumer(self) -> ValueConsumer:
        """Return the consumer that takes the key and the values from matches."""
        fields = [T.StructField(key, self._events.schema[key].dataType) for key in self.keys]
        fields += [T.StructField(value.name, value.type) for value in self.values.values()]
        leaves = [*(LeafColumn("first", None, key) for key in self.keys), *self._leaves]
        times = match_times(self.job.source, self.matched.nfa)
        return ValueConsumer(T.StructType(fields), [], leaves, times, is_ansi(self._events))

    def output(self, result: DataFrame) -> DataFrame:
        """Return the clause's output from that of the workers."""
        keys = [F.col(quoted(key)) for key in self.keys]
        read = self.read
        return measured(result, keys, read.measures, self.values, read.names, self._finish)

    def _finish(self, name: str, expression: Expression, column: Column) -> Column:
        """Let MATCH_ROWTIME() carry the stream's watermark."""
        leaf = expression.lone_leaf
        if not self._events.isStreaming or leaf is None or leaf.function != "rowtime":
            return column
        source, type_ = self.job.source, self._events.schema[self.time].dataType
        handed_on = {} if source.is_guarded else marks(type_, source.watermark_delay_ms)
        return column.alias(name, metadata=handed_on)


def check_decidable(read: StandardClause) -> None:
    """Refuse what only the end of the input decides."""
    if any(op is Op.END for op, _, _ in read.program.code):
        raise _refused(read, "$ on a stream", read.clause.pattern_span)
    for what, name, expression in _expressions(read):
        where = f"{what} {name}"
        if any(leaf.shift > 0 for leaf in expression.leaves):
            raise _refused(read, f"{where}: NEXT on a stream", expression.span)
        fold = next((leaf.fold for leaf in expression.leaves if leaf.fold is not None), None)
        if fold is not None and what == "measure":
            raise read.names.source.error(
                f"{where}: {fold.name.upper()} on a stream, where COUNT, SUM, AVG, MIN, "
                "MAX and ARRAY_AGG are computed",
                "write ARRAY_AGG and a function of arrays: size(array_distinct(ARRAY_AGG(A.x))), "
                "filter(ARRAY_AGG(A.x), x -> x > 0), aggregate(ARRAY_AGG(A.x), …)",
                *expression.span,
                NotSupportedError,
            )


def _expressions(read: StandardClause) -> Iterator[tuple[str, str, Expression]]:
    """Yield DEFINE and MEASURES, each with what it is and its name."""
    for name, expression in read.conditions.items():
        yield "DEFINE", name, expression
    for name, expression in read.measures.items():
        yield "measure", name, expression


def _refused(read: StandardClause, what: str, span: tuple[int, int]) -> CepError:
    return read.names.source.error(
        f"{what}: later rows decide it",
        "write the stream to a table and match that, or add one more variable at the end",
        *span,
        NotSupportedError,
    )


def stream_time(dataframe: DataFrame, read: StandardClause) -> str:
    """Return the first column of ORDER BY, which must be the event time."""
    clause, source = read.clause, read.names.source
    what = 'dialect="standard" on a stream: ORDER BY must begin with the event time, ascending'
    if not clause.order:
        raise source.error(what, "write ORDER BY ts", *clause.pattern_span, InputError)
    first = clause.order[0]
    name = first.name.text
    type_ = dataframe.schema[name].dataType
    if first.descending or not isinstance(type_, T.TimestampType | T.TimestampNTZType | T.LongType):
        shown = "descending" if first.descending else type_.simpleString()
        hint = f"put the watermarked time first: {name} is {shown}"
        raise source.error(what, hint, *first.name.span, InputError)
    return name


@attrs.frozen(eq=False)
class SparkTypes:
    """See :class:`~pyflinkcep.engines.rows.plan.RowTypes`."""

    dataframe: DataFrame  # The input
    names: Names  # The names of the clause

    def kinds(self, read: StandardClause) -> dict[str, Kind]:
        """Return the types of the conditions' arguments."""
        errors: dict[str, Callable[[str, str], CepError]] = {}
        for variable, expression in read.conditions.items():
            for sql in read.arguments_of(condition_leaves(expression)):
                errors.setdefault(sql, error_of(self.names, variable, expression))
        kinds = {}
        for sql, type_ in argument_types(self.dataframe, errors).items():
            kind = Kind.STRING if isinstance(type_, T.NullType) else kind_of(type_)
            if kind is None:
                raise errors[sql](
                    f"{sql} is {type_.simpleString()}",
                    "use a number, boolean, string, date, timestamp or day-time interval",
                )
            kinds[sql] = kind
        return kinds

    def check(self, variable: str, expression: Expression) -> None:
        """Refuse a condition that is none."""
        error = error_of(self.names, variable, expression)
        values = values_of(
            {variable: expression}, self.names, self.dataframe, T.NullType(), "DEFINE"
        )
        schema = T.StructType([T.StructField(value.name, value.type) for value in values.values()])
        empty = self.dataframe.sparkSession.createDataFrame([], schema)
        type_ = type_of_measure(empty, variable, expression, values, self.names, "DEFINE")
        if not isinstance(type_, T.BooleanType):
            raise error(
                f"not a condition: expected boolean, got {type_.simpleString()}",
                "compare it with a value",
            )


LANGUAGE = "MATCH_RECOGNIZE"  # What jobs without a name are named by


@attrs.frozen(eq=False)
class StandardJob:
    """A clause on a DataFrame, analysed."""

    job: Job  # The rows and the user's settings
    read: StandardClause  # The clause
    plan: StandardPlan  # The plan that workers match by
    arguments: Arguments  # The columns that measures take values from
    kinds: dict[str, Kind]  # The SQL over a row that conditions read
    # The input's columns in the output, before and after the measures.
    shown: list[str]
    rest: list[str]
    rows: StandardRows  # How a key's rows become output
    schema: T.StructType  # What workers return
    values: Values  # The columns of what workers take from matches
    order: OrderColumns | None  # On a stream, the order of rows of equal time

    @classmethod
    def analyse(
        cls, dataframe: DataFrame, clause: Clause, names: Names, settings: JobSettings
    ) -> StandardJob:
        """Check a clause against its input."""
        read = read_clause(clause, names)
        read = attrs.evolve(read, measures=computed_late(read.measures, dataframe))
        within = standard_window_ms(clause, names.source)
        time = within_time(clause, names, time_type(dataframe)) if within else None
        is_bigint = time is None or isinstance(dataframe.schema[time].dataType, T.LongType)
        ansi = is_ansi(dataframe)
        numbered, over = _windowed(dataframe, clause)
        defines = Defines.of(read, names, SparkTypes(numbered, names), over, ansi)
        read, kinds = defines.read, defines.kinds
        shown, rest = clause.shown(dataframe.columns)
        values = values_of(read.measures, names, dataframe, T.NullType())
        if not shown and not rest and not values:
            values = ROW_COUNT
        plan = read.plan(kinds, ansi, within, tuple(values), defines.evaluated)
        plan = plan.with_casts()
        kinds = plan.kinds
        arguments = Arguments(dataframe)
        taken = [*read.measure_arguments(), *defines.evaluated_arguments()]
        measures = {sql: arguments.column(sql) for sql in taken}
        conditions = {sql: f"{VALUE}{number}" for number, sql in enumerate(kinds)}
        fields = [T.StructField(name, dataframe.schema[name].dataType) for name in [*shown, *rest]]
        if clause.rows is Rows.WITH_UNMATCHED:
            fields.append(T.StructField(MATCHED, T.BooleanType()))
        fields += [T.StructField(value.name, value.type) for value in values.values()]
        schema = T.StructType(fields)
        rows = StandardRows(
            plan,
            arrow_schema(schema),
            [*shown, *rest],
            conditions,
            measures,
            time,
            1 if is_bigint else 1000,
        )
        order = order_after_time(clause) if dataframe.isStreaming else None
        if dataframe.isStreaming:
            check_decidable(read)
            source = _stream_source(dataframe, read, arguments, order, rows)
            settings = attrs.evolve(settings, allows_null_keys=True)
        else:
            source = _bounded_source(dataframe, clause, defines.uses_window)
        job = Job.of(source, settings)
        return cls(job, read, plan, arguments, kinds, shown, rest, rows, schema, values, order)

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
            PagesMatching(pages=partial(ClausePages, self.rows), order=self.order),
            self._fingerprint(prepared.layout),
            StreamOutput(RowsTask(), self.schema, HeldBack(bound, None)),
        )

    def explained(self, statement: str) -> str:
        """Return how the clause of a statement will run, and the statement, which says the rest."""
        lines = ["matched by the standard's rules"]
        if self.job.is_stream:
            lines.append(f"watermark: {watermark_of(self.job.source)}")
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
            "computed columns": json.dumps(
                [self.arguments.sql, [Field(*value).stored for value in self.kinds.items()]]
            ),
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
    keys = clause.keys
    source = EventSource.of(arguments.added_to(dataframe), keys, time, str(clause.pattern))
    kept = [*keys, time, *([] if order is None else order.names), *rows.shown]
    kept += rows.measures.values()
    return attrs.evolve(source, kept=tuple(dict.fromkeys(kept)), language=LANGUAGE)


def _bounded_source(dataframe: DataFrame, clause: Clause, uses_window: bool) -> EventSource:
    """Return bounded rows, which need no time; with positions if conditions read these."""
    pattern = str(clause.pattern)
    check_micro_batch(dataframe, pattern)
    refuse_reserved(dataframe.columns, LANGUAGE)
    names = clause.keys
    check_types([dataframe.schema[name] for name in names], "key column", LANGUAGE)
    keys, expressions = resolve_keys(dataframe, names, LANGUAGE)
    if uses_window:
        dataframe = dataframe.withColumn(POSITION, F.monotonically_increasing_id())
    return EventSource(dataframe, pattern, keys, None, None, expressions, language=LANGUAGE)


def _ranked(rows: DataFrame, clause: Clause, key: Sequence[Column], known: bool) -> DataFrame:
    """Add the place of each row in its key, for an engine that does not keep the order of rows."""
    # Equal rows have one place if the order of their source is not known.
    types = {field.name: field.dataType for field in rows.schema.fields}
    same = {name: one_zero(F.col(quoted(name)), types[name]) for name, _, _ in clause.ordering}
    order = _order(clause, same)
    window = Window.partitionBy(*(key or [F.lit(0)])).orderBy(*(order if known else order[:-1]))
    place = F.row_number() if known else F.rank()
    return rows.select("*", place.over(window).cast("bigint").alias(RANK))


def _order(clause: Clause, values: Mapping[str, Column] | None = None) -> list[Column]:
    """Return the order of the rows of a key, by columns or given values of them."""
    return [*sorting(OrderColumns.of(clause.ordering), values), F.col(POSITION)]


def _windowed(dataframe: DataFrame, clause: Clause) -> tuple[DataFrame, str | None]:
    """Return the input with positions, and the window that is its partitions in their order."""
    if dataframe.isStreaming:
        return dataframe, None
    keys = ", ".join(map(quoted, clause.keys))
    order = OrderColumns.of((quoted(name), down, nulls) for name, down, nulls in clause.ordering)
    by = ", ".join([*([str(order)] if clause.order else []), POSITION])
    over = f"{'PARTITION BY ' if keys else ''}{keys} ORDER BY {by}"
    return dataframe.withColumn(POSITION, F.monotonically_increasing_id()), over
