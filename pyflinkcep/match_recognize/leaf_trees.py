# SPDX-License-Identifier: Apache-2.0
"""Expressions of DEFINE as trees, whose aggregates are the values that they take from a match."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from pyflinkcep.errors import CepError
from pyflinkcep.expressions.names import Names
from pyflinkcep.expressions.operators import Operators
from pyflinkcep.expressions.syntax import Form, Syntax
from pyflinkcep.expressions.template import joined
from pyflinkcep.expressions.tree import Aggregate, Tree
from pyflinkcep.match_recognize.leaves import Leaf

__all__ = ["leaf_tree"]


def leaf_tree(
    text: str, tree: Syntax, placed: Sequence[tuple[Syntax, int]], leaves: Sequence[Leaf]
) -> Tree | CepError:
    """
    Return an expression as a tree.

    Parameters
    ----------
    text : str
        The expression.
    tree : Syntax
        The same, parsed.
    placed : sequence of (Syntax, int)
        The parts that are leaves, each with its number.
    leaves : sequence of Leaf
        The leaves.

    Returns
    -------
    Tree or CepError
        The tree, whose aggregates are leaves; the error if it has a part that programs do not have.
        What Spark can compute at one row is part of the leaf: in ``upper(LAST(A.name)) = 'X'`` that
        is ``upper(name)`` at the last row of A.
    """
    try:
        return Operators(_Names(text, placed, leaves)).part(tree)
    except CepError as refusal:
        return refusal


class _Names(Names):
    """Finds leaves where conditions over stages have names."""

    shifts_inside = False

    def __init__(
        self, text: str, placed: Sequence[tuple[Syntax, int]], leaves: Sequence[Leaf]
    ) -> None:
        super().__init__(text, "", None)
        self._leaves = leaves
        self._numbers = {id(part): number for node, number in placed for part in _same(node)}

    def aggregates(self, part: Syntax) -> Iterator[Syntax]:
        """Yield the leaves, in the order of the text."""
        if id(part) in self._numbers:
            yield part
            return
        for operand in part.operands:
            yield from self.aggregates(operand)

    def is_about_event(self, part: Syntax) -> bool:
        """Whether a part has no leaf."""
        return next(self.aggregates(part), None) is None

    def aggregate(self, part: Syntax) -> Leaf:
        """Return a leaf."""
        leaf = self._leaves[self._numbers[id(part)]]
        return attrs.evolve(leaf, text=self.written(part), span=(part.start, part.end))

    def inner(self, aggregate: Aggregate) -> str | None:
        """
        Return the argument of a leaf for a function of it.

        In parentheses, unless it is such a function already: the columns of stored rows are known
        by this text.
        """
        argument = aggregate.argument
        if argument is None or aggregate not in self._leaves:
            return argument
        return joined(("(", argument, ")"))


def _same(node: Syntax) -> Iterator[Syntax]:
    """Yield a part, and what is left of it without the parentheses around."""
    yield node
    while node.form is Form.PAREN:
        node = node.operands[0]
        yield node
