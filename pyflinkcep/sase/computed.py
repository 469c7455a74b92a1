# SPDX-License-Identifier: Apache-2.0
"""Attributes that SQL computes from one event, such as ``upper(a.name)``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from pyflinkcep.expressions.aggregates import AGGREGATES
from pyflinkcep.expressions.text import quoted_name, shown, spark_sql, text_sql
from pyflinkcep.expressions.tree import (
    Aggregate,
    Call,
    Column,
    Literal,
    Operation,
    Span,
    Tree,
    leaves,
)
from pyflinkcep.sase.model import Query
from pyflinkcep.sase.tokens import END, NAME, TEXT, Cursor, Token

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


LIKES = ("like", "ilike", "rlike")


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


def read_call(
    cursor: Cursor, name: Token, variables: Iterable[str], reference: Callable[[], Column]
) -> Column:
    """Read the rest of a call to a SQL function of one event."""
    known, between = set(variables), [f"{name.text} "]
    found: list[Column] = []
    depth = 0
    while True:
        token = cursor.here
        if token.kind == END:
            raise cursor.unexpected("')'", f"close the parenthesis of {name.text}(")
        if token.kind == NAME and token.name in known and cursor.ahead().text in (".", "["):
            part = reference()
            _check_event(cursor, part, found, name.text)
            found.append(part)
            between.append(" ")
            continue
        cursor.next()
        depth += (token.word == "(") - (token.word == ")")
        between[-1] += _literal(token.text) if token.kind == TEXT else token.text
        if not depth:
            break
        is_arrow = cursor.here.text == ">" and token.text in ("-", "<=")  # -> and <=>
        between[-1] += "" if is_arrow and cursor.here.at == token.at + len(token.text) else " "
    if not found:
        raise cursor.failure(
            name.at,
            f"{name.text}(…) reads no event",
            f"write {name.text}(variable.attribute); aggregates are {', '.join(AGGREGATES)}",
        )
    text = cursor.text[name.at : token.at + 1]
    call = Call("", tuple(found), text=text, between=tuple(between))
    return computed(call, found[0], text, cursor.span(name.at))


def _check_event(cursor: Cursor, part: Column, found: list[Column], name: str) -> None:
    if part.attribute is None or part.attribute == "LEN" or part.index == BEFORE:
        raise cursor.failure(
            part.at, f"expected an attribute of an event in {name}(…)", f"write {name}(a.attribute)"
        )
    if found and (part.variable, part.index) != (found[0].variable, found[0].index):
        raise cursor.failure(
            part.at,
            f"{name}(…) reads two events",
            "a function reads one event: compare or compute outside it",
        )


def like(cursor: Cursor, left: Tree, operator: Token) -> Operation:
    """Read the pattern after LIKE or a similar operator; return the test as a comparison."""
    token = cursor.here
    if token.kind != TEXT:
        raise cursor.unexpected("a 'text'", f"write {operator.text.upper()} 'pattern'")
    if not isinstance(left, Column) or left.sql is None:
        raise cursor.failure(
            operator.at,
            f"{operator.text.upper()} tests an attribute of an event",
            f"write a.name {operator.text.upper()} {token.text}",
        )
    cursor.next()
    span = cursor.span(left.at)
    text = f"cast({shown(left)} {operator.word} {token.text} as int)"
    after = f" {operator.word} {_literal(token.text)} as int )"
    cast = Call("", (left,), text=text, between=("cast ( ", after))
    tested = computed(cast, left, text, span)
    return Operation("=", (tested, Literal(1, "1", span)), span=span)


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


def _literal(text: str) -> str:
    """Return a quoted text as Spark reads it."""
    return text_sql(text[1:-1].replace("''", "'"))
