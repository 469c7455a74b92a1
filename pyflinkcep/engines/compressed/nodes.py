# SPDX-License-Identifier: Apache-2.0
"""Matches in compact form: a graph of shared nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["Node", "NodePayloads", "paths"]

Node = tuple[int, Any, Any]
"""``(component, position, previous node or None)``, or ``(-1, node, node)`` for a union of two."""

UNION = -1


class NodePayloads:
    """Lets merged runs carry the node of their last event."""

    def begun(self, component: int, at: int) -> Node:
        """Return the node of a first event."""
        return component, at, None

    def taken(self, payload: Node, component: int, at: int) -> Node:
        """Return the node of a further event."""
        return component, at, payload

    def merged(self, one: Node, other: Node) -> Node:
        """Return the union of two nodes, one that is not a union first if there is one."""
        return (UNION, one, other) if other[0] == UNION else (UNION, other, one)


def paths(root: Node) -> Iterator[list[tuple[int, int]]]:
    """
    Yield the paths to a node, each as (component, position) from its first event on.

    The time between two of them grows only with the length of a path, apart from chains of unions,
    each walked once.
    """
    waiting: list[tuple[Node | None, Any]] = [(root, None)]
    while waiting:
        node, after = waiting.pop()
        while node is not None:
            if node[0] == UNION:
                waiting.append((node[2], after))
                node = node[1]
            else:
                after = (node[0], node[1], after)
                node = node[2]
        way = []
        while after is not None:
            component, at, after = after
            way.append((component, at))
        yield way
