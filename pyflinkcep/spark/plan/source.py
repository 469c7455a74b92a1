# SPDX-License-Identifier: Apache-2.0
"""The events of a job: a DataFrame, its key, its time column, and the checks on them."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import attrs
from pyspark.errors import PySparkNotImplementedError, PySparkTypeError
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    IntegralType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    UserDefinedType,
    VariantType,
)

from pyflinkcep.errors import InputError
from pyflinkcep.spark.arrow.rows import arrow_schema
from pyflinkcep.spark.plan.keys import contains, key_signature, parts

__all__ = ["PREFIX", "EventSource", "KeyColumn", "KeyedDataFrame", "first_line", "quoted"]

_WATERMARK = "spark.watermarkDelayMs"

PREFIX = "__cep_"
"""What the names of our own columns begin with."""


def quoted(name: str) -> str:
    """Give a column name as Spark's parser takes it, dots and all."""
    return "`" + name.replace("`", "``") + "`"


def first_line(error: Exception) -> str:
    """Give the first line of an error of Spark's, which may come after empty ones."""
    return next((line for line in str(error).splitlines() if line), type(error).__name__)


@attrs.frozen(eq=False)
class KeyedDataFrame:
    """
    A DataFrame and the columns that make an event's key; made by :func:`pyflinkcep.keyBy`.

    Attributes
    ----------
    dataframe : DataFrame
        The events.
    columns : tuple of str or Column
        The key: names of columns, or expressions.
    """

    dataframe: DataFrame
    columns: tuple[str | Column, ...]


@attrs.frozen(eq=False)
class KeyColumn:
    """
    One column of the key.

    Attributes
    ----------
    name : str
        Its name in results.
    column : str
        Where its value is in the prepared DataFrame.
    signature : str
        A column to compare keys by: `column` itself, or a text of it where Arrow cannot
        compare its type.
    type : DataType
        Its type.
    """

    name: str
    column: str
    signature: str
    type: DataType


@attrs.frozen(eq=False)
class EventSource:
    """
    A checked input.

    Attributes
    ----------
    dataframe : DataFrame
        The events as the user gave them.
    pattern : str
        The pattern in one line; named in errors.
    keys : tuple of KeyColumn
        The key, empty when all events have one.
    time_column : str or None
        The column of event times, None in processing time.
    time_unit : int or None
        Units of the time column in a millisecond, None when it is bigint milliseconds.
    key_expressions : dict of str to Column
        What must be computed for keys besides the events' own columns.
    """

    dataframe: DataFrame
    pattern: str
    keys: tuple[KeyColumn, ...]
    time_column: str | None
    time_unit: int | None
    key_expressions: dict[str, Column]

    @classmethod
    def of(
        cls,
        dataframe: DataFrame,
        keys: Sequence[str | Column],
        time_column: str | None,
        processing_time: bool,
        pattern: str,
    ) -> EventSource:
        """
        Check an input.

        Raises
        ------
        InputError
            When a column is missing, ambiguous or of a type that cannot serve; names it.
        """
        _check_columns(dataframe, pattern)
        key_columns, expressions = _resolve_keys(dataframe, keys, pattern)
        unit: int | None = 1000
        if processing_time:
            time_column = None
        else:
            if time_column is None:
                time_column = _watermark_column(dataframe, pattern)
            unit = _time_unit(dataframe, time_column, pattern)
            if dataframe.isStreaming and not _has_watermark(dataframe):
                raise InputError(
                    f"pattern {pattern}: no watermark on the stream, so that no event would ever "
                    "be matched",
                    f"say .withWatermark({time_column!r}, '10 seconds') on the DataFrame first",
                )
        return cls(dataframe, pattern, key_columns, time_column, unit, expressions)

    @property
    def event_columns(self) -> list[str]:
        """The names of the events' columns."""
        return list(self.dataframe.columns)

    @property
    def payload_columns(self) -> list[str]:
        """The columns kept of an event: its own, and computed keys."""
        extra = [key.column for key in self.keys if key.column not in self.event_columns]
        return [*self.event_columns, *extra]

    @property
    def watermark_delay_ms(self) -> int:
        """The delay of the watermark on the time column, 0 where there is none."""
        if self.time_column is None:
            return 0
        return int(self.dataframe.schema[self.time_column].metadata.get(_WATERMARK, 0))

    def prepare(self, extra: dict[str, Column]) -> DataFrame:
        """Give the events with computed keys and further columns."""
        own = [F.col(quoted(name)) for name in self.event_columns]
        added = {**self.key_expressions, **extra}
        return self.dataframe.select(*own, *(c.alias(name) for name, c in added.items()))


def _check_columns(dataframe: DataFrame, pattern: str) -> None:
    columns = dataframe.columns
    case_matters = dataframe.sparkSession.conf.get("spark.sql.caseSensitive") == "true"
    spelled = columns if case_matters else [name.lower() for name in columns]
    repeated = [name for name, key in zip(columns, spelled, strict=True) if spelled.count(key) > 1]
    if repeated:
        raise InputError(
            f"pattern {pattern}: the columns {repeated} are there twice",
            "rename or drop them first: an event's fields are found by name",
        )
    reserved = [name for name in columns if name.startswith(PREFIX)]
    if reserved:
        raise InputError(
            f"pattern {pattern}: the column names {reserved} begin with {PREFIX!r}",
            "rename them: names like that are used inside the job",
        )
    for field in dataframe.schema.fields:
        _check_type(field.name, field.dataType, "column", pattern)


