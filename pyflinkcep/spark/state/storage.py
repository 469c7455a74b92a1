# SPDX-License-Identifier: Apache-2.0
"""Storage of a bucket's state as bytes: in Spark's state store, or in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import attrs
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

    def read_pages(self, pages: Sequence[PageId]) -> Sequence[bytes | None]:
        """Return several pages; None for one that is missing."""
        found = self._get_all(PAGES, pages)
        self.read += sum(len(data or b"") for data in found)
        return found

    @contextmanager
    def together(self) -> Iterator[None]:
        """Write pages many at a time; none that is written within the ``with`` is read there."""
        yield

    def write_page(self, page: PageId, data: bytes | None) -> None:
        """Replace a page; None deletes it."""
        self._write(PAGES, page, data)

    def read_segment(self, number: int) -> bytes:
        """Return a segment of the queue; raise StateFormatError if there is none."""
        return there(self._read(SEGMENTS, (number,)))

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

    def _get_all(self, variable: str, keys: Sequence[tuple[int, ...]]) -> Sequence[bytes | None]:
        return [self._get(variable, key) for key in keys]

    @abstractmethod
    def _get(self, variable: str, key: tuple[int, ...]) -> bytes | None: ...

    @abstractmethod
    def _put(self, variable: str, key: tuple[int, ...], data: bytes | None) -> None: ...


class SparkStorage(BucketStorage):
    """A bucket's state in the state variables of the group that Spark is processing."""

    # Each call goes through a socket to the JVM and back, which takes about 0.2 ms, and far more
    # while all cores work: many calls are sent before their answers are read.

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        super().__init__()
        self._index = handle.getValueState(INDEX, _DATA)
        self._maps = {
            PAGES: handle.getMapState(PAGES, _PAGE_KEY, _DATA),
            SEGMENTS: handle.getMapState(SEGMENTS, _SEGMENT_KEY, _DATA),
        }
        self.has_state = False
        self._waiting: list[tuple[tuple[int, ...], bytes | None]] | None = None

    @contextmanager
    def together(self) -> Iterator[None]:
        """Write pages many at a time; none that is written within the ``with`` is read there."""
        self._waiting = []
        try:
            yield
            written, self._waiting = self._waiting, None
            self._put_all(written)
        finally:
            self._waiting = None

    def _get_all(self, variable: str, keys: Sequence[tuple[int, ...]]) -> Sequence[bytes | None]:
        calls = MapCalls.of(self._maps[variable])
        if calls is None or len(keys) < 2:
            return super()._get_all(variable, keys)
        found = calls.answers([calls.reading(key) for key in keys])
        values = (
            self._get(variable, key) if status else calls.value(answer)
            for key, (status, answer) in zip(keys, found, strict=True)
        )
        return list(values)

    def _put_all(self, pages: Sequence[tuple[tuple[int, ...], bytes | None]]) -> None:
        calls = MapCalls.of(self._maps[PAGES])
        if calls is None or len(pages) < 2:
            for key, data in pages:
                self._put(PAGES, key, data)
            return
        found = calls.answers([calls.writing(key, data) for key, data in pages])
        for (key, data), (status, _) in zip(pages, found, strict=True):
            if status:  # again, for Spark's own error
                self._put(PAGES, key, data)

    def _get(self, variable: str, key: tuple[int, ...]) -> bytes | None:
        if variable != INDEX:
            value = self._maps[variable].getValue(key)
        else:
            value = self._index.get() if self.has_state or self._index.exists() else None
        return None if value is None else bytes(value[0])

    def _put(self, variable: str, key: tuple[int, ...], data: bytes | None) -> None:
        if variable == INDEX:
            self._index.clear() if data is None else self._index.update((data,))
        elif variable == PAGES and self._waiting is not None:
            self._waiting.append((key, data))
            if len(self._waiting) >= _AT_ONCE:
                written, self._waiting = self._waiting, []
                self._put_all(written)
        elif data is None:
            self._maps[variable].removeKey(key)
        else:
            self._maps[variable].updateValue(key, (data,))


@attrs.frozen(eq=False)
class MapCalls:
    """Calls of a map of Spark's state, of which many are sent before their answers are read."""

    client: Any  # Of the socket
    map: Any  # Of the map
    name: str  # The variable
    messages: Any  # The module with the messages

    @classmethod
    def of(cls, state: Any) -> MapCalls | None:
        """Return the calls of a variable; None if this PySpark makes them in other ways."""
        try:
            from pyspark.sql.streaming.proto import StateMessage_pb2 as messages

            own = state._mapStateClient
            client = own._stateful_processor_api_client
            for name in ("_send_proto_message", "_receive_proto_message", "_serialize_to_bytes"):
                getattr(client, name)
            return cls(client, own, state._stateName, messages)
        except (ImportError, AttributeError):
            return None

    def reading(self, key: tuple[int, ...]) -> bytes:
        """Return the call for a value."""
        own = self.client._serialize_to_bytes(self.map.user_key_schema, key)
        return self._call(getValue=self.messages.GetValue(userKey=own))

    def writing(self, key: tuple[int, ...], data: bytes | None) -> bytes:
        """Return the call that replaces a value; None deletes it."""
        own = self.client._serialize_to_bytes(self.map.user_key_schema, key)
        if data is None:
            return self._call(removeKey=self.messages.RemoveKey(userKey=own))
        value = self.client._serialize_to_bytes(self.map.value_schema, (data,))
        return self._call(updateValue=self.messages.UpdateValue(userKey=own, value=value))

    def value(self, answer: bytes) -> bytes | None:
        """Return the value in an answer; None if there is none."""
        return bytes(self.client._deserialize_from_bytes(answer)[0]) if answer else None

    def _call(self, **what: Any) -> bytes:
        messages = self.messages
        call = messages.MapStateCall(stateName=self.name, **what)
        request = messages.StateVariableRequest(mapStateCall=call)
        sent: bytes = messages.StateRequest(stateVariableRequest=request).SerializeToString()
        return sent

    def answers(self, calls: Sequence[bytes]) -> list[tuple[int, bytes]]:
        """Send calls; return the status of each, 0 if all is well, and its value."""
        # So few that neither side waits for the other to read what it has sent.
        found = []
        for begin in range(0, len(calls), _AT_ONCE):
            some = calls[begin : begin + _AT_ONCE]
            for call in some:
                self.client._send_proto_message(call)
            for _ in some:
                status, _, value = self.client._receive_proto_message()
                found.append((status, value))
        return found


_AT_ONCE = 64


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


def there(data: bytes | None) -> bytes:
    """Return a value that the index names; raise StateFormatError if it is missing."""
    if data is None:
        raise StateFormatError(
            "the state is damaged: the index names a missing value",
            "restore from another checkpoint, or start from empty state",
        )
    return data
