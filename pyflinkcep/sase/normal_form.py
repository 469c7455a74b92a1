# SPDX-License-Identifier: Apache-2.0
"""Conditions as clauses: NOT pushed down, constants folded, OR spread over AND."""

from __future__ import annotations

import math

from pyflinkcep.sase.constants import FALSE, TRUE, is_constant, truth
from pyflinkcep.sase.tree import Comparison, Expression, Logical, Negation, NullTest

__all__ = ["MOST_CLAUSES", "clause_count", "clauses"]

MOST_CLAUSES = 256
"""The most clauses that the conditions of a query may have."""

_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def clauses(condition: Expression) -> list[Expression]:
    """
    Return clauses that all hold exactly if the condition holds.

    Each names a variable, except `FALSE`, which is the only clause of a condition that never holds.
    """
    pushed = _pushed(condition, negated=False)
    if pushed == TRUE:
        return []
    return [_disjunction(clause) for clause in _spread(pushed)]


def clause_count(condition: Expression) -> int:
    """Return how many clauses a condition has, without making them."""
    pushed = _pushed(condition, negated=False)
    return 0 if pushed == TRUE else _count(pushed)


def _pushed(condition: Expression, *, negated: bool) -> Expression:
    """Return a condition without NOT and without constant operands."""
    if isinstance(condition, Negation):
        return _pushed(condition.operand, negated=not negated)
    if isinstance(condition, Logical):
        operator = condition.operator
        if negated:
            operator = "or" if operator == "and" else "and"
        return _joined(operator, [_pushed(part, negated=negated) for part in condition.operands])
    if negated and isinstance(condition, Comparison):
        condition = Comparison(_OPPOSITE[condition.operator], condition.left, condition.right)
    elif negated and isinstance(condition, NullTest):
        condition = NullTest(condition.value, not condition.negated)
    return truth(condition) if is_constant(condition) else condition


def _joined(operator: str, parts: list[Expression]) -> Expression:
    """Return conditions without NOT under AND or OR; NULL is as good as false there."""
    decides, neutral = (TRUE, FALSE) if operator == "or" else (FALSE, TRUE)
    if decides in parts:
        return decides
    others = tuple(part for part in parts if part != neutral)
    if len(others) < 2:
        return others[0] if others else neutral
    return Logical(operator, others)


def _count(condition: Expression) -> int:
    if not isinstance(condition, Logical):
        return 1
    counts = [_count(part) for part in condition.operands]
    return sum(counts) if condition.operator == "and" else math.prod(counts)


def _spread(condition: Expression) -> list[tuple[Expression, ...]]:
    """Return the clauses of a condition without NOT, each as the operands of an OR."""
    if not isinstance(condition, Logical):
        return [(condition,)]
    parts = [_spread(part) for part in condition.operands]
    if condition.operator == "and":
        return [clause for part in parts for clause in part]
    joined: list[tuple[Expression, ...]] = [()]
    for part in parts:
        joined = [(*left, *right) for left in joined for right in part]
    return joined


def _disjunction(parts: tuple[Expression, ...]) -> Expression:
    distinct = tuple(dict.fromkeys(parts))
    return distinct[0] if len(distinct) == 1 else Logical("or", distinct)
