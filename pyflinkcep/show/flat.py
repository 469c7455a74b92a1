# SPDX-License-Identifier: Apache-2.0
"""A row of stages as a graph, for languages that place nodes themselves."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from pyflinkcep.show.model import Box, Edge, Frame, Graph, Link, Node, Part, Row

__all__ = ["as_graph"]


def as_graph(row: Row, notes: Sequence[str]) -> Graph:
    """Return a row of stages as nodes and edges; `notes` hold for the whole pattern."""
    flat = _Flat()
    flat.row(row, ())
    return Graph(tuple(flat.nodes), tuple(flat.edges), flat.frames, (*row.notes, *notes))


_Ends = tuple[list[str], list[str]]
"""The nodes that a part begins with, and those that it ends with."""


@attrs.define(eq=False)
class _Flat:
    """Nodes and edges so far."""

    nodes: list[Node] = attrs.field(factory=list)
    edges: list[Edge] = attrs.field(factory=list)
    frames: dict[str, str] = attrs.field(factory=dict)

    def row(self, row: Row, groups: tuple[str, ...]) -> _Ends:
        """Add parts after one another."""
        first: list[str] = []
        last: list[str] = []
        for number, (part, link) in enumerate(zip(row.parts, (Link(), *row.links), strict=True)):
            begins, ends = self._part(part, groups)
            if number:
                self._join(last, begins, link)
            else:
                first = begins
            last = ends
        return first, last

    def _part(self, part: Part, groups: tuple[str, ...]) -> _Ends:
        if isinstance(part, Box):
            return self._box(part, groups)
        if isinstance(part, Frame):
            return self._frame(part, groups)
        rows = [self.row(row, groups) for row in part.rows]
        return [n for first, _ in rows for n in first], [n for _, last in rows for n in last]

    def _box(self, box: Box, groups: tuple[str, ...]) -> _Ends:
        name = f"n{len(self.nodes)}"
        lines = (*box.lines, *([f"({box.optional})"] if box.optional else []))
        self.nodes.append(Node(name, box.name, lines, "absent" if box.absent else "stage", groups))
        if box.repeats:
            self.edges.append(Edge(name, name, "plain", box.repeats))
        return [name], [name]

    def _frame(self, frame: Frame, groups: tuple[str, ...]) -> _Ends:
        name = f"g{len(self.frames)}"
        facts = [frame.caption, frame.optional, *frame.row.notes]
        self.frames[name] = ", ".join(filter(None, facts))
        first, last = self.row(frame.row, (*groups, name))
        if frame.repeats:
            self._join(last, first, Link("plain", frame.repeats))
        return first, last

    def _join(self, last: list[str], first: list[str], link: Link) -> None:
        text = ", ".join(filter(None, (link.text, link.note)))
        self.edges.extend(Edge(a, b, link.kind, text) for a in last for b in first)
