# SPDX-License-Identifier: Apache-2.0
"""Conditions that read no event."""

from __future__ import annotations

from pyflinkcep.expressions.codegen import generated
from pyflinkcep.expressions.compiler import compiled
from pyflinkcep.expressions.text import shown
from pyflinkcep.expressions.tree import Literal, MatchExpression, Operation, Tree, leaves

__all__ = ["FALSE", "TRUE", "is_constant", "truth"]

TRUE = Operation("=", (Literal(1, "1"), Literal(1, "1")))
FALSE = Operation("=", (Literal(1, "1"), Literal(0, "0")))


def is_constant(tree: Tree) -> bool:
    """Whether a condition or a value reads no event."""
    return next(leaves(tree), None) is None


def truth(condition: Tree) -> Tree:
    """
    Return `TRUE` if a constant condition holds, otherwise `FALSE`.

    Raises
    ------
    InputError
        If its types are incompatible.
    """
    text = shown(condition)
    expressions = compiled([("WHERE", MatchExpression(text, condition))], {}, False)
    return TRUE if generated(expressions).conditions[text]((), ()) else FALSE
