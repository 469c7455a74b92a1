# SPDX-License-Identifier: Apache-2.0
"""Attributes that SQL computes from one event, such as ``upper(a.name)``."""

from __future__ import annotations

from collections.abc import Iterator

from pyflinkcep.expressions.text import quoted_name, shown, spark_sql
from pyflinkcep.expressions.tree import (
    Aggregate,
    Call,
    Column,
    Operation,
    Span,
    Tree,
    leaves,
)
from pyflinkcep.sase.model import Query

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


def is_computed(attribute: str) -> bool:
    """Whether an attribute is SQL in parentheses, such as a field of a struct, not a column."""
    return attribute.startswith(("(", "cast("))


def column_sql(attribute: str) -> str:
    """Return the SQL for an attribute; a column may have any name."""
    return attribute if is_computed(attribute) else quoted_name(attribute)


def computed_for(query: Query) -> dict[str, tuple[str, ...]]:
    """Return the attributes that SQL computes, each with the event types that need it."""
    found: dict[str, list[str]] = {}
    for reference in (r for condition in query.conditions for r in references(condition)):
        if reference.attribute is not None and is_computed(reference.attribute):
            types = found.setdefault(reference.attribute, [])
            types.append(query.component(reference.variable).type)
    return {sql: tuple(types) for sql, types in found.items()}


def computed(tree: Tree, event: Column, text: str, span: Span) -> Column:
    """Return what a tree computes of an event as an attribute of it; `text` is how it is shown."""
    sql = f"({spark_sql(tree, lambda leaf: str(leaf.over.sql))})"
    return Column(sql, event.variable, event.index, text, span, tree)


def path_names(column: Column) -> tuple[str, ...]:
    """Return the names to a field of a struct, an element of a map or an array; else none."""
    tree, names = column.computed, list[str]()
    while isinstance(tree, Call) and tree.function in (".", "[]"):
        key = tree.detail if tree.function == "." else shown(tree.operands[1])
        names, tree = [key, *names], tree.operands[0]
    if not isinstance(tree, Column) or tree.computed is not None:
        return ()
    return column.variable, str(tree.attribute), *names


def owned_sql(column: Column, owner: str) -> str:
    """
    Return an attribute as SQL over the fields of a struct, or of a stage.

    Examples
    --------
    >>> call = Call("", (Column("`s`"),), between=("concat ( ", " , '`' )"))
    >>> owned_sql(computed(call, Column("`s`", "a"), "", (0, 0)), "e")
    "(concat ( e.`s` , '`' ))"
    """
    if column.computed is None:
        return f"{owner}.{column.sql}"
    return f"({spark_sql(column.computed, lambda leaf: owned_sql(leaf.over, owner))})"
