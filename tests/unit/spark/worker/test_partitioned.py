# SPDX-License-Identifier: Apache-2.0
"""Tasks on partitions tell which keys they have seen, and one that sees all of it compares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pytest
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from pyflinkcep.errors import InputError
from pyflinkcep.matching.columns import HASH
from pyflinkcep.spark.worker import seen_keys
from pyflinkcep.spark.worker.seen_keys import KEYS, TARGET, CheckTask, SeenKeysTask

ROWS = StructType(
    [StructField("n", LongType(), False), StructField("a", ArrayType(StringType(), False))]
)


def doubled(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return a row for each event, whatever its key."""
    for batch in batches:
        rows = [{"n": 2 * hash_, "a": ["x"]} for hash_ in batch.column(HASH).to_pylist()]
        yield pa.RecordBatch.from_pylist(rows, seen_keys.arrow_schema(ROWS))


def told(*partitions: Sequence[Sequence[int]]) -> pa.Table:
    """Return what tasks on partitions tell, each given the keys of its batches."""
    task = SeenKeysTask(doubled, HASH, ROWS)
    batches = []
    for partition in partitions:
        given = (pa.RecordBatch.from_pydict({HASH: pa.array(b, pa.int64())}) for b in partition)
        batches += task.run(given)
    return pa.Table.from_batches(batches)


def checked(table: pa.Table, target: int, size: int = 3) -> list[int]:
    """Return the rows that a checking task passes on: its own, keys first."""
    own = table.filter(pa.compute.equal(table.column(TARGET), target))
    is_key = own.column(KEYS).is_valid()
    arriving = pa.concat_tables([own.filter(is_key), own.filter(pa.compute.invert(is_key))])
    found = CheckTask("a ⇒ b", ROWS).run(iter(arriving.to_batches(size)))
    return [n for batch in found for n in batch.column("n").to_pylist()]


@pytest.mark.parametrize("most_fresh", [0, 1 << 16])
def test_each_key_in_one_partition(monkeypatch: pytest.MonkeyPatch, most_fresh: int) -> None:
    """All rows come, with their types, whichever task checks them; empty partitions are fine."""
    monkeypatch.setattr(seen_keys, "_MOST_FRESH", most_fresh)
    table = told([[1, 1, 5], [5, 1]], [], [[-7], [], [8, 8, 8, 9]])
    rows = [n for target in range(8) for n in checked(table, target)]

    assert sorted(rows) == [-14, 2, 2, 2, 10, 10, 16, 16, 16, 18]
    assert table.filter(table.column(KEYS).is_valid()).num_rows == 3 * 8


@pytest.mark.parametrize("target", range(8))
@pytest.mark.parametrize("size", [1, 100])
def test_a_key_in_two_partitions_fails_every_task(target: int, size: int) -> None:
    """No task passes a row on, whether or not its rows are of that key."""
    table = told([[1, 5]], [[2], [3, 5]])

    with pytest.raises(InputError, match="a key has events in two partitions"):
        checked(table, target, size)
