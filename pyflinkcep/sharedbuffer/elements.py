# SPDX-License-Identifier: Apache-2.0
"""What the shared buffer is made of: ids, reference counts, events, nodes and edges."""

from __future__ import annotations

from typing import Any, NamedTuple

import attrs

from pyflinkcep.sharedbuffer.dewey import DeweyNumber

__all__ = [
    "EventId",
    "Lockable",
    "LockableEvent",
    "NodeId",
    "SharedBufferEdge",
    "SharedBufferNode",
]


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
        """Give the node for a stage, None when the event was not taken for it."""
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
    edges : list of SharedBufferEdge
        Versioned pointers to what each run had taken before, in insertion order.
    alive : bool
        Whether the buffer still holds the node. A node that is gone can come back while its
        event is processed; it is the same object then, as in Flink it is the same id.
    """

    entry: LockableEvent
    stage: str
    edges: list[SharedBufferEdge] = attrs.field(factory=list)
    alive: bool = True

    @property
    def node_id(self) -> NodeId:
        """Give the node's identity."""
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
        asked for. It follows from the events on the way, so it is no state to be stored.
    """

    target: SharedBufferNode | None
    version: DeweyNumber
    values: tuple[Any, ...] | None = None
