# SPDX-License-Identifier: Apache-2.0
"""Matches as events, which another query of the same text reads."""

from __future__ import annotations

from typing import Any

import pytest

from pyflinkcep.errors import InvalidArgumentError, NotSupportedError, StateLimitError
from pyflinkcep.sase import parse
from pyflinkcep.sase.text import stored_text
from pyflinkcep.testing import matchSase

RISES = (
    "PATTERN SEQ(S a, S b) WHERE strict_contiguity AND b.x > a.x "
    "RETURN EVENT 'two up'(a.x AS low, b.x AS high)"
)
PAIRS = "PATTERN SEQ('two up' p, 'two up' q) WHERE q.low > p.high WITHIN 5"


def prices(*values: int) -> list[dict[str, Any]]:
    return [{"type": "S", "x": value, "at": 10 * n} for n, value in enumerate(values)]


def test_a_match_becomes_an_event() -> None:
    """It has a type, the time of the match, and the columns."""
    found = matchSase(RISES, prices(1, 3, 2, 4), "at")
    assert found == [
        {"type": "two up", "matchTimestamp": 10, "low": 1, "high": 3},
        {"type": "two up", "matchTimestamp": 30, "low": 2, "high": 4},
    ]
    waits = "PATTERN SEQ(S a, ~(N n)) WITHIN 7 RETURN EVENT Quiet(a.x)"
    assert [row["matchTimestamp"] for row in matchSase(waits, prices(1, 3), "at")] == [0, 10]
    assert matchSase("PATTERN SEQ(S event) RETURN event.x AS x", prices(1)) == [{"x": 1}]


@pytest.mark.parametrize("evaluation", ["auto", "nfa", "backtracking"])
def test_another_query_reads_the_events(evaluation: Any) -> None:
    """After THEN; each reads those of the one before, and the last one's matches are returned."""
    text = (
        f"{RISES} THEN {PAIRS} RETURN EVENT Pair(p.low, q.high) "
        "THEN PATTERN SEQ(Pair a) HAVING a.q_high > 6"
    )
    query = parse(text)
    assert parse(repr(query)) == query
    assert repr(query).count("THEN PATTERN") == 2
    rows = prices(1, 3, 2, 4, 9, 5, 6)
    found = matchSase(query, rows, evaluation=evaluation)
    assert [(m["a"][0]["p_low"], m["a"][0]["q_high"]) for m in found] == [(1, 9)]
    unfiltered = parse(text.split(" HAVING")[0])
    assert matchSase(unfiltered.within(3), rows, compressed=True).count() == 3
    assert matchSase(query.where("a.p_low > 1"), rows) == []
    assert stored_text(parse(RISES)) == stored_text(parse(RISES.split(" RETURN")[0]))


def test_the_bound_on_partial_matches_is_that_of_each_query() -> None:
    """It guards the query before THEN too."""
    text = (
        "PATTERN SEQ(S a, S b) WHERE skip_till_any_match AND b.x > a.x AND b.x > 90 "
        "RETURN EVENT Rise(a.x AS x) THEN PATTERN SEQ(Rise r)"
    )
    assert len(matchSase(text, prices(*range(20), 91), maxPartialMatches=30)) == 20
    with pytest.raises(StateLimitError):
        matchSase(text, prices(*range(20), 91), maxPartialMatches=10)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("PATTERN SEQ(S a) RETURN a.x THEN PATTERN SEQ(S b)", "expected the end, got 'THEN'"),
        (f"{RISES} THEN SEQ(A a)", "expected PATTERN, got 'SEQ'"),
        ("PATTERN SEQ(S a) RETURN EVENT T(a.x AS type)", "two columns of RETURN are named 'type'"),
        ("PATTERN SEQ(S a) RETURN EVENT T a.x", "expected '(', got 'a'"),
    ],
)
def test_chains_that_cannot_be(text: str, message: str) -> None:
    """Refused with their place and a hint."""
    with pytest.raises(InvalidArgumentError) as error:
        parse(text)
    assert message in str(error.value)


def test_a_chain_is_no_pattern() -> None:
    """It is refused by name."""
    with pytest.raises(NotSupportedError, match="reads the events of another query"):
        parse(f"{RISES} THEN {PAIRS}").asPattern()
