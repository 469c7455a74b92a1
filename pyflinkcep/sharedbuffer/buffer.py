# SPDX-License-Identifier: Apache-2.0
"""The taken events of all partial matches of one key, and the ways through them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from pyflinkcep.sharedbuffer.elements import EventId, SharedBufferNode

__all__ = ["SharedBuffer", "extract_path", "live_nodes", "materialize_match"]


@attrs.define(eq=False)
class SharedBuffer:
    """
    Gives ids to the events of one key; the nodes hang on the partial matches themselves.

    Attributes
    ----------
    timestamp : int or None, epoch milliseconds
        The time of the newest id; time never goes back.
    eventCount : int
        How many ids were given for that time.

    Notes
    -----
    Stands for ``org.apache.flink.cep.nfa.sharedbuffer.SharedBuffer`` (Flink 2.3.0).
    Differs from Flink: there, nodes live in a map of the state store, and a node has an edge
    for each run that passed it. So runs need Dewey numbers, to find their own way back, and
    nodes, edges and events need reference counts. In memory a run simply points at its last
    node and that one at the node before. Each run has one way, common beginnings are shared,
    and what no run reaches is gone by itself. The ways are the ones that Flink's versions
    mark out.
    """

    timestamp: int | None = None
    eventCount: int = 0

    def register_event(self, timestamp: int) -> EventId:
        """Give an id to an event that may be taken, by its time in epoch milliseconds."""
        if timestamp == self.timestamp:
            number = self.eventCount
        else:
            self.timestamp = timestamp
            number = 0
        self.eventCount = number + 1
        return EventId(timestamp, number)


def extract_path(node: SharedBufferNode | None) -> dict[str, list[SharedBufferNode]]:
    """
    Give the way to a node.

    Returns
    -------
    dict of str to list of SharedBufferNode
        Stages in the order in which they were entered, nodes oldest first.
    """
    path: dict[str, list[SharedBufferNode]] = {}
    for step in live_nodes([node]):
        path.setdefault(step.pageName, []).append(step)
    return path


def materialize_match(node: SharedBufferNode | None) -> dict[str, list[Any]]:
    """Give the events on the way to a node, ordered as :func:`extract_path` orders the nodes."""
    steps = []
    while node is not None:
        steps.append(node)
        node = node.previous
    match: dict[str, list[Any]] = {}
    for step in reversed(steps):
        stage = step.pageName
        if stage in match:
            match[stage].append(step.event)
        else:
            match[stage] = [step.event]
    return match


def live_nodes(ends: Iterable[SharedBufferNode | None]) -> list[SharedBufferNode]:
    """Give every node on the ways to `ends` once, each after the node before it."""
    found: dict[SharedBufferNode, None] = {}
    for end in ends:
        way = []
        node = end
        while node is not None and node not in found:
            way.append(node)
            node = node.previous
        found.update(dict.fromkeys(reversed(way)))
    return list(found)
