# SPDX-License-Identifier: Apache-2.0
"""The picture of a pattern that users hold: SVG, Mermaid and DOT of the same thing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

import attrs

from pyflinkcep.errors import InvalidArgumentError
from pyflinkcep.show.drawing import automaton_svg, stages_svg
from pyflinkcep.show.model import Box, Edge, Frame, Graph, Link, Node, Part, Row
from pyflinkcep.show.svg import clean


@attrs.frozen(repr=False)
class Picture:
    """
    A picture, which notebooks show.

    Attributes
    ----------
    title : str
        What it shows, on one line.
    """

    title: str = attrs.field(kw_only=True)

    @property
    def svg(self) -> str:
        """The picture as SVG, for light and dark pages."""
        raise NotImplementedError

    @property
    def html(self) -> str:
        """The picture in a box of its own, which scrolls if it is wider than its page."""
        return f'<div style="overflow-x:auto">{self.svg}</div>'

    def save(self, path: str | Path) -> None:
        """
        Write the picture to a file, in the form that its name ends with.

        Parameters
        ----------
        path : str or Path
            A name that ends in ``.svg`` or ``.html``; for patterns also ``.mmd`` (Mermaid) or
            ``.dot``.

        Raises
        ------
        InvalidArgumentError
            If it ends with something else, or is no path.
        """
        forms = self._forms()
        file = Path(path) if isinstance(path, str | os.PathLike) else Path()
        form = forms.get(file.suffix.lower())
        if form is None:
            shown = str(path) if isinstance(path, os.PathLike) else path
            raise InvalidArgumentError(
                f"save: expected a name that ends in {', '.join(forms)}, got {shown!r}",
                "write picture.save('pattern.svg')",
            )
        file.write_text(form() + "\n", encoding="utf-8")

    def _forms(self) -> Mapping[str, Callable[[], str]]:
        return {".svg": lambda: self.svg, ".html": self._page}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.title})"

    def _repr_html_(self) -> str:
        return self.html

    def _page(self) -> str:
        style = "body{margin:2em;background:Canvas;color-scheme:light dark}"
        return (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Pattern</title>'
            f"<style>{style}</style><body>{self.html}</body></html>"
        )


@attrs.frozen(repr=False)
class DrawnPicture(Picture):
    """A picture that a function draws when it is asked for."""

    _draw: Callable[[], str] = attrs.field(kw_only=True, eq=False)

    @property
    def svg(self) -> str:
        """The picture as SVG, for light and dark pages."""
        return self._draw()


def html_table(head: Iterable[str], rows: Iterable[Iterable[str]], caption: str) -> str:
    """Return a table of HTML; a break of a line in a cell is one."""
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    lines = (
        "".join(f"<td>{escape(cell).replace(chr(10), '<br>')}</td>" for cell in row) for row in rows
    )
    return (
        f"<table><caption>{escape(caption)}</caption><thead><tr>{names}</tr></thead>"
        f"<tbody>{''.join(f'<tr>{line}</tr>' for line in lines)}</tbody></table>"
    )


class Report:
    """What is told as text and as a picture; a notebook shows both."""

    __slots__ = ()

    def text(self) -> str:
        """Return it as text."""
        raise NotImplementedError

    def diagram(self) -> Picture:
        """Return it as a picture, with ``svg`` and ``save(path)``."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return f"{self.diagram().html}<pre>{escape(self.text())}</pre>"


@attrs.frozen(repr=False)
class Diagram(Picture):
    """
    A picture of a pattern, a query or a clause, which notebooks show.

    Made by :meth:`pyflinkcep.Pattern.diagram`, :meth:`pyflinkcep.SaseQuery.diagram` and
    :func:`pyflinkcep.diagram`.

    Attributes
    ----------
    drawn : Row or Graph
        What is drawn: stages, or the states of the automaton.
    notes : tuple of str
        What holds for the whole pattern.
    title : str
        The pattern on one line.

    Examples
    --------
    >>> from pyflinkcep import Pattern
    >>> print(Pattern.begin("a").next("b").oneOrMore().diagram().mermaid)
    flowchart LR
      n0["a<br/>any event"]
      n1["b<br/>any event"]
      n1 -- "1 or more" --> n1
      n0 == "next" ==> n1
    """

    drawn: Row | Graph
    notes: tuple[str, ...] = ()

    @property
    def svg(self) -> str:
        """The picture as SVG, for light and dark pages."""
        if isinstance(self.drawn, Graph):
            return automaton_svg(self.drawn, self.notes, self.title)
        return stages_svg(self.drawn, self.notes, self.title)

    @property
    def mermaid(self) -> str:
        """The picture as a flowchart of Mermaid, which Markdown pages draw."""
        return mermaid(self._graph())

    @property
    def dot(self) -> str:
        """The picture in the language of Graphviz."""
        return dot(self._graph())

    def _forms(self) -> Mapping[str, Callable[[], str]]:
        others = {".mmd": lambda: self.mermaid, ".dot": lambda: self.dot, ".gv": lambda: self.dot}
        return {**super()._forms(), **others}

    def _graph(self) -> Graph:
        return self.drawn if isinstance(self.drawn, Graph) else as_graph(self.drawn, self.notes)


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