def _check_type(name: str, type_: DataType, what: str, pattern: str) -> None:
    """Refuse types that have no form in Arrow, and so cannot get to Python."""
    try:
        arrow_schema(StructType([StructField(name, type_)]))
    except (PySparkTypeError, PySparkNotImplementedError) as cause:
        raise InputError(
            f"pattern {pattern}: {what} {name!r} is {type_.simpleString()}, "
            "which Spark cannot hand to Python",
            "drop the column, or cast it, before CEP.pattern",
        ) from cause


def _resolve_keys(
    dataframe: DataFrame, keys: Sequence[str | Column], pattern: str
) -> tuple[tuple[KeyColumn, ...], dict[str, Column]]:
    columns, expressions = [], {}
    for number, key in enumerate(keys):
        if isinstance(key, str) and key in dataframe.columns:
            name, column, expression = key, key, F.col(quoted(key))
            type_ = dataframe.schema[key].dataType
        else:
            if isinstance(key, str) and "`" not in key:
                _check_exists(dataframe, key.split(".")[0], "key", pattern)
            expression = F.col(key) if isinstance(key, str) else key
            field = _analysed(dataframe, expression, f"key {key}", pattern)
            name, type_, column = field.name, field.dataType, f"{PREFIX}key{number}"
            expressions[column] = expression
        _check_key_type(name, type_, pattern)
        signature = column
        signed = key_signature(expression, type_)
        if signed is not None:
            signature = f"{PREFIX}sign{number}"
            expressions[signature] = signed
        columns.append(KeyColumn(name, column, signature, type_))
    names = [key.name for key in columns]
    if len(set(names)) < len(names):
        raise InputError(
            f"pattern {pattern}: the key {names} names a column twice",
            "name each column once; give computed ones names with .alias(...)",
        )
    return tuple(columns), expressions


def _analysed(dataframe: DataFrame, expression: Column, what: str, pattern: str) -> StructField:
    try:
        # Beside the events and in a struct: so that it is one value for each event.
        analysed = dataframe.select("*", expression, F.struct(expression)).schema.fields
    except Exception as cause:
        raise InputError(
            f"pattern {pattern}: {what} cannot be computed: {first_line(cause)}",
            f"the columns are {dataframe.columns}",
        ) from cause
    fields = analysed[len(dataframe.columns) : -1]
    if len(fields) > 1:
        raise InputError(
            f"pattern {pattern}: {what} is {len(fields)} columns", "name them one by one"
        )
    return fields[0]


def _check_key_type(name: str, type_: DataType, pattern: str) -> None:
    _check_type(name, type_, "key column", pattern)
    if contains(type_, MapType | VariantType | UserDefinedType):
        raise InputError(
            f"pattern {pattern}: key column {name!r} is {type_.simpleString()}, "
            "which cannot be compared",
            "use a field of it, or map_entries(...), as the key",
        )
    collations = [part.collation for part in parts(type_) if isinstance(part, StringType)]
    if set(collations) - {"UTF8_BINARY"}:
        raise InputError(
            f"pattern {pattern}: key column {name!r} is {type_.simpleString()}, "
            "and keys are compared byte by byte",
            "use lower(...) of it, or a cast to string, as the key",
        )


def _check_exists(dataframe: DataFrame, name: str, what: str, pattern: str) -> None:
    columns = dataframe.columns
    if name.lower() in (column.lower() for column in columns):
        return
    near = difflib.get_close_matches(name, columns, n=1)
    raise InputError(
        f"pattern {pattern}: {what} column {name!r} is not among the columns {columns}",
        f"did you mean {near[0]!r}?" if near else "name a column of the DataFrame",
    )


def _has_watermark(dataframe: DataFrame) -> bool:
    if any(_WATERMARK in field.metadata for field in dataframe.schema.fields):
        return True
    plan = getattr(dataframe, "_jdf", None)  # the column that has it may have been dropped
    return plan is None or "EventTimeWatermark" in plan.queryExecution().analyzed().toString()


def _watermark_column(dataframe: DataFrame, pattern: str) -> str:
    for field in dataframe.schema.fields:
        if _WATERMARK in field.metadata:
            return field.name
    raise InputError(
        f"pattern {pattern}: no column of event times",
        "say .inEventTime('ts') with the name of a timestamp column"
        + (", or use withWatermark on the DataFrame" if dataframe.isStreaming else ""),
    )


def _time_unit(dataframe: DataFrame, name: str, pattern: str) -> int | None:
    if not isinstance(name, str):
        raise InputError(
            f"pattern {pattern}: inEventTime takes a column's name, not {name!r}",
            "for a computed time, add it with withColumn('at', ...) and say inEventTime('at')",
        )
    _check_exists(dataframe, name, "time", pattern)
    if name not in dataframe.columns:
        raise InputError(
            f"pattern {pattern}: time column {name!r} is not spelled as in {dataframe.columns}",
            "write it as the DataFrame does, capitals and all",
        )
    type_ = dataframe.schema[name].dataType
    if isinstance(type_, TimestampType | TimestampNTZType):
        return 1000
    if isinstance(type_, LongType):
        return None
    wide = isinstance(type_, IntegralType)
    raise InputError(
        f"pattern {pattern}: time column {name!r} is {type_.simpleString()}, "
        "want timestamp, timestamp_ntz or bigint (epoch milliseconds)",
        f"cast it first: to_timestamp({name})" if not wide else f"cast it: {name}.cast('bigint')",
    )
