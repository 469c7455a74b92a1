# SPDX-License-Identifier: Apache-2.0
"""A query as a picture."""

from __future__ import annotations

from collections.abc import Iterable

from pyflinkcep.expressions.text import shown
from pyflinkcep.expressions.tree import Aggregate, Tree, leaves
from pyflinkcep.sase.model import Component, Form, Query, Strategy
from pyflinkcep.sase.text import query_text
from pyflinkcep.show import Diagram
from pyflinkcep.show.model import Box, Link, Row
from pyflinkcep.time import duration_text

__all__ = ["query_diagram"]

_KINDS = {
    Strategy.STRICT_CONTIGUITY: "strict",
    Strategy.PARTITION_CONTIGUITY: "strict",
    Strategy.SKIP_TILL_NEXT_MATCH: "relaxed",
    Strategy.SKIP_TILL_ANY_MATCH: "any",
}


def query_diagram(query: Query) -> Diagram:
    """Return the picture of a query: its components, each with the conditions it completes."""
    lines: dict[str, list[str]] = {part.variable: [] for part in query.components}
    notes = [f"[{name}]: equal in all events" for name in query.equal]
    notes += [f"[{name} = {literal.text}]: in all events" for name, literal in query.constants]
    for condition in query.conditions:
        named = _variables(condition) & set(lines)
        if named:
            lines[max(named, key=query.place)].append(shown(condition))
        else:
            notes.append(f"where {shown(condition)}")
    if query.window is not None:
        notes.append(f"within {duration_text(query.window)} of the first event, inclusive")
    if query.most_events is not None:
        notes.append(f"within {query.most_events} events")
    if query.having is not None:
        notes.append(f"having {shown(query.having)}")
    if query.columns is not None:
        notes.append("returns " + ", ".join(column.name for column in query.columns))
    boxes = tuple(_box(part, lines[part.variable]) for part in query.components)
    links = tuple(_link(query, part) for part in query.components[1:])
    title = " ".join(query_text(query).split("\n", 1)[0].split())
    return Diagram(Row(boxes, links), tuple(notes), title=title)


def _variables(condition: Tree) -> set[str]:
    return {
        leaf.stage if isinstance(leaf, Aggregate) else leaf.variable for leaf in leaves(condition)
    }


def _box(part: Component, conditions: Iterable[str]) -> Box:
    most = "or more" if part.most is None else f"to {part.most}"
    repeats = f"{part.least} {most}" if part.repeats else ""
    return Box(part.variable, (f"type {part.type}", *conditions), repeats, "", part.negated)


def _link(query: Query, part: Component) -> Link:
    if part.negated:
        return Link("not", "not")
    if query.form is Form.LIST:
        return Link("any", "later")
    strategy = query.strategy_of(part.variable)
    return Link(_KINDS[strategy], strategy.value.replace("_match", "").replace("_", " "))
