# SPDX-License-Identifier: Apache-2.0
"""Asks Spark for the types of conditions' expressions, and names the one that is wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from pyflinkcep.engines.flink.nfa import NFA
from pyflinkcep.engines.flink.nfa.atoms import Atom
from pyflinkcep.errors import CepError, InputError, NotSupportedError
from pyflinkcep.expressions.parser import column_owners
from pyflinkcep.expressions.tokens import slip
from pyflinkcep.spark.plan.analysis import first_line, where
from pyflinkcep.spark.plan.portable.sql import sql_columns

__all__ = ["analysed", "types_of"]


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
    except NotSupportedError:
        own = [F.expr(e) if isinstance(e, str) else e for e in expressions]
        _one_by_one(own, dataframe, refusal)  # what no engine computes is refused as such
        return _one_by_one(expressions, dataframe, refusal)
    except Exception:
        return _one_by_one(expressions, dataframe, refusal)


def _one_by_one(
    expressions: Sequence[str | Column],
    dataframe: DataFrame,
    refusal: Callable[[int, Exception], CepError],
) -> list[DataType]:
    found = []
    for number, expression in enumerate(expressions):
        try:
            found += _types([expression], dataframe)
        except NotSupportedError as cause:
            made = refusal(number, cause)
            raise NotSupportedError(made.message, cause.hint, span=made.span) from None
        except Exception as cause:
            raise refusal(number, cause) from cause
    return found


def _types(expressions: Sequence[str | Column], dataframe: DataFrame) -> list[DataType]:
    # Next to the events, so that none aggregates; each in a struct, so that it is one value.
    structs = [F.struct(column) for column in sql_columns(expressions, dataframe)]
    fields = dataframe.select("*", *structs).schema.fields[len(dataframe.columns) :]
    return [
        field.dataType.fields[0].dataType
        for field in fields
        if isinstance(field.dataType, StructType)
    ]


def _hint(nfa: NFA, atom: Atom, dataframe: DataFrame) -> str:
    said = slip(repr(atom.condition))
    if said is not None:
        return said
    stages = column_owners(repr(atom.condition)) & set(nfa.stages) - set(dataframe.columns)
    if not stages:
        return f"the columns are {dataframe.columns}"
    stage = min(stages)
    return (
        f"{stage!r} is a stage: name one of its events, for example last({stage}.column) "
        f"or avg({stage}.column)"
    )
