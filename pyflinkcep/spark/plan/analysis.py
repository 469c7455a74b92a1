# SPDX-License-Identifier: Apache-2.0
"""Asks Spark for the types of conditions' expressions, and names the one that is wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from pyflinkcep.engines.flink.nfa import NFA
from pyflinkcep.engines.flink.nfa.atoms import Atom
from pyflinkcep.errors import CepError, InputError
from pyflinkcep.expressions.parser import column_owners

__all__ = [
    "analysed",
    "error_condition",
    "first_line",
    "has_quoted_names",
    "is_about",
    "is_ansi",
    "is_case_sensitive",
    "joined",
    "types_of",
    "where",
]


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


def analysed(
    nfa: NFA, asked: Sequence[tuple[Atom, Column]], dataframe: DataFrame
) -> list[DataType]:
    """
    Return the types of expressions over the events.

    Parameters
    ----------
    nfa : NFA
        The pattern, for errors.
    asked : sequence of (Atom, Column)
        The expressions, each with the condition that it belongs to.
    dataframe : DataFrame
        The events.

    Raises
    ------
    InputError
        If an expression cannot be evaluated; the message names its condition.
    """

    def refusal(number: int, cause: Exception) -> CepError:
        atom, _ = asked[number]
        problem = f"cannot be evaluated: {first_line(cause)}"
        return InputError(
            f"{where(nfa, atom)}: the condition {repr(atom.condition)!r} {problem}",
            _hint(nfa, atom, dataframe),
            problem=problem,
            stage=atom.stage,
            condition=repr(atom.condition),
        )

    return types_of([column for _, column in asked], dataframe, refusal)


def types_of(
    expressions: Sequence[str | Column],
    dataframe: DataFrame,
    refusal: Callable[[int, Exception], CepError],
) -> list[DataType]:
    """
    Return the types of expressions, each of them one value of one event.

    Parameters
    ----------
    expressions : sequence of str (SQL) or Column
        The expressions.
    dataframe : DataFrame
        The events.
    refusal : callable
        Makes the error of an expression, by its number and Spark's error.

    Raises
    ------
    CepError
        If Spark cannot evaluate an expression.
    """
    if not expressions:
        return []
    try:
        return _types(expressions, dataframe)
    except Exception:
        found = []
        for number, expression in enumerate(expressions):
            try:
                found += _types([expression], dataframe)
            except Exception as cause:
                raise refusal(number, cause) from cause
        return found


def _types(expressions: Sequence[str | Column], dataframe: DataFrame) -> list[DataType]:
    # Next to the events, so that none aggregates; each in a struct, so that it is one value.
    structs = [F.struct(F.expr(e) if isinstance(e, str) else e) for e in expressions]
    fields = dataframe.select("*", *structs).schema.fields[len(dataframe.columns) :]
    return [
        field.dataType.fields[0].dataType
        for field in fields
        if isinstance(field.dataType, StructType)
    ]


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


def _hint(nfa: NFA, atom: Atom, dataframe: DataFrame) -> str:
    stages = column_owners(repr(atom.condition)) & set(nfa.stages) - set(dataframe.columns)
    if not stages:
        return f"the columns are {dataframe.columns}"
    stage = min(stages)
    return (
        f"{stage!r} is a stage: name one of its events, for example last({stage}.column) "
        f"or avg({stage}.column)"
    )
