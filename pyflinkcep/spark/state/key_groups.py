# SPDX-License-Identifier: Apache-2.0
"""Which key group a key belongs to, and which Spark group (bucket) works on a key group."""

from __future__ import annotations

import functools
from typing import Any

import attrs
import numpy as np

from pyflinkcep.errors import InvalidArgumentError

_KEY_GROUPS_PER_BUCKET = 8


@attrs.frozen
class KeyGroups:
    """The fixed partition of all keys; part of a checkpoint."""

    # Ports the role of Flink's ``KeyGroupRangeAssignment``. Spark sees buckets of several key
    # groups, because each group that Spark sees costs a call into Python for every batch.

    # The number of key groups: the unit in which state is read and written.
    count: int = attrs.field()

    @count.validator
    def _check(self, _: Any, count: int) -> None:
        if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= 32768:
            raise InvalidArgumentError(
                f"keyGroups={count!r}", "pass a number from 1 to 32768, such as 128"
            )

    # The most tasks that can work at one time, a power of two up to `count`; None for an eighth of
    # the key groups.
    tasks: int | None = attrs.field(default=None)

    @tasks.validator
    def _check_tasks(self, _: Any, tasks: int | None) -> None:
        if tasks is None:
            return
        is_power = type(tasks) is int and tasks > 0 and tasks & (tasks - 1) == 0
        if not is_power or tasks > self.count:
            raise InvalidArgumentError(
                f"parallelTasks={tasks!r}: expected a power of two up to keyGroups={self.count}",
                f"pass {1 << (self.count.bit_length() - 1)}, or raise keyGroups too",
            )

    def __str__(self) -> str:
        """Return what a checkpoint says of them."""
        return f"{self.count}" if self.tasks is None else f"{self.count} for {self.tasks} tasks"

    @property
    def bucket_count(self) -> int:
        """The number of buckets, a power of two."""
        if self.tasks is not None:
            return self.tasks
        wanted = max(1, self.count // _KEY_GROUPS_PER_BUCKET)
        return 1 << (wanted.bit_length() - 1)

    def groups(self, hashes: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return the key group of each key hash."""
        return (hashes.view(np.uint64) % np.uint64(self.count)).astype(np.int64)

    def pages(self, hashes: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return the rest of each key hash, which divides a key group further."""
        return (hashes.view(np.uint64) // np.uint64(self.count)).astype(np.int64)

    def buckets(self, groups: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return the bucket number of each key group."""
        return groups % self.bucket_count

    def bucket_ids(self) -> list[int]:
        """Return the value that Spark groups by for each bucket number."""
        # They are chosen so that Spark's hash distributes them evenly over any power of two of
        # shuffle partitions, up to the number of buckets.
        return list(_bucket_ids(self.bucket_count))

    def of_bucket(self, bucket_id: int) -> list[int]:
        """Return the key groups of a bucket, by the value that Spark groups by."""
        ids = _bucket_ids(self.bucket_count)
        if bucket_id not in ids:  # from a checkpoint with another number of key groups
            return []
        return list(range(ids.index(bucket_id), self.count, self.bucket_count))


@functools.cache
def _bucket_ids(count: int) -> tuple[int, ...]:
    found: dict[int, int] = {}
    candidate = 0
    while len(found) < count:
        found.setdefault(_murmur3(candidate) % count, candidate)
        candidate += 1
    return tuple(found[number] for number in range(count))


def _murmur3(value: int, seed: int = 42) -> int:
    """Hash an int as Spark's ``hash`` does (Murmur3, 32 bits), for its hash partitioning."""
    mask = 0xFFFFFFFF
    k = value * 0xCC9E2D51 & mask
    k = (k << 15 | k >> 17) & mask
    k = k * 0x1B873593 & mask
    h = seed ^ k
    h = (h << 13 | h >> 19) & mask
    h = (h * 5 + 0xE6546B64) & mask
    h ^= 4
    h ^= h >> 16
    h = h * 0x85EBCA6B & mask
    h ^= h >> 13
    h = h * 0xC2B2AE35 & mask
    h ^= h >> 16
    return h - (1 << 32) if h >= 1 << 31 else h
