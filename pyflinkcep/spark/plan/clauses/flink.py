# SPDX-License-Identifier: Apache-2.0
"""A clause with Flink's meaning on a DataFrame: a pattern's job whose results are measures."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import attrs
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DecimalType,
    LongType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyflinkcep.errors import CepError, InputError
from pyflinkcep.match_recognize.expressions import Expression
from pyflinkcep.match_recognize.flink import FlinkClause, read_flink_clause
from pyflinkcep.match_recognize.interval import window_ms
from pyflinkcep.match_recognize.leaves import LEAF, Leaf
from pyflinkcep.match_recognize.names import Names
from pyflinkcep.match_recognize.tree import Clause
from pyflinkcep.nfa import NFACompiler
from pyflinkcep.operator import PartialMatchLimit
from pyflinkcep.spark.arrow.columns import quoted
from pyflinkcep.spark.arrow.internals import WATERMARK_DELAY
from pyflinkcep.spark.matching.order import OrderColumns
from pyflinkcep.spark.plan.analysis import is_ansi
from pyflinkcep.spark.plan.batch import run_batch
from pyflinkcep.spark.plan.clauses.input import own_name, partition_keys
from pyflinkcep.spark.plan.clauses.matched import Matched
from pyflinkcep.spark.plan.clauses.measures import Arguments, Value, measured, values_of
from pyflinkcep.spark.plan.job import Job
from pyflinkcep.spark.plan.source import EventSource
from pyflinkcep.spark.plan.stream import StreamJob, StreamSettings
from pyflinkcep.spark.worker.measures import LeafColumn, ValueConsumer

__all__ = ["flink_clause"]

_STAGE = re.compile(r"stage '([^']+)'")


def flink_clause(
    dataframe: DataFrame,
    clause: Clause,
    names: Names,
    settings: StreamSettings,
    limit: PartialMatchLimit | None,
) -> Matched:
    """
    Plan a clause.

    Parameters
    ----------
    dataframe : DataFrame
        The input, bounded or not.
    clause : Clause
        The clause.
    names : Names
        What its names mean.
    settings : StreamSettings
        The user's settings for a stream.
    limit : PartialMatchLimit or None
        How many partial matches a key may have.

    Raises
    ------
    CepError
        If Flink refuses the clause, or Spark cannot compute something in it.
    """
    time = _time_column(dataframe, clause, names)
    within = window_ms(clause, names.source)
    read = read_flink_clause(clause, names, within, partial(_is_decimal, dataframe))
    keys = [own_name(dataframe, key.text) for key in clause.partition]
    order = [
        (own_name(dataframe, column.name.text), column.descending, column.nulls_first)
        for column in clause.order[1:]
    ]
    time_type = dataframe.schema[time].dataType
    values = values_of(read.measures, names, dataframe, time_type)
    arguments = Arguments(dataframe)
    leaves = [
        LeafColumn(
            leaf.function,
            leaf.variable,
            _argument(arguments, leaf, value),
            leaf.offset,
        )
        for leaf, value in values.items()
    ]
    own = [leaf.column for leaf in leaves if leaf.column and leaf.column in dataframe.columns]
    kept = dict.fromkeys([*keys, time, *(name for name, _, _ in order), *own])
    is_stream = dataframe.isStreaming

    def job_on(frame: DataFrame) -> Job:
        events = frame.select("*", *(c.alias(n) for n, c in arguments.computed.items()))
        by = partition_keys(frame, keys, is_stream)
        return _job(read, events, by, time, order, limit, (*kept, *arguments.computed))

    job = job_on(dataframe)
    events = job.source.dataframe
    fields = [StructField(key, dataframe.schema[key].dataType) for key in keys]
    columns = {leaf: (f"{LEAF}{number}", v.type) for number, (leaf, v) in enumerate(values.items())}
    fields += [StructField(name, type_) for name, type_ in columns.values()]
    ansi = is_ansi(dataframe)
    leaves = [*(LeafColumn("first", None, key) for key in keys), *leaves]
    consumer = ValueConsumer(StructType(fields), [], leaves, job.source.time_unit, ansi)
    delay = job.source.watermark_delay_ms if dataframe.isStreaming else None
    finish = _finish(delay if isinstance(time_type, TimestampType) else None)

    def rest(result: DataFrame) -> DataFrame:
        own_keys = [F.col(quoted(key)) for key in keys]
        return measured(result, own_keys, read.measures, columns, names, finish)

    if not is_stream:
        return Matched(
            rest(run_batch(job, consumer)), job.name, read.pattern, events, tuple(keys), time
        )
    stream = StreamJob.of(job, consumer, settings, None, arguments.sql)

    def flush(checkpoint: str, operator: int, arriving: DataFrame | None) -> DataFrame:
        if arriving is not None:
            arriving = StreamJob.of(
                job_on(arriving), consumer, settings, None, arguments.sql
            ).events
        return rest(stream.flush(checkpoint, operator, arriving))

    return Matched(rest(stream.run()), job.name, read.pattern, events, tuple(keys), time, flush)


def _argument(arguments: Arguments, leaf: Leaf, value: Value) -> str | None:
    """Return the column of an event that a value is taken from."""
    if leaf.argument is None:
        return None
    is_sum = leaf.function == "sum"
    return arguments.column(leaf.argument, value.type if is_sum else None)


def _job(
    read: FlinkClause,
    events: DataFrame,
    keys: list[str | Column],
    time: str,
    order: list[tuple[str, bool, bool | None]],
    limit: PartialMatchLimit | None,
    kept: tuple[str, ...],
) -> Job:
    nfa = NFACompiler.compile(read.pattern, False)
    source = EventSource.of(events, keys, time, False, nfa.description)
    source = attrs.evolve(source, kept=kept)
    comparator = OrderColumns.of(order) if order else None
    try:
        return Job.analyse(read.pattern, nfa, source, comparator, limit)
    except CepError as refused:
        raise _placed(refused, read) from refused


def _placed(refused: CepError, read: FlinkClause) -> CepError:
    """Reword an error about a stage's condition as one about its DEFINE."""
    stage = _STAGE.search(refused.message)
    for definition in read.clause.definitions:
        if stage is not None and definition.variable == stage[1]:
            text = refused.message.rpartition("': ")[2].rpartition("' ")[2]
            return read.names.source.error(
                f"DEFINE {stage[1]} is not a condition: {text}",
                refused.hint or "write a condition",
                *definition.condition.span,
                InputError,
            )
    return refused


