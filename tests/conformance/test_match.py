# SPDX-License-Identifier: Apache-2.0
"""``match`` on a table gives the answers that it gives on a list, which are Flink's."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from pyflinkcep.testing import match
from tests.conformance.bounded_cases import sql_condition
from tests.conformance.cases import (
    NFA_FILES,
    OPERATOR_FILES,
    Case,
    build_pattern,
    load,
    match_ids,
    python_condition,
)
from tests.conformance.covering import sample

pytestmark = pytest.mark.slow

_SAMPLE = 250
_SCHEMA = pa.schema(
    [("key", pa.string()), ("ts", pa.int64()), ("id", pa.int32()), ("name", pa.string()),
     ("price", pa.float64())]
)  # fmt: skip


def _cases() -> list[Case]:
    """Return the cases whose events are data, and do not differ by their class in Java."""
    every = [case for file in (*NFA_FILES, *OPERATOR_FILES) for case in load(file)]
    return [case for case in every if "subtype" not in str(case["pattern"])]


def _answer(find: Callable[[], Any]) -> Any:
    """Return matches and timeouts as recorded answers write them, or the error."""
    try:
        found = find()
    except Exception as error:
        return type(error).__name__, str(error)
    timeouts = [(timeout.timestamp, match_ids(timeout.match)) for timeout in found.timeouts]
    return [match_ids(one) for one in found], timeouts


def _difference(case: Case) -> str | None:
    rows = [row for row in case.get("events", case.get("items", ())) if "id" in row]
    columns = [{"price": 0, "key": None, **row} for row in rows]
    objects = [SimpleNamespace(**row) for row in columns]
    table = pa.Table.from_pylist(columns, _SCHEMA)
    key = "key" if case.get("keyed") else None
    listed = _answer(lambda: match(build_pattern(case), objects, timestamp="ts", key=key))
    for how in (python_condition, sql_condition):
        found = _answer(partial(_matched, case, how, table, key))
        if found != listed:
            return f"{how.__name__}: {found}, of a list {listed}"
    return None


def _matched(case: Case, how: Any, table: pa.Table, key: str | None) -> Any:
    return match(build_pattern(case, how), table, timestamp="ts", key=key)


def test_recorded_cases_on_tables() -> None:
    """Matches, their order, timeouts and errors are those of a list, whatever the conditions are."""
    every = _cases()
    found = {case["id"]: _difference(case) for case in sample(every, _SAMPLE)}

    assert {name: problem for name, problem in found.items() if problem is not None} == {}
    assert len(every) > 2000
