# SPDX-License-Identifier: Apache-2.0
"""
Stored state: a JSON header and sections of bytes, no pickle; keys as integers beside their events.

Specifies ``kernel/src/flink/state_counts.c``, ``state_writer.c`` and ``state_reader.c``; they must
be changed together.
"""

from __future__ import annotations

import json
import struct
import sys
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from typing import Any, Protocol

import attrs

from pyflinkcep.conditions import ExpressionCondition
from pyflinkcep.engines.flink.nfa import NFA, ComputationState, NFAState
from pyflinkcep.engines.flink.operator import KeyContext, KeyedCepOperator, KeyState
from pyflinkcep.engines.flink.sharedbuffer import (
    DeweyNumber,
    EventId,
    LockableEvent,
    SharedBuffer,
    SharedBufferEdge,
    SharedBufferNode,
)
from pyflinkcep.errors import CepError, PatternChangedError, StateFormatError

NO_START = (1 << 63) - 1
"""The earliest start if there is none."""


@attrs.define
class StateCounts:
    """What the states of many keys hold."""

    held: int  # Matches that a skip strategy holds back
    largest: int  # The partial matches of the key with the most
    # The earliest start of a partial match, or of a match held back; :data:`NO_START` if none.
    oldest: int
    by_stage: list[int]  # The partial matches by the stage of their last event


def count_states(
    numbers: Sequence[int], lengths: Sequence[int], stages: Sequence[str]
) -> StateCounts:
    """
    Count what states hold.

    Numbers that no key could have end the counts of that key; whoever reads it refuses them.
    """
    counts = StateCounts(0, 0, NO_START, [0] * len(stages))
    at = 0
    for length in lengths:
        with suppress(StopIteration):
            _count_key(iter(numbers[at : at + length]), counts)
        at += length
    return counts


def _count_key(numbers: Iterator[int], counts: StateCounts) -> None:
    _pass(numbers, next(numbers))  # timers
    _pass(numbers, 2)
    _pass(numbers, 2 * next(numbers))  # versions
    stage_of: list[int] = []
    for _ in range(next(numbers)):
        _pass(numbers, 4)
        for _ in range(next(numbers)):
            stage_of.append(next(numbers))
            _pass(numbers, 2)
    for _ in stage_of:
        _pass(numbers, 3 * next(numbers))  # edges
    partials = _nodes(numbers, counts)
    counts.largest = max(counts.largest, len(partials))
    for node in partials:
        if 0 <= node < len(stage_of) and 0 <= stage_of[node] < len(counts.by_stage):
            counts.by_stage[stage_of[node]] += 1
    counts.held += len(_nodes(numbers, counts))


def _nodes(numbers: Iterator[int], counts: StateCounts) -> list[int]:
    """Return the node of each partial match but the start state."""
    nodes = []
    for _ in range(next(numbers)):
        _pass(numbers, 2)
        node, start, start_id = next(numbers), next(numbers), next(numbers)
        if start_id >= 0:
            counts.oldest = min(counts.oldest, start)
            nodes.append(node)
    return nodes


def _pass(numbers: Iterator[int], count: int) -> None:
    for _ in range(count):
        next(numbers)


STATE_FORMAT = 1
"""The version of the format that this release writes; it reads no other."""

_MAGIC = b"PFCS"
_HEAD = struct.Struct("<4sHHI")
_DAMAGED = "restore from another checkpoint, or start from empty state"


class Serializer(Protocol):
    """Converts events or keys to bytes and back; the engine provides one for its events."""

    def dumps(self, objects: Sequence[Any]) -> bytes:
        """Return the bytes of a sequence of objects."""

    def loads(self, data: bytes) -> Sequence[Any]:
        """Return the argument of :meth:`dumps`."""


