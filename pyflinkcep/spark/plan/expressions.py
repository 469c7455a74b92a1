# SPDX-License-Identifier: Apache-2.0
"""The values that Spark computes from each event for match expressions."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import DataType, DayTimeIntervalType, DecimalType, StringType

from pyflinkcep.engines.flink.nfa import NFA
from pyflinkcep.engines.flink.nfa.atoms import Atom
from pyflinkcep.errors import InputError
from pyflinkcep.expressions.compiler import compiled
from pyflinkcep.expressions.program import CompiledExpressions, Kind
from pyflinkcep.expressions.tree import MatchExpression
from pyflinkcep.matching.columns import field_names
from pyflinkcep.spark.plan.analysis import is_ansi, where
from pyflinkcep.spark.plan.asked import analysed
from pyflinkcep.spark.plan.kinds import common_kind, is_long_decimal
from pyflinkcep.spark.plan.portable.sql import sql_column, sql_columns

__all__ = ["compiled_expressions", "field_columns", "kind_of", "machine_column"]

_CASTS = {
    Kind.BIGINT: "bigint",
    Kind.DOUBLE: "double",
    Kind.BOOLEAN: "bigint",
    Kind.DECIMAL: "double",
    Kind.WIDE_DECIMAL: "double",
}


def compiled_expressions(nfa: NFA, dataframe: DataFrame) -> CompiledExpressions | None:
    """
    Compile the match expressions of a pattern for the types of its events.

    Raises
    ------
    InputError
        If an expression names an unknown column, or its types are incompatible.
    """
    expressions: list[tuple[Atom, MatchExpression]] = [
        (atom, atom.condition) for atom in nfa.atoms if isinstance(atom.condition, MatchExpression)
    ]
    if not expressions:
        return None
    parts = {sql: atom for atom, expression in expressions for sql in expression.event_parts()}
    columns = sql_columns(list(parts), dataframe)
    asked = list(zip(parts.values(), columns, strict=True))
    types = analysed(nfa, asked, dataframe)
    kinds = {
        sql: _kind(nfa, atom, sql, type_)
        for (sql, atom), type_ in zip(parts.items(), types, strict=True)
    }
    named = [(where(nfa, atom), expression) for atom, expression in expressions]
    return compiled(named, kinds, is_ansi(dataframe))


def _kind(nfa: NFA, atom: Atom, sql: str, type_: DataType) -> Kind:
    kind = kind_of(type_)
    if kind is not None:
        return kind
    what = f"{where(nfa, atom)}: the condition {repr(atom.condition)!r}"
    problem = f"is {type_.simpleString()}"
    hint = "use a number, boolean, string, date, timestamp or day-time interval"
    if isinstance(type_, StringType):
        problem += ", and strings are compared byte by byte here"
        hint = f"use lower({sql}), or cast({sql} as string)"
    raise InputError(
        f"{what}: {sql!r} {problem}",
        hint,
        problem=problem,
        part=sql,
        stage=atom.stage,
        condition=repr(atom.condition),
    )


def kind_of(type_: DataType) -> Kind | None:
    """Return the kind of a type in match expressions; None if they cannot use it."""
    if isinstance(type_, DecimalType):
        return Kind.WIDE_DECIMAL if is_long_decimal(type_) else Kind.DECIMAL
    return Kind.INTERVAL if isinstance(type_, DayTimeIntervalType) else common_kind(type_)


def field_columns(
    expressions: CompiledExpressions | None, dataframe: DataFrame
) -> dict[str, Column]:
    """Return the columns of the fields, by name."""
    fields = expressions.fields if expressions else ()
    return {
        name: machine_column(field.sql, field.kind, dataframe)
        for name, field in zip(field_names(expressions), fields, strict=True)
    }


def machine_column(sql: str, kind: Kind, dataframe: DataFrame) -> Column:
    """Return the column of an expression in the form that match expressions read."""
    column, cast = sql_column(sql, dataframe), _CASTS.get(kind)
    return column if cast is None else column.cast(cast)
