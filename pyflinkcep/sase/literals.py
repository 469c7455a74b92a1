# SPDX-License-Identifier: Apache-2.0
"""Literals of a query whose values depend on the events: on their types, on a session's clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial

import attrs

from pyflinkcep.expressions.decimals import MOST_DIGITS, digits_of_value
from pyflinkcep.expressions.tree import (
    Aggregate,
    Call,
    Literal,
    Moment,
    Operation,
    Tree,
    leaves,
    parts,
)
from pyflinkcep.sase.computed import computed
from pyflinkcep.sase.model import Query


def literal_moments(query: Query) -> Iterator[Moment]:
    """Yield the literal dates and timestamps of WHERE."""
    literals = [literal for _, literal in query.constants]
    literals += [p for c in query.conditions for p in parts(c) if isinstance(p, Literal)]
    yield from (p.value for p in literals if isinstance(p.value, Moment))


def with_instants(query: Query, known: Callable[[Moment], Moment]) -> Query:
    """Return a query whose literal dates and timestamps in WHERE are replaced by known ones."""

    def replaced(tree: Tree) -> Tree:
        if isinstance(tree, Literal):
            return literal(tree)
        if isinstance(tree, Operation):
            return attrs.evolve(tree, operands=tuple(map(replaced, tree.operands)))
        return tree

    def literal(own: Literal) -> Literal:
        value = own.value
        return attrs.evolve(own, value=known(value)) if isinstance(value, Moment) else own

    return attrs.evolve(
        query,
        constants=tuple((name, literal(value)) for name, value in query.constants),
        conditions=tuple(map(replaced, query.conditions)),
    )


def with_exact_literals(query: Query, is_decimal: Callable[[str], bool]) -> Query:
    """Return a query whose literals beside attributes that are decimals are so too, as in SQL."""
    exact = partial(_exact, is_decimal)
    columns = query.columns
    if columns is not None:
        columns = tuple(attrs.evolve(column, value=exact(column.value)) for column in columns)
    return attrs.evolve(
        query,
        constants=tuple(
            (name, _exact_literal(value) if is_decimal(name) else value)
            for name, value in query.constants
        ),
        conditions=tuple(map(exact, query.conditions)),
        having=None if query.having is None else exact(query.having),
        columns=columns,
    )


def _exact(is_decimal: Callable[[str], bool], tree: Tree) -> Tree:
    if isinstance(tree, Operation) and tree.operator in ("and", "or", "not"):
        own = tuple(_exact(is_decimal, part) for part in tree.operands)
        return attrs.evolve(tree, operands=own)
    changed = _with_exact(tree)
    if changed == tree:
        return tree
    read = (leaf.over for leaf in leaves(tree))
    columns = (c for over in read for c in (leaves(over.computed) if over.computed else (over,)))
    names = (column.over.attribute for column in columns)
    return changed if any(name is not None and is_decimal(name) for name in names) else tree


def _with_exact(tree: Tree) -> Tree:
    """Return a tree whose literals are decimals."""
    if isinstance(tree, Literal):
        return _exact_literal(tree)
    if isinstance(tree, Operation | Call):
        return attrs.evolve(tree, operands=tuple(map(_with_exact, tree.operands)))
    inner = None if tree.computed is None else _with_exact(tree.computed)
    if inner is None or inner == tree.computed:
        return tree
    sql = computed(inner, tree.over, "", tree.span).sql
    if isinstance(tree, Aggregate):
        return attrs.evolve(tree, computed=inner, argument=sql)
    return attrs.evolve(tree, computed=inner, sql=sql)


def _exact_literal(literal: Literal) -> Literal:
    """Return a literal with a point as a decimal; one with an exponent stays a double."""
    written = literal.text.removesuffix("%")
    if not isinstance(literal.value, float) or "e" in written.lower():
        return literal
    value = Decimal(written)
    if digits_of_value(value).precision > MOST_DIGITS:
        return literal
    return attrs.evolve(literal, value=value.scaleb(-2) if written != literal.text else value)
