# SPDX-License-Identifier: Apache-2.0
"""Tables on disk while a job runs, of which nothing is left when the process ends."""

from __future__ import annotations

import os
import tempfile
import threading
import weakref
from collections.abc import Iterator

import attrs
import pyarrow as pa


@attrs.frozen
class Block:
    """Where a table is in a file."""

    offset: int
    size: int
    rows: int


class SpillFile:
    """Tables in a file without a name, which the system removes however the process ends."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="pyflinkcep-", buffering=0)  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        self._lock = threading.Lock()
        self._end = 0
        self.blocks: list[Block] = []
        self.rows = 0  # How many rows the tables have
        self.nbytes = 0  # How many bytes they take in memory

    def add(self, table: pa.Table) -> Block:
        """Write a table."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        data = memoryview(sink.getvalue())
        with self._lock:
            block = Block(self._end, len(data), table.num_rows)
            self._file.seek(self._end)
            while len(data):
                data = data[self._file.write(data) :]
            self._end += block.size
            self.blocks.append(block)
            self.rows += table.num_rows
            self.nbytes += table.nbytes
        return block

    def read(self, block: Block) -> pa.Table:
        """Return a table."""
        data, at = pa.allocate_buffer(block.size), 0
        while at < block.size:
            rest = memoryview(data)[at:]
            at += os.preadv(self._file.fileno(), [rest], block.offset + at)
        return pa.ipc.open_stream(data).read_all()

    def tables(self) -> Iterator[pa.Table]:
        """Yield the tables in the order of writing."""
        yield from map(self.read, self.blocks)

    def close(self) -> None:
        """Give its place on the disk back."""
        self._file.close()
