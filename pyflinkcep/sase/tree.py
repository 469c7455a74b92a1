# SPDX-License-Identifier: Apache-2.0
"""Conditions and columns of a query as a tree."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

__all__ = [
    "ALL",
    "BEFORE",
    "CURRENT",
    "FIRST",
    "LAST",
    "PREVIOUS",
    "Arithmetic",
    "Comparison",
    "Expression",
    "Function",
    "Literal",
    "Logical",
    "Negation",
    "NullTest",
    "Reference",
    "arithmetic",
    "functions",
    "plain_references",
    "references",
]

FIRST, CURRENT, PREVIOUS, BEFORE, LAST, ALL = "1", "i", "i-1", "..i-1", "LEN", ""
"""The indexes of a variable that repeats; None without brackets."""


@attrs.frozen
class Literal:
    """A number, a text or NULL; `text` is how it was written."""

    value: int | float | str | None
    text: str = attrs.field(eq=False)


@attrs.frozen
class Reference:
    """
    An attribute of an event that a variable stands for.

    Attributes
    ----------
    variable : str
        The variable.
    index : str or None
        Which of its events, as in the brackets; None without brackets.
    attribute : str or None
        The attribute; None for the event itself.
    at : int
        Its place in the text.
    shown : str or None
        What was written instead of the variable, that is its type; None otherwise.
    """

    variable: str
    index: str | None
    attribute: str | None
    at: int = attrs.field(eq=False)
    shown: str | None = attrs.field(default=None, eq=False)


@attrs.frozen
class Function:
    """An aggregate over the events of a variable; without an attribute it counts them."""

    name: str
    over: Reference


@attrs.frozen
class Arithmetic:
    """Two values under one of ``+ - * / %``; with one operand, its negative."""

    operator: str
    operands: tuple[Expression, ...]


@attrs.frozen
class Comparison:
    """Two values under one of ``= <> < <= > >=``."""

    operator: str
    left: Expression
    right: Expression


@attrs.frozen
class NullTest:
    """Whether a value is NULL; with `negated`, whether it is not."""

    value: Expression
    negated: bool


@attrs.frozen
class Logical:
    """Conditions under ``and`` or ``or``, two of them or more."""

    operator: str
    operands: tuple[Expression, ...]


@attrs.frozen
class Negation:
    """NOT before a condition."""

    operand: Expression


Expression = (
    Literal | Reference | Function | Arithmetic | Comparison | NullTest | Logical | Negation
)


def _parts(tree: Expression) -> tuple[Expression, ...]:
    if isinstance(tree, Arithmetic | Logical):
        return tree.operands
    if isinstance(tree, Comparison):
        return tree.left, tree.right
    if isinstance(tree, NullTest):
        return (tree.value,)
    if isinstance(tree, Negation):
        return (tree.operand,)
    return ()


def functions(tree: Expression) -> Iterator[Function]:
    """Yield the aggregates of a tree."""
    if isinstance(tree, Function):
        yield tree
    for part in _parts(tree):
        yield from functions(part)


def arithmetic(tree: Expression) -> Iterator[Arithmetic]:
    """Yield the calculations in a tree, the outermost ones."""
    if isinstance(tree, Arithmetic):
        yield tree
        return
    for part in _parts(tree):
        yield from arithmetic(part)


def plain_references(tree: Expression) -> Iterator[Reference]:
    """Yield the references outside of aggregates."""
    if isinstance(tree, Reference):
        yield tree
    for part in _parts(tree):
        yield from plain_references(part)


def references(tree: Expression) -> Iterator[Reference]:
    """Yield all references, those inside aggregates too."""
    if isinstance(tree, Reference):
        yield tree
    elif isinstance(tree, Function):
        yield tree.over
    for part in _parts(tree):
        yield from references(part)
