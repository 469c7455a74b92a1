# SPDX-License-Identifier: Apache-2.0
"""Which clause of a query is evaluated on which edge of its automaton."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from pyflinkcep.expressions.tree import Aggregate, Constant, EventPart, Operation, Part
from pyflinkcep.sase.computed import column_sql
from pyflinkcep.sase.model import Query
from pyflinkcep.sase.normal_form import clauses
from pyflinkcep.sase.text import condition_text
from pyflinkcep.sase.tree import (
    ALL,
    BEFORE,
    CURRENT,
    FIRST,
    PREVIOUS,
    Arithmetic,
    Comparison,
    Expression,
    Function,
    Literal,
    Logical,
    NullTest,
    Reference,
    functions,
    plain_references,
    references,
)

__all__ = ["Clause", "Edges", "Placement", "event_at_hand", "placed"]


@attrs.frozen
class Clause:
    """
    A clause as SQL over the current event and what the run has taken.

    Attributes
    ----------
    text : str
        The clause as written in the query.
    tree : Part
        The clause as a tree.
    reads : frozenset of str
        The variables whose taken events it reads.
    """

    text: str
    tree: Part
    reads: frozenset[str]


@attrs.frozen
class Edges:
    """
    The clauses of a component.

    Attributes
    ----------
    begin : tuple of Clause
        Evaluated on the first event, or the only one.
    take : tuple of Clause
        Evaluated on each further event of a loop.
    leave : tuple of Clause
        Evaluated when a loop is left; these read no event.
    absent : tuple of Clause
        Evaluated on the events of a negated component.
    """

    begin: tuple[Clause, ...] = ()
    take: tuple[Clause, ...] = ()
    leave: tuple[Clause, ...] = ()
    absent: tuple[Clause, ...] = ()


Placement = dict[str, Edges]
"""The edges by variable."""


def placed(query: Query) -> Placement:
    """
    Return where the clauses of a SEQ query are evaluated.

    Each clause belongs to the last component that it names, or to the negated one.
    """
    found: dict[str, dict[str, list[Clause]]] = {
        part.variable: {"begin": [], "take": [], "leave": [], "absent": []}
        for part in query.components
    }
    for condition in query.conditions:
        for clause in clauses(condition):
            owner, edges = _edges(clause, query)
            for edge in edges:
                found[owner][edge].append(_clause(clause, owner, edge))
    return {
        variable: Edges(**{edge: tuple(asked) for edge, asked in edges.items()})
        for variable, edges in found.items()
    }


def _edges(clause: Expression, query: Query) -> tuple[str, tuple[str, ...]]:
    """Return the variable that a clause belongs to, and its edges."""
    named = [reference.variable for reference in references(clause)]
    for variable in named:
        if query.component(variable).negated:
            return variable, ("absent",)
    owner = max(named, key=query.place)
    if not query.component(owner).repeats:
        return owner, ("begin",)
    indexes = {r.index for r in plain_references(clause) if r.variable == owner}
    over = {f.over.index for f in functions(clause) if f.over.variable == owner}
    if not over and indexes == {FIRST}:
        return owner, ("begin",)
    if not over and indexes == {ALL}:
        return owner, ("begin", "take")
    if indexes & {CURRENT, PREVIOUS} or BEFORE in over:
        return owner, ("take",)
    return owner, ("leave",)


def _clause(clause: Expression, owner: str, edge: str) -> Clause:
    def at_hand(reference: Reference) -> bool:
        return event_at_hand(reference, owner, edge)

    taken = {r.variable for r in plain_references(clause) if not at_hand(r)}
    taken |= {f.over.variable for f in functions(clause)}
    tree = _Writer(owner, edge).part(clause)
    return Clause(condition_text(clause), tree, frozenset(taken))


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
        assert isinstance(tree, Logical)  # a clause has no NOT
        return joined(tree.operator, map(self.part, tree.operands))

    def _reference(self, tree: Reference) -> Part:
        assert tree.attribute is not None
        if event_at_hand(tree, self.owner, self.edge):
            return EventPart(column_sql(tree.attribute))
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
