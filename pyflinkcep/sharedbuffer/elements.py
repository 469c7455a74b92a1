# SPDX-License-Identifier: Apache-2.0
"""What the shared buffer is made of: ids, reference counts, events, nodes and edges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import attrs

from pyflinkcep.sharedbuffer.dewey import DeweyNumber

__all__ = [
    "EventId",
    "Lockable",
    "LockableEvent",
    "ManyEdges",
    "NodeId",
    "SharedBufferEdge",
    "SharedBufferNode",
]

_MOST_IN_A_LIST = 8


class EventId(NamedTuple):
    """
    The identity of an event of one key; ids are ordered as the events are.

    Attributes
    ----------
    timestamp : int, epoch milliseconds
        The event's time.
    id : int, at least 0
        A counter among the taken events of the same time.
    """

    timestamp: int
    id: int

    def __repr__(self) -> str:
        return f"EventId{{id={self.id}, timestamp={self.timestamp}}}"


class NodeId(NamedTuple):
    """
    The identity of a node: an event taken for a stage.

    Attributes
    ----------
    event_id : EventId
        The event.
    stage : str
        The user's name of the stage.
    """

    event_id: EventId
    stage: str


@attrs.define(eq=False)
class Lockable:
    """
    Something with a reference count.

    Attributes
    ----------
    ref_counter : int, at least 0
        How many references there are.
    """

    ref_counter: int

    def lock(self) -> None:
        """Count one reference more."""
        self.ref_counter += 1

    def release(self) -> bool:
        """Count one reference less; say whether none is left."""
        if self.ref_counter <= 0:
            return True
        self.ref_counter -= 1
        return self.ref_counter == 0


@attrs.define(eq=False)
class LockableEvent(Lockable):
    """
    An event in the buffer, stored once however many runs share it.

    Attributes
    ----------
    event_id : EventId
        Its identity.
    event : object
        The event itself, or a handle by which the caller finds it.
    nodes : list of SharedBufferNode
        The nodes of this event, one for each stage that it was taken for.
    """

    event_id: EventId
    event: Any
    nodes: list[SharedBufferNode] = attrs.field(factory=list)

    def node(self, stage: str) -> SharedBufferNode | None:
        """Return the node for a stage, None when the event was not taken for it."""
        for node in self.nodes:
            if node.stage == stage:
                return node
        return None


@attrs.define(eq=False)
class SharedBufferNode(Lockable):
    """
    An event taken for a stage, shared by all runs that took it so.

    Attributes
    ----------
    entry : LockableEvent
        The event.
    stage : str
        The user's name of the stage.
    edges : list of SharedBufferEdge or ManyEdges
        Versioned pointers to what each run had taken before, in insertion order.
    alive : bool
        Whether the buffer still holds the node. A node that is gone can come back while its
        event is processed; it is the same object then, as in Flink it is the same id.
    """

    entry: LockableEvent
    stage: str
    edges: list[SharedBufferEdge] | ManyEdges = attrs.field(factory=list)
    alive: bool = True

    def add_edge(self, edge: SharedBufferEdge) -> None:
        """Add a pointer."""
        edges = self.edges
        edges.append(edge)
        if len(edges) > _MOST_IN_A_LIST and isinstance(edges, list):
            self.edges = ManyEdges(edges)

    def edges_of(self, version: DeweyNumber) -> list[SharedBufferEdge]:
        """Return the pointers that a run of a version may walk, and perhaps others."""
        edges = self.edges
        return edges if isinstance(edges, list) else edges.of(version)

    @property
    def node_id(self) -> NodeId:
        """Return the node's identity."""
        return NodeId(self.entry.event_id, self.stage)


@attrs.define(eq=False)
class SharedBufferEdge(Lockable):
    """
    A pointer from a node to the node before it.

    Attributes
    ----------
    target : SharedBufferNode or None
        The node before; None at the beginning of a match.
    version : DeweyNumber
        The version of the run that took this step.
    values : tuple or None
        What match expressions accumulate on the way up to and with this step; None until it is
        asked for. It follows from the events on the way, so it is not stored.
    """

    target: SharedBufferNode | None
    version: DeweyNumber
    values: tuple[Any, ...] | None = None


class ManyEdges:
    """
    The edges of a node that many runs came to, found by the first digit of their version.

    A run walks edges of its own first digit only. So what a run does at a node costs as much as
    there are edges of matches that began as it did, and not as much as there are edges.

    Parameters
    ----------
    edges : list of SharedBufferEdge
        The edges, in insertion order.
    """

    __slots__ = ("_all", "_by_root")

    def __init__(self, edges: list[SharedBufferEdge]) -> None:
        self._all: dict[SharedBufferEdge, None] = {}
        self._by_root: dict[int, dict[SharedBufferEdge, None]] = {}
        for edge in edges:
            self.append(edge)

    def append(self, edge: SharedBufferEdge) -> None:
        """Add an edge."""
        self._all[edge] = None
        self._by_root.setdefault(edge.version.root, {})[edge] = None

    def remove(self, edge: SharedBufferEdge) -> None:
        """Drop an edge."""
        root = edge.version.root
        del self._all[edge]
        del self._by_root[root][edge]
        if not self._by_root[root]:
            del self._by_root[root]

    def of(self, version: DeweyNumber) -> list[SharedBufferEdge]:
        """Return the edges whose version begins as this one, in insertion order."""
        return list(self._by_root.get(version.root, ()))

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[SharedBufferEdge]:
        return iter(self._all)

    def __getitem__(self, place: int) -> SharedBufferEdge:
        return list(self._all)[place]
