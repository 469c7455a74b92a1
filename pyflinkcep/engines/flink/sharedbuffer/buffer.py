# SPDX-License-Identifier: Apache-2.0
"""
The versioned shared buffer: the taken events of all partial matches of one key.

Specifies ``kernel/src/flink/buffer.c``; they must be changed together.
"""

from __future__ import annotations

from typing import Any

import attrs

from pyflinkcep.engines.flink.sharedbuffer.elements import (
    DeweyNumber,
    EventId,
    LockableEvent,
    ManyEdges,
    SharedBufferEdge,
    SharedBufferNode,
)
from pyflinkcep.errors import StateFormatError

_new = tuple.__new__

Path = dict[str, list[LockableEvent]]
"""Stage name to events, oldest first."""


@attrs.define(eq=False)
class SharedBuffer:
    """
    The state of the buffer of one key; :class:`SharedBufferAccessor` works on it.

    Ports ``org.apache.flink.cep.nfa.sharedbuffer.SharedBuffer`` (Flink 2.3.0).
    Differs from Flink: nodes are attached to their event and point at each other, so a step needs
    no look-up by id, and only the newest time's counter is kept, since no other can be used.

    Agrawal, Diao, Gyllstrom, Immerman: Efficient Pattern Matching over Event Streams,
    SIGMOD 2008, section 4.2.
    """

    # All events held by a partial match, or by a match not yet emitted.
    events: dict[EventId, LockableEvent] = attrs.field(factory=dict)
    timestamp: int | None = None  # The time of the newest id
    event_count: int = 0  # How many ids were assigned for that time

    @property
    def node_count(self) -> int:
        """The number of nodes."""
        return sum(node.alive for entry in self.events.values() for node in entry.nodes)

    def live_events(self) -> list[Any]:
        """Return the events, or handles of events, that are held."""
        return [entry.event for entry in self.events.values()]

    def get_accessor(self) -> SharedBufferAccessor:
        """Open a unit of work."""
        return SharedBufferAccessor(self)


