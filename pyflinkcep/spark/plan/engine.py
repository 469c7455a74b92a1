# SPDX-License-Identifier: Apache-2.0
"""What runs a session's jobs: Spark, or another engine behind Spark Connect, tried before use."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Sequence
from weakref import WeakKeyDictionary

import attrs
import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pyflinkcep.errors import NotSupportedError
from pyflinkcep.spark.arrow.internals import arrow_schema, shown_plan, spark_context
from pyflinkcep.spark.plan.interpreter import check_workers

__all__ = ["SPARK", "Engine", "check_engine", "engine_of", "has_source_order"]


@attrs.frozen
class Engine:
    """
    What runs the jobs of a session.

    Attributes
    ----------
    name : str
        Its name, for errors.
    keeps_order : bool
        Whether rows that ``sortWithinPartitions`` has sorted reach Python in that order.
    """

    name: str
    keeps_order: bool


SPARK = Engine("Spark", keeps_order=True)
_ENGINES: WeakKeyDictionary[SparkSession, Engine] = WeakKeyDictionary()


def check_engine(dataframe: DataFrame) -> None:
    """
    Refuse a DataFrame whose engine cannot run our jobs.

    Parameters
    ----------
    dataframe : DataFrame
        The events.

    Raises
    ------
    InputError
        If workers cannot import this package.
    NotSupportedError
        If it is a stream and the engine is not Spark, or the engine does not do what jobs rely on.
    """
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
    """
    Return what runs a session's jobs.

    Raises
    ------
    NotSupportedError
        If it is not Spark, and a small job that is run once in a session shows that it does not do
        what our jobs rely on; the message says what.
    """
    if session not in _ENGINES:
        is_spark = spark_context(session) is not None or session.conf.get("spark.app.id", None)
        _ENGINES[session] = SPARK if is_spark else _tried(session)
    return _ENGINES[session]


def has_source_order(dataframe: DataFrame) -> bool:
    """
    Whether ``monotonically_increasing_id`` numbers events in the order of their source.

    On Sail it does not if files are read by several tasks, or in pieces, which come in any order.
    """
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
_LONGS = ArrayType(LongType())
_COLUMNS: tuple[tuple[str, str, DataType], ...] = (
    ("id", "id", LongType()),
    ("key", "id % 2", LongType()),
    ("text", "cast(id AS string)", StringType()),
    ("number", "cast(id AS double)", DoubleType()),
    ("amount", "cast(id AS decimal(12,2))", DecimalType(12, 2)),
    ("flag", "id > 3", BooleanType()),
    ("time", "timestamp_seconds(id)", TimestampType()),
    ("day", "date_from_unix_date(cast(id AS int))", DateType()),
    ("list", "array(nullif(id, -1))", _LONGS),
    ("pair", "named_struct('a', nullif(id, -1))", StructType([StructField("a", LongType())])),
    ("engine", "concat(current_catalog(), ' ', version())", StringType()),
)
"""Columns of many types: their names, definitions, and types."""

_SEEN = StructType(
    [
        StructField("task", StringType()),
        StructField("ids", _LONGS),
        StructField("keys", _LONGS),
        StructField("places", _LONGS),
        StructField("engine", StringType()),
        StructField("columns", BinaryType()),
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
    schema = arrow_schema(StructType([StructField(column, type_) for column, _, type_ in _COLUMNS]))
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
