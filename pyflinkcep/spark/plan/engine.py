# SPDX-License-Identifier: Apache-2.0
"""What runs a session's jobs: Spark, or another engine behind Spark Connect, tried before use."""

from __future__ import annotations

import functools
import logging
import os
import re
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import attrs
import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from pyflinkcep.errors import InputError, NotSupportedError
from pyflinkcep.spark.arrow.internals import (
    arrow_schema,
    local_server_python,
    set_worker_python,
    shown_plan,
    spark_context,
    watch_contexts,
    worker_python,
)

_LOGGER = logging.getLogger("pyflinkcep")
_SECONDS = 60
_VARIABLE = "PYSPARK_PYTHON"
_VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
_PROBE = "import pyflinkcep.spark, sys; print('%d.%d' % sys.version_info[:2])"


@functools.cache
def prepare_sessions() -> None:
    """Let the workers of local sessions run the driver's Python, from the start of a session."""
    # Workers run ``PYSPARK_PYTHON``, or the first ``python3`` on the path, which is neither the
    # Python of an unactivated virtual environment nor that of a notebook's kernel. A DataFrame made
    # of a list, or a local Spark Connect server, has taken it before a pattern is applied. Nothing
    # changes if the variable is set, or on a cluster.
    watch_contexts(_choose, _chosen)


def check_workers(session: Any) -> None:
    """Ensure that the workers of a local master can import this package."""
    # If ``PYSPARK_PYTHON`` is unset, the session's workers run the driver's Python from now on.
    context = spark_context(session)
    chosen = worker_python(context)
    of_server = local_server_python(session) if context is None else None
    chosen = of_server or chosen
    if (
        chosen is None
        or _is_drivers(chosen)
        or (context is not None and _replaced(context, chosen))
    ):
        return
    reason = _why_unfit(chosen)
    if reason:
        hint = "" if of_server is None else "import pyflinkcep before the session is created, or "
        what = "PYSPARK_PYTHON" if _VARIABLE in os.environ else "the Python of the workers"
        raise InputError(
            f"{what} is {chosen}, which {reason}",
            f"{hint}set PYSPARK_PYTHON={sys.executable} before the session is created, "
            "or install pyflinkcep there",
        )


def _choose(context: Any) -> None:
    """Let the workers of a local master run the driver's Python, unless another is chosen."""
    python = worker_python(context)
    if python is not None and not _is_drivers(python):
        _replaced(context, python)


def _replaced(context: Any, python: str) -> bool:
    """Let workers run the driver's Python; return False if the user has chosen another."""
    if _VARIABLE in os.environ:
        return False
    _LOGGER.info("workers run %s instead of %s", sys.executable, python)
    set_worker_python(context, sys.executable)
    return True


@contextmanager
def _chosen() -> Iterator[None]:
    """Set the variable to the driver's Python within a ``with``, unless it is set."""
    if _VARIABLE in os.environ:
        yield
        return
    os.environ[_VARIABLE] = sys.executable
    try:
        yield
    finally:
        del os.environ[_VARIABLE]


def _is_drivers(python: str) -> bool:
    """Whether a command runs the driver's Python; two environments may share an executable."""
    found = shutil.which(python)
    if found is None or not os.path.samefile(found, sys.executable):
        return False
    return os.path.dirname(os.path.abspath(found)) == os.path.dirname(sys.executable)