def pack(header: dict[str, Any], sections: Sequence[bytes]) -> bytes:
    """
    Join a JSON header and sections of bytes under the format's magic and version.

    >>> unpack(pack({"a": 1}, [b"x", b"yz"]))
    ({'a': 1}, [b'x', b'yz'])
    """
    text = json.dumps({**header, "sections": [len(part) for part in sections]}).encode()
    return b"".join([_HEAD.pack(_MAGIC, STATE_FORMAT, 0, len(text)), text, *sections])


def unpack(data: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """Split the result of :func:`pack`."""
    if len(data) < _HEAD.size or data[:4] != _MAGIC:
        raise StateFormatError(
            f"expected a pyflinkcep snapshot, got {len(data)} other bytes",
            "pass the result of snapshot()",
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
        sizes = [int(size) for size in header.pop("sections")]
    except (ValueError, LookupError, TypeError, AttributeError) as cause:
        raise StateFormatError("the state's header is damaged", _DAMAGED) from cause
    if min(sizes, default=0) < 0 or len(data) != at + sum(sizes):
        raise StateFormatError(
            f"expected {at + sum(sizes)} bytes of state, got {len(data)}",
            _DAMAGED,
        )
    sections = []
    for size in sizes:
        sections.append(data[at : at + size])
        at += size
    return header, sections


def damaged_state(what: str) -> StateFormatError:
    """Make the error for state that cannot be read."""
    return StateFormatError(f"the state is damaged: {what}", _DAMAGED)


@contextmanager
def refuse_damage() -> Iterator[None]:
    """Turn any error while reading state into a StateFormatError."""
    try:
        yield
    except CepError:
        raise
    except Exception as cause:
        raise damaged_state(f"{type(cause).__name__} {cause}".rstrip()) from cause


def ints_to_bytes(numbers: Sequence[int]) -> bytes:
    """Return little-endian 64-bit integers."""
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


def nfa_facts(nfa: NFA) -> dict[str, str]:
    """Return what must stay the same of an automaton for stored state to be reused."""
    facts = {
        "pattern": nfa.description,
        "skip strategy": repr(nfa.skip_strategy),
        "window": f"{nfa.window_time} ms",
        "gaps": json.dumps(nfa.window_times, sort_keys=True),
    }
    for name, table in nfa.tables.items():
        edges = [f"{t.action.value} {t.target.name}" for t in table.state.transitions]
        facts[f"state {name}"] = f"{table.state.kind.value}: {', '.join(edges)}"
    for number, atom in enumerate(nfa.atoms):
        if isinstance(atom.condition, ExpressionCondition):
            facts[f"condition {number} (stage {atom.stage})"] = atom.condition.text
        elif atom.expression is not None:
            facts[f"match expression {number} (stage {atom.stage})"] = atom.expression
    return facts


# --- one key's state as integers, with a separate list of its events


_NONE, _GONE = -1, -2
_MOST = 1 << 62
"""Above all counts, ids and digits, so that the kernel can keep counting without overflow."""


@attrs.define(eq=False)
class StateWriter:
    """Writes key states as a flat list of integers, and a list of their events."""

    nfa: NFA  # The pattern; states and stages are written as indexes into it
    numbers: list[int] = attrs.field(factory=list)  # What was written
    # The events, or handles of events, that the numbers refer to by position.
    events: list[Any] = attrs.field(factory=list)
    # Where the events of the current state begin; positions are written relative to it.
    first_event: int = 0
    _states: dict[str, int] = attrs.field(init=False)
    _stages: dict[str, int] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._states = {name: number for number, name in enumerate(self.nfa.tables)}
        self._stages = {name: number for number, name in enumerate(self.nfa.stages)}

    def add_event(self, event: Any) -> int:
        """Add an event; return its index."""
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
        """Write all versions, each as a prefix version and a digit; return their indexes."""
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
    Reads the output of :class:`StateWriter`, and refuses numbers that no key could have.

    The kernel's ``state_reader.c`` refuses the same numbers.
    """

    nfa: NFA  # The pattern that the state is restored for
    numbers: Sequence[int]  # What was written
    events: Sequence[Any]  # Their events
    # The names behind the indexes, from when the state was written.
    states: Sequence[str]
    stages: Sequence[str]
    # Where the events of the current state begin and end; see ``StateWriter``.
    first_event: int = 0
    last_event: int = attrs.field()
    _at: int = attrs.field(default=0, init=False)

    @last_event.default
    def _all_events(self) -> int:
        return len(self.events)

    def __attrs_post_init__(self) -> None:
        missing = [name for name in self.states if name not in self.nfa.tables]
        if missing:
            raise PatternChangedError(
                f"State {missing[0]} does not exist in the NFA. "
                f"NFA has states {list(self.nfa.tables)}",
                "restore with the pattern that the state was written for",
            )
        if not set(self.stages) <= set(self.nfa.stages):
            raise damaged_state(f"expected the stages {self.nfa.stages}, got {self.stages}")

    def seek(self, numbers: Sequence[int], first_event: int, last_event: int) -> None:
        """Continue with other numbers, and the events from the first to before the last."""
        if not 0 <= first_event <= last_event <= len(self.events):
            raise damaged_state("a key's events are not among those stored")
        self.numbers, self._at = numbers, 0
        self.first_event, self.last_event = first_event, last_event

    def number(self) -> int:
        """Read one integer."""
        at = self._at
        if at >= len(self.numbers):
            raise damaged_state("it is truncated")
        self._at = at + 1
        return self.numbers[at]

    def within(self, low: int, high: int) -> int:
        """Read an integer that must be from `low` to below `high`."""
        number = self.number()
        if not low <= number < high:
            raise damaged_state(f"expected a number from {low} to {high - 1}, got {number}")
        return number

    def count(self, least: int) -> range:
        """Read a count of items of at least `least` integers each; return their range."""
        return range(self.within(0, (len(self.numbers) - self._at - 1) // least + 1))

    def event(self) -> Any:
        """Read the index of an event; return the event."""
        return self.events[self.first_event + self.within(0, self.last_event - self.first_event)]

    def end(self) -> None:
        """Refuse numbers that are left over."""
        if self._at != len(self.numbers):
            raise damaged_state(f"{len(self.numbers) - self._at} numbers are left over")

    def read(self) -> KeyState:
        """Read one key's state."""
        timers = [self.number() for _ in self.count(1)]
        if any(timer >= after for timer, after in pairwise(timers)):
            raise damaged_state("timers are not in ascending order")
        count, timestamp = self.within(_NONE, _MOST), self.number()
        buffer = SharedBuffer()
        if count != _NONE:
            buffer.timestamp, buffer.event_count = timestamp, count
        versions = self._read_versions()
        nodes = self._read_events(buffer)
        for number, node in enumerate(nodes):
            for _ in self.count(3):
                target = self._node(nodes, number)  # an earlier one: paths have no cycles
                locks = self.within(0, _MOST)
                version = versions[self.within(0, len(versions))]
                node.add_edge(SharedBufferEdge(locks, target, version))
        partials = [self._read_match(nodes, versions) for _ in self.count(5)]
        completed = [self._read_match(nodes, versions) for _ in self.count(5)]
        self._check_starts(partials, completed)
        return KeyState(NFAState(partials, completed), buffer, set(timers))

    def _read_events(self, buffer: SharedBuffer) -> list[SharedBufferNode]:
        nodes = []
        for _ in self.count(5):
            event_id = EventId(self.number(), self.within(0, _MOST))
            if event_id in buffer.events:
                raise damaged_state(f"two events have the id {event_id}")
            entry = LockableEvent(self.within(0, _MOST), event_id, self.event())
            buffer.events[event_id] = entry
            for _ in self.count(3):
                stage = self.stages[self.within(0, len(self.stages))]
                locks, alive = self.within(0, _MOST), self.within(0, 2)
                node = SharedBufferNode(locks, entry, stage, [], bool(alive))
                entry.nodes.append(node)
                nodes.append(node)
        return nodes

    def _read_match(
        self, nodes: list[SharedBufferNode], versions: list[DeweyNumber]
    ) -> ComputationState:
        table = self.nfa.tables[self.states[self.within(0, len(self.states))]]
        version = versions[self.within(0, len(versions))]
        node = self._node(nodes, len(nodes))
        start = EventId(self.number(), self.within(_NONE, _MOST))
        if (node is None) != (start.id == _NONE):
            raise damaged_state("a partial match has events, but no start")
        return ComputationState(table, version, None if node is None else start, node)

    def _check_starts(
        self, partials: list[ComputationState], completed: list[ComputationState]
    ) -> None:
        """Check that the start state is last, and the only one without events."""
        states = [partial.table is self.nfa.start for partial in partials]
        starts = [partial.start_event_id is None for partial in partials]
        expected = [*[False] * (len(partials) - 1), True]
        if states != expected or starts != expected:
            raise damaged_state("expected the start state last among the partial matches")
        if any(match.start_event_id is None for match in completed):
            raise damaged_state("a match has no events")

    def _read_versions(self) -> list[DeweyNumber]:
        versions: list[DeweyNumber] = []
        for _ in self.count(2):
            parent = self.within(_NONE, len(versions))
            before = None if parent == _NONE else versions[parent]
            versions.append(DeweyNumber.following(before, self.within(0, _MOST)))
        return versions

    def _node(self, nodes: list[SharedBufferNode], end: int) -> SharedBufferNode | None:
        """Read the index of a node, which must be below `end`."""
        number = self.within(_GONE, end)
        if number == _NONE:
            return None
        if number == _GONE:
            gone = LockableEvent(0, EventId(0, 0), None)
            return SharedBufferNode(0, gone, "", alive=False)
        return nodes[number]


def snapshot(operator: KeyedCepOperator, events: Serializer, keys: Serializer) -> bytes:
    """Return the operator's state as bytes."""
    writer = StateWriter(operator.operator.nfa)
    put = writer.numbers.append
    for context in operator.keys.values():
        put(len(context.queue))
        for timestamp, waiting in context.queue.items():
            put(timestamp)
            put(len(waiting))
            writer.numbers.extend(map(writer.add_event, waiting))
        writer.write(context.state)
    header = {
        "states": list(writer.nfa.tables),
        "stages": writer.nfa.stages,
        "watermark": operator.watermark,
        "lateDropped": operator.late_dropped,
        "keys": len(operator.keys),
    }
    parts = [ints_to_bytes(writer.numbers), events.dumps(writer.events)]
    return pack(header, [*parts, keys.dumps(list(operator.keys))])


def restore(operator: KeyedCepOperator, data: bytes, events: Serializer, keys: Serializer) -> None:
    """Fill a new operator from the bytes of a snapshot."""
    nfa: NFA = operator.operator.nfa
    contexts: dict[Any, KeyContext] = {}
    with refuse_damage():
        header, (numbers, event_bytes, key_bytes) = unpack(data)
        reader = StateReader(
            nfa,
            bytes_to_ints(numbers),
            events.loads(event_bytes),
            header["states"],
            header["stages"],
        )
        for key in keys.loads(key_bytes):
            context = contexts[key] = KeyContext(operator.operator.new_key())
            for _ in reader.count(2):
                timestamp = reader.number()
                context.queue[timestamp] = [reader.event() for _ in reader.count(1)]
            context.state = reader.read()
        reader.end()
        if len(contexts) != header["keys"] or not isinstance(header["watermark"], int):
            raise damaged_state("its header does not match")
        operator.watermark, operator.late_dropped = header["watermark"], header["lateDropped"]
    operator.keys.update(contexts)
