# SPDX-License-Identifier: Apache-2.0
"""Arrow tables as bytes."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["read_table", "write_table"]


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
