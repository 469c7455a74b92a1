# SPDX-License-Identifier: Apache-2.0
"""Operator state as bytes, in a format with a version of its own; no pickle."""

from __future__ import annotations

import json
import struct
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import attrs

from pyflinkcep.errors import CepError, PatternChangedError, StateFormatError
from pyflinkcep.nfa import NFA, ComputationState, NFAState
from pyflinkcep.operator.cep_operator import KeyState
from pyflinkcep.sharedbuffer import (
    DeweyNumber,
    EventId,
    LockableEvent,
    SharedBuffer,
    SharedBufferEdge,
    SharedBufferNode,
)

__all__ = ["STATE_FORMAT", "Serializer", "StateReader", "StateWriter", "pack", "unpack"]

STATE_FORMAT = 1
"""The version of the format that this release writes; it reads no other."""

_MAGIC = b"PFCS"
_HEAD = struct.Struct("<4sHHI")
_NONE, _GONE = -1, -2
_DAMAGED = "restore from another checkpoint, or start from empty state"


class Serializer(Protocol):
    """Turns events or keys into bytes and back; the engine brings one that fits its events."""

    def dumps(self, objects: Sequence[Any]) -> bytes:
        """Give the bytes of a sequence of objects."""

    def loads(self, data: bytes) -> Sequence[Any]:
        """Give back what :meth:`dumps` was given."""


def pack(header: dict[str, Any], sections: Sequence[bytes]) -> bytes:
    """
    Join a JSON header and sections of bytes under the format's magic and version.

    Examples
    --------
    >>> unpack(pack({"a": 1}, [b"x", b"yz"]))
    ({'a': 1}, [b'x', b'yz'])
    """
    text = json.dumps({**header, "sections": [len(part) for part in sections]}).encode()
    return b"".join([_HEAD.pack(_MAGIC, STATE_FORMAT, 0, len(text)), text, *sections])


