# SPDX-License-Identifier: Apache-2.0
"""Which clause of a query is evaluated on which edge of its automaton."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TypeGuard

import attrs

from pyflinkcep.expressions.codegen import generated
from pyflinkcep.expressions.compiler import compiled
from pyflinkcep.expressions.tree import (
    ALL,
    Aggregate,
    Call,
    Column,
    Literal,
    MatchExpression,
    Operation,
    Tree,
    leaves,
    shown,
)
from pyflinkcep.sase.attributes import (
    BEFORE,
    CURRENT,
    FIRST,
    PREVIOUS,
    column_sql,
    functions,
    plain_references,
    references,
)
from pyflinkcep.sase.model import Query

TRUE = Operation("=", (Literal(1, "1"), Literal(1, "1")))
FALSE = Operation("=", (Literal(1, "1"), Literal(0, "0")))


def is_constant(tree: Tree) -> bool:
    """Whether a condition or a value reads no event."""
    return next(leaves(tree), None) is None


def truth(condition: Tree) -> Tree:
    """Return `TRUE` if a constant condition holds, otherwise `FALSE`."""
    text = shown(condition)
    expressions = compiled([("WHERE", MatchExpression(text, condition))], {}, False)
    return TRUE if generated(expressions).conditions[text]((), ()) else FALSE


MOST_CLAUSES = 256
"""The most clauses that the conditions of a query may have."""

_OPPOSITE = {
    "=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">", "and": "or", "or": "and",
    "is null": "is not null", "is not null": "is null",
}  # fmt: skip
_LOGIC = ("and", "or")


def clauses(condition: Tree) -> list[Tree]:
    """
    Return clauses that all hold exactly if the condition holds.

    Each names a variable, except `FALSE`, which is the only clause of a condition that never holds.
    """
    pushed = _pushed(condition, negated=False)
    if pushed == TRUE:
        return []
    return [_disjunction(clause) for clause in _spread(pushed)]


def query_clauses(query: Query) -> list[Tree]:
    """Return the clauses of all conditions of a query."""
    return [clause for condition in query.conditions for clause in clauses(condition)]


def clause_count(condition: Tree) -> int:
    """Return how many clauses a condition has, without making them."""
    pushed = _pushed(condition, negated=False)
    return 0 if pushed == TRUE else _count(pushed)


def _pushed(tree: Tree, *, negated: bool) -> Tree:
    """Return a condition without constant operands, and NOT only where nothing is opposite."""
    if isinstance(tree, Operation):
        operator, operands = tree.operator, tree.operands
        if operator == "not":
            return _pushed(operands[0], negated=not negated)
        if operator in _LOGIC:
            operator = _OPPOSITE[operator] if negated else operator
            return _joined(operator, [_pushed(part, negated=negated) for part in operands])
        if negated and operator in _OPPOSITE:
            tree, negated = attrs.evolve(tree, operator=_OPPOSITE[operator], text=""), False
    if negated:
        tree = Operation("not", (tree,), span=tree.span)
    return truth(tree) if is_constant(tree) else tree


def _joined(operator: str, parts: list[Tree]) -> Tree:
    """Return conditions without NOT under AND or OR; NULL is as good as false there."""
    decides, neutral = (TRUE, FALSE) if operator == "or" else (FALSE, TRUE)
    if decides in parts:
        return decides
    others = tuple(part for part in parts if part != neutral)
    if len(others) < 2:
        return others[0] if others else neutral
    return Operation(operator, others, span=others[0].span)


def _is_logic(tree: Tree) -> TypeGuard[Operation]:
    return isinstance(tree, Operation) and tree.operator in _LOGIC


def _count(condition: Tree) -> int:
    if not _is_logic(condition):
        return 1
    counts = [_count(part) for part in condition.operands]
    return sum(counts) if condition.operator == "and" else math.prod(counts)


def _spread(condition: Tree) -> list[tuple[Tree, ...]]:
    """Return the clauses of a condition without NOT, each as the operands of an OR."""
    if not _is_logic(condition):
        return [(condition,)]
    parts = [_spread(part) for part in condition.operands]
    if condition.operator == "and":
        return [clause for part in parts for clause in part]
    joined: list[tuple[Tree, ...]] = [()]
    for part in parts:
        joined = [(*left, *right) for left in joined for right in part]
    return joined


def _disjunction(parts: tuple[Tree, ...]) -> Tree:
    distinct = tuple(dict.fromkeys(parts))
    return distinct[0] if len(distinct) == 1 else Operation("or", distinct, span=distinct[0].span)


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


@attrs.frozen
class PlacedClause:
    """A clause as SQL over the current event and what the run has taken."""

    text: str  # The clause as written in the query
    tree: Tree  # The clause as a tree

    @property
    def reads(self) -> frozenset[str]:
        """The variables whose taken events it reads."""
        return frozenset(function.stage for function in functions(self.tree))


@attrs.frozen
class Edges:
    """The clauses of a component."""

    begin: tuple[PlacedClause, ...] = ()  # Evaluated on the first event, or the only one
    take: tuple[PlacedClause, ...] = ()  # Evaluated on each further event of a loop
    leave: tuple[PlacedClause, ...] = ()  # Evaluated when a loop is left; these read no event
    absent: tuple[PlacedClause, ...] = ()  # Evaluated on the events of a negated component


EDGES = ("begin", "take", "leave", "absent")
"""Their names, in order."""

Placement = Mapping[str, Edges]
"""The edges by variable."""


def placed(query: Query) -> Placement:
    """
    Return where the clauses of a SEQ query are evaluated.

    Each clause belongs to the last component that it names, or to the last negated one.
    """
    found = defaultdict[tuple[str, str], list[PlacedClause]](list)
    for clause in query_clauses(query):
        owner, edges = clause_edges(clause, query)
        for edge in edges:
            found[owner, edge].append(placed_clause(clause, owner, edge))
    return {
        part.variable: Edges(*(tuple(found[part.variable, edge]) for edge in EDGES))
        for part in query.components
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
    return PlacedClause(shown(clause), part_of(clause, owner, edge))
