# SPDX-License-Identifier: Apache-2.0
"""
The versioned shared buffer: the taken events of all partial matches of one key.

Specifies ``kernel/src/flink/version.c``, ``edges.c`` and ``buffer.c``; they must be changed
together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import attrs

from pyflinkcep.errors import InvalidArgumentError, StateFormatError


@attrs.define(eq=False, repr=False)
class DeweyNumber:
    """
    A version such as ``1.0.2``: one digit for each step that a run took.

    Immutable. Make one with :meth:`of`, and derive others from it.

    Ports ``org.apache.flink.cep.nfa.DeweyNumber`` (Flink 2.3.0).
    Differs from Flink: numbers share their prefixes instead of copying them, so a loop over `n`
    events holds `n` digits instead of `n²`.

    Agrawal, Diao, Gyllstrom, Immerman: Efficient Pattern Matching over Event Streams,
    SIGMOD 2008, section 4.2 (the versioned match buffer of SASE+).

    >>> DeweyNumber.of([1, 0]).increase(2).add_stage()
    DeweyNumber('1.2.0')
    """

    parent: DeweyNumber | None  # The number without its last digit; None for a number of one digit
    digit: int  # The last digit
    length: int  # The number of digits
    code: int  # A hash of all digits
    root: int  # The first digit, different for each start of a match

    @classmethod
    def of(cls, digits: Iterable[int]) -> DeweyNumber:
        """Make a number from its digits, at least one."""
        number: DeweyNumber | None = None
        for digit in digits:
            number = cls.following(number, digit)
        if number is None:
            raise InvalidArgumentError("a Dewey number without digits", "pass at least one digit")
        return number

    @classmethod
    def following(cls, parent: DeweyNumber | None, digit: int) -> DeweyNumber:
        """Make the number with one more digit than `parent`."""
        if parent is None:
            return cls(None, digit, 1, hash((0, digit)), digit)
        return cls(parent, digit, parent.length + 1, hash((parent.code, digit)), parent.root)

    @property
    def digits(self) -> tuple[int, ...]:
        """The digits, first to last."""
        found = []
        number: DeweyNumber | None = self
        while number is not None:
            found.append(number.digit)
            number = number.parent
        return tuple(reversed(found))

    def increase(self, times: int = 1) -> DeweyNumber:
        """Return the number with the last digit raised by `times`."""
        return self.following(self.parent, self.digit + times) if times else self

    def add_stage(self) -> DeweyNumber:
        """Return the number with a digit 0 appended."""
        return self.following(self, 0)

    def is_compatible_with(self, other: DeweyNumber) -> bool:
        """
        Whether a run of this version may walk an edge of version `other`.

        True if `other` is a proper prefix of this number, or has the same length, the same digits
        before the last, and a last digit that is not larger.
        """
        number: Any = self.parent
        if number is other:  # by far the most frequent case
            return True
        longer = self.length - other.length
        if longer <= 0:
            return longer == 0 and self.digit >= other.digit and _same(number, other.parent)
        for _ in range(longer - 1):
            number = number.parent
        return number.code == other.code and _same(number, other)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeweyNumber) and _same(self, other)

    def __hash__(self) -> int:
        return self.code

    def __reduce__(self) -> tuple[Any, ...]:
        return DeweyNumber.of, (self.digits,)

    def __repr__(self) -> str:
        return f"DeweyNumber({str(self)!r})"

    def __str__(self) -> str:
        return ".".join(map(str, self.digits))


def _same(left: DeweyNumber | None, right: DeweyNumber | None) -> bool:
    """Compare two numbers from the end, until they differ or share the rest."""
    while left is not right:
        if left is None or right is None or left.code != right.code or left.digit != right.digit:
            return False
        left, right = left.parent, right.parent
    return True


_MOST_IN_A_LIST = 8


class EventId(NamedTuple):
    """The identity of an event of one key; ids have the order of the events."""

    timestamp: int  # The event's time
    id: int  # A counter among the taken events of the same time

    def __repr__(self) -> str:
        return f"EventId{{id={self.id}, timestamp={self.timestamp}}}"


class NodeId(NamedTuple):
    """The identity of a node: an event taken for a stage."""

    event_id: EventId  # The event
    stage: str  # The user's name of the stage


@attrs.define(eq=False)
class Lockable:
    """Something with a reference count."""

    ref_counter: int  # The number of references

    def release(self) -> bool:
        """Remove a reference; return whether none is left."""
        if self.ref_counter <= 0:
            return True
        self.ref_counter -= 1
        return self.ref_counter == 0


@attrs.define(eq=False)
class LockableEvent(Lockable):
    """An event in the buffer, stored once however many runs share it."""

    event_id: EventId  # Its identity
    event: Any  # The event itself, or the caller's handle for it
    # The nodes of this event, one for each stage that it was taken for.
    nodes: list[SharedBufferNode] = attrs.field(factory=list)

    def node(self, stage: str) -> SharedBufferNode | None:
        """Return the node for a stage; None if the event was not taken for it."""
        for node in self.nodes:
            if node.stage == stage:
                return node
        return None


@attrs.define(eq=False)
class SharedBufferNode(Lockable):
    """An event taken for a stage, shared by all runs that took it for that stage."""

    entry: LockableEvent  # The event
    stage: str  # The user's name of the stage
    # Versioned pointers to what each run took before, in insertion order.
    edges: list[SharedBufferEdge] | ManyEdges = attrs.field(factory=list)
    # Whether the buffer still holds the node. A dropped node can come back while its event is
    # processed; it is then the same object, as in Flink it is the same id.
    alive: bool = True

    def add_edge(self, edge: SharedBufferEdge) -> None:
        """Add a pointer."""
        edges = self.edges
        edges.append(edge)
        if len(edges) > _MOST_IN_A_LIST and isinstance(edges, list):
            self.edges = ManyEdges(edges)

    def edges_of(self, version: DeweyNumber) -> list[SharedBufferEdge]:
        """Return the pointers that a run of a version may walk, and possibly others."""
        edges = self.edges
        return edges if isinstance(edges, list) else edges.of(version)


@attrs.define(eq=False)
class SharedBufferEdge(Lockable):
    """A pointer from a node to the previous one."""

    target: SharedBufferNode | None  # The previous node; None at the beginning of a match
    version: DeweyNumber  # The version of the run that took this step
    # What match expressions accumulate on the path up to and including this step; None until first
    # needed. It follows from the events on the path, so it is not stored.
    values: tuple[Any, ...] | None = None


class ManyEdges:
    """
    The edges of a node that many runs reached, found by the digits of their versions.

    A run walks only edges whose version is a prefix of its own, or differs from it in the last
    digit. So its cost at a node grows with the length of its version, not with all edges.
    """

    __slots__ = ("_all", "_by_prefix", "_by_root", "_last")

    def __init__(self, edges: list[SharedBufferEdge]) -> None:
        self._all: dict[SharedBufferEdge, int] = {}
        self._by_root: dict[int, dict[SharedBufferEdge, None]] = {}
        self._by_prefix: dict[int, _SameRoot] = {}
        self._last = 0
        for edge in edges:
            self.append(edge)

    def append(self, edge: SharedBufferEdge) -> None:
        """Add an edge."""
        self._last += 1
        self._all[edge] = self._last
        root = edge.version.root
        same = self._by_root.setdefault(root, {})
        same[edge] = None
        if root in self._by_prefix:
            self._by_prefix[root].add(edge)
        elif len(same) > _MOST_IN_A_LIST:
            self._by_prefix[root] = _SameRoot(same)

    def remove(self, edge: SharedBufferEdge) -> None:
        """Drop an edge."""
        root = edge.version.root
        del self._all[edge]
        del self._by_root[root][edge]
        if root in self._by_prefix:
            self._by_prefix[root].remove(edge)
        if not self._by_root[root]:
            del self._by_root[root]
            self._by_prefix.pop(root, None)

    def of(self, version: DeweyNumber) -> list[SharedBufferEdge]:
        """Return the edges that a run of a version may walk, and others, in insertion order."""
        same = self._by_prefix.get(version.root)
        if same is None:
            return list(self._by_root.get(version.root, ()))
        found = same.of(version)
        if len(found) > 1:
            found.sort(key=self._all.__getitem__)
        return found

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[SharedBufferEdge]:
        return iter(self._all)

    def __getitem__(self, place: int) -> SharedBufferEdge:
        return list(self._all)[place]


class _SameRoot:
    """Edges whose versions have the same first digit, by the digits before the last."""

    __slots__ = ("_by_parent", "_lengths", "_shortest")

    def __init__(self, edges: Iterable[SharedBufferEdge]) -> None:
        self._by_parent: dict[DeweyNumber | None, list[SharedBufferEdge]] = {}
        self._lengths: set[int] = set()  # those of removed edges stay
        self._shortest = 1 << 63
        for edge in edges:
            self.add(edge)

    def add(self, edge: SharedBufferEdge) -> None:
        """Add an edge."""
        version = edge.version
        self._by_parent.setdefault(version.parent, []).append(edge)
        self._lengths.add(version.length)
        self._shortest = min(self._shortest, version.length)

    def remove(self, edge: SharedBufferEdge) -> None:
        """Drop an edge."""
        parent = edge.version.parent
        same = self._by_parent[parent]
        same.remove(edge)
        if not same:
            del self._by_parent[parent]

    def of(self, version: DeweyNumber) -> list[SharedBufferEdge]:
        """Return the edges whose version is a prefix of this one but for their last digits."""
        found: list[SharedBufferEdge] = []
        number: DeweyNumber | None = version
        while number is not None and number.length >= self._shortest:
            if number.length in self._lengths:
                found += self._by_parent.get(number.parent, ())
            number = number.parent
        return found


# --- the buffer


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