@functools.cache
def _why_unfit(python: str) -> str:
    """Return why a Python cannot do the driver's work; empty if it can or cannot be run."""
    if shutil.which(python) is None:
        return "cannot import pyflinkcep: no such program"
    try:
        outcome = subprocess.run(
            [python, "-c", _PROBE], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = outcome.stderr.strip().splitlines()
    if outcome.returncode:
        return f"cannot import pyflinkcep: {lines[-1]}" if lines else ""
    version = outcome.stdout.strip()
    return "" if version == _VERSION else f"is Python {version}, and the driver's is {_VERSION}"


@attrs.frozen
class Engine:
    """What runs the jobs of a session."""

    name: str  # Its name, for errors
    # Whether rows that ``sortWithinPartitions`` has sorted reach Python in that order.
    keeps_order: bool


SPARK = Engine("Spark", keeps_order=True)
_ENGINES: WeakKeyDictionary[SparkSession, Engine] = WeakKeyDictionary()


def check_engine(dataframe: DataFrame) -> None:
    """Refuse a DataFrame whose engine cannot run our jobs."""
    session = dataframe.sparkSession
    check_workers(session)
    engine = engine_of(session)
    if dataframe.isStreaming and engine is not SPARK:
        raise NotSupportedError(
            f"{engine.name} runs bounded jobs only, got a stream",
            "use a session of Spark, such as pyflinkcep.local.session('spark'); or read what has "
            "arrived with spark.read",
        )


def engine_of(session: SparkSession) -> Engine:
    """Return what runs a session's jobs."""
    if session not in _ENGINES:
        is_spark = spark_context(session) is not None or session.conf.get("spark.app.id", None)
        _ENGINES[session] = SPARK if is_spark else _tried(session)
    return _ENGINES[session]


def has_source_order(dataframe: DataFrame) -> bool:
    """Whether ``monotonically_increasing_id`` numbers events in the order of their source."""
    # On Sail it does not if files are read by several tasks, or in pieces, which come in any order.
    if engine_of(dataframe.sparkSession) is SPARK:
        return True
    plan = shown_plan(dataframe.select("*", F.monotonically_increasing_id()))
    return not any(
        int(count) > 1 or _LATER_PIECE.search(files) for count, files in _FILE_GROUPS.findall(plan)
    )


# --- another engine

_FILE_GROUPS = re.compile(r"file_groups=\{(\d+) groups?: \[(.*?)\]\}")
_LATER_PIECE = re.compile(r":[1-9]\d*\.\.")
_ROWS = 8
_LONGS = T.ArrayType(T.LongType())
# Columns of many types: their names, definitions, and types.
_COLUMNS: tuple[tuple[str, str, T.DataType], ...] = (
    ("id", "id", T.LongType()),
    ("key", "id % 2", T.LongType()),
    ("text", "cast(id AS string)", T.StringType()),
    ("number", "cast(id AS double)", T.DoubleType()),
    ("amount", "cast(id AS decimal(12,2))", T.DecimalType(12, 2)),
    ("flag", "id > 3", T.BooleanType()),
    ("time", "timestamp_seconds(id)", T.TimestampType()),
    ("day", "date_from_unix_date(cast(id AS int))", T.DateType()),
    ("list", "array(nullif(id, -1))", _LONGS),
    ("pair", "named_struct('a', nullif(id, -1))", T.StructType([T.StructField("a", T.LongType())])),
    ("engine", "concat(current_catalog(), ' ', version())", T.StringType()),
)

_SEEN = T.StructType(
    [
        T.StructField("task", T.StringType()),
        T.StructField("ids", _LONGS),
        T.StructField("keys", _LONGS),
        T.StructField("places", _LONGS),
        T.StructField("engine", T.StringType()),
        T.StructField("columns", T.BinaryType()),
    ]
)


def _tried(session: SparkSession) -> Engine:
    """Run a small job, and return what it shows of the engine."""
    events = session.range(0, _ROWS, 1, 1).selectExpr(
        *(f"{sql} AS {name}" for name, sql, _ in _COLUMNS)
    )
    events = events.withColumn("place", F.monotonically_increasing_id()).repartition(2, "key")
    rows = events.sortWithinPartitions("key", F.col("id").desc()).mapInArrow(_seen, _SEEN).collect()
    return _shown(rows)


def _shown(rows: Sequence[Row]) -> Engine:
    """Return what the rows that tasks have returned show of an engine; refuse an unfit one."""
    name = rows[0]["engine"].capitalize() if rows else "this engine"
    _check_keys(rows, name)
    _check_places(rows, name)
    _check_types(rows, name)
    tasks: dict[str, list[int]] = {}
    for row in rows:
        tasks.setdefault(row["task"], []).extend(row["ids"])
    keeps = all(ids == sorted(ids, key=lambda id_: (id_ % 2, -id_)) for ids in tasks.values())
    return Engine(name, keeps)


def _seen(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return what a task sees of its rows."""
    schema = arrow_schema(_SEEN)
    task = str(uuid.uuid4())
    for batch in batches:
        if batch.num_rows:
            found = [batch.column(name).to_pylist() for name in ("id", "key", "place")]
            columns = batch.schema.remove_metadata().serialize().to_pybytes()
            row = (task, *found, batch.column("engine")[0].as_py(), columns)
            rows = [dict(zip(schema.names, row, strict=True))]
            yield pa.RecordBatch.from_pylist(rows, schema=schema)


def _check_keys(rows: Sequence[Row], name: str) -> None:
    tasks: dict[int, set[str]] = {}
    for row in rows:
        for key in row["keys"]:
            tasks.setdefault(key, set()).add(row["task"])
    if len(tasks) != 2 or any(len(found) > 1 for found in tasks.values()):
        raise _unfit(name, "rows of one key reach two tasks, or none, after repartition")


def _check_places(rows: Sequence[Row], name: str) -> None:
    places = {
        id_: place for row in rows for id_, place in zip(row["ids"], row["places"], strict=True)
    }
    found = [places[id_] for id_ in sorted(places)]
    if len(found) != _ROWS or found != sorted(set(found)):
        raise _unfit(name, "monotonically_increasing_id() does not follow the order of rows")


def _check_types(rows: Sequence[Row], name: str) -> None:
    schema = arrow_schema(
        T.StructType([T.StructField(column, type_) for column, _, type_ in _COLUMNS])
    )
    for row in rows:
        found = pa.ipc.read_schema(pa.py_buffer(bytes(row["columns"])))
        for expected in schema:
            type_ = found.field(expected.name).type
            if type_ != expected.type:
                shown = f"{expected.name} as {type_}, expected {expected.type}"
                raise _unfit(name, f"Python receives the Arrow column {shown}")


def _unfit(name: str, what: str) -> NotSupportedError:
    return NotSupportedError(
        f"{name} does not do what jobs rely on: {what}",
        "use a session of Spark, or a release that docs/engines.md names",
    )
