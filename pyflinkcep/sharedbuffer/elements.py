# SPDX-License-Identifier: Apache-2.0
"""What the shared buffer is made of: ids of events, and nodes that point at the node before."""

from __future__ import annotations

from typing import Any, NamedTuple

import attrs

__all__ = ["EventId", "NodeId", "SharedBufferNode"]


class EventId(NamedTuple):
    """
    The identity of an event of one key; ids are ordered as the events are.

    Attributes
    ----------
    timestamp : int, epoch milliseconds
        The event's time.
    id : int, at least 0
        A counter among the events of the same time that changed anything.
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
    eventId : EventId
        The event.
    pageName : str
        The user's name of the stage.
    """

    eventId: EventId
    pageName: str


@attrs.define(eq=False)
class SharedBufferNode:
    """
    An event taken for a stage, after what its partial match had taken before.

    A node never changes. Partial matches that went the same way for a while share the nodes
    of that way.

    Attributes
    ----------
    pageName : str
        The user's name of the stage.
    eventId : EventId
        The event's identity.
    event : object
        The event itself, or a handle by which the caller finds it.
    previous : SharedBufferNode or None
        What was taken before; None at the beginning of a match.
    """

    pageName: str
    eventId: EventId
    event: Any
    previous: SharedBufferNode | None

    @property
    def nodeId(self) -> NodeId:
        """Give the node's identity, which nodes of different partial matches may share."""
        return NodeId(self.eventId, self.pageName)
