# SPDX-License-Identifier: Apache-2.0
"""Matches in compact form: a graph of shared nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import attrs
import numpy as np


@attrs.frozen(eq=False)
class MatchArrays:
    """Matches of a SEQ query, one after another."""

    positions: Any  # The positions of their events; those of a match from the oldest to the newest
    ends: Any  # Where each match's events end; they begin where those of the match before it end
    components: Any  # The component of each event; each match has events of all

    def __len__(self) -> int:
        """Return the number of matches."""
        return len(self.ends)

    def first(self, count: int) -> MatchArrays:
        """Return the first `count` matches."""
        if count >= len(self):
            return self
        events = int(self.ends[count - 1]) if count else 0
        return MatchArrays(self.positions[:events], self.ends[:count], self.components[:events])

    def matches(self, variables: Sequence[str]) -> Iterator[dict[str, list[int]]]:
        """Yield the matches as variable to positions; `variables` are those of the components."""
        taken = self.positions.tolist()
        width = len(variables)
        if len(taken) == width * len(self):  # single events
            for at in range(0, len(taken), width):
                yield {name: [taken[at + n]] for n, name in enumerate(variables)}
            return
        bounds = [*self._begins().tolist(), len(taken)]
        for at in range(0, len(bounds) - 1, width):
            ranges = pairwise(bounds[at : at + width + 1])
            yield {name: taken[a:b] for name, (a, b) in zip(variables, ranges, strict=True)}

    def _begins(self) -> Any:
        """Return where the events of each component of each match begin."""
        begins = np.ones(len(self.positions), bool)
        begins[1:] = self.components[1:] != self.components[:-1]
        begins[self.ends[:-1]] = True
        return np.flatnonzero(begins)


Node = tuple[int, Any, Any]
"""``(component, position, previous node or None)``, or ``(-1, node, node)`` for a union of two."""

UNION = -1


@attrs.frozen(eq=False)
class NodePayloads:
    """Lets merged runs carry the node of their last event."""

    numbers: Sequence[int] | None = None  # What stands in nodes for components; None for themselves

    def begun(self, component: int, at: int) -> Node:
        """Return the node of a first event."""
        return self.taken(None, component, at)

    def taken(self, payload: Node | None, component: int, at: int) -> Node:
        """Return the node of a further event."""
        number = component if self.numbers is None else self.numbers[component]
        return number, at, payload

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


PackedNode = tuple[int, int, list[int]]
"""(stage, event, next); stage and event are -1 for a union of the nodes in `next`."""


@attrs.frozen
class Packed:
    """Matches in packed form."""

    events: list[int]  # The positions of all events in them, each once, in order
    # Each has the indexes of its stage, of its event, and of the nodes that may come next on the
    # path from a match's last event to its first, whose `next` is empty. Those come before it in
    # the list.
    nodes: list[PackedNode]
    roots: list[int]  # The indexes of the nodes at which reading a match begins
    count: int  # The number of matches


def packed(roots: Iterable[Node]) -> Packed:
    """
    Return nodes, and all nodes they lead to, in packed form.

    >>> found = packed([(1, 7, (-1, (0, 3, None), (0, 5, None)))])
    >>> found.events, found.nodes, found.roots, found.count
    ([3, 5, 7], [(0, 1, []), (0, 0, []), (-1, -1, [1, 0]), (1, 2, [2])], [3], 2)
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
