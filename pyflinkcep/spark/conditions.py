# SPDX-License-Identifier: Apache-2.0
"""SQL and Column conditions: checked on the driver, evaluated by Spark, one bit each."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StructField

from pyflinkcep.errors import InputError, NotSupportedError
from pyflinkcep.nfa import NFA
from pyflinkcep.nfa.steps import Atom
from pyflinkcep.pattern.conditions import ExpressionCondition, SubtypeCondition
from pyflinkcep.spark.source import first_line

__all__ = ["bits_column", "check_conditions", "condition_column", "spark_atoms"]

_MOST_BITS = 62


def spark_atoms(nfa: NFA) -> list[Atom]:
    """Give the conditions of a pattern that Spark evaluates."""
    return [atom for atom in nfa.atoms if isinstance(atom.condition, ExpressionCondition)]


def check_conditions(nfa: NFA, dataframe: DataFrame) -> None:
    """
    Refuse conditions that can never work on this DataFrame.

    Raises
    ------
    InputError
        When an expression names an unknown column or gives no boolean; when a subtype is
        asked of Rows.
    NotSupportedError
        When the pattern has more expressions than a bit mask has bits.
    """
    for atom in nfa.atoms:
        condition = atom.condition
        if isinstance(condition, SubtypeCondition) and not issubclass(Row, condition.subtype):
            raise InputError(
                f"{_where(nfa, atom)}: subtype({condition.subtype.__name__}) holds for no event "
                "on Spark, where events are Rows",
                "write a condition on a column that tells the kinds of events apart",
            )
    atoms = spark_atoms(nfa)
    fields = _analysed(nfa, atoms, dataframe)
    for atom, field in zip(atoms, fields, strict=True):
        type_ = field.dataType.fields[0].dataType  # type: ignore[attr-defined]
        if not isinstance(type_, BooleanType):
            raise InputError(
                f"{_where(nfa, atom)}: the condition {_text(atom)} gives "
                f"{type_.simpleString()}, want boolean",
                "compare it with something",
            )
        if atom.bit >> _MOST_BITS:
            raise NotSupportedError(
                f"{_where(nfa, atom)}: more than {_MOST_BITS} conditions in one pattern",
                "join conditions of a stage into one expression",
            )


def _where(nfa: NFA, atom: Atom) -> str:
    return f"pattern {nfa.description}, stage {atom.stage!r}"


def _text(atom: Atom) -> str:
    return repr(repr(atom.condition))  # an expression's text, in quotes


def _analysed(nfa: NFA, atoms: Sequence[Atom], dataframe: DataFrame) -> Sequence[StructField]:
    """Give the conditions' fields, each in a struct; beside events, so that none aggregates."""
    answers = [F.struct(condition_column(atom)) for atom in atoms]
    try:
        return dataframe.select("*", *answers).schema.fields[len(dataframe.columns) :]
    except Exception as cause:
        if len(atoms) > 1:  # find the one at fault
            return [field for atom in atoms for field in _analysed(nfa, [atom], dataframe)]
        atom = atoms[0]
        raise InputError(
            f"{_where(nfa, atom)}: the condition {_text(atom)} cannot be evaluated: "
            f"{first_line(cause)}",
            f"the columns are {dataframe.columns}",
        ) from cause


def bits_column(nfa: NFA) -> Column | None:
    """
    Give the column with a bit for each expression that holds, None without expressions.

    NULL counts as false, as in ``DataFrame.where``.
    """
    bits = [
        F.when(condition_column(atom), F.lit(atom.bit)).otherwise(F.lit(0)).cast("bigint")
        for atom in spark_atoms(nfa)
    ]
    return functools.reduce(operator.add, bits) if bits else None


def condition_column(atom: Atom) -> Column:
    """Give a condition that Spark evaluates; its answer may be NULL."""
    expression: Any = atom.condition.expression  # type: ignore[attr-defined]
    return F.expr(expression) if isinstance(expression, str) else expression
