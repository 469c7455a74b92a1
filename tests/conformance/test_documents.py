# SPDX-License-Identifier: Apache-2.0
"""Patterns in the JSON of dynamic Flink CEP have the matches of the same patterns in Java."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pyflinkcep import Pattern, match
from pyflinkcep.rules.document import DocumentError
from tests.conformance.cases import Case, load

CLASSES = {
    "demo.conditions.IsStart": lambda: "action = 0",
    "demo.conditions.AtLeast": lambda least: f"price >= {least}",
}
CASES = load("flink_json_cases")


def _matches(pattern: Pattern, case: Case) -> list[Any]:
    found = match(pattern, case["events"], timestamp="t", key="user")
    ids = [{stage: [event["id"] for event in each] for stage, each in m.items()} for m in found]
    return sorted(ids, key=json.dumps)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_recorded_documents(case: Case) -> None:
    """A document has the recorded matches, read once or written and read again, or is refused."""
    if "refused" in case:
        with pytest.raises(DocumentError):
            Pattern.fromJson(case["document"], CLASSES)
        return
    pattern = Pattern.fromJson(case["document"], CLASSES)
    again = Pattern.fromJson(json.dumps(pattern.toJson()), CLASSES)

    assert _matches(pattern, case) == case["matches"]
    assert _matches(again, case) == case["matches"]
