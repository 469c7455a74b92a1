# SPDX-License-Identifier: Apache-2.0
"""Checksums for values of state, so that damage is noticed before anything is read."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from pyflinkcep.engines.flink.operator.state_format import damaged_state
from pyflinkcep.errors import StateFormatError


def write_table(table: pa.Table) -> bytes:
    """Return a table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def read_table(data: bytes) -> pa.Table:
    """Return the table that :func:`write_table` wrote."""
    return pa.ipc.open_stream(data).read_all()


SEAL_FORMAT = 1  # The version of the seal that this release writes; it reads no other
_MAGIC = b"\x8ePFC"
_HEAD = struct.Struct("<4sHHI")
# How values began before seals existed: a container, an Arrow stream.
_UNSEALED = (b"PFCS", b"\xff\xff\xff\xff")


def seal(data: bytes) -> bytes:
    """
    Return a value with its checksum.

    Examples
    --------
    >>> unseal(seal(b"state"))
    b'state'
    """
    return _HEAD.pack(_MAGIC, SEAL_FORMAT, 0, zlib.crc32(data)) + data


def unseal(data: bytes) -> bytes:
    """Return a value without its checksum."""
    if data.startswith(_UNSEALED):
        raise StateFormatError(
            "state without a checksum, as versions before the first release wrote it",
            "start a new checkpoint",
        )
    if len(data) < _HEAD.size or not data.startswith(_MAGIC):
        raise damaged_state(f"{len(data)} bytes that pyflinkcep did not write")
    _, version, reserved, checksum = _HEAD.unpack_from(data)
    value = data[_HEAD.size :]
    if version != SEAL_FORMAT:
        raise StateFormatError(
            f"state sealed in format {version}, this release reads format {SEAL_FORMAT}",
            "restore with the release that wrote it, or start from empty state",
        )
    if reserved or zlib.crc32(value) != checksum:
        raise damaged_state(f"the checksum of {len(value)} bytes does not match")
    return value


@contextmanager
def naming_damage(pattern: str, what: str) -> Iterator[None]:
    """Name the location in errors about damaged state."""
    try:
        yield
    except StateFormatError as error:
        message = f"pattern {pattern}, {what}: {error.message}"
        raise StateFormatError(message, error.hint) from error.__cause__
