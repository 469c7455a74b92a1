# SPDX-License-Identifier: Apache-2.0
"""The input of a clause: its columns as spelled in the input, and its keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
)

from pyflinkcep.match_recognize.tree import Clause
from pyflinkcep.matching.columns import quoted
from pyflinkcep.matching.order import OrderColumns
from pyflinkcep.spark.plan.analysis import own_name

__all__ = ["order_after_time", "partition_keys"]

_DEFAULTS: dict[type[DataType], Callable[[], Column]] = {
    StringType: lambda: F.lit(""),
    ByteType: lambda: F.lit(0).cast("tinyint"),
    ShortType: lambda: F.lit(0).cast("smallint"),
    IntegerType: lambda: F.lit(0),
    LongType: lambda: F.lit(0).cast("bigint"),
    BooleanType: lambda: F.lit(False),
}
"""Stands for NULL in a key, next to the flag that it is NULL; a struct for other types."""


def order_after_time(dataframe: DataFrame, clause: Clause) -> OrderColumns | None:
    """Return the order of events of equal time: the columns of ORDER BY after the first."""
    columns = [
        (own_name(dataframe, column.name.text), column.descending, column.nulls_first)
        for column in clause.order[1:]
    ]
    return OrderColumns.of(columns) if columns else None


def partition_keys(
    dataframe: DataFrame, keys: Sequence[str], *, is_stream: bool
) -> list[str | Column]:
    """Return the key; on a stream, where keys must not be null, with whether each is NULL."""
    if not is_stream:
        return list(keys)
    by: list[str | Column] = []
    for key in keys:
        field, column = dataframe.schema[key], F.col(quoted(key))
        if field.nullable:
            default = _DEFAULTS.get(type(field.dataType))
            filled = F.struct(column) if default is None else F.coalesce(column, default())
            by += [filled.alias(key), column.isNull().alias(f"{key} IS NULL")]
        else:
            by.append(key)
    return by
