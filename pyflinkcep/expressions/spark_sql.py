# SPDX-License-Identifier: Apache-2.0
"""Trees as Spark SQL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyflinkcep.expressions.tree import Leaf, Literal, Tree

__all__ = ["literal_sql", "spark_sql", "text_sql"]

_SIGNS = ("+", "-", "*", "/", "%", "=", "<>", "<", "<=", ">", ">=", "and", "or")
_AFTER = ("is null", "is not null")
_BEFORE = {"not": "NOT", "neg": "-"}
_OR_NULL = {"/": "try_divide", "%": "try_mod"}


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
    operator = tree.operator
    operands = [spark_sql(part, leaf, zero_is_null=zero_is_null) for part in tree.operands]
    if operator in _AFTER:
        return f"({operands[0]} {operator.upper()})"
    if operator in _BEFORE:
        return f"({_BEFORE[operator]} {operands[0]})"
    if zero_is_null and operator in _OR_NULL:
        return f"{_OR_NULL[operator]}({', '.join(operands)})"
    if operator in _SIGNS:
        return f"({f' {operator.upper()} '.join(operands)})"
    return f"{operator}({', '.join(operands)})"


def literal_sql(value: Any) -> str:
    """Return a literal as SQL."""
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return text_sql(value)
    return f"{value!r}D" if isinstance(value, float) else str(value)


def text_sql(value: str) -> str:
    """Return a text as an SQL literal."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
