# SPDX-License-Identifier: Apache-2.0
"""
EQL queries, held to recorded answers of a slow evaluator of the language.

A case is a JSON object: ``query`` is a text, ``events`` are dicts with an ``id``, ``matches`` the ids
of the events of each match, null for a step of missing events; or the query is ``refused``.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from pyflinkcep import CepError, matchEql

DATA = Path(__file__).parent / "data" / "eql" / "eql_cases.jsonl.gz"
CHUNKS = 4


def cases() -> list[dict[str, Any]]:
    with gzip.open(DATA, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def ids(matches: list[list[Any]]) -> list[list[int | None]]:
    return [[event and event["id"] for event in match] for match in matches]


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_recorded(chunk: int) -> None:
    """Events in memory give the recorded matches, and refused queries are refused."""
    for case in cases()[chunk::CHUNKS]:
        asked = case["query"], case["events"]
        if "refused" in case:
            with pytest.raises(CepError):
                matchEql(*asked)
        else:
            found = matchEql(*asked, tiebreaker=case.get("tiebreaker"))
            assert ids(found) == case["matches"], case["query"]
