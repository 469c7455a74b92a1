# SPDX-License-Identifier: Apache-2.0
"""What Spark says of a session and of errors, and where a condition stands."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
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

from pyflinkcep.engines.flink.nfa import NFA
from pyflinkcep.engines.flink.nfa.atoms import Atom
from pyflinkcep.expressions.decimals import Digits
from pyflinkcep.expressions.program import Kind

_KINDS: dict[type[DataType], Kind] = {
    IntegralType: Kind.BIGINT,
    FractionalType: Kind.DOUBLE,
    BooleanType: Kind.BOOLEAN,
    StringType: Kind.STRING,
    TimestampType: Kind.TIMESTAMP,
    TimestampNTZType: Kind.TIMESTAMP_NTZ,
    DateType: Kind.DATE,
}


def common_kind(type_: DataType) -> Kind | None:
    """
    Return the kind of a type in match expressions and queries alike; None if it has none.

    Texts are compared byte by byte, so one with another collation has none.
    """
    if isinstance(type_, StringType) and type_.collation != "UTF8_BINARY":
        return None
    if isinstance(type_, DecimalType):
        return Kind.decimal(Digits(type_.precision, max(type_.scale, 0)))
    return next((kind for known, kind in _KINDS.items() if isinstance(type_, known)), None)


def first_line(error: Exception) -> str:
    """Return the first nonempty line of a Spark error."""
    return next((line for line in str(error).splitlines() if line), type(error).__name__)


def is_about(error: Exception, *conditions: str) -> bool:
    """Whether an error of Spark has one of some names; see :func:`error_condition`."""
    return error_condition(error).startswith(conditions)


def error_condition(error: Exception) -> str:
    """Return the name that Spark gives an error, its fact; empty if there is none."""
    return (error.getCondition() or "") if isinstance(error, PySparkException) else ""


def where(nfa: NFA, atom: Atom) -> str:
    """Return where a condition stands, for errors."""
    return f"pattern {nfa.description}, stage {atom.stage!r}"


def joined(operation: Callable[[Column, Column], Column], columns: Sequence[Column]) -> Column:
    """
    Return the sum, or whatever an associative operation makes, of at least one Column.

    It is as flat as can be: Spark Connect refuses deep expressions, and one of 50 is too deep.
    """
    if len(columns) == 1:
        return columns[0]
    half = len(columns) // 2
    return operation(joined(operation, columns[:half]), joined(operation, columns[half:]))


def is_ansi(dataframe: DataFrame) -> bool:
    """Whether overflow and division by zero are errors in the DataFrame's session."""
    return dataframe.sparkSession.conf.get("spark.sql.ansi.enabled") == "true"


def has_quoted_names(spark: SparkSession) -> bool:
    """Whether what stands in double quotes is a name in a session, and not a text."""
    names = ("spark.sql.ansi.enabled", "spark.sql.ansi.doubleQuotedIdentifiers")
    return all(spark.conf.get(name) == "true" for name in names)


def is_case_sensitive(dataframe: DataFrame) -> bool:
    """Whether the DataFrame's session distinguishes names by their capitals."""
    return dataframe.sparkSession.conf.get("spark.sql.caseSensitive") == "true"


def own_name(dataframe: DataFrame, name: str) -> str:
    """Return a column's name as the DataFrame spells it."""
    columns = dataframe.columns
    return name if name in columns else next(c for c in columns if c.lower() == name.lower())
