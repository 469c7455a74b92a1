# SPDX-License-Identifier: Apache-2.0
"""
SASE+ and OptiSeq queries, held to recorded answers of a brute-force evaluator.

A case is a JSON object: ``query`` is a text, ``schema`` and ``events`` the input, ``output`` and
``evaluations`` how it is asked, ``expect`` the answer: matches, rows of RETURN, aggregates over
all matches, a count alone, or what an error must mention.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pyflinkcep import CepError
from pyflinkcep.testing import matchSase

DATA = Path(__file__).parent / "data" / "sase" / "sase_cases.jsonl.gz"
CHUNKS = 12


def cases() -> list[dict[str, Any]]:
    with gzip.open(DATA, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def ask(case: dict[str, Any], evaluation: str, **more: Any) -> Any:
    events = [dict(zip(case["schema"], row, strict=True)) for row in case["events"]]
    return matchSase(
        case["query"], events, case["timestamp"], case["type"], evaluation, case["output"], **more
    )


def plain(value: Any) -> Any:
    """An event as its id, a float rounded, as the recorded answers have them."""
    if isinstance(value, dict) and "kind" in value:
        return {"e": value["id"]}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, float):
        return int(value) if value.is_integer() else round(value, 9)
    return value


def multiset(rows: Any) -> Counter[str]:
    return Counter(json.dumps(plain(row), sort_keys=True) for row in rows)


def ids(match: dict[str, Any]) -> dict[str, Any]:
    return {variable: [event["id"] for event in events] for variable, events in match.items()}


def check_listed(case: dict[str, Any]) -> None:
    expect = case["expect"]
    for evaluation in case["evaluations"]:
        found = ask(case, evaluation)
        if "rows" in expect:
            assert multiset(list(row.values()) for row in found) == multiset(expect["rows"])
        else:
            assert multiset(map(ids, found)) == multiset(expect["matches"]), evaluation
    if "matches" in expect and case["output"] == "all" and "HAVING" not in case["query"]:
        check_compressed(case, len(expect["matches"]))
        unpacked = ask(case, "auto", compressed=True).unpack()
        assert multiset(map(ids, unpacked)) == multiset(expect["matches"])


def check_compressed(case: dict[str, Any], count: int) -> None:
    compressed = ask(case, "auto", compressed=True)
    assert compressed.count() == count
    assert len(compressed.unpack(limit=2)) == min(2, count)
    wanted = case["expect"].get("aggregates", [])
    texts = [f"{f}({v})" if attr is None else f"{f}({v}.{attr})" for f, v, attr, _ in wanted]
    got = compressed.aggregate(*texts)
    for text, (*_, want) in zip(texts, wanted, strict=True):
        assert got[text] == want or got[text] == pytest.approx(want, rel=1e-9), text


def check(case: dict[str, Any]) -> None:
    expect = case["expect"]
    if "error" in expect:
        with pytest.raises(CepError) as raised:
            ask(case, "auto")
        assert isinstance(raised.value, ValueError)
        assert expect["error"].lower() in str(raised.value).lower()
    elif "count" in expect:
        check_compressed(case, expect["count"])
    else:
        check_listed(case)


@pytest.mark.parametrize(
    "chunk", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, CHUNKS))]
)
def test_recorded_answers(chunk: int) -> None:
    """Every evaluation that must answer a query gives its matches; so do compressed ones."""
    for case in cases()[chunk::CHUNKS]:
        try:
            check(case)
        except Exception as error:
            raise AssertionError(f"{case['id']}: {case['query']}\n{error}") from error
