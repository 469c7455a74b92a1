# SPDX-License-Identifier: Apache-2.0
"""A bounded task gives the answers that Apache Flink CEP 2.3.0 gave, in their order."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pyflinkcep.matching.columns import POSITION
from pyflinkcep.matching.event_store import EventStore
from pyflinkcep.matching.layout import Layout
from pyflinkcep.matching.results import Found
from pyflinkcep.spark.worker.batch import BatchTask
from tests.conformance.bounded_cases import (
    at_the_end_of_input,
    has_windows,
    in_time,
    runs_on_spark,
    timeless_cases,
)
from tests.conformance.cases import (
    Case,
    build_pattern,
    by_key,
    difference,
    expected_rows,
    load,
    match_ids,
)
from tests.conformance.covering import enough
from tests.unit.spark.worker.test_batch_task import Recording, schema_of

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("each_path")]

_SCHEMA = schema_of("key bigint, ts bigint, id int, name string, price double")
_ARROW = pa.schema(
    [("key", pa.int64()), ("ts", pa.int64()), ("id", pa.int32()),
     ("name", pa.string()), ("price", pa.float64()), (POSITION, pa.int64())]
)  # fmt: skip


class Named(Recording):
    """A consumer that keeps what it is given as recorded answers have it."""

    def __init__(self, keys: list[Any]) -> None:
        super().__init__()
        self.keys = keys

    def consume(self, found: Found, events: EventStore) -> dict[str, pa.Table]:
        """Keep the results."""
        for is_match, timestamp, match in found.results():
            rows = {stage: events.rows(handles) for stage, handles in match.items()}
            key = self.keys[next(iter(rows.values()))[0].key]
            (self.matches if is_match else self.timeouts).append((key, timestamp, match_ids(rows)))
        return {"main": pa.table({"x": pa.array([], pa.int32())})}


def answer(case: Case, rows: list[Case]) -> dict[str, Any]:
    """Return the matches and timeouts, by key, that a task gives for rows as they arrive."""
    keys = sorted({row["key"] for row in rows}) if case.get("keyed") else [None]
    key = ("key",) if case.get("keyed") else ()
    layout = Layout("p", _SCHEMA, tuple(_SCHEMA.names), key, key, key, "ts", None, ())
    numbered = [
        {"price": 0, **row, "key": keys.index(row["key"]) if key else 0, POSITION: position}
        for position, row in enumerate(rows)
    ]
    numbered.sort(key=lambda row: row["key"])  # keys come one after another
    named = Named(keys)
    table = pa.Table.from_pylist(numbered, _ARROW)
    list(BatchTask(build_pattern(case), layout, None, named).run(iter(table.to_batches(3))))
    return {"main": by_key(named.matches), "timeouts": by_key(named.timeouts)}


def test_cases_of_one_key() -> None:
    """Where time does not matter, the matches and their order are those of Flink's automaton."""
    cases = enough(timeless_cases())
    problems = [
        difference(
            case["id"],
            [match for _, match in answer(case, case["events"])["main"].get(None, [])],
            [match["match"] for match in case["expect"]["matches"]],
        )
        for case in cases
    ]

    assert [*filter(None, problems)] == []
    assert len(timeless_cases()) > 900


def test_cases_of_many_keys() -> None:
    """What the operator gives at the end of input; without windows, what Flink gave."""
    every = [case for case in load("operator_cases") if runs_on_spark(case)]
    cases = enough(every)
    answers = {case["id"]: answer(case, in_time(case)) for case in cases}
    recorded = [case for case in cases if not has_windows(case)]

    for case in cases:
        assert answers[case["id"]] == at_the_end_of_input(case, in_time(case)), case["id"]
    for case in recorded:
        assert answers[case["id"]]["main"] == expected_rows(case, "match"), case["id"]
    assert len(every) > 300
    assert len(recorded) > 20
    assert sum(not has_windows(case) for case in every) > 50
