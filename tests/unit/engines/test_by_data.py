# SPDX-License-Identifier: Apache-2.0
"""The choice of an evaluation by the events."""

from __future__ import annotations

import random
from typing import Any
from unittest import mock

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyflinkcep.engines import choice
from pyflinkcep.engines.choice import (
    alternatives,
    chosen,
    chosen_by_data,
    chosen_for_compressed,
    estimate,
    resolved,
)
from pyflinkcep.engines.queries import Observed, observed, query_matches
from pyflinkcep.engines.table import Coded, EventTable, Numbers
from pyflinkcep.errors import NotSupportedError
from pyflinkcep.expressions.program import Kind
from pyflinkcep.sase import parse
from pyflinkcep.testing import matchSase
from tests.kernel_harness import needs_kernel
from tests.unit.engines.sequences.test_counts import random_query, random_table

_ABC = "PATTERN SEQ(A a, B b, C c) WHERE"
_AC = "PATTERN SEQ(A a, C c) WHERE"
_LOOP = "PATTERN SEQ(A a, B+ b[], C c) WHERE"


def table(weights: dict[str, float], size: int = 40_000, values: int = 1000) -> EventTable:
    """Events a second apart."""
    chance = np.random.default_rng(3)
    shares = np.array(list(weights.values())) / sum(weights.values())
    codes = chance.choice(len(weights), size, p=shares).astype(np.int32)
    columns = {"k": chance.integers(0, values, size), "x": chance.integers(0, 1000, size)}
    kinds = dict.fromkeys(columns, Kind.BIGINT)
    return EventTable(Numbers(np.arange(size) * 1000), Coded(codes, list(weights)), columns, kinds)


EVEN = dict.fromkeys("ABCDEFGH", 1.0)


@pytest.mark.parametrize(
    ("text", "events", "output", "expected"),
    [
        (f"{_ABC} a.k = b.k AND b.k = c.k WITHIN 20000 s", table(EVEN, values=9000), "all", "nfa"),
        (f"{_ABC} b.x > a.x WITHIN 60 s", table(EVEN), "all", "eventLists"),
        (f"{_ABC} b.x > a.x + 950 WITHIN 900 s", table(EVEN), "onePerStart", "eventLists"),
        (f"{_LOOP} b[i].x > b[i-1].x WITHIN 9000 s", table(EVEN), "all", "nfa"),
    ],
)
def test_events_decide_where_the_form_does_not(
    text: str, events: EventTable, output: str, expected: str
) -> None:
    """Deep windows with an equality go to the automaton, others to lists, whatever the form."""
    assert chosen_by_data(parse(text), events, output).name == expected


def test_what_only_one_evaluation_answers_is_not_estimated() -> None:
    """The form decides what lists do not answer, elements with ;, and with a bound on runs."""
    events = table(EVEN)
    contiguous = "PATTERN SEQ(A a, B b) WHERE strict_contiguity(a, b) { a.x > b.x } WITHIN 10"
    loop, of_events = f"{_LOOP} b[i].x > a.x WITHIN 9 s", f"{_AC} a.k = c.k WITHIN 400 EVENTS"
    for text in ("PATTERN A;B", contiguous, loop, of_events):
        query = parse(text)
        assert alternatives(query) == ()
        assert estimate(query, events) is None
        assert resolved(query, events, "auto") == chosen(query).name
    assert chosen(parse("PATTERN SEQ(A a)"), is_limited=True).candidates == ()
    assert resolved(parse("PATTERN SEQ(A a)"), events, "backtracking") == "backtracking"


@pytest.mark.parametrize("keys", [None, Numbers(np.zeros(1000, np.int64))])
def test_events_may_be_far_from_each_other(keys: Any) -> None:
    """A table may reach from the first time of 64 bits to the last."""
    times = np.linspace(-(2**63) + 1, 2**63 - 1025, 1000).astype(np.int64)
    events = attrs.evolve(table(EVEN, 1000), times=Numbers(times), keys=keys)
    query = parse(f"{_ABC} b.x > a.x WITHIN 9000 s")
    found = estimate(query, events)
    assert found is not None
    assert found.partial["c"] == found.pairs["eventLists"] == 0
    assert chosen_by_data(query, events).name == "eventLists"


def test_composed_queries_are_chosen_by_events_too() -> None:
    """They cost what the plain queries that they stand for cost, each under its own types."""
    events = table({**EVEN, "B": 0.01})
    composed = parse("PATTERN SEQ(A a, (B b)?, C c) WHERE c.k = a.k WITHIN 20000 s")
    found = estimate(composed, events)
    parts = [f"{_AC} c.k = a.k WITHIN 20000 s", f"{_ABC} c.k = a.k WITHIN 20000 s"]
    plain = [own for text in parts if (own := estimate(parse(text), events)) is not None]
    assert found is not None
    assert list(found.counts) == ["a", "b", "c"]
    for name, pairs in found.pairs.items():
        assert pairs == pytest.approx(sum(own.pairs[name] for own in plain))
    assert chosen(composed).name == "eventLists"
    assert chosen_by_data(composed, events).name == "nfa"
    assert found.pairs["nfa"] < found.pairs["eventLists"]


