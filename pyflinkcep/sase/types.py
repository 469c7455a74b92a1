# SPDX-License-Identifier: Apache-2.0
"""The one check of a query's types, whatever evaluation runs it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyflinkcep.errors import InputError
from pyflinkcep.expressions.compiler import value_code
from pyflinkcep.expressions.program import Kind
from pyflinkcep.expressions.program_layout import ProgramLayout
from pyflinkcep.expressions.text import shown
from pyflinkcep.expressions.tree import Column, Leaf, Literal, Operation, Tree, parts
from pyflinkcep.sase.computed import column_sql, is_computed, references
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
    for what, part in _conditions(query):
        layout = ProgramLayout(sql)
        value_code(part, layout, f"query {one_line(query)}: {what}")
        casts |= layout.casts
    for tree in _outputs(query):
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


def _conditions(query: Query) -> Iterator[tuple[str, Tree]]:
    """Yield the tests and conditions of WHERE, each with its name."""
    for test in constant_tests(query):
        yield f"the test [{test.text}]", test
    for condition in query.conditions:
        yield f"the condition {shown(condition)!r}", part_of(condition)


def _outputs(query: Query) -> Iterator[Tree]:
    """Yield HAVING, and the columns of RETURN that are computed."""
    if query.having is not None:
        yield query.having
    for column in query.columns or ():
        if not isinstance(column.value, Column):
            yield column.value


def copied_attributes(query: Query, *, computed: bool = False) -> list[str]:
    """Return the attributes that RETURN gives out as events have them, or as computed of one."""
    values = (column.value for column in query.columns or ())
    named = (value.attribute for value in values if isinstance(value, Column))
    return list(dict.fromkeys(n for n in named if n is not None and is_computed(n) == computed))


def output_attributes(query: Query) -> list[str]:
    """Return the attributes with which HAVING and RETURN compute."""
    named = (r.attribute for tree in _outputs(query) for r in references(tree))
    return list(dict.fromkeys(name for name in named if name is not None))


def output_types(query: Query) -> dict[str, list[str]]:
    """Return these attributes, each with the event types of the variables that they are of."""
    found: dict[str, list[str]] = {}
    for reference in (r for tree in _outputs(query) for r in references(tree)):
        if reference.attribute is not None:
            types = found.setdefault(reference.attribute, [])
            types.append(query.component(reference.variable).type)
    return found


def one_line(query: Query) -> str:
    """Return a query's pattern on one line, as its name."""
    pattern = Query(query.form, query.components, shape=query.shape)
    return query_text(pattern).removeprefix("PATTERN ")
