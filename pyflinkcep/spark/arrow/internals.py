# SPDX-License-Identifier: Apache-2.0
"""All uses of private parts of PySpark, and the differences between its versions.

More are in ``worker/processor.py`` and ``state/storage.py``, which are imported where loading this
module would take too long.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql.conversion import ArrowTableToRowsConversion, LocalDataToArrowConversion
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType, TimestampType
from pyspark.traceback_utils import SCCallSiteSync

# The key in a column's metadata that marks a watermark for Spark.
WATERMARK_DELAY = "spark.watermarkDelayMs"

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


def shown_plan(dataframe: Any) -> str:
    """Return the physical plan of a DataFrame as text."""
    return str(dataframe._explain_string())


def all_repeatable(dataframe: Any, columns: Sequence[Any]) -> bool:
    """Whether Spark can repeat expressions cheaply with the same answers."""
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


def hadoop_path(session: Any, path: str) -> Any:
    """Return the whole path of a file as Hadoop reads it: Java's URI."""
    found = session._jvm.org.apache.hadoop.fs.Path(path)
    conf = session._jsparkSession.sessionState().newHadoopConf()
    return found.getFileSystem(conf).makeQualified(found).toUri()


def is_local(context: Any) -> bool:
    """Whether workers run on the driver's machine."""
    return context is not None and str(context.master).startswith("local")


def worker_python(context: Any) -> str | None:
    """Return the Python that the workers of a local master run."""
    # None for any other master, and if files were added for workers to import.
    if not is_local(context) or context._python_includes:
        return None
    return str(context.pythonExec)


def set_worker_python(context: Any, python: str) -> None:
    """Set the Python that workers run, in jobs planned from now on."""
    context.pythonExec = python


def local_server_python(session: Any) -> str | None:
    """Return the Python of the workers of a Spark Connect server that this process has started."""
    # None for any other session. The server reads it from the environment of its JVM.
    context = SparkContext._active_spark_context
    plugins = "" if context is None else context.getConf().get("spark.plugins", "")
    if spark_context(session) is not None or "SparkConnectPlugin" not in (plugins or ""):
        return None
    environment = context._jvm.java.lang.System.getenv()  # type: ignore[union-attr]
    names = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
    return next((str(found) for name in names if (found := environment.get(name))), "python3")


def watch_contexts(
    started: Callable[[Any], object], launching: Callable[[], AbstractContextManager[None]]
) -> None:
    """Call functions when Spark starts."""
    begin: Any = SparkContext._do_init
    launch: Any = SparkContext._ensure_initialized.__func__  # type: ignore[attr-defined]

    @functools.wraps(begin)
    def begun(self: Any, *args: Any, **more: Any) -> None:
        begin(self, *args, **more)
        started(self)

    @functools.wraps(launch)
    def launched(cls: Any, *args: Any, **more: Any) -> None:
        is_server = cls._gateway is None and "SPARK_LOCAL_REMOTE" in os.environ
        with launching() if is_server else nullcontext():
            launch(cls, *args, **more)

    own: Any = SparkContext
    own._do_init, own._ensure_initialized = begun, classmethod(launched)
    if SparkContext._active_spark_context is not None:
        started(SparkContext._active_spark_context)


class CallSite(SCCallSiteSync):
    """Sets the location that Spark's UI shows for jobs within a ``with``."""

    def __init__(self, context: Any, place: str) -> None:
        self._call_site = place
        self._context = context


# Marks a time of matches, of any type, that the watermark handed on is never ahead of.
_HANDED_ON = "pyflinkcep.handedOn"


def marks(type_: DataType, delay_ms: int) -> dict[str, Any]:
    """Return the metadata of a column of matches that the watermark handed on is never ahead of."""
    if isinstance(type_, TimestampType):  # Spark has no other event times
        return {_HANDED_ON: True, WATERMARK_DELAY: delay_ms}
    return {_HANDED_ON: True}


def is_event_time(field: StructField) -> bool:
    """Whether a column is marked, by Spark or by :func:`marks`."""
    return not {_HANDED_ON, WATERMARK_DELAY}.isdisjoint(field.metadata or {})


def is_of_matches(field: StructField) -> bool:
    """Whether a column is marked by :func:`marks`."""
    return _HANDED_ON in (field.metadata or {})


def without_marks(type_: Any) -> Any:
    """Return a schema, or another type, without marks."""
    # The events of matches and late events are older than the watermark: Spark would take a column
    # of theirs for an event time, and drop their rows as late.
    if isinstance(type_, StructType):
        return StructType([_unmarked(field) for field in type_.fields])
    if isinstance(type_, ArrayType):
        return ArrayType(without_marks(type_.elementType), type_.containsNull)
    if isinstance(type_, MapType):
        key, value = without_marks(type_.keyType), without_marks(type_.valueType)
        return MapType(key, value, type_.valueContainsNull)
    return type_


def _unmarked(field: StructField) -> StructField:
    known = (field.metadata or {}).items()
    metadata = {key: value for key, value in known if key not in (_HANDED_ON, WATERMARK_DELAY)}
    return StructField(field.name, without_marks(field.dataType), field.nullable, metadata)
