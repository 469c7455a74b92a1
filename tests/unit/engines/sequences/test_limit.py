# SPDX-License-Identifier: Apache-2.0
"""A bound on the runs of a query, which counts the same in C and in Python."""

from __future__ import annotations

import random

import pytest

from pyflinkcep.engines.queries import QueryPlan, query_matches
from pyflinkcep.engines.sequences.runs import RunLimit
from pyflinkcep.engines.streamed_queries import Portion, StreamedQuery
from pyflinkcep.engines.table import EventTable
from pyflinkcep.errors import StateLimitError
from pyflinkcep.expressions.program import Kind
from pyflinkcep.sase import parse
from pyflinkcep.sase.model import Query

QUERIES = [
    "SEQ(A a, B b, C c)",
    "SEQ(A+ a[], B b) WHERE a[i].x > a[i-1].x",
    "SEQ(A+ a[], B+ b[]) WHERE b[i].x > avg(a[].x)",
    "SEQ(A a, ~C c, B b, A d) WHERE skip_till_next_match AND c.x > a.x",
    "SEQ(A+ a[], ~C c, B b) WHERE b.x > a[LEN].x",
    "SEQ(A a, B b, ~C c) WHERE b.x > a.x",
    "SEQ(~C c, A a, B+ b[], A d) WHERE b[i].x <> a.x",
    "SEQ(A+ a[], B b) WHERE strict_contiguity AND a[i].x >= a[i-1].x",
]


def table(seed: int) -> EventTable:
    random_, time = random.Random(seed), 0
    size = random_.randint(1, 25)
    times = [time := time + random_.choice([0, 1, 1, 3]) for _ in range(size)]
    columns = {"x": [random_.choice([None, 1, 2, 3, 4]) for _ in range(size)]}
    types = [random_.choice("AABBC") for _ in range(size)]
    return EventTable(times, types, columns, {"x": Kind.BIGINT})


def peak(query: Query, events: EventTable) -> tuple[int, list[tuple[str, int | None]]]:
    """Return the least bound under which a query runs, and the errors of smaller ones."""
    errors = []
    for most in range(1, 1000):
        try:
            list(query_matches(query, events, "nfa", "all", RunLimit(most)))
        except StateLimitError as error:
            errors.append((error.message, error.timestamp_ms))
        else:
            return most, errors
    raise AssertionError("no bound is enough")


@pytest.mark.parametrize("text", QUERIES)
def test_kernel_and_plain_path_count_the_same_runs(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs that are merged are one, and those out of the window none."""
    for seed in range(25):
        query, events = parse(f"PATTERN {text} WITHIN {3 + seed}"), table(seed)
        found = []
        for path in "01":
            monkeypatch.setenv("PYFLINKCEP_KERNEL", path)
            found.append(peak(query, events))
        assert found[0] == found[1], (query, events)


@pytest.mark.parametrize("path", ["0", "1"])
def test_too_many_runs(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the bound and the event's time, on streams too; a bound that is kept
    changes no match.
    """
    monkeypatch.setenv("PYFLINKCEP_KERNEL", path)
    query = parse("PATTERN SEQ(A+ a[], B b) WHERE a[i].x > avg(a[..i-1].x)")
    size = 30
    xs = [n * n for n in range(size)]
    events = EventTable(range(size), ["A"] * size, {"x": xs}, {"x": Kind.BIGINT}, [0] * size)
    with pytest.raises(StateLimitError, match=r"partial matches, maxPartialMatches is 500 \(event"):
        list(query_matches(query, events, "nfa", "all", RunLimit(500)))
    streamed = StreamedQuery(QueryPlan(query, "nfa", runs=RunLimit(500)))
    with pytest.raises(StateLimitError, match="maxPartialMatches is 500"):
        streamed.matches(Portion(events, [0, size], [0], [0], size))
    short = EventTable(range(9), [*"AAAAAAAAB"], {"x": xs[:9]}, {"x": Kind.BIGINT})
    free, bound = (
        sorted(map(str, query_matches(query, short, "nfa", "all", limit)))
        for limit in (None, RunLimit(500))
    )
    assert free == bound
    assert len(free) > 100
