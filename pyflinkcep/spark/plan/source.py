# SPDX-License-Identifier: Apache-2.0
"""The events of a job: a DataFrame, its key, its time column, and the checks on them."""

from __future__ import annotations

import operator
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from types import UnionType

import attrs
from pyspark.errors import PySparkNotImplementedError, PySparkTypeError
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from pyflinkcep.errors import (
    InputError,
    InvalidArgumentError,
    MicroBatchWarning,
    Place,
    did_you_mean,
)
from pyflinkcep.expressions.program import CompiledExpressions
from pyflinkcep.matching.columns import HASH, PREFIX, field_names, quoted, refuse_reserved
from pyflinkcep.matching.layout import Layout
from pyflinkcep.matching.order import OrderColumns
from pyflinkcep.spark.arrow.internals import (
    WATERMARK_DELAY,
    analysed_plan,
    arrow_schema,
    spark_context,
)
from pyflinkcep.spark.plan.analysis import first_line, is_case_sensitive, own_name
from pyflinkcep.spark.plan.engine import has_source_order
from pyflinkcep.spark.worker.runtime import job_name

_AS_TEXT = {
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


@attrs.frozen(eq=False)
class KeyColumn:
    """One column of the key."""

    name: str  # Its name in results
    column: str  # Where its value is in the prepared DataFrame
    # A column to compare keys by: `column` itself, or a text of it if Arrow cannot compare its
    # type.
    signature: str
    type: T.DataType  # Its type


def resolve_keys(
    dataframe: DataFrame, keys: Sequence[str | Column], pattern: str
) -> tuple[tuple[KeyColumn, ...], dict[str, Column]]:
    """Check the key."""
    columns, expressions = [], {}
    for number, key in enumerate(keys):
        if isinstance(key, str) and key in dataframe.columns:
            name, column, expression = key, key, F.col(quoted(key))
            type_ = dataframe.schema[key].dataType
        else:
            if isinstance(key, str) and "`" not in key:
                check_exists(dataframe, key.split(".")[0], "key", pattern)
            expression = F.col(key) if isinstance(key, str) else key
            field = _analysed(dataframe, expression, f"key {key}", pattern)
            name, type_, column = field.name, field.dataType, f"{PREFIX}key{number}"
            check_types([field], "key column", pattern)
            expressions[column] = expression
        _check_key_type(name, type_, pattern)
        signature = column
        signed = _signature(expression, type_)
        if signed is not None:
            signature = f"{PREFIX}sign{number}"
            expressions[signature] = signed
        columns.append(KeyColumn(name, column, signature, type_))
    names = [key.name for key in columns]
    if len(set(names)) < len(names):
        raise InputError(
            f"pattern {pattern}: the key {names} names a column twice",
            "name each column once; name computed ones with .alias(...)",
        )
    return tuple(columns), expressions


def key_number(keys: Sequence[KeyColumn], expressions: Mapping[str, Column]) -> Column:
    """Return a whole number made of a key; `expressions` is what must be computed for it."""
    return F.xxhash64(*(expressions.get(k.signature, F.col(quoted(k.signature))) for k in keys))


def _analysed(dataframe: DataFrame, expression: Column, what: str, pattern: str) -> T.StructField:
    try:
        # Next to the events and in a struct, so that it is one value for each event.
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


def _check_key_type(name: str, type_: T.DataType, pattern: str) -> None:
    spatial = {part.typeName() for part in _parts(type_)} & {"geography", "geometry"}
    if spatial or _contains(type_, T.MapType | T.VariantType | T.UserDefinedType):
        raise InputError(
            f"pattern {pattern}: key column {name!r} is {type_.simpleString()}, "
            "which cannot be compared",
            "use a field of it, or map_entries(...), as the key",
        )
    collations = [part.collation for part in _parts(type_) if isinstance(part, T.StringType)]
    if set(collations) - {"UTF8_BINARY"}:
        raise InputError(
            f"pattern {pattern}: key column {name!r} is {type_.simpleString()}, "
            "and keys are compared byte by byte",
            "use lower(...) of it, or a cast to string, as the key",
        )


def check_exists(dataframe: DataFrame, name: str, what: str, pattern: str) -> None:
    """Refuse the name of a missing column; name the nearest one."""
    columns = dataframe.columns
    if name.lower() in (column.lower() for column in columns):
        return
    raise InputError(
        f"pattern {pattern}: {what} column {name!r} is not among the columns {columns}",
        did_you_mean(name, columns, "name a column of the DataFrame"),
    )


def check_types(fields: Sequence[T.StructField], what: str, pattern: str) -> None:
    """Refuse types that Arrow, and so Python, cannot represent."""
    try:
        arrow_schema(T.StructType(list(fields)))
    except (PySparkTypeError, PySparkNotImplementedError, ValueError) as cause:
        if len(fields) > 1:  # the first that is refused alone
            for field in fields:
                check_types([field], what, pattern)
        name, type_ = fields[0].name, fields[0].dataType
        raise InputError(
            f"pattern {pattern}: {what} {name!r} is {type_.simpleString()}, "
            "which Spark cannot hand to Python",
            "drop the column, or cast it, before",
        ) from cause


def _signature(key: Column, type_: T.DataType) -> Column | None:
    """Return a column that is equal for equal keys, and null for a null key."""
    # As in Spark's ``groupBy``, 0.0 and -0.0 are one key, and so are all NaNs.
    if isinstance(type_, T.ArrayType | T.StructType):
        text = F.to_json(F.struct(one_zero(key, type_).alias("k")), _AS_TEXT)
    elif isinstance(type_, T.DoubleType | T.FloatType):
        text = F.xxhash64(one_zero(key, type_))  # no two numbers have the same
    elif isinstance(type_, T.NullType):
        return F.lit(None).cast("int")
    else:
        return None
    return F.when(key.isNotNull(), text)


def _contains(type_: T.DataType, kind: type | UnionType) -> bool:
    """Whether a type is of a kind or contains one of it."""
    return any(isinstance(part, kind) for part in _parts(type_))


def _parts(type_: T.DataType) -> Iterator[T.DataType]:
    """Return the types that a type consists of, with arrays and structs unpacked."""
    if isinstance(type_, T.ArrayType):
        yield from _parts(type_.elementType)
    elif isinstance(type_, T.StructType):
        for field in type_.fields:
            yield from _parts(field.dataType)
    else:
        yield type_


def one_zero(value: Column, type_: T.DataType) -> Column:
    """Return a value with 0.0 for every -0.0 in it."""
    if not _contains(type_, T.DoubleType | T.FloatType):
        return value
    if isinstance(type_, T.ArrayType):
        element = type_.elementType
        return F.transform(value, lambda item: one_zero(item, element))
    if isinstance(type_, T.StructType):
        fields = [
            one_zero(value.getField(field.name), field.dataType).alias(field.name)
            for field in type_.fields
        ]
        return F.when(value.isNotNull(), F.struct(*fields))
    zero = F.lit(0).cast(type_)
    return F.when(value == zero, zero).otherwise(value)


def sorting(order: OrderColumns, values: Mapping[str, Column] | None = None) -> Iterator[Column]:
    """Yield an order as Spark sorts by it: of columns, or given values of them."""
    for name, descending, nulls_first in order.columns:
        value = (values or {}).get(name, F.col(quoted(name)))
        if descending:
            yield value.desc_nulls_first() if nulls_first else value.desc_nulls_last()
        else:
            yield value.asc_nulls_first() if nulls_first else value.asc_nulls_last()


_COLUMN = re.compile(r"(.+?)(?:\s+(ASC|DESC))?(?:\s+NULLS\s+(FIRST|LAST))?", re.IGNORECASE)


def order_columns(dataframe: DataFrame, columns: Sequence[str], pattern: str) -> OrderColumns:
    """Read the columns that order events of equal time."""
    is_list = isinstance(columns, Sequence) and not isinstance(columns, str) and len(columns) > 0
    if not is_list or not all(isinstance(column, str) for column in columns):
        raise InvalidArgumentError(
            f"orderBy: expected a list of column names, got {columns!r}",
            "write orderBy=['seq', 'price DESC']",
        )
    chosen = []
    for column in columns:
        found = _COLUMN.fullmatch(column.strip())
        name = column if found is None else found[1].strip("`")
        check_exists(dataframe, name, "order", pattern)
        own = own_name(dataframe, name)
        nulls = None if found is None or found[3] is None else found[3].upper() == "FIRST"
        descending = found is not None and (found[2] or "").upper() == "DESC"
        chosen.append((own, descending, nulls))
    return OrderColumns.of(chosen)


# The local property that Spark sets in the thread of a streaming query.
_QUERY = "sql.streaming.queryId"


def check_micro_batch(dataframe: DataFrame, pattern: str) -> None:
    """Warn if a bounded DataFrame is a micro-batch, inside a function for ``foreachBatch``."""
    if dataframe.isStreaming or not _is_in_query(dataframe) or not _is_in_memory(dataframe):
        return
    Place.here().warn(
        f"pattern {pattern} inside foreachBatch finds no match that spans two micro-batches. "
        "Apply it to the stream, CEP.pattern(keyBy(stream, ...), pattern), and use foreachBatch on "
        "its result.",
        MicroBatchWarning,
    )


def _is_in_query(dataframe: DataFrame) -> bool:
    context = spark_context(dataframe.sparkSession)
    if context is not None:
        return context.getLocalProperty(_QUERY) is not None
    # over Spark Connect the function runs in a worker of its own
    main = getattr(sys.modules["__main__"], "__spec__", None)
    return getattr(main, "name", "").endswith("foreach_batch_worker")


def _is_in_memory(dataframe: DataFrame) -> bool:
    """Whether some rows come from memory, as those of a micro-batch do."""
    plan = analysed_plan(dataframe)
    if plan is None:
        return True
    leaves = plan.collectLeaves()
    return any(leaves.apply(n).nodeName() == "LogicalRDD" for n in range(leaves.size()))


def time_name(column: object, pattern: str) -> str | None:
    """Return the name of a time column, or refuse what is not a name."""
    if column is None or isinstance(column, str):
        return column
    raise InputError(
        f"pattern {pattern}: inEventTime: expected a column's name, got {column!r}",
        "for a computed time, add it with withColumn('at', ...) and write inEventTime('at')",
    )


@attrs.frozen(eq=False)
class KeyedDataFrame:
    """
    A DataFrame and the columns of an event's key; made by :func:`pyflinkcep.keyBy`.

    Attributes
    ----------
    dataframe : DataFrame
        The events.
    columns : tuple of str or Column
        The key: names of columns, or expressions.
    partitioned : bool
        Whether each key is in one partition of the DataFrame.
    """

    dataframe: DataFrame
    columns: tuple[str | Column, ...]
    partitioned: bool = False


@attrs.frozen(eq=False)
class EventSource:
    """A checked input."""

    dataframe: DataFrame  # The events as the user gave them
    pattern: str  # The pattern on one line, for errors
    keys: tuple[KeyColumn, ...]  # The key; empty if all events share one
    time_column: str | None  # The column of event times, None in processing time
    # Units of the time column per millisecond; None if it is bigint milliseconds.
    time_unit: int | None
    key_expressions: dict[str, Column]  # The expressions to compute for keys
    # The events' own columns that go to the workers; None for all.
    kept: tuple[str, ...] | None = None
    # Whether events too far ahead are left out: then Spark's watermark, which they move, is not for
    # the output.
    is_guarded: bool = False
    name: str | None = None  # The name that the user gave the job
    language: str = "CEP"  # What the pattern is written in, for the name of a job without one

    @classmethod
    def of(
        cls,
        dataframe: DataFrame,
        keys: Sequence[str | Column],
        time_column: str | None,
        pattern: str,
        *,
        processing_time: bool = False,
        needs_watermark: bool = True,
    ) -> EventSource:
        """Check an input."""
        _check_columns(dataframe, pattern)
        check_micro_batch(dataframe, pattern)
        key_columns, expressions = resolve_keys(dataframe, keys, pattern)
        unit: int | None = 1000
        if processing_time:
            time_column = None
        else:
            if time_column is None:
                time_column = watermark_column(dataframe)
            if time_column is None:
                raise _no_time(dataframe, pattern)
            unit = _time_unit(dataframe, time_column, pattern)
            if needs_watermark and dataframe.isStreaming and not _has_watermark(dataframe):
                raise InputError(
                    f"pattern {pattern}: no watermark on the stream, so no event would ever "
                    "be matched",
                    f"write .withWatermark({time_column!r}, '10 seconds') on the DataFrame first",
                )
        return cls(dataframe, pattern, key_columns, time_column, unit, expressions)

    @property
    def job_name(self) -> str:
        """The job's name in Spark's UI and progress."""
        return job_name(self.pattern, self.name, self.language)

    @property
    def event_columns(self) -> list[str]:
        """The names of the events' columns that go to the workers."""
        return list(self.dataframe.columns if self.kept is None else self.kept)

    @property
    def watermark_delay_ms(self) -> int:
        """The delay of the watermark on the time column; 0 if there is none."""
        if self.time_column is None:
            return 0
        return int(self.dataframe.schema[self.time_column].metadata.get(WATERMARK_DELAY, 0))

    def key_hash(self, always: bool = False) -> dict[str, Column]:
        """Return the column of integers that events are shuffled and sorted by first, if needed."""
        # The key's own columns follow it in the order, so that two keys with one hash stay apart.
        if not self.keys and always:
            return {HASH: F.lit(0).cast("bigint")}
        if not always and not self._needs_hash:
            return {}
        return {HASH: key_number(self.keys, self.key_expressions)}

    @property
    def _needs_hash(self) -> bool:
        return bool(self.keys) and not (
            len(self.keys) == 1 and isinstance(self.keys[0].type, T.IntegralType)
        )

    def is_null(self, allows_null_keys: bool) -> Column:
        """Return whether an event has no time, or a key that is null altogether if none may be."""
        found = F.lit(False) if allows_null_keys else self.has_null_key
        if self.time_column is None:
            return found
        return found | F.col(quoted(self.time_column)).isNull()

    @property
    def has_null_key(self) -> Column:
        """Whether all columns of an event's key are null."""
        keys = [
            self.key_expressions.get(key.column, F.col(quoted(key.column))).isNull()
            for key in self.keys
        ]
        return reduce(operator.and_, keys) if keys else F.lit(False)

    def layout(
        self,
        bit_columns: Sequence[str],
        always_hash: bool = False,
        expressions: CompiledExpressions | None = None,
    ) -> Layout:
        """Return the layout of what :meth:`prepare` returns, including :meth:`key_hash`."""
        own = self.event_columns
        computed = [key.column for key in self.keys if key.column not in own]
        signature = [key.signature for key in self.keys]
        if always_hash or self._needs_hash:
            signature.insert(0, HASH)
        return Layout(
            pattern=self.pattern,
            schema=T.StructType([self.dataframe.schema[name] for name in own]),
            payload=(*own, *computed, *field_names(expressions)),
            key_names=tuple(key.name for key in self.keys),
            key_columns=tuple(key.column for key in self.keys),
            key_signature=tuple(signature),
            time_column=self.time_column,
            time_unit=self.time_unit,
            bit_columns=tuple(bit_columns),
            expressions=expressions,
            has_order=has_source_order(self.dataframe),
        )

    def prepare(self, extra: dict[str, Column]) -> DataFrame:
        """Return the events with computed keys and further columns."""
        own = ["*"] if self.kept is None else [F.col(quoted(name)) for name in self.kept]
        added = {**self.key_expressions, **extra}
        return self.dataframe.select(*own, *(c.alias(name) for name, c in added.items()))


def _check_columns(dataframe: DataFrame, pattern: str) -> None:
    columns = dataframe.columns
    if not columns:
        raise InputError(
            f"pattern {pattern}: a DataFrame without columns",
            "select at least one: an event without columns is nothing to match or to show",
        )
    spelled = columns if is_case_sensitive(dataframe) else [name.lower() for name in columns]
    repeated = [name for name, key in zip(columns, spelled, strict=True) if spelled.count(key) > 1]
    if repeated:
        raise InputError(
            f"pattern {pattern}: the columns {repeated} appear twice",
            "rename or drop them first: an event's fields are found by name",
        )
    refuse_reserved(columns, f"pattern {pattern}")
    if "__fields__" in columns:
        raise InputError(
            f"pattern {pattern}: a column is named '__fields__'",
            "rename it: a Row keeps the names of its columns there",
        )
    check_types(dataframe.schema.fields, "column", pattern)


def _has_watermark(dataframe: DataFrame) -> bool:
    if watermark_column(dataframe) is not None:
        return True
    plan = analysed_plan(dataframe)  # the column that has it may have been dropped
    return plan is None or "EventTimeWatermark" in plan.toString()


def watermark_column(dataframe: DataFrame) -> str | None:
    """Return the column that ``withWatermark`` names; None if there is none."""
    fields = dataframe.schema.fields
    return next((field.name for field in fields if WATERMARK_DELAY in field.metadata), None)


def _no_time(dataframe: DataFrame, pattern: str) -> InputError:
    return InputError(
        f"pattern {pattern}: no column of event times",
        "write .inEventTime('ts'), or timestamp='ts' of CEP.eql and CEP.patterns, with the name of "
        "a timestamp column"
        + (", or use withWatermark on the DataFrame" if dataframe.isStreaming else ""),
    )


def _time_unit(dataframe: DataFrame, name: str, pattern: str) -> int | None:
    check_exists(dataframe, name, "time", pattern)
    if name not in dataframe.columns:
        raise InputError(
            f"pattern {pattern}: time column {name!r} is not spelled as in {dataframe.columns}",
            "write it as the DataFrame does, including capitals",
        )
    type_ = dataframe.schema[name].dataType
    if isinstance(type_, T.TimestampType | T.TimestampNTZType):
        return 1000
    if isinstance(type_, T.LongType):
        return None
    wide = isinstance(type_, T.IntegralType)
    raise InputError(
        f"pattern {pattern}: time column {name!r}: expected timestamp, timestamp_ntz or "
        f"bigint (epoch milliseconds), got {type_.simpleString()}",
        f"cast it first: to_timestamp({name})" if not wide else f"cast it: {name}.cast('bigint')",
    )