_BOLD, _DASHED, _DOTTED = ("==", "==>", "bold"), ("-.", ".->", "dashed"), ("-.", ".->", "dotted")
_EDGES = {
    "strict": _BOLD, "take": _BOLD, "relaxed": _DASHED, "not": _DASHED, "ignore": _DASHED,
    "any": _DOTTED, "proceed": ("--", "-->", "dotted"),
}  # fmt: skip
"""How an edge is drawn by its kind: before and after its text in Mermaid, and in DOT."""
_PLAIN_EDGE = ("--", "-->", "solid")
_SHAPES = {"final": ("(((", ")))"), "stop": ("{{", "}}"), "start": ("([", "])")}


def mermaid(graph: Graph) -> str:
    """Return a graph as a flowchart of Mermaid."""
    lines = ["flowchart LR"]
    lines += _framed(graph.nodes, graph, _mermaid_node, _mermaid_frame)
    for edge in graph.edges:
        left, right, _ = _EDGES.get(edge.kind, _PLAIN_EDGE)
        text = f' {left} "{_mermaid_text(edge.text)}" {right} ' if edge.text else f" {right} "
        lines.append(f"  {edge.source}{text}{edge.target}")
    lines += [f"  %% {_mermaid_text(note)}" for note in graph.notes]
    return "\n".join(lines)


def dot(graph: Graph) -> str:
    """Return a graph in Graphviz' language."""
    lines = ["digraph pattern {", "  rankdir=LR;"]
    lines.append('  node [shape=box, style=rounded, fontname="Helvetica"];')
    lines.append('  edge [fontname="Helvetica", fontsize=10];')
    lines += _framed(graph.nodes, graph, _dot_node, _dot_frame)
    for edge in graph.edges:
        style = _EDGES.get(edge.kind, _PLAIN_EDGE)[2]
        lines.append(
            f"  {edge.source} -> {edge.target} [label={_dot_text(edge.text)}, style={style}];"
        )
    if graph.notes:
        label = _dot_text("\n".join(graph.notes))
        lines.append(f"  label={label}; labeljust=l;")
    return "\n".join([*lines, "}"])


def _framed(
    nodes: Sequence[Node],
    graph: Graph,
    node: Callable[[Node], str],
    frame: Callable[[str, str], tuple[str, str]],
) -> Iterator[str]:
    """Yield the lines of nodes, with those of the frames around them."""
    opened: list[str] = []
    for one in nodes:
        while opened and tuple(opened) != one.groups[: len(opened)]:
            yield f"{'  ' * len(opened)}{frame(opened.pop(), '')[1]}"
        for name in one.groups[len(opened) :]:
            opened.append(name)
            yield f"{'  ' * len(opened)}{frame(name, graph.frames[name])[0]}"
        yield f"{'  ' * len(opened)}  {node(one)}"
    while opened:
        yield f"{'  ' * len(opened)}{frame(opened.pop(), '')[1]}"


def _lines(node: Node) -> tuple[str, ...]:
    return f"not {node.title}" if node.kind == "absent" else node.title, *node.lines


def _mermaid_node(node: Node) -> str:
    left, right = _SHAPES.get(node.kind, ("[", "]"))
    label = "<br/>".join(map(_mermaid_text, _lines(node)))
    return f'{node.name}{left}"{label}"{right}'


def _mermaid_frame(name: str, caption: str) -> tuple[str, str]:
    return f'subgraph {name}["{_mermaid_text(caption)}"]', "end"


def _mermaid_text(text: str) -> str:
    """Return text inside quotes, where Mermaid reads HTML and ``#…;`` as characters."""
    kept = clean(text)
    return "".join(c if c.isalnum() or c in _PLAIN else f"#{ord(c)};" for c in kept)


_PLAIN = frozenset(" _-+.,:()=/*!?'|→⇒⇢↛⇏↺…")


def _dot_node(node: Node) -> str:
    label = _dot_text("\n".join(_lines(node)))
    shapes = {"final": ", shape=doublecircle", "stop": ", shape=octagon", "absent": ", color=red"}
    return f"{node.name} [label={label}{shapes.get(node.kind, '')}];"


def _dot_frame(name: str, caption: str) -> tuple[str, str]:
    return f"subgraph cluster_{name} {{ label={_dot_text(caption)};", "}"


def _dot_text(text: str) -> str:
    parts = [clean(line).replace("\\", "\\\\").replace('"', '\\"') for line in text.split("\n")]
    return '"' + "\\n".join(parts) + '"'
