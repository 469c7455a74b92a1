# SPDX-License-Identifier: Apache-2.0
"""A page of state: the partial matches of many keys, in columns, and checksums of values."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.engines.flink.stored_state import (
    NO_START,
    StateCounts,
    damaged_state,
    pack,
    refuse_damage,
    unpack,
)
from pyflinkcep.errors import StateFormatError
from pyflinkcep.matching.columns import HASH, Flags, Ints
from pyflinkcep.matching.matcher import NO_DEADLINE
from pyflinkcep.time import MAX_WATERMARK


def write_table(table: pa.Table) -> bytes:
    """Return a table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def write_tables(tables: Sequence[pa.Table]) -> pa.Array:
    """Return tables as :func:`write_table` writes them, in one buffer; None for an empty one."""
    sink, ends = pa.BufferOutputStream(), [0]
    for table in tables:
        if table.num_rows:
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)
        ends.append(sink.tell())
    is_there = pa.array([table.num_rows > 0 for table in tables], pa.bool_())
    offsets = pa.array(ends, pa.int32())
    buffers = [is_there.buffers()[1], offsets.buffers()[1], sink.getvalue()]
    return pa.Array.from_buffers(pa.binary(), len(tables), buffers)


def read_table(data: bytes) -> pa.Table:
    """Return the table that :func:`write_table` wrote."""
    return pa.ipc.open_stream(data).read_all()


# The formats of a seal: a value as it is, and one that is compressed, after its length. Each byte
# that a stream keeps is copied ten times on its way through sockets and the state store.
SEAL_FORMAT, COMPRESSED_FORMAT = 1, 2
_MAGIC = b"\x8ePFC"
_HEAD = struct.Struct("<4sHHI")
_LENGTH = struct.Struct("<Q")
_WORTH_COMPRESSING = 1 << 10  # Bytes
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
    version = SEAL_FORMAT
    if len(data) >= _WORTH_COMPRESSING:
        data = _LENGTH.pack(len(data)) + _codec().compress(data, asbytes=True)
        version = COMPRESSED_FORMAT
    return _HEAD.pack(_MAGIC, version, 0, zlib.crc32(data)) + data


def _codec() -> pa.Codec:
    return pa.Codec("zstd", compression_level=1)


def sealed_length(data: bytes) -> int:
    """Return how long a sealed value is without its seal."""
    if _HEAD.unpack_from(data)[1] == COMPRESSED_FORMAT:
        return int(_LENGTH.unpack_from(data, _HEAD.size)[0])
    return len(data) - _HEAD.size


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
    if version not in (SEAL_FORMAT, COMPRESSED_FORMAT):
        raise StateFormatError(
            f"state sealed in format {version}, this release reads formats {SEAL_FORMAT} and "
            f"{COMPRESSED_FORMAT}",
            "restore with the release that wrote it, or start from empty state",
        )
    if reserved or zlib.crc32(value) != checksum:
        raise damaged_state(f"the checksum of {len(value)} bytes does not match")
    if version == SEAL_FORMAT:
        return value
    with refuse_damage():
        (length,) = _LENGTH.unpack_from(value)
        packed = pa.py_buffer(value)[_LENGTH.size :]
        raw: bytes = _codec().decompress(packed, length, asbytes=True)
        return raw


@contextmanager
def naming_damage(pattern: str, what: str) -> Iterator[None]:
    """Name the location in errors about damaged state."""
    try:
        yield
    except StateFormatError as error:
        message = f"pattern {pattern}, {what}: {error.message}"
        raise StateFormatError(message, error.hint) from error.__cause__


# The deadline of a key, or page, that waits for events or the end of the input.
AT_THE_END = MAX_WATERMARK - 1


