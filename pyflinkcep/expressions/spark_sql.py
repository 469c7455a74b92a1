# SPDX-License-Identifier: Apache-2.0
"""Trees as Spark SQL."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from pyflinkcep.expressions.literals import UNITS_US
from pyflinkcep.expressions.text import quoted_name
from pyflinkcep.expressions.tree import Call, Interval, Leaf, Literal, Moment, Tree

__all__ = ["literal_sql", "spark_sql", "text_sql"]

_SIGNS = (
    "+", "-", "*", "/", "%", "div", "||", "=", "<>", "<", "<=", ">", ">=", "<=>", "and", "or",
    "like",
)  # fmt: skip
_AFTER = ("is null", "is not null")
_BEFORE = {"not": "NOT", "neg": "-"}
_BITS = ("&", "|", "^", "<<", ">>", ">>>")
_DIVISIONS = ("/", "%")


def spark_sql(tree: Tree, leaf: Callable[[Leaf], str], *, zero_is_null: bool = False) -> str:
    """
    Return a tree of a query as Spark SQL.

    Parameters
    ----------
    tree : Tree
        The tree.
    leaf : callable
        Returns the SQL of a value of events.
    zero_is_null : bool
        Whether division by zero is NULL, whatever the session says.
    """
    if isinstance(tree, Literal):
        return literal_sql(tree.value)
    if isinstance(tree, Leaf):
        return leaf(tree)
    operands = [spark_sql(part, leaf, zero_is_null=zero_is_null) for part in tree.operands]
    if isinstance(tree, Call):
        return _call_sql(tree, operands)
    operator = tree.operator
    if operator in _AFTER:
        return f"({operands[0]} {operator.upper()})"
    if operator in _BEFORE:
        return f"({_BEFORE[operator]} {operands[0]})"
    if zero_is_null and operator in _DIVISIONS:
        return f"({operands[0]} {operator} nullif({operands[1]}, 0))"
    if operator in _SIGNS:
        return f"({f' {operator.upper()} '.join(operands)})"
    if operator == "in":
        return f"({operands[0]} IN ({', '.join(operands[1:])}))"
    if operator == "case":
        return _case_sql(operands)
    unit = [tree.detail] if tree.detail else []
    return f"{operator}({', '.join([*unit, *operands])})"


def _case_sql(operands: list[str]) -> str:
    pairs = zip(operands[::2], operands[1::2], strict=False)
    branches = [f"WHEN {condition} THEN {value}" for condition, value in pairs]
    otherwise = [f"ELSE {operands[-1]}"] if len(operands) % 2 else []
    return " ".join(["(CASE", *branches, *otherwise, "END)"])


def _call_sql(tree: Call, operands: list[str]) -> str:
    match tree.function:
        case "":
            return _filled(tree.between, operands) if tree.between else tree.text
        case ".":
            return f"{operands[0]}.{quoted_name(tree.detail)}"
        case "[]":
            return f"{operands[0]}[{operands[1]}]"
        case "cast":
            return f"cast({operands[0]} AS {tree.detail})"
        case "try_cast":
            return f"try_cast({operands[0]} AS {tree.detail})"
        case "~":
            return f"(~ {operands[0]})"
        case operator if operator in _BITS:
            return f"({operands[0]} {operator} {operands[1]})"
    before = f"{tree.detail.upper()} " if tree.detail == "distinct" else ""
    unit = [tree.detail] if tree.detail and not before else []
    return f"{tree.function}({before}{', '.join([*unit, *operands])})"


def _filled(between: tuple[str, ...], operands: list[str]) -> str:
    """Return operands with text before, between and after them."""
    filled = [part for pair in zip(between, operands, strict=False) for part in pair]
    return "".join([*filled, between[-1]])


def literal_sql(value: Any) -> str:
    """Return a literal as SQL."""
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return text_sql(value)
    if isinstance(value, Interval):
        days, rest = divmod(value.microseconds, UNITS_US["DAY"])
        return f"INTERVAL {value.microseconds} MICROSECONDS" if rest else f"INTERVAL {days} DAYS"
    if isinstance(value, Moment):
        return f"{'DATE' if value.is_date else 'TIMESTAMP'} {text_sql(value.text)}"
    if isinstance(value, Decimal):
        return f"{value}BD"
    return f"{value!r}D" if isinstance(value, float) else str(value)


def text_sql(value: str) -> str:
    """Return a text as an SQL literal."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
