# SPDX-License-Identifier: Apache-2.0
"""The attributes of events that a query reads; SQL computes some, such as ``upper(a.name)``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyflinkcep.expressions.tree import (
    Aggregate,
    Call,
    Column,
    Operation,
    Span,
    Tree,
    leaves,
    parts,
    quoted_name,
    shown,
    spark_sql,
)
from pyflinkcep.sase.model import Query

FIRST, CURRENT, PREVIOUS, BEFORE, LAST = "1", "i", "i-1", "..i-1", "LEN"
"""The other indexes of a variable that repeats; None without brackets."""

_ARITHMETIC = ("+", "-", "*", "/", "%", "neg")


def functions(tree: Tree) -> Iterator[Aggregate]:
    """Yield the aggregates of a tree."""
    return (leaf for leaf in leaves(tree) if isinstance(leaf, Aggregate))


def plain_references(tree: Tree) -> Iterator[Column]:
    """Yield the references to variables outside of aggregates."""
    return (leaf for leaf in leaves(tree) if isinstance(leaf, Column))


def references(tree: Tree) -> Iterator[Column]:
    """Yield all references to variables, those inside aggregates too."""
    return (leaf.over if isinstance(leaf, Aggregate) else leaf for leaf in leaves(tree))


def variables_of(tree: Tree) -> set[str]:
    """Return the variables that a tree names."""
    return {reference.variable for reference in references(tree)}


def is_computed(attribute: str) -> bool:
    """Whether an attribute is SQL in parentheses, such as a field of a struct, not a column."""
    return attribute.startswith(("(", "cast("))


def column_sql(attribute: str) -> str:
    """Return the SQL for an attribute; a column may have any name."""
    return attribute if is_computed(attribute) else quoted_name(attribute)


def computed(tree: Tree, event: Column, text: str, span: Span) -> Column:
    """Return what a tree computes of an event as an attribute of it; `text` is how it is shown."""
    sql = f"({spark_sql(tree, lambda leaf: str(leaf.over.sql), zero_is_null=True)})"
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
    own = spark_sql(column.computed, lambda leaf: owned_sql(leaf.over, owner), zero_is_null=True)
    return f"({own})"


# --- what a query reads


def queried_attributes(query: Query) -> list[str]:
    """Return the attributes that WHERE reads."""
    named = [r.attribute for c in query.conditions for r in references(c)]
    tested = [*query.equal, *(name for name, _ in query.constants)]
    return list(dict.fromkeys([*tested, *(name for name in named if name is not None)]))


def added_attributes(query: Query) -> set[str | None]:
    """Return the attributes with which WHERE calculates."""
    every = [part for condition in query.conditions for part in parts(condition)]
    made = [part for part in every if isinstance(part, Operation) and part.operator in _ARITHMETIC]
    sums = [p.over for p in every if isinstance(p, Aggregate) and p.function in ("sum", "avg")]
    named = (reference for part in made for reference in references(part))
    return {reference.attribute for reference in (*sums, *named)}


def computed_for(query: Query) -> dict[str, list[str]]:
    """Return the attributes that SQL computes, each with the event types that need it."""
    found = _by_type(query, query.conditions)
    return {name: types for name, types in found.items() if is_computed(name)}


def output_types(query: Query) -> dict[str, list[str]]:
    """Return the attributes with which HAVING and RETURN compute, with their event types."""
    return _by_type(query, outputs(query))


def copied_attributes(query: Query, *, computed: bool = False) -> list[str]:
    """Return the attributes that RETURN gives out as events have them, or as computed of one."""
    values = (column.value for column in query.columns or ())
    named = (value.attribute for value in values if isinstance(value, Column))
    return list(dict.fromkeys(n for n in named if n is not None and is_computed(n) == computed))


def outputs(query: Query) -> Iterator[Tree]:
    """Yield HAVING, and the columns of RETURN that are computed."""
    if query.having is not None:
        yield query.having
    for column in query.columns or ():
        if not isinstance(column.value, Column):
            yield column.value


def _by_type(query: Query, trees: Iterable[Tree]) -> dict[str, list[str]]:
    """Return the attributes of trees, each with the event types of the variables they are of."""
    found: dict[str, list[str]] = {}
    for reference in (r for tree in trees for r in references(tree)):
        if reference.attribute is not None:
            type_ = query.component(reference.variable).type
            found.setdefault(reference.attribute, []).append(type_)
    return found
