# SPDX-License-Identifier: Apache-2.0
"""What Spark says of a session, of errors, and of what it does not allow in a pipeline's file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyspark.errors import PySparkException, UnsupportedOperationException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import types as T

from pyflinkcep.engines.flink.nfa import NFA
from pyflinkcep.engines.flink.nfa.atoms import Atom
from pyflinkcep.errors import InputError, NotSupportedError
from pyflinkcep.expressions.program import Kind
from pyflinkcep.expressions.sql_types import DAYS, INTERVAL, MAP, STRUCT, SqlType, array_of


def sql_type(type_: T.DataType) -> SqlType:
    """Return a type of Spark as expressions have it."""
    if isinstance(type_, T.DecimalType):
        return SqlType("decimal", type_.precision, max(type_.scale, 0))
    if isinstance(type_, T.ArrayType):
        return array_of(sql_type(type_.elementType))
    if isinstance(type_, T.MapType):
        return SqlType(MAP, inner=(sql_type(type_.keyType), sql_type(type_.valueType)))
    if isinstance(type_, T.StructType):
        inner = tuple(sql_type(field.dataType) for field in type_)
        return SqlType(STRUCT, inner=inner, fields=tuple(type_.fieldNames()))
    if isinstance(type_, T.DayTimeIntervalType):
        is_days = type_.endField == T.DayTimeIntervalType.DAY
        return DAYS if is_days else INTERVAL
    return SqlType(type_.simpleString())


def common_kind(type_: T.DataType) -> Kind | None:
    """Return the kind of a type in match expressions and queries alike; None if it has none."""
    # Texts are compared byte by byte, so one with another collation has none.
    kind = sql_type(type_).kind
    return None if kind is Kind.INTERVAL else kind


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
    """Return the sum, or whatever an associative operation makes, of at least one Column."""
    # It is as flat as can be: Spark Connect refuses deep expressions, and one of 50 is too deep.
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


_NO_ANALYSIS = "ATTEMPT_ANALYSIS_IN_PIPELINE_QUERY_FUNCTION"
_NO_MUTATION = "SESSION_MUTATION_IN_DECLARATIVE_PIPELINE"


def check_not_in_query_function(cause: Exception) -> None:
    """Refuse work inside a pipeline's query function, where no plan can be analysed."""
    if not is_about(cause, _NO_ANALYSIS):
        return
    raise NotSupportedError(
        "a pattern cannot be planned inside a pipeline's query function, where Spark analyses no "
        "plan",
        "call pyflinkcep above the function, in the same file, on tables that are not the "
        "pipeline's own, and return its result from the function",
    ) from cause


def check_analysable(dataframe: DataFrame) -> None:
    """Refuse a DataFrame that its engine cannot analyse; other errors of it are for later."""
    if hasattr(dataframe, "_jdf"):  # a classic DataFrame has been analysed
        return
    try:
        dataframe.schema  # noqa: B018 - Spark Connect keeps it, so it is asked once
    except PySparkException as cause:
        check_not_in_query_function(cause)
        # Sail's errors have no condition; it says so of bounded DataFrames too.
        if isinstance(cause, UnsupportedOperationException) and "with watermark" in str(cause):
            raise NotSupportedError(
                "withWatermark needs an engine that runs streams",
                "leave it out and name the time with .inEventTime('ts'); streams need a session of "
                "Spark, such as pyflinkcep.local.session('spark')",
            ) from cause


def set_or_refuse(spark: SparkSession, name: str, value: str) -> None:
    """Set a setting of the session."""
    try:
        spark.conf.set(name, value)
    except PySparkException as cause:
        if not is_mutation(cause):
            raise
        raise InputError(
            f"{name} is not set, and a pipeline's file cannot set it",
            f"write into its specification, under configuration: {name}: {value}",
        ) from cause


def is_mutation(cause: Exception) -> bool:
    """Whether an error is about a change of the session in a pipeline's file."""
    return is_about(cause, _NO_MUTATION)


def dataframe_of(plan: Any, like: DataFrame) -> DataFrame:
    """Return a plan of Spark's as a DataFrame in the session of another."""
    owner: Any = like
    session: Any = like.sparkSession
    classic = session._jvm.org.apache.spark.sql.classic
    return DataFrame(classic.Dataset.ofRows(owner._jdf.sparkSession(), plan), session)
