# SPDX-License-Identifier: Apache-2.0
"""What is drawn: rows of stages as users think of them, graphs of nodes and edges, and matches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from pyflinkcep.errors import Field, KeyFields

LinkKind = str
"""One of ``strict``, ``relaxed``, ``any``, ``not`` and ``plain``: how the arrow is drawn."""


@attrs.frozen
class Link:
    """The arrow to a part from the one before it."""

    kind: LinkKind = "plain"  # How it is drawn
    text: str = ""  # What stands above it, such as ``followedBy``
    note: str = ""  # What stands below it, such as the longest gap


@attrs.frozen
class Box:
    """A stage."""

    name: str  # Its name
    lines: tuple[str, ...] = ()  # Its conditions and other facts, one below the other
    repeats: str = ""  # How often it matches, if more than once; drawn as a loop
    optional: str = ""  # Why it may be passed by; drawn as a way around it. Empty if it may not
    absent: bool = False  # Whether its event must not come


@attrs.frozen
class Frame:
    """A group: parts with a frame around them, which may repeat or be passed by as a whole."""

    row: Row
    caption: str = "group"
    repeats: str = ""
    optional: str = ""


@attrs.frozen
class Choice:
    """Alternatives, one below the other, the first preferred."""

    rows: tuple[Row, ...]
    caption: str = ""


@attrs.frozen
class Row:
    """Parts one after another."""

    parts: tuple[Part, ...]  # The parts, first to last
    links: tuple[Link, ...] = ()  # The arrow to each part but the first
    notes: tuple[str, ...] = ()  # What holds for all of them, such as a window


Part = Box | Frame | Choice


@attrs.frozen
class Node:
    """A node of a graph."""

    name: str  # Its name, unique in the graph
    title: str  # How it is shown
    lines: tuple[str, ...] = ()  # What else is shown of it
    # ``stage``, ``absent``, ``start``, ``final``, ``stop``, ``pending`` or ``point``.
    kind: str = "stage"
    # The frames that it is in, outermost first; each unique in the graph.
    groups: tuple[str, ...] = ()


@attrs.frozen
class Edge:
    """An edge of a graph, drawn by its kind: that of a link, or take, ignore or proceed."""

    source: str
    target: str
    kind: str = "plain"
    text: str = ""


@attrs.frozen
class Graph:
    """Nodes and edges."""

    nodes: tuple[Node, ...]  # The nodes, in the order of the pattern
    edges: tuple[Edge, ...]  # The edges
    frames: dict[str, str] = attrs.field(factory=dict)  # The caption of each frame
    notes: tuple[str, ...] = ()  # What holds for all


Plot = tuple[Iterable[Mapping[str, Any]], Field | None, KeyFields | None]
"""Matches, and the fields of time and key of their events."""


class Plotted:
    """What charts draw as matches, and what knows the times and keys of their events itself."""

    __slots__ = ()

    def plotted(self, time: Field | None, key: KeyFields | None) -> Plot:
        """Return the matches, and the fields of time and key: those given, or those known."""
        raise NotImplementedError

    @property
    def funnel_rows(self) -> Sequence[Mapping[str, Any]]:
        """How many keys and partial matches reached each stage; the matches if not known."""
        return list(self.plotted(None, None)[0])
