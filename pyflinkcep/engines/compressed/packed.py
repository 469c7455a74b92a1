# SPDX-License-Identifier: Apache-2.0
"""Nodes of matches as rows of numbers, for storage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs

from pyflinkcep.engines.compressed.nodes import UNION, Node

__all__ = ["Packed", "PackedNode", "packed"]

PackedNode = tuple[int, int, list[int]]
"""(stage, event, next); stage and event are -1 for a union of the nodes in `next`."""


@attrs.frozen
class Packed:
    """
    Matches in packed form.

    Attributes
    ----------
    events : list of int
        The positions of all events in them, each once, in order.
    nodes : list of PackedNode
        Each has the indexes of its stage, of its event, and of the nodes that may come next on the
        path from a match's last event to its first, whose `next` is empty. Those come before it in
        the list.
    roots : list of int
        The indexes of the nodes at which reading a match begins.
    count : int
        The number of matches.
    """

    events: list[int]
    nodes: list[PackedNode]
    roots: list[int]
    count: int

    def ways(self) -> Iterator[list[tuple[int, int]]]:
        """
        Yield the matches, each as (stage, event) from its first event on.

        Examples
        --------
        >>> node = (1, 7, (-1, (0, 3, None), (0, 5, None)))
        >>> list(packed([node]).ways())
        [[(0, 3), (1, 7)], [(0, 5), (1, 7)]]
        """
        waiting: list[tuple[int, Any]] = [(root, ()) for root in reversed(self.roots)]
        while waiting:
            number, after = waiting.pop()
            stage, event, following = self.nodes[number]
            if stage >= 0:
                after = ((stage, self.events[event]), after)
            if stage >= 0 and not following:
                yield _listed(after)
            waiting += [(n, after) for n in reversed(following)]


def _listed(after: Any) -> list[tuple[int, int]]:
    way = []
    while after:
        event, after = after
        way.append(event)
    return way


def packed(roots: Iterable[Node]) -> Packed:
    """
    Return nodes, and all nodes they lead to, in packed form.

    Parameters
    ----------
    roots : iterable of Node
        The nodes of last events, or unions of such.
    """
    roots = list(roots)
    order = _in_order(roots)
    events = sorted({node[1] for node in order if node[0] != UNION})
    event_of = {at: number for number, at in enumerate(events)}
    numbers = {id(node): number for number, node in enumerate(order)}
    nodes: list[PackedNode] = []
    counts: list[int] = []
    for node in order:
        following = [numbers[id(other)] for other in _following(node)]
        stage, event = (UNION, -1) if node[0] == UNION else (node[0], event_of[node[1]])
        nodes.append((stage, event, following))
        counts.append(sum(counts[n] for n in following) if following else 1)
    firsts = [numbers[id(root)] for root in roots]
    return Packed(events, nodes, firsts, sum(counts[n] for n in firsts))


def _in_order(roots: Sequence[Node]) -> list[Node]:
    """Return all nodes, each after those that it leads to."""
    order: list[Node] = []
    seen: set[int] = set()
    waiting = [(root, False) for root in reversed(roots)]
    while waiting:
        node, is_done = waiting.pop()
        if is_done:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            waiting.append((node, True))
            waiting += [(other, False) for other in _following(node)]
    return order


def _following(node: Node) -> list[Node]:
    if node[0] == UNION:
        return [node[1], node[2]]
    return [] if node[2] is None else [node[2]]
