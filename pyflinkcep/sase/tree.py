# SPDX-License-Identifier: Apache-2.0
"""What conditions and columns of a query read of its variables."""

from __future__ import annotations

from collections.abc import Iterator

from pyflinkcep.expressions.tree import ALL, Aggregate, Column, Operation, Tree, leaves

__all__ = [
    "ALL",
    "BEFORE",
    "CURRENT",
    "FIRST",
    "LAST",
    "PREVIOUS",
    "arithmetic",
    "functions",
    "plain_references",
    "references",
]

FIRST, CURRENT, PREVIOUS, BEFORE, LAST = "1", "i", "i-1", "..i-1", "LEN"
"""The other indexes of a variable that repeats; None without brackets."""

_ARITHMETIC = ("+", "-", "*", "/", "%", "neg")


def functions(tree: Tree) -> Iterator[Aggregate]:
    """Yield the aggregates of a tree."""
    return (leaf for leaf in leaves(tree) if isinstance(leaf, Aggregate))


def arithmetic(tree: Tree) -> Iterator[Operation]:
    """Yield the calculations in a tree, the outermost ones."""
    if not isinstance(tree, Operation):
        return
    if tree.operator in _ARITHMETIC:
        yield tree
        return
    for part in tree.operands:
        yield from arithmetic(part)


def plain_references(tree: Tree) -> Iterator[Column]:
    """Yield the references to variables outside of aggregates."""
    return (leaf for leaf in leaves(tree) if isinstance(leaf, Column))


def references(tree: Tree) -> Iterator[Column]:
    """Yield all references to variables, those inside aggregates too."""
    return (leaf.over if isinstance(leaf, Aggregate) else leaf for leaf in leaves(tree))
