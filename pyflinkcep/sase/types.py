# SPDX-License-Identifier: Apache-2.0
"""A query whose attributes have types: the one check of them, and literals that follow them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import partial

import attrs

from pyflinkcep.errors import InputError
from pyflinkcep.expressions.compiler import ProgramLayout, value_code
from pyflinkcep.expressions.numbers import MOST_DIGITS, digits_of_value
from pyflinkcep.expressions.program import Kind
from pyflinkcep.expressions.tree import (
    Aggregate,
    Leaf,
    Literal,
    Moment,
    Operation,
    Tree,
    leaves,
    mapped,
    parts,
    shown,
)
from pyflinkcep.sase.attributes import column_sql, computed, outputs
from pyflinkcep.sase.model import Query
from pyflinkcep.sase.placement import constant_tests, part_of
from pyflinkcep.sase.text import query_text


def check_types(
    query: Query, kinds: Mapping[str, Kind], *, has_events: bool = True
) -> dict[str, Kind]:
    """Refuse a query that compares or computes with values of incompatible types."""
    sql = {column_sql(name): kind for name, kind in kinds.items()}
    for value in _conditions_alone(query):
        kind = sql.get(str(value.over.sql))
        if not has_events or kind not in (Kind.BOOLEAN, None):
            found = "an attribute" if kind is None else kind.value
            raise InputError(
                f"query {one_line(query)}: {shown(value)!r}: expected a comparison or a boolean, "
                f"got {found}",
                f"compare it, as in {shown(value)} = TRUE",
            )
    casts: dict[str, Kind] = {}
    tests = [(f"the test [{test.text}]", test) for test in constant_tests(query)]
    own = ((f"the condition {shown(tree)!r}", part_of(tree)) for tree in query.conditions)
    for what, part in (*tests, *own):
        layout = ProgramLayout(sql)
        value_code(part, layout, f"query {one_line(query)}: {what}")
        casts |= layout.casts
    for tree in outputs(query):
        what = f"query {one_line(query)}: the output {shown(tree)!r}"
        value_code(part_of(tree), ProgramLayout(sql), what)
    return casts


def _conditions_alone(query: Query) -> Iterator[Leaf]:
    """Yield the attributes that are conditions by themselves, as in ``WHERE a.flag``."""
    outputs = () if query.having is None else (query.having,)
    for tree in (part for whole in (*query.conditions, *outputs) for part in parts(whole)):
        if isinstance(tree, Operation) and tree.operator == "=" and tree.text:
            value, other = tree.operands
            is_true = isinstance(other, Literal) and other.value is True
            if is_true and isinstance(value, Leaf) and tree.text == shown(value):
                yield value


def one_line(query: Query) -> str:
    """Return a query's pattern on one line, as its name."""
    pattern = Query(query.form, query.components, shape=query.shape)
    return query_text(pattern).removeprefix("PATTERN ")


# --- literals whose values depend on the types of events, or on the clock of a session


def literal_moments(query: Query) -> Iterator[Moment]:
    """Yield the literal dates and timestamps of WHERE."""
    literals = [literal for _, literal in query.constants]
    literals += [p for c in query.conditions for p in parts(c) if isinstance(p, Literal)]
    yield from (p.value for p in literals if isinstance(p.value, Moment))


def with_instants(query: Query, known: Callable[[Moment], Moment]) -> Query:
    """Return a query whose literal dates and timestamps in WHERE are replaced by known ones."""

    def literal(own: Literal) -> Literal:
        value = own.value
        return attrs.evolve(own, value=known(value)) if isinstance(value, Moment) else own

    def replaced(tree: Tree) -> Tree:
        return mapped(tree, lambda part: literal(part) if isinstance(part, Literal) else part)

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
    return mapped(tree, _exact_part)


def _exact_part(tree: Tree) -> Tree:
    if isinstance(tree, Literal):
        return _exact_literal(tree)
    if not isinstance(tree, Leaf) or tree.computed is None:
        return tree
    inner = _with_exact(tree.computed)
    if inner == tree.computed:
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
