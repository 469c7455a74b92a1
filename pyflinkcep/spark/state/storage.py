# SPDX-License-Identifier: Apache-2.0
"""Storage of a bucket's state as bytes: in Spark's state store, or in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from pyspark.sql.streaming import stateful_processor_api_client as private
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle
from pyspark.sql.streaming.stateful_processor_api_client import StatefulProcessorHandleState
from pyspark.sql.types import BinaryType, IntegerType, LongType, StructField, StructType

from pyflinkcep.errors import StateFormatError

_LATER_THAN_ALL = (1 << 63) - 2


def is_planning(handle: StatefulProcessorHandle) -> bool:
    """Whether Spark is only collecting the state variables, on the driver."""
    state = _client(handle).handle_state
    return bool(state == StatefulProcessorHandleState.PRE_INIT)


def keys_with_timers(handle: StatefulProcessorHandle) -> Iterator[tuple[Any, ...]]:
    """Return the grouping keys of all timers in a task's partition of the state."""
    # Call it in ``init``, after declaring the state variables. PySpark 4.0 can list timers only
    # once in a task, when it calls for them: then none are returned.
    if not hasattr(private, "ExpiredTimerIterator"):
        return
    client = _client(handle)
    client.set_handle_state(StatefulProcessorHandleState.INITIALIZED)
    for key, _ in private.ExpiredTimerIterator(client, _LATER_THAN_ALL):
        yield tuple(key)


def _client(handle: StatefulProcessorHandle) -> Any:
    return handle._statefulProcessorApiClient


INDEX, PAGES, SEGMENTS = "index", "pages", "segments"  # The names of the state variables
KINDS = {INDEX: 0, PAGES: 1, SEGMENTS: 2}  # The state variables, as the rows of a flush name them
RULES = -2  # Among the segments of the queue, what is known of rules that change
PageId = tuple[int, int]  # (key group, page of it)
_DATA = StructType([StructField("data", BinaryType(), False)])
_PAGE_KEY = StructType(
    [StructField("group", IntegerType(), False), StructField("page", IntegerType(), False)]
)
_SEGMENT_KEY = StructType([StructField("number", LongType(), False)])


class BucketStorage(ABC):
    """Stores a bucket's state as bytes; subclasses have the values of variables by key."""

    def __init__(self) -> None:
        self.read = 0  # How many bytes of values were read and written
        self.written = 0

    def read_index(self) -> bytes | None:
        """Return the index; None for a bucket without state."""
        return self._read(INDEX, ())

    def write_index(self, data: bytes | None) -> None:
        """Replace the index; None for a bucket that no longer has state."""
        self._write(INDEX, (), data)

    def read_page(self, page: PageId) -> bytes:
        """Return a page; raise StateFormatError if there is none."""
        return _there(self._read(PAGES, page))

    def write_page(self, page: PageId, data: bytes | None) -> None:
        """Replace a page; None deletes it."""
        self._write(PAGES, page, data)

    def read_segment(self, number: int) -> bytes:
        """Return a segment of the queue; raise StateFormatError if there is none."""
        return _there(self._read(SEGMENTS, (number,)))

    def write_segment(self, number: int, data: bytes | None) -> None:
        """Replace a segment of the queue; None deletes it."""
        self._write(SEGMENTS, (number,), data)

    def read_rules(self) -> bytes | None:
        """Return what is known of rules that change; None for nothing."""
        return self._read(SEGMENTS, (RULES,))

    def write_rules(self, data: bytes) -> None:
        """Replace what is known of rules that change."""
        self._write(SEGMENTS, (RULES,), data)

    def _read(self, variable: str, key: tuple[int, ...]) -> bytes | None:
        data = self._get(variable, key)
        self.read += len(data or b"")
        return data

    def _write(self, variable: str, key: tuple[int, ...], data: bytes | None) -> None:
        self.written += len(data or b"")
        self._put(variable, key, data)

    @abstractmethod
    def _get(self, variable: str, key: tuple[int, ...]) -> bytes | None: ...

    @abstractmethod
    def _put(self, variable: str, key: tuple[int, ...], data: bytes | None) -> None: ...


class SparkStorage(BucketStorage):
    """A bucket's state in the state variables of the group that Spark is processing."""

    # Each call goes through a socket to the JVM and back, which takes about 0.2 ms.

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        super().__init__()
        self._index = handle.getValueState(INDEX, _DATA)
        self._maps = {
            PAGES: handle.getMapState(PAGES, _PAGE_KEY, _DATA),
            SEGMENTS: handle.getMapState(SEGMENTS, _SEGMENT_KEY, _DATA),
        }
        self.has_state = False

    def _get(self, variable: str, key: tuple[int, ...]) -> bytes | None:
        if variable != INDEX:
            value = self._maps[variable].getValue(key)
        else:
            value = self._index.get() if self.has_state or self._index.exists() else None
        return None if value is None else bytes(value[0])

    def _put(self, variable: str, key: tuple[int, ...], data: bytes | None) -> None:
        if variable == INDEX:
            self._index.clear() if data is None else self._index.update((data,))
        elif data is None:
            self._maps[variable].removeKey(key)
        else:
            self._maps[variable].updateValue(key, (data,))


class MemoryStorage(BucketStorage):
    """A bucket's state in memory, as a flush reads it."""

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[tuple[str, tuple[int, ...]], bytes] = {}

    def add(self, kind: int, first: int, second: int, data: bytes) -> None:
        """Add a row of state: one of :data:`KINDS`, its key in two numbers, and the value."""
        variable = next(name for name, number in KINDS.items() if number == kind)
        width = {INDEX: 0, PAGES: 2, SEGMENTS: 1}[variable]
        self.values[variable, (first, second)[:width]] = data

    def _get(self, variable: str, key: tuple[int, ...]) -> bytes | None:
        return self.values.get((variable, key))

    def _put(self, variable: str, key: tuple[int, ...], data: bytes | None) -> None:
        self.values.pop((variable, key), None)
        if data is not None:
            self.values[variable, key] = data


def _there(data: bytes | None) -> bytes:
    if data is None:
        raise StateFormatError(
            "the state is damaged: the index names a missing value",
            "restore from another checkpoint, or start from empty state",
        )
    return data