@attrs.define(eq=False)
class Page:
    """The states of some keys in columns, so that untouched keys are only copied."""

    keys: pa.Table  # The columns that identify keys, a row for each key
    deadlines: Ints  # When each key must be processed even without events
    lengths: Ints  # How many of `numbers` belong to each key
    counts: Ints  # How many of `events` belong to each key
    numbers: Ints  # The concatenated states of the keys; see ``StateWriter``
    events: pa.Table  # The events that the states refer to, key by key

    @classmethod
    def empty(cls, keys: pa.Schema, events: pa.Schema) -> Page:
        """Return a page without keys."""
        none = np.empty(0, np.int64)
        return cls(keys.empty_table(), none, none, none, none, events.empty_table())

    @classmethod
    def from_bytes(cls, data: bytes, keys: pa.Schema, events: pa.Schema) -> Page:
        """Read the result of :meth:`to_bytes`."""
        value = unseal(data)
        with refuse_damage():
            _, (columns, numbers, key_table, event_table) = unpack(value)
            deadlines, lengths, counts = _ints(columns).reshape(3, -1)
            page = cls(
                read_stored(key_table, keys),
                deadlines,
                lengths,
                counts,
                _ints(numbers),
                read_stored(event_table, events),
            )
        page._check()
        return page

    def _check(self) -> None:
        """Check all counts before using them to repeat or split anything."""
        parts = ((self.lengths, len(self.numbers)), (self.counts, self.events.num_rows))
        for counts, total in parts:
            in_range = bool(((counts >= 0) & (counts <= total)).all())
            if not in_range or sum(counts.tolist()) != total:
                raise damaged_state(f"the parts of its keys do not add up to {total}")
        if self.keys.num_rows != len(self.deadlines):
            raise damaged_state(f"{self.keys.num_rows} keys, {len(self.deadlines)} deadlines")
        if HASH in self.keys.column_names and self.keys.column(HASH).null_count:
            raise damaged_state("a key without its hash")

    def to_bytes(self) -> bytes:
        """Return the page in the versioned format of snapshots, sealed."""
        columns = np.concatenate([self.deadlines, self.lengths, self.counts])
        sections = [
            columns.astype("<i8").tobytes(),
            self.numbers.astype("<i8").tobytes(),
            write_table(self.keys),
            write_table(self.events),
        ]
        return seal(pack({}, sections))

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self.lengths)

    @property
    def deadline(self) -> int:
        """The earliest deadline of a key; :data:`NO_DEADLINE` if there is none."""
        return int(self.deadlines.min()) if len(self.deadlines) else NO_DEADLINE

    def keep(self, chosen: Flags) -> Page:
        """Return a page with only the keys that a mask chooses."""
        if chosen.all():
            return self
        return self._take(np.flatnonzero(chosen))

    def divide(self, numbers: Ints) -> dict[int, Page]:
        """Return the parts of a page."""
        found, counts = np.unique(numbers, return_counts=True)
        if len(found) < 2:
            return {int(number): self for number in found}
        ordered = self._take(np.argsort(numbers, kind="stable"))
        bounds = np.r_[0, np.cumsum(counts)]
        ends = (np.r_[0, np.cumsum(sizes)][bounds] for sizes in (ordered.lengths, ordered.counts))
        cuts = (pairwise(at.tolist()) for at in (bounds, *ends))
        return {
            number: Page(
                ordered.keys.slice(start, end - start),
                ordered.deadlines[start:end],
                ordered.lengths[start:end],
                ordered.counts[start:end],
                ordered.numbers[first:last],
                ordered.events.slice(begin, stop - begin),
            )
            for number, (start, end), (first, last), (begin, stop) in zip(
                found.tolist(), *cuts, strict=True
            )
        }

    def _take(self, chosen: Ints) -> Page:
        """Return a page of some keys, in the given order."""
        return Page(
            self.keys.take(pa.array(chosen)),
            self.deadlines[chosen],
            self.lengths[chosen],
            self.counts[chosen],
            self.numbers[_within(self.lengths, chosen)],
            self.events.take(pa.array(_within(self.counts, chosen))),
        )

    @staticmethod
    def concat(pages: Sequence[Page]) -> Page:
        """Join pages."""
        if len(pages) == 1:
            return pages[0]
        columns = zip(*(attrs.astuple(page, recurse=False) for page in pages), strict=True)
        keys, *numbers, events = columns
        made = [pa.concat_tables(keys), *map(np.concatenate, numbers), pa.concat_tables(events)]
        return Page(*made)


