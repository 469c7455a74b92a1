# SPDX-License-Identifier: Apache-2.0
"""The value of a tree in Python, without a schema: types are those of the values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pyflinkcep.expressions.number_functions import Moments
from pyflinkcep.expressions.sql_functions import FUNCTIONS as SQL_FUNCTIONS
from pyflinkcep.expressions.sql_functions import extreme
from pyflinkcep.expressions.sql_values import arithmetic, compared, negated, truth, truth_and
from pyflinkcep.expressions.tree import FUNCTIONS, Leaf, Literal, Tree

__all__ = ["COMPARISONS", "aggregated", "value_of"]

COMPARISONS: dict[str, Callable[[int], bool]] = {
    "=": lambda order: order == 0,
    "<>": lambda order: order != 0,
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
}
"""What an order says, negative if the left value comes first."""

_DIVISIONS = ("/", "%", "pmod")


def value_of(tree: Tree, leaf: Callable[[Leaf], Any]) -> Any:
    """
    Return the value of a tree of a query, None for NULL; division by zero is NULL.

    Parameters
    ----------
    tree : Tree
        The tree.
    leaf : callable
        Returns a value of events.

    Raises
    ------
    ArithmeticError
        On overflow.
    InputError
        If types are incompatible.
    """
    if isinstance(tree, Literal):
        return tree.value
    if isinstance(tree, Leaf):
        return leaf(tree)
    operator, operands = tree.operator, tree.operands
    if operator in ("and", "or"):
        decisive, found = operator == "or", truth(value_of(operands[0], leaf))
        for part in operands[1:]:
            found = truth_and(found, partial(_truth_of, part, leaf), decisive)
        return found
    values = [value_of(part, leaf) for part in operands]
    if operator in ("is null", "is not null"):
        return (values[0] is None) is (operator == "is null")
    if None in values or (operator in _DIVISIONS and values[1] == 0):
        return None
    if operator == "not":
        return not truth(values[0])
    if operator == "neg":
        return negated(values[0])
    if operator in COMPARISONS:
        return COMPARISONS[operator](compared(*values))
    if operator in FUNCTIONS:
        return SQL_FUNCTIONS[operator][2](*values)
    return arithmetic(operator, *values)


def _truth_of(tree: Tree, leaf: Callable[[Leaf], Any]) -> bool | None:
    return truth(value_of(tree, leaf))


def aggregated(function: str, values: Sequence[Any]) -> Any:
    """Return an aggregate of the values of events; all but count are NULL without any."""
    if function in ("first", "last"):
        return values[0 if function == "first" else -1] if values else None
    known = [value for value in values if value is not None]
    if function == "count":
        return len(known)
    if function == "stddev":
        return Moments([float(value) for value in known]).deviation()
    if not known:
        return None
    if function in ("min", "max"):
        return extreme(tuple(known), 1 if function == "max" else -1)
    total = known[0]
    for value in known[1:]:
        total = arithmetic("+", total, value)
    return total if function == "sum" else arithmetic("/", total, len(known))
