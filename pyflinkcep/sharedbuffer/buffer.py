# SPDX-License-Identifier: Apache-2.0
"""The versioned shared buffer: the taken events of all partial matches of one key."""

from __future__ import annotations

from typing import Any

import attrs

from pyflinkcep.sharedbuffer.dewey import DeweyNumber
from pyflinkcep.sharedbuffer.elements import (
    EventId,
    LockableEvent,
    SharedBufferEdge,
    SharedBufferNode,
)

__all__ = ["SharedBuffer", "SharedBufferAccessor"]


@attrs.define(eq=False)
class SharedBuffer:
    """
    The state of the buffer of one key; :class:`SharedBufferAccessor` works on it.

    Attributes
    ----------
    events : dict of EventId to LockableEvent
        Every event that a partial match, or a match not yet emitted, holds on to.
    eventCounts : dict of int to int
        The next counter for each timestamp that may still get events.

    Notes
    -----
    Ports ``org.apache.flink.cep.nfa.sharedbuffer.SharedBuffer`` (Flink 2.3.0). Nodes hang on
    their event and point at each other, so that a step costs no look-up by id.

    References
    ----------
    Agrawal, Diao, Gyllstrom, Immerman: Efficient Pattern Matching over Event Streams,
    SIGMOD 2008, section 4.2.
    """

    events: dict[EventId, LockableEvent] = attrs.field(factory=dict)
    eventCounts: dict[int, int] = attrs.field(factory=dict)

    def is_empty(self) -> bool:
        """Say whether no event is held."""
        return not self.events

    @property
    def node_count(self) -> int:
        """Give the number of nodes."""
        return sum(node.alive for entry in self.events.values() for node in entry.nodes.values())

    def advance_time(self, timestamp: int) -> None:
        """Forget the counters of timestamps before `timestamp` (epoch milliseconds)."""
        counts = self.eventCounts
        if counts:
            for past in [known for known in counts if known < timestamp]:
                del counts[past]

    def get_accessor(self) -> SharedBufferAccessor:
        """Open a unit of work."""
        return SharedBufferAccessor(self)


@attrs.define(eq=False)
class SharedBufferAccessor:
    """
    A unit of work on a :class:`SharedBuffer`: the steps of one event, or of one advance of time.

    Attributes
    ----------
    buffer : SharedBuffer
        The state worked on.

    Notes
    -----
    Ports ``org.apache.flink.cep.nfa.sharedbuffer.SharedBufferAccessor`` (Flink 2.3.0).
    Differs from Flink: there is no cache to flush, since the buffer itself is in memory;
    what is written to a state store is decided by the operator.
    """

    buffer: SharedBuffer

    def register_event(self, event: Any, timestamp: int) -> LockableEvent:
        """
        Store an event under a new id, with one reference that the caller must release.

        Parameters
        ----------
        event : object
            The event or its handle.
        timestamp : int, epoch milliseconds
            Its time.
        """
        counts = self.buffer.eventCounts
        counter = counts.get(timestamp, 0)
        counts[timestamp] = counter + 1
        event_id = EventId(timestamp, counter)
        entry = self.buffer.events[event_id] = LockableEvent(1, event_id, event)
        return entry

    def put(
        self,
        pageName: str,
        entry: LockableEvent,
        previous: SharedBufferNode | None,
        version: DeweyNumber,
    ) -> SharedBufferNode:
        """
        Record that a run took an event for a stage.

        Parameters
        ----------
        pageName : str
            The user's name of the stage.
        entry : LockableEvent
            The event, registered before.
        previous : SharedBufferNode or None
            What the run had taken before.
        version : DeweyNumber
            The run's version for this step.

        Returns
        -------
        SharedBufferNode
            The node of (event, stage), new or shared; not locked yet.
        """
        if previous is not None:
            self.lock_node(previous, version)
        node = entry.nodes.get(pageName)
        if node is None:
            node = entry.nodes[pageName] = SharedBufferNode(0, entry, pageName)
            entry.refCounter += 1
        elif not node.alive:
            node.alive = True
            entry.refCounter += 1
        node.edges.append(SharedBufferEdge(0, previous, version))
        return node

    def lock_node(self, node: SharedBufferNode, version: DeweyNumber) -> None:
        """Count a reference to `node` and to those of its edges that `version` may walk."""
        if not node.alive:
            return
        node.refCounter += 1
        for edge in node.edges:
            if version.is_compatible_with(edge.version):
                edge.refCounter += 1

    def release_node(self, node: SharedBufferNode, version: DeweyNumber) -> None:
        """
        Undo a :meth:`lock_node`; drop every edge, node and event that nothing refers to now.

        Notes
        -----
        As in Flink, the walk ends at the first node that is gone already.
        """
        work = [(node, version)]
        while work:
            node, version = work.pop()
            if not node.alive:
                break
            kept = []
            for edge in node.edges:
                if version.is_compatible_with(edge.version) and edge.release():
                    if edge.target is not None:
                        work.append((edge.target, edge.version))
                else:
                    kept.append(edge)
            node.edges = kept
            if node.release():
                node.alive = False
                self.release_event(node.entry)

    def release_event(self, entry: LockableEvent) -> None:
        """Count one reference to an event less; forget the event with the last."""
        if entry.release():
            self.buffer.events.pop(entry.eventId, None)

    def extract_patterns(
        self, node: SharedBufferNode | None, version: DeweyNumber
    ) -> list[dict[str, list[LockableEvent]]]:
        """
        Give the paths that a run of `version` took to `node`.

        Returns
        -------
        list of dict of str to list of LockableEvent
            Stages in the order in which the run entered them, events oldest first. A run has
            exactly one path, unless versions collided.
        """
        paths: list[dict[str, list[LockableEvent]]] = []
        if node is None:
            return paths
        # A path is a linked list (node, next), built from the end of the match to its beginning.
        work: list[tuple[SharedBufferNode | None, DeweyNumber, Any]] = [(node, version, None)]
        while work:
            current, version, path = work.pop()
            if current is None:
                paths.append(_collect(path))
                continue
            path = (current, path)
            for edge in current.edges:
                if version.is_compatible_with(edge.version):
                    work.append((edge.target, edge.version, path))
        return paths


def _collect(path: Any) -> dict[str, list[LockableEvent]]:
    match: dict[str, list[LockableEvent]] = {}
    while path is not None:
        node, path = path
        match.setdefault(node.pageName, []).append(node.entry)
    return match
