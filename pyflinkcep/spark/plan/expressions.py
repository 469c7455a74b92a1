# SPDX-License-Identifier: Apache-2.0
"""What Spark computes of each event for match expressions, and how workers read it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    FractionalType,
    IntegralType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from pyflinkcep.errors import InputError
from pyflinkcep.expressions.compiler import compiled
from pyflinkcep.expressions.program import Kind, MatchValues
from pyflinkcep.expressions.tree import MatchExpression
from pyflinkcep.nfa import NFA
from pyflinkcep.nfa.atoms import Atom
from pyflinkcep.spark.plan.analysis import analysed, where
from pyflinkcep.spark.plan.source import PREFIX

__all__ = ["VALUE", "FieldArray", "field_array", "field_rows", "match_values", "value_columns"]

FieldArray = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any] | None, bool]
"""A field's values, as int64 or float64; which of them are not NULL; whether they are floats."""

VALUE = f"{PREFIX}value"
"""What the names of the columns of fields begin with; the field's number follows."""

_KINDS: dict[type[DataType], Kind] = {
    IntegralType: Kind.BIGINT,
    FractionalType: Kind.DOUBLE,
    BooleanType: Kind.BOOLEAN,
    StringType: Kind.STRING,
    TimestampType: Kind.TIMESTAMP,
    TimestampNTZType: Kind.TIMESTAMP_NTZ,
    DateType: Kind.DATE,
}
_CASTS = {Kind.BIGINT: "bigint", Kind.DOUBLE: "double", Kind.BOOLEAN: "bigint"}


def match_values(nfa: NFA, dataframe: DataFrame) -> MatchValues | None:
    """
    Compile the match expressions of a pattern for the types of its events.

    Raises
    ------
    InputError
        When an expression names an unknown column, or its types do not go together.
    """
    expressions: list[tuple[Atom, MatchExpression]] = [
        (atom, atom.condition) for atom in nfa.atoms if isinstance(atom.condition, MatchExpression)
    ]
    if not expressions:
        return None
    parts = {sql: atom for atom, expression in expressions for sql in expression.event_parts()}
    asked = [(atom, F.expr(sql)) for sql, atom in parts.items()]
    types = analysed(nfa, asked, dataframe)
    kinds = {
        sql: _kind(nfa, atom, sql, type_)
        for (sql, atom), type_ in zip(parts.items(), types, strict=True)
    }
    ansi = dataframe.sparkSession.conf.get("spark.sql.ansi.enabled") == "true"
    named = [(where(nfa, atom), expression) for atom, expression in expressions]
    return compiled(named, kinds, ansi)


def _kind(nfa: NFA, atom: Atom, sql: str, type_: DataType) -> Kind:
    what = f"{where(nfa, atom)}: the condition {repr(atom.condition)!r}: {sql!r}"
    if isinstance(type_, DecimalType):
        raise InputError(
            f"{what} is {type_.simpleString()}",
            f"only double and bigint are kept for a partial match: cast({sql} as double)",
        )
    if isinstance(type_, StringType) and type_.collation != "UTF8_BINARY":
        raise InputError(
            f"{what} is {type_.simpleString()}, and strings are compared byte by byte here",
            f"use lower({sql}), or cast({sql} as string)",
        )
    for spark_type, kind in _KINDS.items():
        if isinstance(type_, spark_type):
            return kind
    raise InputError(
        f"{what} is {type_.simpleString()}",
        "take a number, boolean, string, date or timestamp of it",
    )


def value_columns(values: MatchValues | None) -> dict[str, Column]:
    """Give the columns of the fields, by name."""
    columns = {}
    for number, field in enumerate(values.fields if values is not None else ()):
        column = F.expr(field.sql)
        cast = _CASTS.get(field.kind)
        columns[f"{VALUE}{number}"] = column if cast is None else column.cast(cast)
    return columns


def field_rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """Give the fields of each event of a table that has nothing but their columns."""
    return list(zip(*map(_plain, table.columns), strict=True))


def field_array(column: pa.ChunkedArray) -> FieldArray:
    """Give a column of numbers or times as an array, with what is not null, and its type."""
    is_float = pa.types.is_floating(column.type)
    plain = column if is_float else column.cast(_integers(column.type)).cast(pa.int64())
    valid = column.is_valid().to_numpy() if column.null_count else None
    if valid is not None:
        plain = plain.fill_null(0)
    return plain.to_numpy(), valid, is_float


def _integers(type_: pa.DataType) -> pa.DataType:
    """Give the type of the integers that values of a type are."""
    return pa.int32() if pa.types.is_date(type_) else pa.int64()


def _plain(column: pa.ChunkedArray) -> list[Any]:
    """Give a column's values, times as integers."""
    if pa.types.is_temporal(column.type):
        column = column.cast(_integers(column.type))
    values: list[Any]
    if column.null_count or pa.types.is_string(column.type):
        values = column.to_pylist()
    else:
        values = column.to_numpy().tolist()
    return values
