# SPDX-License-Identifier: Apache-2.0
"""A clause with the standard's meaning on bounded input: Spark sorts, a task matches each key."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pyflinkcep.match_recognize.names import Names
from pyflinkcep.match_recognize.tree import Clause, OrderColumn
from pyflinkcep.spark.arrow.columns import HASH, POSITION, RANK, quoted
from pyflinkcep.spark.arrow.layout import Layout
from pyflinkcep.spark.plan.arrow_map import map_in_arrow
from pyflinkcep.spark.plan.clauses.input import own_name
from pyflinkcep.spark.plan.clauses.matched import Matched
from pyflinkcep.spark.plan.clauses.standard_job import StandardJob
from pyflinkcep.spark.plan.clauses.standard_stream import run_stream
from pyflinkcep.spark.plan.engine import engine_of
from pyflinkcep.spark.plan.keys import KeyColumn, key_number, one_zero, resolve_keys
from pyflinkcep.spark.plan.micro_batch import check_micro_batch
from pyflinkcep.spark.plan.shuffle import shuffled
from pyflinkcep.spark.plan.stream import StreamSettings
from pyflinkcep.spark.worker.standard import StandardTask

__all__ = ["standard_clause"]


def standard_clause(
    dataframe: DataFrame, clause: Clause, names: Names, settings: StreamSettings
) -> Matched:
    """
    Plan a clause.

    Parameters
    ----------
    dataframe : DataFrame
        The input.
    clause : Clause
        The clause.
    names : Names
        Its names.
    settings : StreamSettings
        The user's settings for a stream.

    Raises
    ------
    CepError
        If the clause is meaningless, cannot be decided on a stream, or Spark cannot compute
        something.
    """
    job = attrs.evolve(StandardJob.analyse(dataframe, clause, names), given_name=settings.name)
    return run_stream(job, settings) if dataframe.isStreaming else _bounded(job)


def _bounded(job: StandardJob) -> Matched:
    dataframe, clause = job.dataframe, job.read.clause
    check_micro_batch(dataframe, str(clause.pattern))
    keys, expressions = resolve_keys(
        dataframe, [own_name(dataframe, key.text) for key in clause.partition], "MATCH_RECOGNIZE"
    )
    layout = _layout(dataframe, str(clause.pattern), keys)
    added = {
        **expressions,
        **job.arguments.computed,
        **job.condition_columns(),
        **({HASH: key_number(keys, expressions)} if keys else {}),
        POSITION: F.monotonically_increasing_id(),
    }
    if job.uses_window:  # which reads the position
        dataframe = dataframe.withColumn(POSITION, added.pop(POSITION))
    rows = dataframe.select("*", *(column.alias(name) for name, column in added.items()))
    if engine_of(dataframe.sparkSession).keeps_order:
        task = StandardTask(job.rows, layout)
        rows = _sorted(rows, clause, layout)
    else:
        task = StandardTask(job.rows, layout, attrs.evolve(layout, time_column=RANK))
        rows = shuffled(_ranked(rows, clause, layout), layout)
    result = map_in_arrow(rows, task.run, job.rows.schema, job.name)
    return Matched(job.output(result), job.name)


def _layout(dataframe: DataFrame, pattern: str, keys: tuple[KeyColumn, ...]) -> Layout:
    names = tuple(key.name for key in keys)
    return Layout(
        pattern=pattern,
        schema=dataframe.schema,
        payload=(),
        key_names=names,
        key_columns=tuple(key.column for key in keys),
        key_signature=(HASH, *(key.signature for key in keys)) if keys else (),
        time_column=None,
        time_unit=None,
        bit_columns=(),
    )


def _sorted(rows: DataFrame, clause: Clause, layout: Layout) -> DataFrame:
    """Sort rows by key, then by ORDER BY, then by their position in the source."""
    key = [F.col(quoted(name)) for name in layout.key_signature]
    return shuffled(rows, layout).sortWithinPartitions(*key, *_order(clause))


def _ranked(rows: DataFrame, clause: Clause, layout: Layout) -> DataFrame:
    """Add the place of each row in its key, for an engine that does not keep the order of rows."""
    names = {column.name.text: own_name(rows, column.name.text) for column in clause.order}
    types = {field.name: field.dataType for field in rows.schema.fields}
    same = {text: one_zero(F.col(quoted(own)), types[own]) for text, own in names.items()}
    key = [F.col(quoted(name)) for name in layout.key_signature]
    window = Window.partitionBy(*(key or [F.lit(0)])).orderBy(*_order(clause, same))
    return rows.select("*", F.row_number().over(window).cast("bigint").alias(RANK))


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
