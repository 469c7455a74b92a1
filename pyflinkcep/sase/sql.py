# SPDX-License-Identifier: Apache-2.0
"""Conditions of queries as SQL."""

from __future__ import annotations

from collections.abc import Iterable

from pyflinkcep.expressions.spark_sql import literal_sql, spark_sql
from pyflinkcep.expressions.text import written_name
from pyflinkcep.expressions.tree import Aggregate, Column, Leaf, Operation, Tree
from pyflinkcep.sase.computed import column_sql, is_computed, owned_sql
from pyflinkcep.sase.model import Component, Query
from pyflinkcep.sase.placement import Edges, PlacedClause, Placement

__all__ = ["all_of", "condition_sql", "usable_sql"]

_PLAIN = ("=", "<>", "<", "<=", ">", ">=", "and", "or", "not", "is null", "is not null")
"""The operators that never fail."""


def usable_sql(query: Query, type_column: str, placement: Placement) -> str:
    """
    Return which events a query can use, if its strategies skip all others.

    Conditions with arithmetic are left out: what fails in Spark is NULL in a query.
    """
    ways = [_way(part, placement.get(part.variable), type_column) for part in query.components]
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


def _plain(clauses: Iterable[PlacedClause]) -> list[str]:
    return [condition_sql(c.tree) for c in clauses if _is_plain(c.tree)]


def _is_plain(tree: Tree) -> bool:
    """Whether a condition compares columns and literals only."""
    if isinstance(tree, Column):
        return not is_computed(str(tree.sql))
    if isinstance(tree, Operation):
        return tree.operator in _PLAIN and all(map(_is_plain, tree.operands))
    return not isinstance(tree, Aggregate)


def all_of(tests: Iterable[str]) -> str:
    """Return conditions joined by AND."""
    return " AND ".join(tests)


def condition_sql(tree: Tree) -> str:
    """Return a condition over the current event and the run as SQL over stages."""
    return spark_sql(tree, _leaf_sql)


def _leaf_sql(leaf: Leaf) -> str:
    if isinstance(leaf, Column):
        return str(leaf.sql)
    stage = written_name(leaf.stage)
    what = f"{stage}.*" if leaf.argument is None else owned_sql(leaf.over, stage)
    return f"{leaf.function}({what})"
