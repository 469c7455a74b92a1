# SPDX-License-Identifier: Apache-2.0
"""One key's state as integers, with its events beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs

from pyflinkcep.errors import PatternChangedError
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

__all__ = ["StateReader", "StateWriter"]

_NONE, _GONE = -1, -2


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
        self._stages = {name: number for number, name in enumerate(self.nfa.stages)}

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
        put(_NONE if buffer.timestamp is None else buffer.event_count)
        put(buffer.timestamp or 0)
        versions = self._write_versions(state)
        nodes = self._write_events(buffer)
        for node in nodes:
            put(len(node.edges))
            for edge in node.edges:
                put(_number(nodes, edge.target))
                put(edge.ref_counter)
                put(versions[edge.version])
        for matches in (state.nfa_state.partial_matches, state.nfa_state.completed_matches):
            put(len(matches))
            for match in matches:
                self._write_match(match, nodes, versions)

    def _write_events(self, buffer: SharedBuffer) -> dict[SharedBufferNode, int]:
        put = self.numbers.append
        nodes: dict[SharedBufferNode, int] = {}
        put(len(buffer.events))
        for entry in buffer.events.values():
            self.numbers.extend((*entry.event_id, entry.ref_counter, self.add_event(entry.event)))
            put(len(entry.nodes))
            for node in entry.nodes:
                nodes[node] = len(nodes)
                self.numbers.extend((self._stages[node.stage], node.ref_counter, node.alive))
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
        put(_number(nodes, match.previous_node))
        start = match.start_event_id
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
    for match in state.nfa_state.partial_matches + state.nfa_state.completed_matches:
        yield match.version


def _number(nodes: dict[SharedBufferNode, int], node: SharedBufferNode | None) -> int:
    return _NONE if node is None else nodes.get(node, _GONE)


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
            buffer.timestamp, buffer.event_count = timestamp, count
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
