# SPDX-License-Identifier: Apache-2.0
"""The versioned container of stored state: a JSON header and sections of bytes; no pickle."""

from __future__ import annotations

import json
import struct
import sys
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol

import attrs

from pyflinkcep.conditions import ExpressionCondition
from pyflinkcep.engines.flink.nfa import NFA
from pyflinkcep.errors import CepError, StateFormatError

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