def unpack(data: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """
    Take apart what :func:`pack` joined.

    Raises
    ------
    StateFormatError
        When the bytes are none of ours, cut short, or of an unknown format version.
    """
    if len(data) < _HEAD.size or data[:4] != _MAGIC:
        raise StateFormatError(
            f"these {len(data)} bytes are no pyflinkcep state", "give what a snapshot returned"
        )
    _, version, _, length = _HEAD.unpack_from(data)
    if version != STATE_FORMAT:
        raise StateFormatError(
            f"state format {version}, this release reads format {STATE_FORMAT}",
            "restore with the release that wrote it, or start from empty state",
        )
    at = _HEAD.size + length
    try:
        header = json.loads(data[_HEAD.size : at])
        sizes = header.pop("sections")
    except (ValueError, LookupError, TypeError, AttributeError) as cause:
        raise StateFormatError("the state's header is damaged", _DAMAGED) from cause
    if len(data) != at + sum(sizes):
        raise StateFormatError(
            f"state of {len(data)} bytes, its header says {at + sum(sizes)}", _DAMAGED
        )
    sections = []
    for size in sizes:
        sections.append(data[at : at + size])
        at += size
    return header, sections


def damaged_state(what: str) -> StateFormatError:
    """Make the error of state that cannot be read."""
    return StateFormatError(f"the state is damaged: {what}", _DAMAGED)


@contextmanager
def refuse_damage() -> Iterator[None]:
    """Turn whatever goes wrong while state is read into a StateFormatError."""
    try:
        yield
    except CepError:
        raise
    except Exception as cause:
        raise damaged_state(f"{type(cause).__name__} {cause}".rstrip()) from cause


def ints_to_bytes(numbers: Sequence[int]) -> bytes:
    """Give little-endian 64-bit integers."""
    packed = array("q", numbers)
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()


def bytes_to_ints(data: bytes) -> array[int]:
    """Read little-endian 64-bit integers."""
    numbers = array("q")
    numbers.frombytes(data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


@attrs.define(eq=False)
class StateWriter:
    """
    Writes key states as a flat list of integers, with the events beside it.

    Attributes
    ----------
    nfa : NFA
        The pattern; states and stages are written as their numbers in it.
    numbers : list of int
        What was written.
    events : list
        The events, or handles of events, that the numbers refer to by position.
    first_event : int
        Where the events of the state at work begin: positions are written relative to it.
    """

    nfa: NFA
    numbers: list[int] = attrs.field(factory=list)
    events: list[Any] = attrs.field(factory=list)
    first_event: int = 0
    _states: dict[str, int] = attrs.field(init=False)
    _stages: dict[str, int] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._states = {name: number for number, name in enumerate(self.nfa.tables)}
        self._stages = {name: number for number, name in enumerate(stage_names(self.nfa))}

    def add_event(self, event: Any) -> int:
        """Add an event; give its number."""
        self.events.append(event)
        return len(self.events) - 1 - self.first_event

    def write(self, state: KeyState) -> None:
        """Write one key's state."""
        put = self.numbers.append
        put(len(state.timers))
        self.numbers.extend(sorted(state.timers))
        buffer = state.buffer
        put(_NONE if buffer.timestamp is None else buffer.eventCount)
        put(buffer.timestamp or 0)
        versions = self._write_versions(state)
        nodes = self._write_events(buffer)
        for node in nodes:
            put(len(node.edges))
            for edge in node.edges:
                put(_number(nodes, edge.target))
                put(edge.refCounter)
                put(versions[edge.version])
        for matches in (state.nfa_state.partialMatches, state.nfa_state.completedMatches):
            put(len(matches))
            for match in matches:
                self._write_match(match, nodes, versions)

    def _write_events(self, buffer: SharedBuffer) -> dict[SharedBufferNode, int]:
        put = self.numbers.append
        nodes: dict[SharedBufferNode, int] = {}
        put(len(buffer.events))
        for entry in buffer.events.values():
            self.numbers.extend((*entry.eventId, entry.refCounter, self.add_event(entry.event)))
            put(len(entry.nodes))
            for node in entry.nodes:
                nodes[node] = len(nodes)
                self.numbers.extend((self._stages[node.pageName], node.refCounter, node.alive))
        return nodes

    def _write_match(
        self,
        match: ComputationState,
        nodes: dict[SharedBufferNode, int],
        versions: dict[DeweyNumber, int],
    ) -> None:
        put = self.numbers.append
        put(self._states[match.table.name])
        put(versions[match.version])
        put(_number(nodes, match.previousBufferEntry))
        start = match.startEventID
        self.numbers.extend((0, _NONE) if start is None else start)

    def _write_versions(self, state: KeyState) -> dict[DeweyNumber, int]:
        """Write all versions, each as one digit after another version; give their numbers."""
        numbers: dict[DeweyNumber | None, int] = {None: _NONE}
        written: list[int] = []
        for version in _versions(state):
            missing: list[DeweyNumber] = []
            current: DeweyNumber | None = version
            while current is not None and current not in numbers:
                missing.append(current)
                current = current.parent
            for number in reversed(missing):
                written += (numbers[number.parent], number.digit)
                numbers[number] = len(numbers) - 1
        self.numbers.append(len(written) // 2)
        self.numbers += written
        del numbers[None]
        return numbers  # type: ignore[return-value]


def _versions(state: KeyState) -> Iterator[DeweyNumber]:
    for entry in state.buffer.events.values():
        for node in entry.nodes:
            for edge in node.edges:
                yield edge.version
    for match in state.nfa_state.partialMatches + state.nfa_state.completedMatches:
        yield match.version


def _number(nodes: dict[SharedBufferNode, int], node: SharedBufferNode | None) -> int:
    return _NONE if node is None else nodes.get(node, _GONE)


def stage_names(nfa: NFA) -> list[str]:
    """Give the names that matches use for stages, in the order of the pattern's states."""
    return list(dict.fromkeys(table.state.stage for table in nfa.tables.values()))


@attrs.define(eq=False)
class StateReader:
    """
    Reads what :class:`StateWriter` wrote.

    Attributes
    ----------
    nfa : NFA
        The pattern that the state is restored for.
    numbers : sequence of int
        What was written.
    events : sequence
        The events beside it.
    states, stages : sequence of str
        The names behind the numbers, as they were when the state was written.
    first_event : int
        Where the events of the state at work begin; see ``StateWriter``.
    """

    nfa: NFA
    numbers: Sequence[int]
    events: Sequence[Any]
    states: Sequence[str]
    stages: Sequence[str]
    first_event: int = 0
    _next: Iterator[int] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        missing = [name for name in self.states if name not in self.nfa.tables]
        if missing:
            raise PatternChangedError(
                f"State {missing[0]} does not exist in the NFA. "
                f"NFA has states {list(self.nfa.tables)}",
                "restore with the pattern that the state was written for",
            )
        self._next = iter(self.numbers)

    def seek(self, numbers: Iterable[int], first_event: int) -> None:
        """Continue with other numbers, whose events begin at `first_event`."""
        self._next = iter(numbers)
        self.first_event = first_event

    def number(self) -> int:
        """Read one integer."""
        return next(self._next)

    def read(self) -> KeyState:
        """Read one key's state."""
        number = self.number
        timers = {number() for _ in range(number())}
        count, timestamp = number(), number()
        buffer = SharedBuffer()
        if count != _NONE:
            buffer.timestamp, buffer.eventCount = timestamp, count
        versions = self._read_versions()
        nodes = self._read_events(buffer)
        for node in nodes:
            for _ in range(number()):
                target = self._node(nodes, number())
                node.edges.append(SharedBufferEdge(number(), target, versions[number()]))
        partials = [self._read_match(nodes, versions) for _ in range(number())]
        completed = [self._read_match(nodes, versions) for _ in range(number())]
        return KeyState(NFAState(partials, completed), buffer, timers)

    def _read_events(self, buffer: SharedBuffer) -> list[SharedBufferNode]:
        number = self.number
        nodes = []
        for _ in range(number()):
            event_id = EventId(number(), number())
            entry = LockableEvent(number(), event_id, self.events[self.first_event + number()])
            buffer.events[event_id] = entry
            for _ in range(number()):
                stage = self.stages[number()]
                node = SharedBufferNode(number(), entry, stage, [], bool(number()))
                entry.nodes.append(node)
                nodes.append(node)
        return nodes

    def _read_match(
        self, nodes: list[SharedBufferNode], versions: list[DeweyNumber]
    ) -> ComputationState:
        number = self.number
        table = self.nfa.tables[self.states[number()]]
        version = versions[number()]
        node = self._node(nodes, number())
        start = EventId(number(), number())
        return ComputationState(table, version, None if start.id == _NONE else start, node)

    def _read_versions(self) -> list[DeweyNumber]:
        number = self.number
        versions: list[DeweyNumber] = []
        for _ in range(number()):
            parent, digit = number(), number()
            before = None if parent == _NONE else versions[parent]
            versions.append(DeweyNumber.following(before, digit))
        return versions

    @staticmethod
    def _node(nodes: list[SharedBufferNode], number: int) -> SharedBufferNode | None:
        if number == _NONE:
            return None
        if number == _GONE:
            gone = LockableEvent(0, EventId(0, 0), None)
            return SharedBufferNode(0, gone, "", [], False)
        return nodes[number]
