# SPDX-License-Identifier: Apache-2.0
"""Checks that no key is in two partitions, where the user says that each is in one."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import attrs
import numpy as np
import pyarrow as pa
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructField, StructType

from pyflinkcep.errors import InputError
from pyflinkcep.matching.columns import PREFIX, Ints
from pyflinkcep.spark.arrow.internals import arrow_schema

# The column with the hashes of the keys that a task has seen; null in rows of results.
KEYS = f"{PREFIX}keys"
TARGET = f"{PREFIX}target"  # The column that says which task checks a row
_TASK = f"{PREFIX}task"
_TARGETS = 8
_MOST_FRESH = 1 << 16
Batches = Iterator[pa.RecordBatch]


@attrs.frozen(eq=False)
class SeenKeysTask:
    """A task on a partition, whose rows are followed by the keys that it has seen."""

    task: Callable[[Batches], Batches]  # From the events of the partition to rows
    key: str  # The column with the hashes of keys
    rows: StructType  # The schema of the rows

    @property
    def schema(self) -> StructType:
        """The schema of the output."""
        fields = [StructField(f.name, f.dataType, True, f.metadata) for f in self.rows.fields]
        added = {KEYS: BinaryType(), _TASK: StringType(), TARGET: IntegerType()}
        return StructType([*fields, *(StructField(name, type_) for name, type_ in added.items())])

    def run(self, batches: Batches) -> Batches:
        """Run the task; yield its rows, then the keys for each of the tasks that check."""
        schema, seen, task = arrow_schema(self.schema), _Seen(), str(uuid.uuid4())
        target = int(np.random.default_rng().integers(_TARGETS))
        for rows in self.task(seen.watched(batches, self.key)):
            size = rows.num_rows
            added = [pa.nulls(size, pa.binary()), pa.nulls(size, pa.string())]
            targets = pa.array(np.full(size, target, np.int32))
            yield pa.RecordBatch.from_arrays([*rows.columns, *added, targets], schema=schema)
        told = {KEYS: seen.hashes().tobytes(), _TASK: task}
        several = [{**told, TARGET: number} for number in range(_TARGETS)]
        yield pa.RecordBatch.from_pylist(several, schema=schema)


class _Seen:
    """The hashes of the keys that a task has seen."""

    def __init__(self) -> None:
        self._known = np.zeros(0, np.int64)
        self._fresh: list[Ints] = []
        self._count = 0

    def watched(self, batches: Batches, key: str) -> Batches:
        for batch in batches:
            fresh = np.unique(batch.column(key).to_numpy())
            self._fresh.append(fresh)
            self._count += len(fresh)
            if self._count > max(_MOST_FRESH, len(self._known)):
                self.hashes()
            yield batch

    def hashes(self) -> Ints:
        """Return them, each once."""
        self._known = np.unique(np.concatenate([self._known, *self._fresh]))
        self._fresh, self._count = [], 0
        return self._known


@attrs.frozen(eq=False)
class CheckTask:
    """Passes the rows of tasks on if no two of them have seen one key."""

    pattern: str  # The pattern in one line, for errors
    rows: StructType  # The schema of the rows

    def run(self, batches: Batches) -> Batches:
        """Check the keys of all tasks, which come first; yield the rows."""
        schema = arrow_schema(self.rows)
        seen: dict[str, Ints] = {}
        is_checked = False
        for batch in batches:
            is_key = batch.column(KEYS).is_valid().to_numpy(zero_copy_only=False)
            count = int(is_key.sum())
            for row in batch.slice(0, count).select([KEYS, _TASK]).to_pylist():
                seen[row[_TASK]] = np.frombuffer(row[KEYS], np.int64)
            if count < batch.num_rows:
                if not is_checked:
                    self._check(seen)
                    is_checked = True
                rows = batch.slice(count).columns[: len(schema)]
                yield pa.RecordBatch.from_arrays(rows, schema=schema)
        if not is_checked:
            self._check(seen)

    def _check(self, seen: dict[str, Ints]) -> None:
        hashes = np.sort(np.concatenate([np.zeros(0, np.int64), *seen.values()]))
        if (hashes[1:] == hashes[:-1]).any():
            raise InputError(
                f"pattern {self.pattern}: a key has events in two partitions, and "
                "keyBy(…, partitioned=True) says that each key is in one",
                "leave out partitioned=True; df.groupBy(key).agg(F.count_distinct("
                "F.spark_partition_id())) shows where keys are",
            )
