# SPDX-License-Identifier: Apache-2.0
"""Draws an automaton: each state a card that lists its edges, a line from each to its target."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from pyflinkcep.show.model import Edge, Graph, Node
from pyflinkcep.show.svg import Drawing, text_width, wrapped

_MARGIN, _HEAD, _LINE, _GAP = 22.0, 28.0, 17.0, 18.0
_WIDEST, _CHARACTERS = 460.0, 44
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
    entered: int = 0

    @property
    def height(self) -> float:
        """Its height."""
        return _HEAD + sum(len(lines) for _, lines in self.rows) * _LINE + (6 if self.rows else 0)


def automaton_svg(graph: Graph, notes: Sequence[str], title: str) -> str:
    """Return an automaton as SVG."""
    cards = _cards(graph)
    width = max(_card_width(card) for card in cards.values())
    y = _MARGIN
    for card in cards.values():
        card.y = y
        row = y + _HEAD
        for _, lines in card.rows:
            card.ports.append(row + _LINE / 2)
            row += len(lines) * _LINE
        y += card.height + _GAP
    page = Drawing()
    lanes = _lines(page, cards, _MARGIN + width)
    for card in cards.values():
        _draw(page, card, width)
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
        cards[edge.source].rows.append((edge, wrapped(text, _CHARACTERS, 4)))
    return cards


def _card_width(card: _Card) -> float:
    kind = _HEADS.get(card.node.kind, ("", ""))[1]
    head = text_width(card.node.title, 13, bold=True) + text_width(kind, 11) + 44
    rows = [text_width(line, 11.5, mono=True) + 40 for _, lines in card.rows for line in lines]
    return min(max([150.0, head, *rows]), _WIDEST)


def _draw(page: Drawing, card: _Card, width: float) -> None:
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
            y += _LINE


def _lines(page: Drawing, cards: dict[str, _Card], right: float) -> int:
    """Draw the edges between states beside the cards, shorter ones nearer; count the lanes."""
    spans = []
    for card in cards.values():
        for (edge, _), port in zip(card.rows, card.ports, strict=True):
            if edge.target != edge.source:
                spans.append((port, cards[edge.target], edge))
    lanes: list[list[tuple[float, float, str]]] = []
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


def _free(lanes: list[list[tuple[float, float, str]]], low: float, high: float) -> int:
    for number, taken in enumerate(lanes):
        if all(high + 3 < a or b < low - 3 for a, b, _ in taken):
            taken.append((low, high, ""))
            return number
    lanes.append([(low, high, "")])
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
