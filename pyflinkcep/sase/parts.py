# SPDX-License-Identifier: Apache-2.0
"""Conditions and values of a query in the form that programs are compiled from."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from pyflinkcep.expressions.text import shown
from pyflinkcep.expressions.tree import Aggregate, Call, Column, Literal, Operation, Tree
from pyflinkcep.sase.computed import column_sql
from pyflinkcep.sase.model import Query
from pyflinkcep.sase.tree import ALL, CURRENT, FIRST

__all__ = ["constant_tests", "event_at_hand", "joined", "part_of"]


def constant_tests(query: Query) -> list[Operation]:
    """Return the tests ``[attr = literal]`` as conditions on any event."""
    return [
        Operation("=", (Column(column_sql(name)), literal), f"{name} = {literal.text}")
        for name, literal in query.constants
    ]


def part_of(tree: Tree, owner: str = "", edge: str = "leave") -> Tree:
    """Return a condition or a value as evaluated on an edge; by default on a whole match."""
    if isinstance(tree, Literal):
        return tree
    if isinstance(tree, Column):
        if event_at_hand(tree, owner, edge):
            return Column(tree.sql, span=tree.span, computed=tree.computed)
        return _aggregate("first" if tree.index == FIRST else "last", tree)
    if isinstance(tree, Aggregate):
        return _aggregate(tree.function, tree.over)
    text, operands = shown(tree), [part_of(part, owner, edge) for part in tree.operands]
    if isinstance(tree, Call):
        return attrs.evolve(tree, operands=tuple(operands), text=text)
    if tree.operator in ("and", "or"):
        return joined(tree.operator, operands)
    if tree.operator == "is not null":
        test = Operation("is null", tuple(operands), text, tree.span)
        return Operation("not", (test,), text, tree.span)
    return Operation(tree.operator, tuple(operands), text, tree.span)


def event_at_hand(reference: Column, owner: str, edge: str) -> bool:
    """Whether a reference outside aggregates means the current event."""
    if reference.variable != owner or edge == "leave":
        return False
    return reference.index in (None, CURRENT, ALL) or (edge == "begin" and reference.index == FIRST)


def _aggregate(function: str, over: Column) -> Aggregate:
    text = f"{function}({shown(over)})"
    return Aggregate(
        function, over.variable, over.sql, text, span=over.span, computed=over.computed
    )


def joined(operator: str, parts: Iterable[Tree]) -> Tree:
    """Return conditions under AND or OR."""
    first, *rest = parts
    for part in rest:
        text = f"({shown(first)} {operator.upper()} {shown(part)})"
        first = Operation(operator, (first, part), text)
    return first
