# SPDX-License-Identifier: Apache-2.0
"""The fields of a DataFrame as EQL names them, and its conditions as Spark's SQL."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    NullType,
    StringType,
    StructType,
    TimestampType,
)

from pyflinkcep.eql.conditions import FieldColumn, Fields
from pyflinkcep.expressions.tree import Column, Literal, Operation, Tree, quoted_name, spark_sql
from pyflinkcep.spark.plan.analysis import common_kind, sql_type

_PLAIN = (
    BooleanType, DecimalType, DoubleType, FloatType, IntegralType, NullType, StringType,
    TimestampType,
)  # fmt: skip


def fields_of(schema: StructType, text: str) -> Fields:
    """Return the fields of events: columns, and fields of structs by their path."""
    known: dict[str, FieldColumn | str] = {}
    for path, found in (*_columns(schema), *_inside(schema)):
        known.setdefault(path, found)
    return Fields(known, text)


def _columns(schema: StructType) -> Iterator[tuple[str, FieldColumn | str]]:
    for field in schema:
        if not isinstance(field.dataType, StructType):
            yield field.name, _field(quoted_name(field.name), field.dataType)


def _inside(
    schema: StructType, path: str = "", sql: str = ""
) -> Iterator[tuple[str, FieldColumn | str]]:
    for field in schema:
        own_path, own_sql = path + field.name, sql + quoted_name(field.name)
        if isinstance(field.dataType, StructType):
            yield from _inside(field.dataType, f"{own_path}.", f"{own_sql}.")
        elif path:
            yield own_path, _field(own_sql, field.dataType)


def _field(sql: str, type_: DataType) -> FieldColumn | str:
    of = type_.elementType if isinstance(type_, ArrayType) else type_
    is_known = isinstance(of, _PLAIN)
    if not is_known or (isinstance(of, StringType) and common_kind(of) is None):
        return type_.simpleString()
    return FieldColumn(Column(sql), sql_type(of), isinstance(type_, ArrayType))


def sql_of(tree: Tree) -> str:
    """Return a condition as SQL."""
    return spark_sql(tree, lambda leaf: str(leaf.sql) if isinstance(leaf, Column) else "")


def as_filter(tree: Tree) -> Tree:
    """Return a condition that is true for the same events, and that sources can be asked."""
    if isinstance(tree, Operation):
        if tree.operator in ("and", "or"):
            return Operation(tree.operator, tuple(map(as_filter, tree.operands)))
        if tree.operator == "coalesce" and tree.operands[1:] == (Literal(False),):
            return tree.operands[0]
    return tree
