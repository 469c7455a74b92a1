# SPDX-License-Identifier: Apache-2.0
"""
All uses of private parts of PySpark, and the differences between its versions.

More are in ``worker/console.py`` and ``state/handle.py``, which are imported where loading this
module would take too long.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.conversion import ArrowTableToRowsConversion, LocalDataToArrowConversion
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType
from pyspark.traceback_utils import SCCallSiteSync

__all__ = [
    "WATERMARK_DELAY",
    "CallSite",
    "all_repeatable",
    "analysed_plan",
    "arrow_schema",
    "local_rows",
    "local_table",
    "set_worker_python",
    "spark_context",
    "worker_python",
]

WATERMARK_DELAY = "spark.watermarkDelayMs"
"""The key in a column's metadata that marks a watermark for Spark."""

# PySpark 4.0 and 4.1 always use UTC between Spark and Python.
_UTC: dict[str, Any] = (
    {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}
)


# --- Arrow and Python


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema that Spark uses for a schema; timestamps in UTC."""
    return to_arrow_schema(schema, **_UTC)


def local_rows(table: pa.Table, schema: StructType) -> Sequence[tuple[Any, ...]]:
    """Return the rows of a table, with the Python types that PySpark's own functions receive."""
    rows: Sequence[tuple[Any, ...]] = ArrowTableToRowsConversion.convert(table, schema)
    return rows


def local_table(rows: Sequence[tuple[Any, ...]], schema: StructType) -> pa.Table:
    """Return a table of rows, converted as PySpark converts the results of its own functions."""
    return LocalDataToArrowConversion.convert(rows, schema, False)


# --- plans; over Spark Connect there are none


def analysed_plan(dataframe: Any) -> Any:
    """Return Spark's analysed plan of a DataFrame; None over Spark Connect."""
    plan = getattr(dataframe, "_jdf", None)
    return None if plan is None else plan.queryExecution().analyzed()


def all_repeatable(dataframe: Any, columns: Sequence[Any]) -> bool:
    """
    Whether Spark can repeat expressions cheaply with the same answers.

    Parameters
    ----------
    dataframe : DataFrame
        The events.
    columns : sequence of Column
        Expressions over them.

    Returns
    -------
    bool
        False for expressions that are random or call Python, and over Spark Connect.
    """
    plan = analysed_plan(dataframe.select(*columns))
    if plan is None:
        return False
    trees = dataframe.sparkSession._jvm.org.apache.spark.sql.catalyst.trees
    python = trees.TreePattern.PYTHON_UDF()
    expressions = plan.expressions()
    return all(
        bool(expression.deterministic()) and not expression.containsPattern(python)
        for expression in map(expressions.apply, range(expressions.size()))
    )


# --- the session


def spark_context(session: Any) -> Any:
    """Return a session's SparkContext; None over Spark Connect."""
    return getattr(session, "_sc", None)


def worker_python(session: Any) -> str | None:
    """
    Return the Python that the workers of a local master run.

    None for any other master, and if files were added for workers to import.
    """
    context = spark_context(session)
    if context is None or not context.master.startswith("local") or context._python_includes:
        return None
    return str(context.pythonExec)


def set_worker_python(session: Any, python: str) -> None:
    """Set the Python that workers run, in jobs planned from now on."""
    spark_context(session).pythonExec = python


class CallSite(SCCallSiteSync):
    """
    Sets the location that Spark's UI shows for jobs within a ``with``.

    Parameters
    ----------
    context : SparkContext
        Where the jobs run.
    place : str
        The location to show, such as ``collect at job.py:12``.
    """

    def __init__(self, context: Any, place: str) -> None:
        self._call_site = place
        self._context = context
