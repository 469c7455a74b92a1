# SPDX-License-Identifier: Apache-2.0
"""The versioned container of stored state: a JSON header and sections of bytes; no pickle."""

from __future__ import annotations

import json
import struct
import sys
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from pyflinkcep.errors import CepError, StateFormatError

__all__ = [
    "STATE_FORMAT",
    "Serializer",
    "bytes_to_ints",
    "damaged_state",
    "ints_to_bytes",
    "pack",
    "refuse_damage",
    "unpack",
]

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

    Examples
    --------
    >>> unpack(pack({"a": 1}, [b"x", b"yz"]))
    ({'a': 1}, [b'x', b'yz'])
    """
    text = json.dumps({**header, "sections": [len(part) for part in sections]}).encode()
    return b"".join([_HEAD.pack(_MAGIC, STATE_FORMAT, 0, len(text)), text, *sections])


def unpack(data: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """
    Split the result of :func:`pack`.

    Raises
    ------
    StateFormatError
        If the data is not a pyflinkcep snapshot, is truncated, or has an unknown version.
    """
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
