# SPDX-License-Identifier: Apache-2.0
"""Matches in compact form: nodes that many of them share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["Node", "NodePayloads", "paths"]

Node = tuple[int, Any, Any]
"""``(component, position, node before or None)``, or ``(-1, node, node)`` for either of two."""

UNION = -1


class NodePayloads:
    """Lets merged runs carry the node of their last event."""

    def begun(self, component: int, at: int) -> Node:
        """Return the node of a first event."""
        return component, at, None

    def taken(self, payload: Node, component: int, at: int) -> Node:
        """Return the node of one more event."""
        return component, at, payload

    def merged(self, one: Node, other: Node) -> Node:
        """Return a node for the ways of both; one that is no union comes first if there is one."""
        return (UNION, one, other) if other[0] == UNION else (UNION, other, one)


def paths(root: Node) -> Iterator[list[tuple[int, int]]]:
    """
    Yield the ways to a node, each as (component, position) from its first event on.

    The time between two of them grows with the length of a way only, apart from a chain of
    unions, which is walked once.
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
