# SPDX-License-Identifier: Apache-2.0
"""Files of Parquet that workers read themselves, in place of rows that Spark reads for them."""

from __future__ import annotations

import os
from typing import Any

import attrs
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from pyflinkcep.spark.arrow.internals import analysed_plan, arrow_schema, hadoop_path
from pyflinkcep.spark.plan.analysis import dataframe_of, is_ansi, is_case_sensitive
from pyflinkcep.spark.plan.source import EventSource
from pyflinkcep.spark.worker.computed_columns import ComputedColumns, FileEvents, SqlTexts
from pyflinkcep.spark.worker.file_reader import CHUNK, READ_FILES, FileReader

WATERMARK_NODE = "EventTimeWatermark"  # The name of the operator that ``withWatermark`` adds

_PARQUET = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"
_LISTED = "org.apache.spark.sql.execution.datasources.InMemoryFileIndex"
# Options of a reader that say which files there are, which Spark still decides.
_OF_FILES = {
    "path", "maxfilespertrigger", "maxbytespertrigger", "maxcachedfiles", "latestfirst",
    "maxfileage", "filenameonly", "cleansource", "sourcearchivedir", "pathglobfilter",
    "recursivefilelookup", "modifiedbefore", "modifiedafter", "mergeschema",
}  # fmt: skip
# Settings by which Spark reads files in ways that are its own, and the values that are not.
_PLAIN = {
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.parquet.fieldId.read.enabled": "false",
    "spark.sql.parquet.int96TimestampConversion": "false",
    "spark.sql.parquet.int96AsTimestamp": "true",
    "spark.sql.legacy.parquet.nanosAsLong": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.enableVectorizedReader": "true",
}
_FLAT = (
    T.BinaryType,
    T.BooleanType,
    T.DateType,
    T.NumericType,
    T.TimestampNTZType,
    T.TimestampType,
)


@attrs.frozen(eq=False)
class FileScan:
    """Events as the files that hold them."""

    chunks: DataFrame  # A row for each part of a file: as Spark deals them out to tasks
    events: FileEvents  # Reads the events of parts

    @classmethod
    def of(cls, source: EventSource, prepared: DataFrame, said: SqlTexts) -> FileScan | None:
        """Return the files of events, if workers can do what Spark prepared; None if not."""
        relation = plain_relation(source.dataframe)
        has_others = source.key_expressions or any(k.signature != k.column for k in source.keys)
        if relation is None or has_others:
            return None
        session: Any = source.dataframe.sparkSession
        whole = arrow_schema(source.dataframe.schema)
        columns = ComputedColumns(
            schema=pa.schema([one.with_nullable(True) for one in arrow_schema(prepared.schema)]),
            zone=str(session.conf.get("spark.sql.session.timeZone")),
            said=said,
            key=[key.column for key in source.keys],
        )
        needed = columns.needed(whole)
        if needed is None:
            return None
        row = F.col("_metadata.row_index")
        chunks = dataframe_of(relation, source.dataframe)
        # Spark reads no column for them, and knows how many rows there are from footers.
        chunks = chunks.select(F.col("_metadata.file_path").alias("file"), row.alias("row"))
        chunks = chunks.where(F.col("row") % F.lit(CHUNK) == 0)
        own = pa.schema([whole.field(name) for name in needed])
        reader = FileReader(own, is_case_sensitive(source.dataframe), source.pattern)
        return cls(chunks, FileEvents(reader, columns))


def plain_relation(dataframe: DataFrame) -> Any:
    """Return the relation of a DataFrame that is just the rows of files of Parquet; else None."""
    # Each question to Java takes a millisecond, so the plan comes first, which is seldom such.
    session = dataframe.sparkSession
    relation = _relation(analysed_plan(dataframe))
    if relation is None or not is_ansi(dataframe):
        return None
    conf: Any = session.conf
    if conf.get(READ_FILES, "workers") == "spark":
        return None
    if any(conf.get(name) != plain for name, plain in _PLAIN.items()):
        return None
    output = relation.output()
    if any(output.apply(at).name().lower() == "_metadata" for at in range(output.size())):
        return None
    if not _is_plain(relation, session) or _is_cached(dataframe):
        return None
    return relation if all(map(_is_read, dataframe.schema.fields)) else None


def _relation(plan: Any) -> Any:
    """Return the relation whose rows, some of their columns, are those of a plan; else None."""
    if plan is None:
        return None
    name = plan.nodeName()
    if name in ("StreamingRelation", "LogicalRelation"):
        return plan
    if name == "Project":
        columns = plan.projectList()
        names = [columns.apply(at) for at in range(columns.size())]
        if any(one.getClass().getSimpleName() != "AttributeReference" for one in names):
            return None
    elif name not in ("SubqueryAlias", WATERMARK_NODE):
        return None
    return _relation(plan.children().apply(0))


def _is_plain(relation: Any, session: Any) -> bool:
    """Whether the rows of a relation are those of local files of Parquet, no more and no less."""
    source: Any
    if relation.isStreaming():
        source = relation.dataSource()
        format_ = source.providingClass().getName()
        folders = source.partitionColumns().isEmpty()
        options = _items(source.options())
        paths = [str(source.paths().apply(at)) for at in range(source.paths().size())]
        paths += [options["path"]] if "path" in options else []
    else:
        source = relation.relation()
        if source.getClass().getSimpleName() != "HadoopFsRelation":
            return False
        format_ = source.fileFormat().getClass().getName()
        if source.location().getClass().getName() != _LISTED:
            return False
        folders = source.partitionSchema().isEmpty()
        options = _items(source.options())
        roots = source.location().rootPaths()
        paths = [str(roots.apply(at).toString()) for at in range(roots.size())]
    if format_ != _PARQUET or not folders or source.bucketSpec().isDefined():
        return False
    if not {name.lower() for name in options} <= _OF_FILES:
        return False
    return bool(paths) and all(_is_plain_folder(hadoop_path(session, path)) for path in paths)


def _is_plain_folder(uri: Any) -> bool:
    """Whether a path is on this machine, and no folder seems to be the value of a column."""
    path = str(uri.getPath())
    if uri.getScheme() != "file" or "=" in path:
        return False
    return not os.path.isdir(path) or not any("=" in name for name in os.listdir(path))


def _is_cached(dataframe: DataFrame) -> bool:
    """Whether rows of a bounded DataFrame may be in memory already."""
    owner: Any = dataframe
    if dataframe.isStreaming:
        return False
    return "InMemoryRelation" in str(owner._jdf.queryExecution().withCachedData().toString())


def _items(options: Any) -> dict[str, str]:
    """Return a map of Scala as a dict."""
    found = options.toSeq()
    pairs = (found.apply(at) for at in range(found.size()))
    return {str(pair._1()): str(pair._2()) for pair in pairs}


def _is_read(field: T.StructField) -> bool:
    """Whether workers read a column as Spark does: one of plain values, or of lists of these."""
    type_, told = field.dataType, field.metadata or {}
    if any(name.startswith(("CURRENT_DEFAULT", "EXISTS_DEFAULT")) for name in told):
        return False
    return _is_flat(type_.elementType if isinstance(type_, T.ArrayType) else type_)


def _is_flat(type_: T.DataType) -> bool:
    if isinstance(type_, T.StringType):
        return type(type_) is T.StringType and type_.collation == "UTF8_BINARY"
    return isinstance(type_, _FLAT)
