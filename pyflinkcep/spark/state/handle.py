# SPDX-License-Identifier: Apache-2.0
"""Uses of private parts of the handle of Spark's stateful operators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.streaming import stateful_processor_api_client as private
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle
from pyspark.sql.streaming.stateful_processor_api_client import StatefulProcessorHandleState

__all__ = ["is_planning", "keys_with_timers"]

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
