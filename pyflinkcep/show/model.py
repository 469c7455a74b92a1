# SPDX-License-Identifier: Apache-2.0
"""What is drawn: rows of stages as users think of them, and graphs of nodes and edges."""

from __future__ import annotations

import attrs

__all__ = ["Box", "Choice", "Edge", "Frame", "Graph", "Link", "LinkKind", "Node", "Part", "Row"]

LinkKind = str
"""One of ``strict``, ``relaxed``, ``any``, ``not`` and ``plain``: how the arrow is drawn."""


@attrs.frozen
class Link:
    """
    The arrow to a part from the one before it.

    Attributes
    ----------
    kind : str
        How it is drawn.
    text : str
        What stands above it, such as ``followedBy``.
    note : str
        What stands below it, such as the longest gap.
    """

    kind: LinkKind = "plain"
    text: str = ""
    note: str = ""


@attrs.frozen
class Box:
    """
    A stage.

    Attributes
    ----------
    name : str
        Its name.
    lines : tuple of str
        Its conditions and other facts, one below the other.
    repeats : str
        How often it matches, if more than once; drawn as a loop.
    optional : str
        Why it may be passed by; drawn as a way around it. Empty if it may not.
    absent : bool
        Whether its event must not come.
    """

    name: str
    lines: tuple[str, ...] = ()
    repeats: str = ""
    optional: str = ""
    absent: bool = False


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
    """
    Parts one after another.

    Attributes
    ----------
    parts : tuple of Box, Frame or Choice
        The parts, first to last.
    links : tuple of Link
        The arrow to each part but the first.
    notes : tuple of str
        What holds for all of them, such as a window.
    """

    parts: tuple[Part, ...]
    links: tuple[Link, ...] = ()
    notes: tuple[str, ...] = ()


Part = Box | Frame | Choice


@attrs.frozen
class Node:
    """
    A node of a graph.

    Attributes
    ----------
    name : str
        Its name, unique in the graph.
    title : str
        How it is shown.
    lines : tuple of str
        What else is shown of it.
    kind : str
        ``stage``, ``absent``, ``start``, ``final``, ``stop``, ``pending`` or ``point``.
    groups : tuple of str
        The frames that it is in, outermost first; each unique in the graph.
    """

    name: str
    title: str
    lines: tuple[str, ...] = ()
    kind: str = "stage"
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
    """
    Nodes and edges.

    Attributes
    ----------
    nodes : tuple of Node
        The nodes, in the order of the pattern.
    edges : tuple of Edge
        The edges.
    frames : mapping of str to str
        The caption of each frame.
    notes : tuple of str
        What holds for all.
    """

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    frames: dict[str, str] = attrs.field(factory=dict)
    notes: tuple[str, ...] = ()
