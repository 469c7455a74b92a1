# SPDX-License-Identifier: Apache-2.0
"""SQL and Column conditions: checked on the driver, evaluated by Spark, one bit each."""

from __future__ import annotations

import operator
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType

from pyflinkcep.conditions import SubtypeCondition
from pyflinkcep.engines.flink.nfa import NFA
from pyflinkcep.engines.flink.nfa.atoms import Atom, words
from pyflinkcep.errors import InputError
from pyflinkcep.matching.answers import bit_names
from pyflinkcep.matching.columns import spark_atoms
from pyflinkcep.spark.plan.analysis import joined, where
from pyflinkcep.spark.plan.asked import analysed
from pyflinkcep.spark.plan.portable.sql import sql_column

__all__ = ["bit_columns", "check_conditions", "condition_column"]


def check_conditions(nfa: NFA, dataframe: DataFrame) -> None:
    """
    Refuse conditions that can never work on this DataFrame.

    Raises
    ------
    InputError
        If an expression names an unknown column or is not boolean, or a subtype is required of
        Rows.
    """
    for atom in nfa.atoms:
        condition = atom.condition
        if isinstance(condition, SubtypeCondition) and not issubclass(Row, condition.subtype):
            raise InputError(
                f"{where(nfa, atom)}: subtype({condition.subtype.__name__}) holds for no event "
                "on Spark, where events are Rows",
                "write a condition on a column that distinguishes the kinds of events",
            )
    atoms = spark_atoms(nfa)
    asked = [(atom, condition_column(atom, dataframe)) for atom in atoms]
    types = analysed(nfa, asked, dataframe)
    for atom, type_ in zip(atoms, types, strict=True):
        if not isinstance(type_, BooleanType):
            raise InputError(
                f"{where(nfa, atom)}: the condition {_text(atom)}: "
                f"expected boolean, got {type_.simpleString()}",
                "compare it with a value",
            )


def _text(atom: Atom) -> str:
    return repr(repr(atom.condition))  # an expression's text, in quotes


def bit_columns(nfa: NFA, dataframe: DataFrame) -> dict[str, Column]:
    """
    Return the columns with a bit for each expression that holds; empty without expressions.

    NULL counts as false, as in ``DataFrame.where``.
    """
    atoms = spark_atoms(nfa)
    names = bit_names(atoms)
    parts: list[list[Column]] = [[F.lit(0).cast("bigint")] for _ in names]
    for atom in atoms:
        for part, bit in zip(parts, words(atom.bit, len(names)), strict=True):
            if bit:
                holds = F.when(condition_column(atom, dataframe), F.lit(bit)).otherwise(F.lit(0))
                part.append(holds.cast("bigint"))
    return {name: joined(operator.add, part) for name, part in zip(names, parts, strict=True)}


def condition_column(atom: Atom, dataframe: DataFrame) -> Column:
    """Return a condition that Spark evaluates; its answer may be NULL."""
    expression: Any = atom.condition.expression  # type: ignore[attr-defined]
    return sql_column(expression, dataframe) if isinstance(expression, str) else expression
