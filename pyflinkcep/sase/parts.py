# SPDX-License-Identifier: Apache-2.0
"""Conditions and values of a query in the form that programs are compiled from."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from pyflinkcep.expressions.tree import Aggregate, Constant, EventPart, Operation, Part
from pyflinkcep.sase.computed import column_sql
from pyflinkcep.sase.text import condition_text
from pyflinkcep.sase.tree import (
    ALL,
    CURRENT,
    FIRST,
    Arithmetic,
    Comparison,
    Expression,
    Function,
    Literal,
    Negation,
    NullTest,
    Reference,
)

__all__ = ["event_at_hand", "joined", "part_of"]


def part_of(tree: Expression, owner: str = "", edge: str = "leave") -> Part:
    """Return a condition or a value as evaluated on an edge; by default on a whole match."""
    return _Writer(owner, edge).part(tree)


def event_at_hand(reference: Reference, owner: str, edge: str) -> bool:
    """Whether a reference outside aggregates means the current event."""
    if reference.variable != owner or edge == "leave":
        return False
    return reference.index in (None, CURRENT, ALL) or (edge == "begin" and reference.index == FIRST)


@attrs.frozen
class _Writer:
    """Writes a clause as SQL over the event and the run."""

    owner: str
    edge: str

    def part(self, tree: Expression) -> Part:
        if isinstance(tree, Literal):
            return Constant(tree.value, tree.text)
        if isinstance(tree, Reference):
            return self._reference(tree)
        if isinstance(tree, Function):
            return _aggregate(tree.name, tree.over)
        text = condition_text(tree)
        if isinstance(tree, Arithmetic):
            operator = tree.operator if len(tree.operands) > 1 else "neg"
            return Operation(operator, tuple(map(self.part, tree.operands)), text)
        if isinstance(tree, Comparison):
            return Operation(tree.operator, (self.part(tree.left), self.part(tree.right)), text)
        if isinstance(tree, NullTest):
            test = Operation("is null", (self.part(tree.value),), text)
            return Operation("not", (test,), text) if tree.negated else test
        if isinstance(tree, Negation):
            return Operation("not", (self.part(tree.operand),), text)
        return joined(tree.operator, map(self.part, tree.operands))

    def _reference(self, tree: Reference) -> Part:
        if event_at_hand(tree, self.owner, self.edge):
            return EventPart(column_sql(str(tree.attribute)))
        return _aggregate("first" if tree.index == FIRST else "last", tree)


def _aggregate(function: str, over: Reference) -> Aggregate:
    argument = None if over.attribute is None else column_sql(over.attribute)
    return Aggregate(function, over.variable, argument, condition_text(Function(function, over)))


def joined(operator: str, parts: Iterable[Part]) -> Part:
    """Return conditions under AND or OR."""
    first, *rest = parts
    for part in rest:
        first = Operation(operator, (first, part), f"({first.text} {operator.upper()} {part.text})")
    return first
