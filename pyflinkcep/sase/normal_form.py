# SPDX-License-Identifier: Apache-2.0
"""Conditions as clauses: NOT pushed down, constants folded, OR spread over AND."""

from __future__ import annotations

import math
from typing import TypeGuard

import attrs

from pyflinkcep.expressions.tree import Operation, Tree
from pyflinkcep.sase.constants import FALSE, TRUE, is_constant, truth

__all__ = ["MOST_CLAUSES", "clause_count", "clauses"]

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