def read_stored(data: bytes, schema: pa.Schema | None) -> pa.Table:
    """Read a stored table."""
    # A checksum finds damage, not a forgery, whose offsets Arrow would follow anywhere.
    with refuse_damage():
        table = read_table(data)
        table.validate(full=True)
    if schema is not None and (table.schema.names, table.schema.types) != (
        schema.names,
        schema.types,
    ):
        raise damaged_state(f"expected columns {schema.names}, got {table.schema.names}")
    return table


def _within(sizes: Ints, order: Ints) -> Ints:
    """Return the positions of the elements of some parts, in the given order of the parts."""
    starts = np.cumsum(sizes) - sizes
    sizes, starts = sizes[order], starts[order]
    positions: Ints = np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
    return positions + np.arange(len(positions))


def _ints(data: bytes) -> Ints:
    return np.frombuffer(data, "<i8").astype(np.int64, copy=False)


# What one page holds: the fields of `PageCounts`, ``NO_START`` for no time. A bucket may have many
# pages, and reads and writes these with each micro-batch: they are not made objects.
PageNumbers = Sequence[int]
_LEAST = 5
_UNKNOWN = -1  # The number of keys of a page that was not counted


@attrs.frozen
class PageCounts:
    """What some pages hold."""

    keys: int = 0  # Keys
    events: int = 0  # Events
    held: int = 0  # Matches that a skip strategy holds back
    largest: int = 0  # The partial matches of the key with the most
    oldest: int | None = None  # When the first of the partial matches and matches held back began
    by_stage: tuple[int, ...] = ()  # Partial matches by the stage of their last event, if known

    @staticmethod
    def of_page(page: Page, states: StateCounts | None) -> PageNumbers:
        """Return the numbers of a page, given what its states hold."""
        sizes = len(page), page.events.num_rows
        if states is None:
            return (*sizes, 0, 0, NO_START)
        return (*sizes, states.held, states.largest, states.oldest, *states.by_stage)

    @classmethod
    def sum(cls, pages: Iterable[PageNumbers]) -> PageCounts:
        """Return the counts of several pages together."""
        columns = list(zip(*pages, strict=False))
        if not columns:
            return cls()
        keys, events, held = map(sum, columns[:3])
        oldest = min(columns[4])
        return cls(
            keys,
            events,
            held,
            max(columns[3]),
            None if oldest == NO_START else oldest,
            tuple(map(sum, columns[_LEAST:])),
        )


def counts_to_bytes(pages: Iterable[PageNumbers | None]) -> bytes:
    """Return the numbers of pages as bytes; None for a page that was not counted."""
    rows = list(pages)
    width = max([_LEAST, *(len(row) for row in rows if row is not None)])
    filled = [
        (_UNKNOWN, *[0] * (width - 1)) if row is None else (*row, *[0] * (width - len(row)))
        for row in rows
    ]
    return np.asarray(filled, "<i8").tobytes()


def counts_from_bytes(data: bytes, pages: int) -> list[PageNumbers | None]:
    """Read the output of :func:`counts_to_bytes` for so many pages."""
    size, rest = divmod(len(data), 8 * pages) if pages else (_LEAST, len(data))
    if rest or size < _LEAST:
        raise damaged_state("the counts of pages")
    rows = np.frombuffer(data, "<i8").reshape(pages, size).tolist()
    return [None if row[0] == _UNKNOWN else row for row in rows]
