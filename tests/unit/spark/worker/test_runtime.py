# SPDX-License-Identifier: Apache-2.0
"""What every task begins and ends with."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest

from pyflinkcep import Pattern
from pyflinkcep.errors import CepRuntimeError, ConditionError
from pyflinkcep.functions import select_adapter
from pyflinkcep.matching.event_store import EventStore
from pyflinkcep.spark.worker.batch import BatchTask
from pyflinkcep.spark.worker.consumers import MAIN, FunctionConsumer
from pyflinkcep.spark.worker.runtime import (
    errors_in,
    fewer_collections,
    partition_number,
    prepare_worker,
    running,
)
from tests.unit.spark.worker.test_batch_task import batches, layout, many_rows, schema_of


def test_what_is_loaded_is_left_alone_once() -> None:
    """What exists at the first task is in no collection any more; later objects are."""
    prepare_worker.cache_clear()
    before = gc.get_freeze_count()
    try:
        prepare_worker()
        loaded = gc.get_freeze_count()
        later: list[object] = []
        later.append(later)
        prepare_worker()

        assert loaded > before
        assert gc.get_freeze_count() <= loaded
        assert any(found is later for found in gc.get_objects())
    finally:
        gc.unfreeze()


def test_garbage_is_looked_for_as_before_afterwards() -> None:
    """The thresholds of Python's collector are back after a task, even after one that failed."""
    before = gc.get_threshold()
    with suppress(OSError), fewer_collections():
        during = gc.get_threshold()
        raise OSError("disk full")

    assert during != before
    assert gc.get_threshold() == before


def test_errors_name_the_pattern() -> None:
    """An error of users' code gets the pattern, and keeps its class and cause."""
    cause = ValueError("odd")
    message = r"failed \(pattern a → b, stage 'b'\)"
    with pytest.raises(ConditionError, match=message) as caught, errors_in("a → b"):
        raise ConditionError("failed", stage="b") from cause

    assert caught.value.__cause__ is cause


@pytest.mark.parametrize("leaves", [SystemExit(3), KeyboardInterrupt()])
def test_leaving_is_an_error(leaves: BaseException) -> None:
    """Code that exits fails its task, in place of ending the worker without a word."""
    message = f"{type(leaves).__name__}.*pattern a"
    with pytest.raises(CepRuntimeError, match=message) as caught, errors_in("a"):
        raise leaves

    assert caught.value.__cause__ is leaves


def test_an_interrupted_condition_says_where() -> None:
    """What the condition was asked of goes into the task's error."""
    with (
        pytest.raises(ConditionError, match=r"Failure.*pattern a, stage 'b'") as caught,
        errors_in("a"),
    ):
        raise KeyboardInterrupt from ConditionError("Failure", stage="b", timestamp_ms=7)

    assert isinstance(caught.value.__cause__, KeyboardInterrupt)


def test_other_errors_stay() -> None:
    """What is not of users' code goes through as it is: Spark shows its traceback."""
    with pytest.raises(ZeroDivisionError), errors_in("a"):
        raise ZeroDivisionError


def test_a_task_has_a_context() -> None:
    """Rich functions learn the pattern and the partition, which is 0 outside of Spark."""
    with running("a") as context:
        told = (context.getTaskName(), context.getIndexOfThisSubtask())

    assert told == ("CEP: a", 0)
    assert partition_number() == 0


# --- how matches reach the user's functions


def test_functions_see_matches_whose_rows_are_made_some_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A function is called for each match once, in order, however many Rows are made at a time."""
    made = []
    rows = EventStore.rows

    def counted(self: EventStore, handles: Sequence[int]) -> list[Any]:
        made.append(len(handles))
        return rows(self, handles)

    monkeypatch.setattr(EventStore, "rows", counted)
    adapter = select_adapter(lambda match: (match["y"][0].number,))
    consumer = FunctionConsumer(adapter, {MAIN: schema_of("n int")})
    consumer.most_events = 3
    task = BatchTask(Pattern.begin("x").next("y"), layout(), None, consumer)
    found = pa.Table.from_batches(list(task.run(batches(many_rows(30), 7)))).column("n").to_pylist()

    assert len(found) == len(set(found)) == 29
    assert found == sorted(found)
    assert set(made) == {2}
