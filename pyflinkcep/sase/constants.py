# SPDX-License-Identifier: Apache-2.0
"""Conditions that read no event."""

from __future__ import annotations

from pyflinkcep.expressions.codegen import generated
from pyflinkcep.expressions.compiler import compiled
from pyflinkcep.expressions.tree import MatchExpression
from pyflinkcep.sase.parts import part_of
from pyflinkcep.sase.tree import Comparison, Expression, Literal, references

__all__ = ["FALSE", "TRUE", "is_constant", "truth"]

TRUE = Comparison("=", Literal(1, "1"), Literal(1, "1"))
FALSE = Comparison("=", Literal(1, "1"), Literal(0, "0"))


def is_constant(tree: Expression) -> bool:
    """Whether a condition or a value reads no event."""
    return next(references(tree), None) is None


def truth(condition: Expression) -> Expression:
    """
    Return `TRUE` if a constant condition holds, otherwise `FALSE`.

    Raises
    ------
    InputError
        If its types are incompatible.
    """
    tree = part_of(condition)
    expressions = compiled([("WHERE", MatchExpression(tree.text, tree, ()))], {}, False)
    return TRUE if generated(expressions).conditions[tree.text]((), ()) else FALSE