def test_small_tables_are_run_and_estimates_are_bounded() -> None:
    """Where few events are near each other no list is made before it is chosen."""
    query = parse(f"{_ABC} b.x > a.x AND c.x > b.x WITHIN 60 s")
    with mock.patch.object(choice, "walked") as walked:
        few = chosen_by_data(query, table(EVEN, size=200))
        many = chosen_by_data(query, table(EVEN))
    assert few.name == "nfa"
    assert many.name == "eventLists"
    assert not walked.mock_calls


def test_counts_are_near_the_truth() -> None:
    """Types are counted, and shares of events and of pairs by sample."""
    weights = {"A": 50, "B": 2, "C": 0.02}
    events = table(weights, values=10)
    query = parse(f"{_ABC} a.k = b.k AND c.x >= 900 WITHIN 100 s")
    found = estimate(query, events)
    assert found is not None
    exact = np.bincount(events.types.codes)  # type: ignore[attr-defined]
    assert list(found.counts.values()) == exact.tolist()
    assert found.alone["a"] == found.alone["b"] == 1
    passing = events.columns["x"][events.types.codes == 2] >= 900  # type: ignore[attr-defined]
    assert found.alone["c"] == (np.count_nonzero(passing) + 0.5) / (len(passing) + 0.5)
    assert found.joint["b"] == pytest.approx(0.1, rel=0.6)
    assert found.order == ("c", "b", "a")
    assert found.events == 40_000


@given(st.integers(0, 1 << 40))
def test_whatever_is_chosen_the_answer_is_the_same(seed: int) -> None:
    """With NULL, NaN, texts, negations, any strategy and output; estimates never fail."""
    chance = random.Random(seed)
    try:
        query = random_query(chance, compares_absent=chance.random() < 0.5)
    except ValueError:
        return  # a negation at an end without WITHIN, ...
    events = random_table(chance, chance.choice([1, 9, 14]))
    output = chance.choice(["all", "all", "onePerStart", "nonOverlapping"])
    with mock.patch.multiple(choice, _FEW_EVENTS=0, _FEW_PAIRS=-1, _FEW_PARTNERS=-1):
        how = resolved(query, events, "auto", output)
        found = sorted(map(repr, query_matches(query, events, "auto", output)))
    usual = chosen(query, "auto", output).name
    assert found == sorted(map(repr, query_matches(query, events, usual, output)))
    assert how in (usual, *alternatives(query, output))


def test_the_order_of_matches_does_not_tell_what_was_chosen() -> None:
    """Matches of lists come by their last event, then by their events in the order of PATTERN."""
    events: list[dict[str, Any]] = [{"type": t, "n": n} for n, t in enumerate("ABABCAC")]
    found = matchSase("PATTERN SEQ(A a, B b, C c) WITHIN 1 min", events)
    ways = [tuple(own[0]["n"] for own in match.values()) for match in found]
    assert ways == [(0, 1, 4), (0, 3, 4), (2, 3, 4), (0, 1, 6), (0, 3, 6), (2, 3, 6)]
    for evaluation in ("nfa", "backtracking", "eventLists"):
        with mock.patch("pyflinkcep.engines.queries.resolved", return_value=evaluation):
            assert matchSase("PATTERN SEQ(A a, B b, C c) WITHIN 1 min", events) == found


# --- which evaluation runs, whatever was requested


SEQ, LIST = parse("PATTERN SEQ(A a, B b)"), parse("PATTERN A;B")


@pytest.mark.parametrize("output", ["onePerStart", "nonOverlapping"])
def test_the_first_match_of_a_start_is_searched_for(output: str) -> None:
    """An evaluation that is replaced by another says so."""
    how = chosen(SEQ, "nfa", output)
    assert how.name == "backtracking"
    assert how.reason == f"nfa was asked for, and searches for output {output} too"
    assert chosen(SEQ, "nfa").name == "nfa"


def test_an_evaluation_that_lists_matches_does_not_compress_them() -> None:
    """It is refused, not replaced."""
    assert [chosen_for_compressed(query).name for query in (SEQ, LIST)] == ["nfa", "eventLists"]
    assert chosen_for_compressed(SEQ, "nfa").name == "nfa"
    assert chosen_for_compressed(LIST, "eventLists").name == "eventLists"
    for evaluation in ("backtracking", "eventLists"):
        with pytest.raises(NotSupportedError, match=f'evaluation="{evaluation}" lists matches'):
            matchSase(SEQ, [{"type": "A"}], evaluation=evaluation, compressed=True)


# --- what evaluations say about themselves


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
