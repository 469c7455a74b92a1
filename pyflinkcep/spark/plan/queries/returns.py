# SPDX-License-Identifier: Apache-2.0
"""HAVING and RETURN as SQL over rows of matches: a variable is an array of events."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pyflinkcep.sase.model import Query
from pyflinkcep.sase.sql import literal_sql
from pyflinkcep.sase.tree import (
    FIRST,
    LAST,
    Arithmetic,
    Comparison,
    Expression,
    Function,
    Literal,
    Logical,
    Negation,
    NullTest,
    Reference,
)
from pyflinkcep.spark.arrow.columns import quoted

__all__ = ["returned"]


def returned(query: Query, matches: DataFrame) -> DataFrame:
    """Return the rows of a query: matches that satisfy HAVING, with the columns of RETURN."""
    if query.having is not None:
        matches = matches.where(_sql(query, query.having))
    if query.columns is None:
        return matches
    columns = [F.expr(_column(query, c.value)).alias(c.name) for c in query.columns]
    return matches.select(*columns)


def _column(query: Query, value: Expression) -> str:
    if isinstance(value, Reference) and value.index not in (FIRST, LAST):
        repeats = query.component(value.variable).repeats
        return _events(value) if repeats else _sql(query, value)
    return _sql(query, value)


def _events(over: Reference) -> str:
    events = quoted(over.variable)
    return events if over.attribute is None else f"{events}.{quoted(over.attribute)}"


def _sql(query: Query, tree: Expression) -> str:
    if isinstance(tree, Literal):
        return literal_sql(tree.value)
    if isinstance(tree, Reference):
        at = "-1" if tree.index == LAST else "1"
        event = f"element_at({quoted(tree.variable)}, {at})"
        return event if tree.attribute is None else f"{event}.{quoted(tree.attribute)}"
    if isinstance(tree, Function):
        return _aggregate(tree)
    if isinstance(tree, Negation):
        return f"(NOT {_sql(query, tree.operand)})"
    if isinstance(tree, NullTest):
        return f"({_sql(query, tree.value)} IS {'NOT ' if tree.negated else ''}NULL)"
    if isinstance(tree, Comparison):
        return f"({_sql(query, tree.left)} {tree.operator} {_sql(query, tree.right)})"
    operands = [_sql(query, part) for part in tree.operands]
    if isinstance(tree, Logical):
        return f"({f' {tree.operator.upper()} '.join(operands)})"
    return _computed(tree, operands)


def _computed(tree: Arithmetic, operands: list[str]) -> str:
    if len(operands) == 1:
        return f"(- {operands[0]})"
    functions = {"/": "try_divide", "%": "try_mod"}
    if tree.operator in functions:
        return f"{functions[tree.operator]}({operands[0]}, {operands[1]})"
    return f"({operands[0]} {tree.operator} {operands[1]})"


def _aggregate(function: Function) -> str:
    events = _events(function.over)
    if function.over.attribute is None:
        return f"size({events})"
    if function.name in ("first", "last"):
        return f"element_at({events}, {1 if function.name == 'first' else -1})"
    known = f"filter({events}, v -> v IS NOT NULL)"
    if function.name == "count":
        return f"size({known})"
    if function.name in ("min", "max"):
        return f"array_{function.name}({events})"
    # Whole numbers have whole sums; every other number is summed as double.
    first, rest = f"element_at({known}, 1)", f"slice({known}, 2, greatest(size({known}) - 1, 0))"
    total = f"aggregate({rest}, {first} + 0L, (s, v) -> s + v)"
    total = f"IF(size({known}) = 0, NULL, {total})"
    return total if function.name == "sum" else f"try_divide({total}, size({known}))"
