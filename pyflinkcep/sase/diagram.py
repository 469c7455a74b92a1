# SPDX-License-Identifier: Apache-2.0
"""A query as a picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from pyflinkcep.expressions.tree import shown
from pyflinkcep.sase import model
from pyflinkcep.sase.attributes import variables_of
from pyflinkcep.sase.model import Component, Form, Query, Strategy
from pyflinkcep.sase.text import query_text, together
from pyflinkcep.show import Diagram
from pyflinkcep.show.model import Box, Choice, Frame, Link, Part, Row
from pyflinkcep.time import duration_text

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
        named = variables_of(condition) & set(lines)
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
    boxes = {part.variable: _box(part, lines[part.variable]) for part in query.components}
    shape = query.shape or model.Sequence(tuple(map(model.One, boxes)))
    title = " ".join(query_text(query).split("\n", 1)[0].split())
    return Diagram(_row(shape, query, boxes), tuple(notes), title=title)


def _row(shape: model.Shape, query: Query, boxes: Mapping[str, Box]) -> Row:
    """Return a shape as a row: of its parts if they follow each other, otherwise of itself."""
    parts = together(query, shape.parts if isinstance(shape, model.Sequence) else (shape,))
    links = [_link(query, query.component(_first(part))) for part, *_ in parts[1:]]
    return Row(tuple(_together(part, query, boxes) for part in parts), tuple(links))


def _together(parts: tuple[model.Shape, ...], query: Query, boxes: Mapping[str, Box]) -> Part:
    """Return a part, or a negated sequence in a frame."""
    drawn = [_part(part, query, boxes) for part in parts]
    if len(drawn) == 1:
        return drawn[0]
    links = (Link("any", "later") for _ in drawn[1:])
    return Frame(Row(tuple(drawn), tuple(links)), "no such sequence")


def _part(shape: model.Shape, query: Query, boxes: Mapping[str, Box]) -> Part:
    if isinstance(shape, model.One):
        return boxes[shape.variable]
    if isinstance(shape, model.Choice):
        return Choice(tuple(_row(part, query, boxes) for part in shape.parts), "one of")
    if isinstance(shape, model.AnyOrder):
        inside = tuple(_part(part, query, boxes) for part in shape.parts)
        return Frame(Row(inside, tuple(Link("plain", "and") for _ in inside[1:])), "in any order")
    if isinstance(shape, model.Optional):
        drawn = _part(shape.part, query, boxes)
        if isinstance(drawn, Choice):
            drawn = Frame(Row((drawn,)))
        return attrs.evolve(drawn, optional="optional")
    if isinstance(shape, model.Repeated):
        return Frame(_row(shape.part, query, boxes), repeats=_times(shape.least, shape.most))
    return Frame(_row(shape, query, boxes))


def _first(shape: model.Shape) -> str:
    """Return the first variable of a shape."""
    while not isinstance(shape, model.One):
        shape = shape.part if isinstance(shape, model.Optional | model.Repeated) else shape.parts[0]
    return shape.variable


def _box(part: Component, conditions: Iterable[str]) -> Box:
    repeats = _times(part.least, part.most) if part.repeats else ""
    return Box(part.variable, (f"type {part.type}", *conditions), repeats, "", part.negated)


def _times(least: int, most: int | None) -> str:
    return f"{least} {'or more' if most is None else f'to {most}'}"


def _link(query: Query, part: Component) -> Link:
    if part.negated:
        return Link("not", "not")
    if query.form is Form.LIST:
        return Link("any", "later")
    strategy = query.strategy_of(part.variable)
    return Link(_KINDS[strategy], strategy.value.replace("_match", "").replace("_", " "))
