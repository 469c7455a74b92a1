# SPDX-License-Identifier: Apache-2.0
"""What evaluations say about themselves."""

from __future__ import annotations

import pytest

from pyflinkcep.engines.choice import chosen
from pyflinkcep.engines.queries import Observed, observed, query_matches
from pyflinkcep.engines.table import EventTable
from pyflinkcep.errors import NotSupportedError
from pyflinkcep.expressions.program import Kind
from pyflinkcep.sase import parse
from tests.kernel_harness import needs_kernel

_QUERIES = [
    "PATTERN SEQ(A a, B b, C c) WHERE b.x > a.x WITHIN 9",
    "PATTERN SEQ(A a, B+ b[], C c) WHERE b[i].x > b[i-1].x WITHIN 9",
    "PATTERN A;B;C WHERE b.x > a.x WITHIN 9",
    "PATTERN SEQ(A a, (B b)?, C c) WHERE c.x > a.x WITHIN 9",
    "PATTERN SEQ(A a, B b, C c) WHERE b.x > a.x WITHIN 9 EVENTS",
]
TABLE = EventTable(
    range(60), list("AABCD" * 12), {"x": [n * 7 % 10 for n in range(60)]}, {"x": Kind.BIGINT}
)


def seen(text: str, evaluation: str, output: str) -> Observed | None:
    try:
        chosen(parse(text), evaluation, output)
    except NotSupportedError:
        return None
    return observed(parse(text), TABLE, evaluation, output)


@pytest.mark.parametrize("path", ["0", pytest.param("1", marks=needs_kernel)])
@pytest.mark.parametrize("output", ["all", "onePerStart"])
@pytest.mark.parametrize("text", _QUERIES)
def test_every_evaluation_counts_its_matches(
    text: str, output: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It finds as many as without being watched, and says what it did, with the kernel or not."""
    monkeypatch.setenv("PYFLINKCEP_KERNEL", path)
    query = parse(text)
    expected = sum(
        1 for _ in query_matches(query, TABLE, chosen(query, "auto", output).name, output)
    )
    assert expected > 15
    for evaluation in ("nfa", "backtracking", "eventLists"):
        found = seen(text, evaluation, output)
        if found is not None:
            assert found.matches == expected
            assert sum(found.met.values()) > 0
            assert bool(found.order) == (found.evaluation == "eventLists")
            assert bool(found.most) == bool(found.mean) == (found.evaluation == "nfa")


@needs_kernel
def test_the_kernel_counts_runs_as_the_plain_path_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two events of A are alive for each C, and each B meets them."""
    text = "PATTERN SEQ(A a, B b, C c) WHERE b.x >= a.x OR b.x < a.x"
    table = EventTable(range(5), list("AABCB"), {"x": list(range(5))}, {"x": Kind.BIGINT})
    counts = []
    for path in "01":
        monkeypatch.setenv("PYFLINKCEP_KERNEL", path)
        found = observed(parse(text), table, "nfa")
        counts.append((found.met, found.most, found.merged))
    assert counts[0][0] == counts[1][0] == {"a": 4, "b": 1, "c": 0}
    assert counts[0][1] == counts[1][1] == {"a": 2, "b": 1, "c": 0}
    monkeypatch.setenv("PYFLINKCEP_KERNEL", "0")
    joined = observed(parse("PATTERN A;B;C"), table, "eventLists")
    monkeypatch.setenv("PYFLINKCEP_KERNEL", "1")
    again = observed(parse("PATTERN A;B;C"), table, "eventLists")
    assert joined.order == again.order == ("c", "b", "a")
    assert {**again.met, "c": 0} == {**joined.met, "c": 0} == {"c": 0, "b": 1, "a": 2}


@needs_kernel
def test_an_event_is_tried_on_the_runs_of_its_value_alone() -> None:
    """Live runs are counted all, the tries in C only where an equality finds them."""
    columns = {"x": [n // 2 % 100 for n in range(400)]}
    table = EventTable(range(400), list("AB" * 200), columns, {"x": Kind.BIGINT})
    every = observed(parse("PATTERN SEQ(A a, B b) WHERE b.x > a.x"), table, "nfa")
    found = observed(parse("PATTERN SEQ(A a, B b) WHERE b.x = a.x"), table, "nfa")
    assert every.most["a"] == found.most["a"] == 100
    assert every.met["a"] > 20 * found.met["a"] > 0
