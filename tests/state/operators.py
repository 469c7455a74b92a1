# SPDX-License-Identifier: Apache-2.0
"""An operator for a recorded case whose snapshot is plain bytes: events are stored as ids."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.engines.flink.operator import CepOperator, KeyedCepOperator
from pyflinkcep.engines.flink.stored_state import restore, snapshot
from pyflinkcep.functions import RuntimeContext
from pyflinkcep.time import MAX_WATERMARK
from tests.conformance.cases import Case, build_pattern, by_key, make_event, match_ids

Row = dict[str, Any]


class CaseOperator:
    """The operator of a recorded case, and its results so far."""

    def __init__(self, case: Case) -> None:
        self.rows = {row["id"]: row for row in case["items"] if "id" in row}
        self.found: dict[str, list[tuple[Any, ...]]] = {"match": [], "timeout": [], "late": []}
        self.keyed, self.late_output = case["keyed"], case["lateOutput"]
        nfa = NFACompiler.compile(build_pattern(case), case["timeouts"])
        nfa.open(RuntimeContext())
        self.operator = KeyedCepOperator(CepOperator(nfa), self)

    def feed(self, items: Sequence[Row]) -> None:
        """Take in events and watermarks."""
        for row in items:
            if "wm" in row:
                self.operator.advance_watermark(row["wm"])
            else:
                key = row["key"] if self.keyed else None
                self.operator.process_element(key, make_event(row), row["ts"])

    def close(self) -> None:
        """End the input."""
        self.operator.advance_watermark(MAX_WATERMARK)

    def results(self, kind: str) -> dict[Any, list[Any]]:
        """Return results as :func:`tests.conformance.cases.expected_rows` does."""
        return by_key(self.found[kind])

    def save(self) -> bytes:
        """Return the state as bytes."""
        return snapshot(self.operator, self, _Keys())

    def restore(self, data: bytes) -> None:
        """Take over the state of a snapshot."""
        restore(self.operator, data, self, _Keys())

    # --- what the operator calls

    def match(self, key: Any, timestamp: int, match: Any) -> None:
        """Keep a match."""
        self.found["match"].append((key, timestamp, match_ids(match)))

    def timeout(self, key: Any, timestamp: int, match: Any) -> None:
        """Keep a timeout."""
        self.found["timeout"].append((key, timestamp, match_ids(match)))

    def late(self, key: Any, event: Any) -> None:
        """Keep a late event if there is an output for it."""
        if self.late_output:
            self.found["late"].append((key, event.id))

    # --- events as bytes

    def dumps(self, objects: Sequence[Any]) -> bytes:
        """Write events as their ids."""
        return json.dumps([event.id for event in objects]).encode()

    def loads(self, data: bytes) -> Sequence[Any]:
        """Read events by their ids."""
        return [make_event(self.rows[number]) for number in json.loads(data)]


class _Keys:
    """Keys as JSON."""

    def dumps(self, objects: Sequence[Any]) -> bytes:
        return json.dumps(list(objects)).encode()

    def loads(self, data: bytes) -> Sequence[Any]:
        loaded: list[Any] = json.loads(data)
        return loaded


def half(case: Case) -> int:
    """Return after how many items the snapshot is taken."""
    return len(case["items"]) // 2