@attrs.define(eq=False)
class SharedBufferAccessor:
    """
    A unit of work on a :class:`SharedBuffer`: the effect of some events, or of an advance of time.

    Ports ``org.apache.flink.cep.nfa.sharedbuffer.SharedBufferAccessor`` (Flink 2.3.0).
    Differs from Flink: there is no cache to flush, since the buffer itself is in memory;
    what is written to a state store is decided by the operator.
    """

    buffer: SharedBuffer  # The state worked on

    def register_event(self, event: Any, timestamp: int) -> LockableEvent:
        """Store an event under a new id, with one reference that the caller must release."""
        buffer = self.buffer
        if timestamp != buffer.timestamp:
            buffer.timestamp = timestamp
            buffer.event_count = 0
        number = buffer.event_count
        event_id: EventId = _new(EventId, (timestamp, number))
        while event_id in buffer.events:  # the clock stepped back
            number += 1
            event_id = EventId(timestamp, number)
        buffer.event_count = number + 1
        entry = buffer.events[event_id] = LockableEvent(1, event_id, event)
        return entry

    def put(
        self,
        stage: str,
        entry: LockableEvent,
        previous: SharedBufferNode | None,
        version: DeweyNumber,
    ) -> SharedBufferNode:
        """Record that a run took an event for a stage."""
        if previous is not None:
            self.lock_node(previous, version)
        node = entry.node(stage)
        if node is None:
            node = SharedBufferNode(0, entry, stage)
            entry.nodes.append(node)
            entry.ref_counter += 1
        elif not node.alive:
            node.alive = True
            entry.ref_counter += 1
        node.add_edge(SharedBufferEdge(0, previous, version))
        return node

    def extend(
        self,
        stage: str,
        entry: LockableEvent,
        previous: SharedBufferNode | None,
        version: DeweyNumber,
        following: DeweyNumber,
    ) -> SharedBufferNode:
        """
        Record that a run took an event and continues alone, or that it begins.

        Like :meth:`put` with the run's version, :meth:`lock_node` with its `following` version, and
        :meth:`release_node` of its previous node with the old one: locking and releasing the
        previous node cancel out.
        """
        if entry.node(stage) is None:
            entry.ref_counter += 1
            edge = SharedBufferEdge(1, previous, version)
            node = SharedBufferNode(1, entry, stage, [edge])
            entry.nodes.append(node)
            return node
        node = self.put(stage, entry, previous, version)
        self.lock_node(node, following)
        if previous is not None:
            self.release_node(previous, version)
        return node

    def relabel(self, node: SharedBufferNode, old: DeweyNumber, new: DeweyNumber) -> None:
        """
        Record that a run continues under another version without taking an event.

        Like :meth:`lock_node` with the new version and :meth:`release_node` with the old one, which
        cancel out if there is only one path.
        """
        if len(node.edges) > 1:
            self.lock_node(node, new)
            self.release_node(node, old)

    def lock_node(self, node: SharedBufferNode, version: DeweyNumber) -> None:
        """Count a reference to `node` and to those of its edges that `version` may walk."""
        if not node.alive:
            return
        node.ref_counter += 1
        edges = node.edges
        for edge in edges if edges.__class__ is list else node.edges_of(version):
            if version.is_compatible_with(edge.version):
                edge.ref_counter += 1

    def release_node(self, node: SharedBufferNode, version: DeweyNumber) -> None:
        """
        Undo a :meth:`lock_node`; drop every edge, node and event that is no longer referenced.

        As in Flink, the walk ends at the first node that is already gone.
        """
        work = [(node, version)]
        while work:
            node, version = work.pop()
            if not node.alive:
                break
            edges, kept = node.edges, []
            for edge in edges if edges.__class__ is list else node.edges_of(version):
                if version.is_compatible_with(edge.version) and edge.release():
                    if edge.target is not None:
                        work.append((edge.target, edge.version))
                    if isinstance(edges, ManyEdges):
                        edges.remove(edge)
                else:
                    kept.append(edge)
            if edges.__class__ is list:
                node.edges = kept
            self._release_one(node)

    def _release_one(self, node: SharedBufferNode) -> None:
        if node.ref_counter > 1:
            node.ref_counter -= 1
            return
        node.ref_counter = 0
        node.alive = False
        entry = node.entry
        if entry.ref_counter > 1:
            entry.ref_counter -= 1
        else:
            self.release_event(entry)

    def release_event(self, entry: LockableEvent) -> None:
        """Remove one reference to an event; drop the event with the last."""
        if entry.release():
            self.buffer.events.pop(entry.event_id, None)
            entry.nodes = []  # breaks the reference cycle, so that nothing waits for the GC

    def extract_patterns(self, node: SharedBufferNode | None, version: DeweyNumber) -> list[Path]:
        """Return the paths that a run of `version` took to `node`."""
        paths: list[Path] = []
        if node is None:
            return paths
        # A path is a linked list (node, next), built backwards from the end of the match.
        work: list[tuple[SharedBufferNode | None, DeweyNumber, Any]] = [(node, version, None)]
        while work:
            current, version, path = work.pop()
            if current is None:
                paths.append(_collect(path))
                continue
            path = (current, path)
            for edge in current.edges_of(version):
                if version.is_compatible_with(edge.version):
                    work.append((edge.target, edge.version, path))
        return paths

    def materialize_match(
        self, node: SharedBufferNode | None, version: DeweyNumber
    ) -> dict[str, list[Any]]:
        """Return the events, or handles of events, on the path that a run of `version` took."""
        walked = []
        current = node
        while current is not None:
            edges = current.edges
            if len(edges) != 1:
                paths = self.extract_patterns(node, version)
                if not paths:
                    raise lost_path()
                return {
                    stage: [entry.event for entry in entries] for stage, entries in paths[0].items()
                }
            walked.append(current)
            current = edges[0].target
        match: dict[str, list[Any]] = {}
        for step in reversed(walked):
            stage = step.stage
            if stage in match:
                match[stage].append(step.entry.event)
            else:
                match[stage] = [step.entry.event]
        return match


def lost_path() -> StateFormatError:
    """Make the error for a partial match whose version fits no path, caused by damage."""
    return StateFormatError(
        "the state is damaged: a partial match has lost its events",
        "restore from another checkpoint, or start from empty state",
    )


def _collect(path: Any) -> Path:
    match: Path = {}
    while path is not None:
        node, path = path
        stage = node.stage
        if stage in match:
            match[stage].append(node.entry)
        else:
            match[stage] = [node.entry]
    return match
