# SPDX-License-Identifier: Apache-2.0
"""Storage of a bucket's state as bytes: in Spark's state store, or in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

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
    """
    Return the grouping keys of all timers in a task's partition of the state.

    Call it in ``init``, after declaring the state variables. PySpark 4.0 can list timers only once
    in a task, when it calls for them: then none are returned.
    """
    if not hasattr(private, "ExpiredTimerIterator"):
        return
    client = _client(handle)
    client.set_handle_state(StatefulProcessorHandleState.INITIALIZED)
    for key, _ in private.ExpiredTimerIterator(client, _LATER_THAN_ALL):
        yield tuple(key)


def _client(handle: StatefulProcessorHandle) -> Any:
    return handle._statefulProcessorApiClient


INDEX, PAGES, SEGMENTS = "index", "pages", "segments"
"""The names of the state variables."""

KINDS = {INDEX: 0, PAGES: 1, SEGMENTS: 2}
"""The state variables, as the rows of a flush name them."""

PageId = tuple[int, int]
"""(key group, page of it)."""

_DATA = StructType([StructField("data", BinaryType(), False)])
_PAGE_KEY = StructType(
    [StructField("group", IntegerType(), False), StructField("page", IntegerType(), False)]
)
_SEGMENT_KEY = StructType([StructField("number", LongType(), False)])


class BucketStorage(Protocol):
    """Stores a bucket's state as bytes."""

    # How many bytes of values were read and written.
    read: int
    written: int

    def read_index(self) -> bytes | None:
        """Return the index; None for a bucket without state."""

    def write_index(self, data: bytes | None) -> None:
        """Replace the index; None for a bucket that no longer has state."""

    def read_page(self, page: PageId) -> bytes:
        """Return a page; raise StateFormatError if there is none."""

    def write_page(self, page: PageId, data: bytes | None) -> None:
        """Replace a page; None deletes it."""

    def read_segment(self, number: int) -> bytes:
        """Return a segment of the queue; raise StateFormatError if there is none."""

    def write_segment(self, number: int, data: bytes | None) -> None:
        """Replace a segment of the queue; None deletes it."""


class SparkStorage:
    """
    A bucket's state in the state variables of the group that Spark is processing.

    Each call goes through a socket to the JVM and back, which takes about 0.2 ms.
    """

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._index = handle.getValueState(INDEX, _DATA)
        self._pages = handle.getMapState(PAGES, _PAGE_KEY, _DATA)
        self._segments = handle.getMapState(SEGMENTS, _SEGMENT_KEY, _DATA)
        self.has_state = False
        self.read = 0
        self.written = 0

    def read_index(self) -> bytes | None:
        """Return the index."""
        if not (self.has_state or self._index.exists()):
            return None
        value = self._index.get()
        return None if value is None else self._count_read(value)

    def write_index(self, data: bytes | None) -> None:
        """Replace the index."""
        if data is None:
            self._index.clear()
        else:
            self._index.update((self._count_written(data),))

    def read_page(self, page: PageId) -> bytes:
        """Return a page."""
        return self._count_read(self._pages.getValue(page))

    def write_page(self, page: PageId, data: bytes | None) -> None:
        """Replace or delete a page."""
        if data is None:
            self._pages.removeKey(page)
        else:
            self._pages.updateValue(page, (self._count_written(data),))

    def read_segment(self, number: int) -> bytes:
        """Return a segment."""
        return self._count_read(self._segments.getValue((number,)))

    def write_segment(self, number: int, data: bytes | None) -> None:
        """Replace or delete a segment."""
        if data is None:
            self._segments.removeKey((number,))
        else:
            self._segments.updateValue((number,), (self._count_written(data),))

    def _count_read(self, value: tuple[Any, ...] | None) -> bytes:
        if value is None:
            raise _missing()
        data = bytes(value[0])
        self.read += len(data)
        return data

    def _count_written(self, data: bytes) -> bytes:
        self.written += len(data)
        return data


class MemoryStorage:
    """A bucket's state in memory, as a flush reads it."""

    def __init__(self) -> None:
        self._index: bytes | None = None
        self._pages: dict[PageId, bytes] = {}
        self._segments: dict[int, bytes] = {}
        self.read = 0
        self.written = 0

    def add(self, kind: int, first: int, second: int, data: bytes) -> None:
        """Add a row of state: one of :data:`KINDS`, its key in two numbers, and the value."""
        if kind == KINDS[INDEX]:
            self._index = data
        elif kind == KINDS[PAGES]:
            self._pages[first, second] = data
        else:
            self._segments[first] = data

    def read_index(self) -> bytes | None:
        """Return the index."""
        self.read += len(self._index or b"")
        return self._index

    def write_index(self, data: bytes | None) -> None:
        """Replace the index."""
        self._index = data
        self.written += len(data or b"")

    def read_page(self, page: PageId) -> bytes:
        """Return a page."""
        if page not in self._pages:
            raise _missing()
        self.read += len(self._pages[page])
        return self._pages[page]

    def write_page(self, page: PageId, data: bytes | None) -> None:
        """Replace or delete a page."""
        self._pages.pop(page, None)
        if data is not None:
            self._pages[page] = data
            self.written += len(data)

    def read_segment(self, number: int) -> bytes:
        """Return a segment."""
        if number not in self._segments:
            raise _missing()
        self.read += len(self._segments[number])
        return self._segments[number]

    def write_segment(self, number: int, data: bytes | None) -> None:
        """Replace or delete a segment."""
        self._segments.pop(number, None)
        if data is not None:
            self._segments[number] = data
            self.written += len(data)


def _missing() -> StateFormatError:
    return StateFormatError(
        "the state is damaged: the index names a missing value",
        "restore from another checkpoint, or start from empty state",
    )
