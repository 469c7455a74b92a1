# SPDX-License-Identifier: Apache-2.0
"""The parts of the shared buffer: versions, ids, reference counts, events, nodes and edges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import attrs

from pyflinkcep.errors import InvalidArgumentError


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

    @property
    def node_id(self) -> NodeId:
        """Return the node's identity."""
        return NodeId(self.entry.event_id, self.stage)


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
