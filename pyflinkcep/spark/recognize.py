# SPDX-License-Identifier: Apache-2.0
"""``matchRecognize``, for tables in memory without loading PySpark."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeGuard, cast, overload

from pyflinkcep.errors import (
    Dialect,
    InvalidArgumentError,
    OnPatternChange,
    OnTooManyPartialMatches,
    suggesting,
)
from pyflinkcep.tables import recognize
from pyflinkcep.tables.events import Table
from pyflinkcep.tables.matches import OutputTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pyflinkcep.spark.cep_dataframe import CepDataFrame


# The settings that tables in memory do not have, as they are by default.
_OF_JOBS = (128, "fail", None, None, None)


@overload
def matchRecognize(
    df: DataFrame,
    clause: str,
    dialect: Dialect = "flink",
    keyGroups: int = 128,
    onPatternChange: OnPatternChange = "fail",
    maxPartialMatches: int | None = None,
    onTooManyPartialMatches: OnTooManyPartialMatches = "fail",
    args: Mapping[str, Any] | Sequence[Any] | None = None,
    maxAhead: timedelta | str | None = None,
    name: str | None = None,
    parallelTasks: int | None = None,
) -> CepDataFrame: ...
@overload
def matchRecognize(
    df: Table | Sequence[Mapping[str, Any]],
    clause: str,
    dialect: Dialect = "flink",
    *,
    maxPartialMatches: int | None = None,
    onTooManyPartialMatches: OnTooManyPartialMatches = "fail",
    args: Mapping[str, Any] | Sequence[Any] | None = None,
    threads: int | None = None,
    memory: int | str | None = None,
) -> OutputTable: ...
@suggesting
def matchRecognize(
    df: DataFrame | Table | Sequence[Mapping[str, Any]],
    clause: str,
    dialect: Dialect = "flink",
    keyGroups: int = 128,
    onPatternChange: OnPatternChange = "fail",
    maxPartialMatches: int | None = None,
    onTooManyPartialMatches: OnTooManyPartialMatches = "fail",
    args: Mapping[str, Any] | Sequence[Any] | None = None,
    maxAhead: timedelta | str | None = None,
    name: str | None = None,
    parallelTasks: int | None = None,
    threads: int | None = None,
    memory: int | str | None = None,
) -> CepDataFrame | OutputTable:
    """
    Apply the clause MATCH_RECOGNIZE to a DataFrame, or to a table in memory.

    Parameters
    ----------
    df : DataFrame or table
        The rows, bounded or a stream with a watermark; or a table in memory, for which see
        :func:`pyflinkcep.tables.matchRecognize`.
    clause : str
        The text between the parentheses of MATCH_RECOGNIZE.
    dialect, keyGroups, onPatternChange, maxPartialMatches, onTooManyPartialMatches
        See :meth:`CEP.sql`.
    args, maxAhead, name, parallelTasks
        See :meth:`CEP.sql`.
    threads : int, at least 1, optional
        Of a table in memory: see :func:`pyflinkcep.tables.matchRecognize`.
    memory : int, bytes from 1, or str, optional
        Of files: see :func:`pyflinkcep.tables.matchRecognize`.

    Returns
    -------
    CepDataFrame or OutputTable
        The clause's output; of a table in memory, rows in memory.

    Raises
    ------
    CepError
        If the clause is wrong or refused; the message names line and column.
    InvalidArgumentError
        If a table in memory is given with a setting of jobs, or `threads` or `memory` with a
        DataFrame.

    Examples
    --------
    With `events` as in :func:`pyflinkcep.keyBy`:

    >>> clause = "PARTITION BY user ORDER BY ts MEASURES O.ts AS at PATTERN (F O)"
    >>> clause += " DEFINE F AS F.result = 'fail', O AS O.result = 'ok'"
    >>> matchRecognize(events, clause).columns
    ['user', 'at']
    """
    if _is_of_spark(df):
        from pyflinkcep.engines.choice import AUTOMATON
        from pyflinkcep.spark.plan.engine import prepare_sessions
        from pyflinkcep.spark.plan.settings import JobSettings
        from pyflinkcep.spark.statements import SqlOptions, run_clause

        if threads is not None:
            raise InvalidArgumentError(
                f"threads={threads!r}, and a DataFrame of Spark, whose tasks have a core each",
                "leave it out; parallelTasks says in how many tasks a stream is matched",
            )
        if memory is not None:
            raise InvalidArgumentError(
                f"memory={memory!r}, and a DataFrame of Spark, which has its own settings of it",
                "leave it out, and set spark.executor.memory",
            )
        prepare_sessions()
        settings = JobSettings(
            keyGroups,
            onPatternChange,
            max_ahead=maxAhead,
            name=name,
            parallel_tasks=parallelTasks,
            limit=recognize.clause_limit(dialect, maxPartialMatches, onTooManyPartialMatches),
            evaluation=AUTOMATON,
        )
        options = SqlOptions(dialect, settings, args)
        return run_clause(df, clause, options)
    of_jobs = (keyGroups, onPatternChange, maxAhead, name, parallelTasks)
    pairs = zip(of_jobs, _OF_JOBS, strict=True)
    if not all(type(own) is type(usual) and own == usual for own, usual in pairs):
        raise InvalidArgumentError(
            f"a setting of jobs, and {type(df).__name__}, which is not a DataFrame of Spark",
            "leave out keyGroups, onPatternChange, maxAhead, name and parallelTasks; for a "
            "table of Spark, write matchRecognize(spark.table('events'), clause)",
        )
    rows = cast("Table | Sequence[Mapping[str, Any]]", df)
    return recognize.matchRecognize(
        rows, clause, dialect, maxPartialMatches, onTooManyPartialMatches, args, threads, memory
    )


def _is_of_spark(rows: Any) -> TypeGuard[DataFrame]:
    """Whether rows are a DataFrame of Spark, which there is none of before PySpark is loaded."""
    sql = sys.modules.get("pyspark.sql")
    return sql is not None and isinstance(rows, sql.DataFrame)
