# SPDX-License-Identifier: Apache-2.0
"""State as bytes in Spark's state variables."""

from __future__ import annotations

from typing import Any

import attrs

from pyflinkcep.spark.state.storage import SparkStorage


@attrs.define
class Value:
    """A state variable of Spark that counts what it is asked."""

    data: tuple[bytes] | None = None
    asked: list[str] = attrs.field(factory=list)

    def exists(self) -> bool:
        """Whether there is a value."""
        self.asked.append("exists")
        return self.data is not None

    def get(self) -> tuple[bytes] | None:
        """Return the value; Spark logs a warning if there is none."""
        assert self.data is not None, "Value state index doesn't contain a value."
        self.asked.append("get")
        return self.data

    def update(self, data: tuple[bytes]) -> None:
        """Replace the value."""
        self.data = data


class Handle:
    """The part of Spark's handle that declares state variables."""

    def __init__(self) -> None:
        self.index = Value()

    def getValueState(self, name: str, schema: Any) -> Value:
        """Declare a value."""
        return self.index

    def getMapState(self, name: str, key: Any, value: Any) -> None:
        """Declare a map."""


def test_a_missing_index_is_not_read() -> None:
    """Spark is asked whether there is an index, unless the group is known to have state."""
    handle = Handle()
    storage = SparkStorage(handle)  # type: ignore[arg-type]

    assert storage.read_index() is None
    storage.write_index(b"index")
    assert storage.read_index() == b"index"
    storage.has_state = True
    assert storage.read_index() == b"index"
    assert handle.index.asked == ["exists", "exists", "get", "get"]
