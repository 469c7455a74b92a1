# SPDX-License-Identifier: Apache-2.0
"""How matches reach the user's functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from pyflinkcep import Pattern
from pyflinkcep.functions import select_adapter
from pyflinkcep.matching.event_store import EventStore
from pyflinkcep.spark.worker.batch import BatchTask
from pyflinkcep.spark.worker.consumers import MAIN, FunctionConsumer
from tests.unit.spark.worker.test_batch_task import batches, layout, many_rows, schema_of


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
