# SPDX-License-Identifier: Apache-2.0
"""Asks Spark for the types of conditions' expressions, and names the one that is wrong."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from pyflinkcep.errors import InputError
from pyflinkcep.expressions.parser import column_owners
from pyflinkcep.nfa import NFA
from pyflinkcep.nfa.atoms import Atom

__all__ = ["analysed", "first_line", "where"]


def first_line(error: Exception) -> str:
    """Return the first nonempty line of a Spark error."""
    return next((line for line in str(error).splitlines() if line), type(error).__name__)


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
    # Next to the events, so that none aggregates; each in a struct, so that it is one value.
    structs = [F.struct(column) for _, column in asked]
    try:
        fields = dataframe.select("*", *structs).schema.fields[len(dataframe.columns) :]
    except Exception as cause:
        if len(asked) > 1:  # find the one at fault
            return [type_ for one in asked for type_ in analysed(nfa, [one], dataframe)]
        atom = asked[0][0]
        raise InputError(
            f"{where(nfa, atom)}: the condition {repr(atom.condition)!r} cannot be evaluated: "
            f"{first_line(cause)}",
            _hint(nfa, atom, dataframe),
        ) from cause
    return [
        field.dataType.fields[0].dataType
        for field in fields
        if isinstance(field.dataType, StructType)
    ]


def _hint(nfa: NFA, atom: Atom, dataframe: DataFrame) -> str:
    stages = column_owners(repr(atom.condition)) & set(nfa.stages) - set(dataframe.columns)
    if not stages:
        return f"the columns are {dataframe.columns}"
    stage = min(stages)
    return (
        f"{stage!r} is a stage: say which of its events is meant, for example last({stage}.column) "
        f"or avg({stage}.column)"
    )
