# SPDX-License-Identifier: Apache-2.0
"""What is private of the handle that Spark gives a stateful operator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.streaming import stateful_processor_api_client as private
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle
from pyspark.sql.streaming.stateful_processor_api_client import StatefulProcessorHandleState

__all__ = ["is_planning", "keys_with_timers"]

_LATER_THAN_ALL = (1 << 63) - 2


def is_planning(handle: StatefulProcessorHandle) -> bool:
    """Whether Spark only asks for the state variables, on the driver."""
    state = _client(handle).handle_state
    return bool(state == StatefulProcessorHandleState.PRE_INIT)


def keys_with_timers(handle: StatefulProcessorHandle) -> Iterator[tuple[Any, ...]]:
    """
    Return the grouping keys of all timers in a task's partition of the state.

    To be called in ``init``, after the state variables are declared. PySpark 4.0 lists timers once
    in a task, to call for them: then none is returned.
    """
    if not hasattr(private, "ExpiredTimerIterator"):
        return
    client = _client(handle)
    client.set_handle_state(StatefulProcessorHandleState.INITIALIZED)
    for key, _ in private.ExpiredTimerIterator(client, _LATER_THAN_ALL):
        yield tuple(key)


def _client(handle: StatefulProcessorHandle) -> Any:
    return handle._statefulProcessorApiClient
