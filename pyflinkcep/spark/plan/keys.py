# SPDX-License-Identifier: Apache-2.0
"""The key: its checked columns, and comparable forms of keys that Arrow cannot compare."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from types import UnionType

import attrs
from pyspark.errors import PySparkNotImplementedError, PySparkTypeError
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DoubleType,
    FloatType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    UserDefinedType,
    VariantType,
)

from pyflinkcep.errors import InputError, InvalidArgumentError, did_you_mean
from pyflinkcep.matching.columns import PREFIX, quoted
from pyflinkcep.matching.order import OrderColumns
from pyflinkcep.spark.arrow.internals import arrow_schema
from pyflinkcep.spark.plan.analysis import first_line, own_name

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
    type: DataType  # Its type


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


def _analysed(dataframe: DataFrame, expression: Column, what: str, pattern: str) -> StructField:
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


def _check_key_type(name: str, type_: DataType, pattern: str) -> None:
    spatial = {part.typeName() for part in _parts(type_)} & {"geography", "geometry"}
    if spatial or _contains(type_, MapType | VariantType | UserDefinedType):
        raise InputError(
            f"pattern {pattern}: key column {name!r} is {type_.simpleString()}, "
            "which cannot be compared",
            "use a field of it, or map_entries(...), as the key",
        )
    collations = [part.collation for part in _parts(type_) if isinstance(part, StringType)]
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


def check_types(fields: Sequence[StructField], what: str, pattern: str) -> None:
    """Refuse types that Arrow, and so Python, cannot represent."""
    try:
        arrow_schema(StructType(list(fields)))
    except (PySparkTypeError, PySparkNotImplementedError, ValueError) as cause:
        if len(fields) > 1:  # the first that is refused alone
            for field in fields:
                check_types([field], what, pattern)
        name, type_ = fields[0].name, fields[0].dataType
        raise InputError(
            f"pattern {pattern}: {what} {name!r} is {type_.simpleString()}, "
            "which Spark cannot hand to Python",
            "drop the column, or cast it, before CEP.pattern",
        ) from cause


def _signature(key: Column, type_: DataType) -> Column | None:
    """
    Return a column that is equal for equal keys, and null for a null key.

    As in Spark's ``groupBy``, 0.0 and -0.0 are one key, and so are all NaNs.
    """
    if isinstance(type_, ArrayType | StructType):
        text = F.to_json(F.struct(one_zero(key, type_).alias("k")), _AS_TEXT)
    elif isinstance(type_, DoubleType | FloatType):
        text = F.xxhash64(one_zero(key, type_))  # no two numbers have the same
    elif isinstance(type_, NullType):
        return F.lit(None).cast("int")
    else:
        return None
    return F.when(key.isNotNull(), text)


def _contains(type_: DataType, kind: type | UnionType) -> bool:
    """Whether a type is of a kind or contains one of it."""
    return any(isinstance(part, kind) for part in _parts(type_))


def _parts(type_: DataType) -> Iterator[DataType]:
    """Return the types that a type consists of, with arrays and structs unpacked."""
    if isinstance(type_, ArrayType):
        yield from _parts(type_.elementType)
    elif isinstance(type_, StructType):
        for field in type_.fields:
            yield from _parts(field.dataType)
    else:
        yield type_


def one_zero(value: Column, type_: DataType) -> Column:
    """Return a value with 0.0 for every -0.0 in it."""
    if not _contains(type_, DoubleType | FloatType):
        return value
    if isinstance(type_, ArrayType):
        element = type_.elementType
        return F.transform(value, lambda item: one_zero(item, element))
    if isinstance(type_, StructType):
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