def _finish(delay_ms: int | None) -> Callable[[str, Expression, Column], Column]:
    """Return the function that makes MATCH_ROWTIME() carry the stream's watermark."""

    def finish(name: str, expression: Expression, column: Column) -> Column:
        is_time = [leaf.function for leaf in expression.leaves] == ["rowtime"]
        if delay_ms is None or not is_time or expression.sql.strip() != f"{LEAF}0":
            return column
        return column.alias(name, metadata={WATERMARK_DELAY: delay_ms})

    return finish


# --- the input


def _is_decimal(dataframe: DataFrame, sql: str) -> bool:
    """Whether an expression over one event gives a decimal."""
    try:
        return isinstance(dataframe.select(F.expr(sql)).schema.fields[0].dataType, DecimalType)
    except Exception:
        return False  # refused later, when its position is known


def _time_column(dataframe: DataFrame, clause: Clause, names: Names) -> str:
    """Return the column of ORDER BY that is the time; refuse what Flink refuses."""
    streaming = dataframe.isStreaming
    error = names.source.error
    if not clause.order:
        what = "either rowtime or proctime for order by" if streaming else "non-empty order by"
        raise error(
            f"You must specify {what}.", "write ORDER BY ts, the event time",
            *clause.pattern_span, InputError,
        )  # fmt: skip
    first = clause.order[0]
    name = own_name(dataframe, first.name.text)
    type_ = dataframe.schema[name].dataType
    is_time = isinstance(type_, TimestampType | TimestampNTZType | LongType)
    if not is_time:
        what = "either rowtime or proctime for order by" if streaming else "time point for order by"
        raise error(
            f"You must specify {what} as the first one.",
            f"put the event time first: {name} is {type_.simpleString()}",
            *first.name.span,
            InputError,
        )
    if first.descending:
        table = "streaming table" if streaming else "table"
        raise error(
            f"Primary sort order of a {table} must be ascending on time.",
            f"write ORDER BY {name}",
            *first.name.span,
            InputError,
        )
    return name
