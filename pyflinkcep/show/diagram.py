# SPDX-License-Identifier: Apache-2.0
"""The pictures that users hold: of patterns as SVG, drawn here, and as Mermaid and DOT."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

import attrs

from pyflinkcep.errors import InvalidArgumentError
from pyflinkcep.show.model import Box, Choice, Edge, Frame, Graph, Link, Node, Part, Row
from pyflinkcep.show.svg import Drawing, clean, text_width, wrapped


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


# --- as SVG


_WIDEST = 1040.0
_MARGIN = 22.0
_SPINE = 16.0
"""How far below its upper edge the line enters a box."""
_NAME, _LINE = 19.0, 16.0
_CHARACTERS = 34
_SHOWN = 8
_STYLES = {
    "strict": ("ink", 2.4, ""),
    "relaxed": ("line", 1.8, "7 4"),
    "any": ("line", 1.8, "2 4"),
    "not": ("red", 1.8, "7 4"),
    "plain": ("line", 1.8, ""),
}


@attrs.frozen(eq=False)
class _Block:
    """A drawn part: its line enters at the left and leaves at the right, at height zero."""

    width: float
    above: float
    below: float
    drawing: Drawing


def stages_svg(row: Row, notes: Sequence[str], title: str) -> str:
    """Return a row of stages as SVG."""
    block = _of_row(row, _WIDEST, ends=True)
    lines = [line for note in (*row.notes, *notes) for line in wrapped(note, 110)]
    width = max([block.width, *(text_width(line, 12.5) for line in lines)]) + 2 * _MARGIN
    page = Drawing()
    page.moved(block.drawing, _MARGIN, _MARGIN + block.above)
    y = 1.6 * _MARGIN + block.above + block.below
    for line in lines:
        y += 18
        page.text(_MARGIN, y, line, "dim", 12.5)
    return page.svg(width, y + _MARGIN * (0.4 if not lines else 0.8), title)


# --- rows


@attrs.define(eq=False)
class _Line:
    """The parts that stand beside each other, each with its place."""

    width: float = 0
    above: float = 0
    below: float = 0
    parts: list[tuple[float, Link, float, _Block]] = attrs.field(factory=list)


def _of_row(row: Row, widest: float, *, ends: bool = False) -> _Block:
    """Return parts after one another, in several lines if they are too wide for one."""
    lines = _broken(row, widest, ends)
    drawing = Drawing()
    y, before = 0.0, 0.0
    width = max(line.width for line in lines)
    many = len(lines) > 1
    for number, line in enumerate(lines):
        if number:
            y += before + 24 + line.above
        for x, link, length, block in line.parts:
            if length:
                _arrow(drawing, link, x, y, length)
            drawing.moved(block.drawing, x + length, y)
        last = number == len(lines) - 1
        if not last:
            _turn(drawing, lines[number + 1], (line.width, y), y + line.below)
        elif many and not ends:
            right = width + 26
            drawing.line([(line.width, y), (right, y), (right, 0), (right + 12, 0)], "line", 1.8)
        before = line.below
    if ends:
        _ends(drawing, lines[-1].width, y)
    elif many:
        width += 38
    return _Block(width + 12 * (many and ends), lines[0].above, y + before, drawing)


def _broken(row: Row, widest: float, ends: bool) -> list[_Line]:
    lines = [_Line(width=18.0 if ends else 0.0)]
    links = (Link(), *row.links)
    room = widest - (40 if ends else 0)
    for number, (part, link) in enumerate(zip(row.parts, links, strict=True)):
        block = _of_part(part, room - 60)
        length = _length(link) if number else (26.0 if ends else 0.0)
        line = lines[-1]
        if line.parts and line.width + length + block.width > room:
            line = _Line(width=18.0)
            lines.append(line)
        line.parts.append((line.width, link, length, block))
        line.width += length + block.width
        line.above = max(line.above, block.above, 22 if link.text else 0)
        line.below = max(line.below, block.below, 20 if link.note else 0)
    if ends:
        lines[-1].width += 40
    return lines


def _length(link: Link) -> float:
    words = max(text_width(link.text, 11), text_width(link.note, 11))
    return max(44.0, words + 22)


def _arrow(drawing: Drawing, link: Link, x: float, y: float, length: float) -> None:
    stroke, width, dash = _STYLES[link.kind]
    drawing.line([(x, y), (x + length - 1, y)], stroke, width, dash, arrow=True)
    middle = x + (length - 6) / 2
    if link.text:
        colour = "red" if link.kind == "not" else "dim"
        drawing.text(middle, y - 7, link.text, colour, 11, "middle")
    if link.note:
        drawing.text(middle, y + 15, link.note, "amber", 11, "middle")


def _turn(drawing: Drawing, following: _Line, end: tuple[float, float], bottom: float) -> None:
    """Lead the line back to the left, where the next line begins."""
    (x, y), between = end, bottom + 12
    stroke, width, dash = _STYLES[following.parts[0][1].kind]
    target = bottom + 24 + following.above
    points = [(x, y), (x + 10, y), (x + 10, between), (4, between), (4, target), (18, target)]
    drawing.line(points, stroke, width, dash)


def _ends(drawing: Drawing, width: float, y: float) -> None:
    """Draw where matches begin and end."""
    drawing.circle(9, 0, 6, "line")
    drawing.line([(width - 40, y), (width - 20, y)], "line", 1.8, arrow=True)
    drawing.circle(width - 11, y, 8, "paper", "line")
    drawing.circle(width - 11, y, 4, "line")


# --- parts


def _of_part(part: Part, widest: float) -> _Block:
    if isinstance(part, Choice):
        return _of_choice(part, widest)
    block = _of_box(part) if isinstance(part, Box) else _of_frame(part, widest)
    return _with_ways(block, part.repeats, part.optional)


def _of_box(box: Box) -> _Block:
    names = wrapped(box.name, 30, 3)
    lines = [line for text in box.lines for line in wrapped(text, _CHARACTERS, _SHOWN)]
    widths = [text_width(name, 14, bold=True) for name in names]
    widths += [text_width(line, 11.5, mono=True) for line in lines]
    width = max(70.0, max(widths) + 24)
    height = 13 + len(names) * _NAME + len(lines) * _LINE + (4 if lines else 0)
    drawing = Drawing()
    stroke, fill = ("red", "rose") if box.absent else ("edge", "box")
    full = "\n".join((box.name, *box.lines))
    dash = "5 3" if box.absent else ""
    drawing.rect(0, -_SPINE, width, height, fill, stroke, dash=dash, title=full)
    y = 5.0
    for name in names:
        colour = "red" if box.absent else "ink"
        drawing.text(width / 2, y, name, colour, 14, "middle", bold=True, title=clean(box.name))
        y += _NAME
    y += 1
    for line in lines:
        drawing.text(12, y, line, "dim", 11.5, mono=True, title=full)
        y += _LINE
    return _Block(width, _SPINE, height - _SPINE, drawing)


def _of_frame(frame: Frame, widest: float) -> _Block:
    inner = _of_row(frame.row, widest - 40)
    notes = [line for note in frame.row.notes for line in wrapped(note, 60)]
    words = [text_width(frame.caption, 11)] + [text_width(note, 11) + 8 for note in notes]
    width = max(inner.width + 40, max(words) + 28)
    above, below = inner.above + 26, inner.below + 14 + 15 * len(notes)
    drawing = Drawing()
    drawing.rect(0, -above, width, above + below, "frame", "edge", 10, "3 3")
    drawing.text(12, -above + 16, frame.caption, "dim", 11)
    drawing.line([(0, 0), (20, 0)], "line", 1.8)
    drawing.moved(inner.drawing, 20, 0)
    drawing.line([(20 + inner.width, 0), (width, 0)], "line", 1.8)
    for number, note in enumerate(notes):
        drawing.text(14, inner.below + 18 + 15 * number, note, "amber", 11)
    return _Block(width, above, below, drawing)


def _of_choice(choice: Choice, widest: float) -> _Block:
    blocks = [_of_row(row, widest - 60) for row in choice.rows]
    widest_row = max(block.width for block in blocks)
    width, y = widest_row + 60, 0.0
    drawing = Drawing()
    for number, block in enumerate(blocks):
        if number:
            y += block.above + 14
            drawing.line([(0, 0), (14, 0), (14, y), (30, y)], "line", 1.8, arrow=True)
            end = [(30 + block.width, y), (width - 14, y), (width - 14, 0), (width, 0)]
            drawing.line(end, "line", 1.8)
        else:
            drawing.line([(0, 0), (30, 0)], "line", 1.8, arrow=True)
            drawing.line([(30 + block.width, 0), (width, 0)], "line", 1.8)
        drawing.moved(block.drawing, 30, y)
        y += block.below
    above = blocks[0].above
    if choice.caption:
        above += 16
        drawing.text(width / 2, -above + 10, choice.caption, "dim", 11, "middle")
    return _Block(width, above, y, drawing)


def _with_ways(block: _Block, repeats: str, optional: str) -> _Block:
    """Return a part with the loop above it and the way around it below."""
    if not repeats and not optional:
        return block
    words = [wrapped(text, 46) for text in (repeats, optional) if text]
    needed = max(text_width(line, 11) for lines in words for line in lines) + 36
    side = max(18.0, (needed - block.width) / 2)
    width, end = block.width + 2 * side, block.width + side
    drawing = Drawing()
    drawing.line([(0, 0), (side, 0)], "line", 1.8)
    drawing.line([(end, 0), (width, 0)], "line", 1.8)
    drawing.moved(block.drawing, side, 0)
    above, below = block.above, block.below
    if repeats:
        lines = wrapped(repeats, 46)
        top = -(above + 13)
        path = [(end + 2, 0), (end + 10, 0), (end + 10, top), (side - 10, top), (side - 10, -1)]
        drawing.line(path, "blue", 1.8, arrow=True)
        for number, line in enumerate(reversed(lines)):
            drawing.text(width / 2, top - 6 - 14 * number, line, "blue", 11, "middle")
        above += 17 + 14 * len(lines)
    if optional:
        lines = wrapped(optional, 46)
        low = below + 13
        path = [(side - 14, 0), (side - 14, low), (end + 14, low), (end + 14, 1)]
        drawing.line(path, "violet", 1.8, "5 3", arrow=True)
        for number, line in enumerate(lines):
            drawing.text(width / 2, low + 14 + 14 * number, line, "violet", 11, "middle")
        below += 18 + 14 * len(lines)
    return _Block(width, above, below, drawing)


# --- automata

_HEAD, _EDGE_LINE, _GAP = 28.0, 17.0, 18.0
_WIDEST_CARD, _CARD_CHARACTERS = 460.0, 44
_LANE = 13.0
_KINDS = {
    "take": ("blue", 2.0, ""),
    "ignore": ("line", 1.6, "6 4"),
    "proceed": ("violet", 1.6, "2 4"),
}
_HEADS = {
    "start": ("mint", "start"),
    "final": ("sky", ""),
    "stop": ("rose", "stop: the partial match ends"),
    "pending": ("sand", "waits for the window to pass"),
}


@attrs.define(eq=False)
class _Card:
    """A state with its edges, and where it stands."""

    node: Node
    rows: list[tuple[Edge, list[str]]]
    y: float = 0
    ports: list[float] = attrs.field(factory=list)

    @property
    def height(self) -> float:
        """Its height."""
        return (
            _HEAD + sum(len(lines) for _, lines in self.rows) * _EDGE_LINE + (6 if self.rows else 0)
        )


def automaton_svg(graph: Graph, notes: Sequence[str], title: str) -> str:
    """Return an automaton as SVG."""
    cards = _cards(graph)
    width = max(_card_width(card) for card in cards.values())
    y = _MARGIN
    for card in cards.values():
        card.y = y
        row = y + _HEAD
        for _, lines in card.rows:
            card.ports.append(row + _EDGE_LINE / 2)
            row += len(lines) * _EDGE_LINE
        y += card.height + _GAP
    page = Drawing()
    lanes = _draw_edges(page, cards, _MARGIN + width)
    for card in cards.values():
        _draw_card(page, card, width)
    y = _legend(page, y + 4)
    for line in (line for note in (*graph.notes, *notes) for line in wrapped(note, 90)):
        page.text(_MARGIN, y, line, "dim", 12)
        y += 17
    right = max(_MARGIN + width + 30 + lanes * _LANE, 500)
    return page.svg(right + _MARGIN, y + _MARGIN / 2, title)


def _cards(graph: Graph) -> dict[str, _Card]:
    titles = {node.name: node.title for node in graph.nodes}
    cards = {node.name: _Card(node, []) for node in graph.nodes}
    for edge in graph.edges:
        target = "itself" if edge.target == edge.source else titles[edge.target]
        text = f"{edge.kind} → {target}" + (f"  if {edge.text}" if edge.text else "")
        cards[edge.source].rows.append((edge, wrapped(text, _CARD_CHARACTERS, 4)))
    return cards


def _card_width(card: _Card) -> float:
    kind = _HEADS.get(card.node.kind, ("", ""))[1]
    head = text_width(card.node.title, 13, bold=True) + text_width(kind, 11) + 44
    rows = [text_width(line, 11.5, mono=True) + 40 for _, lines in card.rows for line in lines]
    return min(max([150.0, head, *rows]), _WIDEST_CARD)


def _draw_card(page: Drawing, card: _Card, width: float) -> None:
    node = card.node
    fill, kind = _HEADS.get(node.kind, ("box", ""))
    full = "\n".join((node.title, *node.lines))
    page.rect(_MARGIN, card.y, width, card.height, fill, "edge", title=full)
    room = int((width - 34 - text_width(kind, 11)) / (13 * 0.62))
    name = wrapped(node.title, max(room, 12), 1)[0]
    page.text(_MARGIN + 12, card.y + 19, name, "ink", 13, bold=True, title=full)
    if kind:
        page.text(_MARGIN + width - 12, card.y + 19, kind, "dim", 11, "end")
    y = card.y + _HEAD + 12
    for edge, lines in card.rows:
        colour = _KINDS[edge.kind][0]
        for number, line in enumerate(lines):
            paint = "dim" if colour == "line" else colour
            indent = 24 if number else 12
            page.text(_MARGIN + indent, y, line, paint, 11.5, mono=True, title=edge.text)
            y += _EDGE_LINE


def _draw_edges(page: Drawing, cards: dict[str, _Card], right: float) -> int:
    """Draw the edges between states beside the cards, shorter ones nearer; count the lanes."""
    spans = []
    for card in cards.values():
        for (edge, _), port in zip(card.rows, card.ports, strict=True):
            if edge.target != edge.source:
                spans.append((port, cards[edge.target], edge))
    lanes: list[list[tuple[float, float]]] = []
    for port, target, edge in sorted(spans, key=lambda span: abs(span[0] - span[1].y)):
        end = target.y + _HEAD / 2 + _offset(edge)
        low, high = min(port, end), max(port, end)
        lane = _free(lanes, low, high)
        stroke, width, dash = _KINDS[edge.kind]
        x = right + 18 + lane * _LANE
        points = [(right, port), (x, port), (x, end), (right + 1, end)]
        page.line(points, stroke, width, dash, arrow=True, title=f"{edge.kind} {edge.text}".strip())
    return len(lanes)


def _offset(edge: Edge) -> float:
    """Return where an edge enters a card, so that kinds can be told apart."""
    return {"take": -6.0, "ignore": 0.0, "proceed": 6.0}[edge.kind]


def _free(lanes: list[list[tuple[float, float]]], low: float, high: float) -> int:
    for number, taken in enumerate(lanes):
        if all(high + 3 < a or b < low - 3 for a, b in taken):
            taken.append((low, high))
            return number
    lanes.append([(low, high)])
    return len(lanes) - 1


def _legend(page: Drawing, y: float) -> float:
    x = _MARGIN
    words = {
        "take": "takes the event",
        "ignore": "ignores the event",
        "proceed": "tries it on the next state",
    }
    for kind, text in words.items():
        stroke, width, dash = _KINDS[kind]
        page.line([(x, y), (x + 26, y)], stroke, width, dash)
        page.text(x + 32, y + 4, text, "dim", 11)
        x += 32 + text_width(text, 11) + 16
    return y + 26
