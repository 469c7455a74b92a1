# SPDX-License-Identifier: Apache-2.0
"""Packets of events for a shuffle."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from pyflinkcep.matching.columns import POSITION, integers
from pyflinkcep.spark.worker.pack import PACKETS, Packets

_EVENTS = 20_000
_TABLE = pa.table(
    {
        "place": integers(np.arange(_EVENTS) % 7 << 32 | np.arange(_EVENTS) % 1_000),
        "at": integers(np.arange(_EVENTS)).cast(pa.timestamp("us", "Europe/Paris")),
        "name": pa.array([None if n % 3 else f"name {n}" for n in range(_EVENTS)]),
        "holding": pa.array([[*range(n % 4)] for n in range(_EVENTS)], pa.list_(pa.int32())),
    }
)
_SENT = _TABLE.schema.set(1, pa.field("at", pa.timestamp("us", "UTC"))).set(
    3, pa.field("holding", pa.list_(pa.uint16()))
)


@pytest.mark.parametrize("partitions", [1, 3, 200, 100_000])
def test_events_arrive(partitions: int) -> None:
    """Events of one place are in one bucket, and all of a bucket arrive in their order."""
    packets = Packets.of(_SENT, partitions)
    places = np.asarray(_TABLE.column("place"))
    buckets = packets.bucket_of(places)
    ordered = _TABLE.take(pa.array(np.argsort(buckets, kind="stable")))

    rows = packets.written(ordered, buckets, 0)

    assert rows.schema.names == PACKETS.fieldNames()
    read = pa.Table.from_batches(packets.read(iter([rows.slice(0, 5), rows.slice(5)])))
    assert read.drop_columns([POSITION]) == ordered.cast(_SENT).combine_chunks()
    pairs = np.unique(np.column_stack([places, buckets]), axis=0)
    assert len(pairs) == len(np.unique(places))
    assert len(np.unique(buckets)) > 32


def test_positions_follow_the_events() -> None:
    """In whatever order packets arrive, the events of a bucket have positions in their order."""
    packets = Packets.of(_SENT, 2)
    buckets = packets.bucket_of(np.asarray(_TABLE.column("place")))
    rows = []
    sizes = []
    for some in packets.portions(_EVENTS, 1_000):
        order = np.argsort(buckets[some], kind="stable") + some.start
        part = _TABLE.take(pa.array(order))
        rows.append(packets.written(part, buckets[some], (3 << 33) + sum(sizes)))
        sizes.append(len(order))

    read = pa.Table.from_batches(packets.read(reversed(rows)))

    positions = np.asarray(read.column(POSITION))
    assert len(sizes) > 2
    assert positions.min() == 3 << 33
    assert positions.max() < (3 << 33) + _EVENTS
    numbers = np.asarray(read.column("at").cast(pa.int64()))
    own = packets.bucket_of(np.asarray(read.column("place")))
    in_order = np.lexsort([positions, own])
    assert (np.diff(numbers[in_order])[np.diff(own[in_order]) == 0] > 0).all()


def test_given_positions_stay() -> None:
    """Events that were numbered before keep their positions."""
    table = _TABLE.append_column(POSITION, integers(np.arange(_EVENTS) * 5))
    packets = Packets.of(_SENT.append(pa.field(POSITION, pa.int64())), 2)

    rows = packets.written(table, np.zeros(_EVENTS, int), 7)

    read = pa.Table.from_batches(packets.read(iter([rows])))
    assert read.column(POSITION) == table.column(POSITION)


def test_no_packet_is_large() -> None:
    """However many events a bucket has, a row has less than 200 kilobytes of them."""
    packets = Packets.of(_SENT, 2)
    places = np.zeros(_EVENTS, np.int64)

    rows = packets.written(_TABLE, packets.bucket_of(places), 0)

    assert rows.num_rows > 1
    assert max(map(len, rows.column("data").to_pylist())) < 200_000
    assert len(rows.column("bucket").unique()) == 1
