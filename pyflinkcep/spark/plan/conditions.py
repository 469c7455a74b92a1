# SPDX-License-Identifier: Apache-2.0
"""SQL and Column conditions: checked on the driver, evaluated by Spark, one bit each."""

from __future__ import annotations

import operator
from collections.abc import Sequence

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
from pyflinkcep.spark.plan.portable.sql import sql_columns

__all__ = ["Asked", "bit_columns", "checked_conditions", "conditions_of"]

Asked = Sequence[tuple[Atom, Column]]
"""The conditions of a pattern that Spark evaluates; their answers may be NULL."""


def checked_conditions(nfa: NFA, dataframe: DataFrame) -> Asked:
    """
    Return the conditions that Spark evaluates; refuse those that can never work on this DataFrame.

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
    asked = conditions_of(nfa, dataframe)
    types = analysed(nfa, asked, dataframe)
    for (atom, _), type_ in zip(asked, types, strict=True):
        if not isinstance(type_, BooleanType):
            raise InputError(
                f"{where(nfa, atom)}: the condition {_text(atom)}: "
                f"expected boolean, got {type_.simpleString()}",
                "compare it with a value",
            )
    return asked


def _text(atom: Atom) -> str:
    return repr(repr(atom.condition))  # an expression's text, in quotes


def bit_columns(asked: Asked) -> dict[str, Column]:
    """
    Return the columns with a bit for each expression that holds; empty without expressions.

    NULL counts as false, as in ``DataFrame.where``.
    """
    names = bit_names([atom for atom, _ in asked])
    parts: list[list[Column]] = [[F.lit(0).cast("bigint")] for _ in names]
    for atom, condition in asked:
        for part, bit in zip(parts, words(atom.bit, len(names)), strict=True):
            if bit:
                holds = F.when(condition, F.lit(bit)).otherwise(F.lit(0))
                part.append(holds.cast("bigint"))
    return {name: joined(operator.add, part) for name, part in zip(names, parts, strict=True)}


def conditions_of(nfa: NFA, dataframe: DataFrame) -> Asked:
    """Return the conditions that Spark evaluates."""
    atoms = spark_atoms(nfa)
    given = [atom.condition.expression for atom in atoms]  # type: ignore[attr-defined]
    return list(zip(atoms, sql_columns(given, dataframe), strict=True))
