# SPDX-License-Identifier: Apache-2.0
"""Which clause of a query is evaluated on which edge of its automaton."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from pyflinkcep.expressions.text import shown
from pyflinkcep.expressions.tree import Column, Tree
from pyflinkcep.sase.constants import is_constant
from pyflinkcep.sase.model import Query
from pyflinkcep.sase.normal_form import clauses
from pyflinkcep.sase.parts import event_at_hand, part_of
from pyflinkcep.sase.tree import (
    ALL,
    BEFORE,
    CURRENT,
    FIRST,
    PREVIOUS,
    functions,
    plain_references,
    references,
)

__all__ = ["Edges", "PlacedClause", "Placement", "clause_edges", "placed", "placed_clause"]


@attrs.frozen
class PlacedClause:
    """
    A clause as SQL over the current event and what the run has taken.

    Attributes
    ----------
    text : str
        The clause as written in the query.
    tree : Tree
        The clause as a tree.
    reads : frozenset of str
        The variables whose taken events it reads.
    """

    text: str
    tree: Tree
    reads: frozenset[str]


@attrs.frozen
class Edges:
    """
    The clauses of a component.

    Attributes
    ----------
    begin : tuple of PlacedClause
        Evaluated on the first event, or the only one.
    take : tuple of PlacedClause
        Evaluated on each further event of a loop.
    leave : tuple of PlacedClause
        Evaluated when a loop is left; these read no event.
    absent : tuple of PlacedClause
        Evaluated on the events of a negated component.
    """

    begin: tuple[PlacedClause, ...] = ()
    take: tuple[PlacedClause, ...] = ()
    leave: tuple[PlacedClause, ...] = ()
    absent: tuple[PlacedClause, ...] = ()


Placement = Mapping[str, Edges]
"""The edges by variable."""


def placed(query: Query) -> Placement:
    """
    Return where the clauses of a SEQ query are evaluated.

    Each clause belongs to the last component that it names, or to the last negated one.
    """
    found: dict[str, dict[str, list[PlacedClause]]] = {
        part.variable: {"begin": [], "take": [], "leave": [], "absent": []}
        for part in query.components
    }
    for condition in query.conditions:
        for clause in clauses(condition):
            owner, edges = clause_edges(clause, query)
            for edge in edges:
                found[owner][edge].append(placed_clause(clause, owner, edge))
    return {
        variable: Edges(**{edge: tuple(asked) for edge, asked in edges.items()})
        for variable, edges in found.items()
    }


def clause_edges(clause: Tree, query: Query) -> tuple[str, tuple[str, ...]]:
    """Return the variable that a clause belongs to, and its edges."""
    if is_constant(clause):
        return query.positive[0].variable, ("begin",)
    named = [reference.variable for reference in references(clause)]
    negated = [variable for variable in named if query.component(variable).negated]
    if negated:
        return max(negated, key=query.place), ("absent",)
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


def placed_clause(clause: Tree, owner: str, edge: str) -> PlacedClause:
    """Return a clause as it is evaluated on an edge of a component."""

    def at_hand(reference: Column) -> bool:
        return event_at_hand(reference, owner, edge)

    taken = {r.variable for r in plain_references(clause) if not at_hand(r)}
    taken |= {f.over.variable for f in functions(clause)}
    return PlacedClause(shown(clause), part_of(clause, owner, edge), frozenset(taken))
