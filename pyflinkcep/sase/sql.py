# SPDX-License-Identifier: Apache-2.0
"""Conditions of queries as SQL."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyflinkcep.expressions.tree import Aggregate, Constant, EventPart, Operation, Part
from pyflinkcep.sase.computed import column_sql, is_computed, text_sql
from pyflinkcep.sase.model import Component, Form, Query
from pyflinkcep.sase.placement import Clause, Edges, placed

__all__ = ["all_of", "literal_sql", "part_sql", "usable_sql"]


def usable_sql(query: Query, type_column: str) -> str:
    """
    Return which events a query can use, if its strategies skip all others.

    Conditions with arithmetic are left out: what fails in Spark is NULL in a query.
    """
    edges = placed(query) if query.form is Form.SEQ else {}
    ways = [_way(part, edges.get(part.variable), type_column) for part in query.components]
    return " OR ".join(f"({way})" for way in dict.fromkeys(ways))


def _way(part: Component, edges: Edges | None, type_column: str) -> str:
    is_type = f"{column_sql(type_column)} = {literal_sql(part.type)}"
    if edges is None:
        return is_type
    if part.negated:
        return all_of([is_type, *_plain(edges.absent)])
    begin = all_of(_plain(edges.begin))
    take = all_of(_plain(edges.take))
    if not part.repeats or begin == take:
        return all_of([is_type, *([begin] if begin else [])])
    if not begin or not take:
        return is_type
    return f"{is_type} AND ({begin} OR {take})"


def _plain(clauses: Iterable[Clause]) -> list[str]:
    return [part_sql(c.tree) for c in clauses if _is_plain(c.tree)]


def _is_plain(tree: Part) -> bool:
    """Whether a condition compares columns and literals only."""
    if isinstance(tree, EventPart):
        return not is_computed(tree.text)
    if isinstance(tree, Operation):
        return tree.operator not in ("+", "-", "*", "/", "%", "neg") and all(
            map(_is_plain, tree.operands)
        )
    return not isinstance(tree, Aggregate)


def all_of(tests: Iterable[str]) -> str:
    """Return conditions joined by AND."""
    return " AND ".join(tests)


def part_sql(part: Part) -> str:
    """Return a condition or a value as SQL."""
    if isinstance(part, EventPart):
        return part.text
    if isinstance(part, Constant):
        return literal_sql(part.value)
    if isinstance(part, Aggregate):
        what = "*" if part.argument is None else part.argument
        return f"{part.function}({part.stage}.{what})"
    return _operation(part.operator, list(map(part_sql, part.operands)))


def _operation(operator: str, operands: list[str]) -> str:
    if operator == "is null":
        return f"({operands[0]} IS NULL)"
    if operator == "not":
        return f"(NOT {operands[0]})"
    if operator == "neg":
        return f"(- {operands[0]})"
    return f"({f' {operator.upper()} '.join(operands)})"


def literal_sql(value: Any) -> str:
    """Return a literal as SQL."""
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return text_sql(value)
    return f"{value!r}D" if isinstance(value, float) else str(value)
