# SPDX-License-Identifier: Apache-2.0
"""Texts of queries: what is read, and where errors are."""

from __future__ import annotations

from typing import Any

import pytest

from pyflinkcep.errors import InputError, InvalidArgumentError, NotSupportedError
from pyflinkcep.sase import elements, parse, seq
from pyflinkcep.sase.model import Strategy
from pyflinkcep.sase.text import query_text, stored_text
from pyflinkcep.testing import matchSase


@pytest.mark.parametrize(
    ("text", "place", "mention"),
    [
        ("PATTERN SEQ(A a, B a)", "line 1, column 18", "'a'"),
        ("PATTERN SEQ(A a)\nWHERE a.x +", "line 2, column 12", "the end"),
        ("PATTERN SEQ(A a)\nWHERE a.x $ 1", "line 2, column 11", "$"),
        ("PATTERN SEQ(A a)\n/* more\nWHERE a.x > 1", "line 2, column 1", "comment"),
        ("PATTERN SEQ(A a) WITHIN 0", "line 1, column 25", "WITHIN 0"),
        ("PATTERN SEQ(A+ a[]) WHERE avg(a[1].x) > 1", "line 1, column 31", "avg(a[1])"),
        ("PATTERN SEQ(A a) RETURN a.x, a.x", "line 1, column 30", "'a_x'"),
        ("PATTERN SEQ(A a) WHERE a.x = 99999999999999999999", "line 1, column 30", "64 bits"),
    ],
)
def test_an_error_says_where_and_what(text: str, place: str, mention: str) -> None:
    """Errors have the line, the column, the token and a hint."""
    with pytest.raises(InvalidArgumentError) as raised:
        parse(text)
    assert place in raised.value.message
    assert mention in str(raised.value)
    assert raised.value.hint


def test_too_many_clauses_are_refused() -> None:
    """A condition of more than 256 clauses is refused before they are made."""
    pairs = " or ".join(f"(a.x = {n} and a.y = {n})" for n in range(30))
    with pytest.raises(InvalidArgumentError, match="256"):
        parse(f"PATTERN SEQ(A a) WHERE {pairs}")


def test_windows_of_totals_are_read_and_written() -> None:
    """WITHIN … SLIDE … GROUP BY … RETURN of aggregates; the text of a query parses again."""
    text = (
        "PATTERN SEQ(A a, B+ b[])\nWHERE [k]\nWITHIN 10 minutes\nSLIDE 1 minute\n"
        "GROUP BY `a group`, k\nRETURN count(*) AS n, avg(b[].x), max(a.`x y`) AS most"
    )
    assert repr(parse(text)) == text
    assert parse("PATTERN SEQ(A a) WITHIN 5 m SLIDE 5 m").totals is not None
    assert parse(text).within("1 hour").totals == parse(text).totals
    assert parse(text).returns("count(b)").totals != parse(text).totals


@pytest.mark.parametrize(
    ("clauses", "what"),
    [
        ("WITHIN 5 EVENTS SLIDE 2", "SLIDE after a window of events"),
        ("WITHIN 5 SLIDE 6", "longer than WITHIN"),
        ("WITHIN 1 day SLIDE 1 s", "at most 1440 windows at a time, got 86400"),
        ("WITHIN 5 GROUP BY k", "expected the end, got 'GROUP'"),
        ("SLIDE 5", "expected the end, got 'SLIDE'"),
        ("WITHIN 5 SLIDE 5 GROUP k", "expected BY"),
        ("WITHIN 5 SLIDE 5 HAVING a.x > 1", "expected RETURN with aggregates"),
        ("WITHIN 5 SLIDE 5 RETURN a.x", "expected an aggregate over all matches of a window"),
        ("WITHIN 5 SLIDE 5 RETURN sum(a)", "needs an attribute"),
        ("WITHIN 5 SLIDE 5 RETURN sum(q.x)", "expected a variable that takes events, got 'q'"),
        ("WITHIN 5 SLIDE 5 RETURN count(a), count(a)", "two columns of RETURN"),
        ("WHERE [k] WITHIN 5 SLIDE 5 GROUP BY x", "GROUP BY without 'k'"),
    ],
)
def test_windows_of_totals_that_are_refused(clauses: str, what: str) -> None:
    """By name and place, with what to write instead."""
    with pytest.raises(InvalidArgumentError, match=what):
        parse(f"PATTERN SEQ(A a, B b) {clauses}")
    for pattern in ("SEQ(A a, ~(B b))", "B^2;A"):
        with pytest.raises(InvalidArgumentError, match="events outside of the window"):
            parse(f"PATTERN {pattern} WITHIN 5 SLIDE 5")


def test_percent_is_a_number_unless_an_operand_follows() -> None:
    """80% * x is 0.8 * x; x % 2 is a remainder."""
    rows = [{"type": "A", "x": 7}, {"type": "B", "x": 5}]
    assert matchSase("PATTERN SEQ(A a, B b) WHERE b.x < 80%*a.x", rows)
    assert not matchSase("PATTERN SEQ(A a, B b) WHERE b.x > (1 - 20%) * a.x", rows)
    assert matchSase("PATTERN SEQ(A a) WHERE a.x % 2 = 1", rows)


def test_pieces_make_the_same_query_as_text() -> None:
    """The builder reads its pieces with the same parser, and never changes a query in place."""
    bare = seq("Stock+ a[]", "Stock b")
    built = bare.same("symbol").strategy("skip_till_next_match").where("a[1].volume > 1000")
    text = "PATTERN SEQ(Stock+ a[], Stock b) WHERE skip_till_next_match(a[], b) {[symbol], a[1].volume > 1000} WITHIN 1 hour RETURN b.price"
    assert built.within("1 hour").returns("b.price") == parse(text)
    assert bare == parse("PATTERN SEQ(Stock+ a[], Stock b)")
    assert elements("A", "!B", "C^3", "D") == parse("PATTERN A;!B;C^3;D")
    mixed = bare.strategy("strict_contiguity", "b")
    assert [strategy for _, strategy in mixed.strategies] == [
        Strategy.SKIP_TILL_ANY_MATCH,
        Strategy.STRICT_CONTIGUITY,
    ]


def test_evaluations_that_cannot_answer_are_refused_by_name() -> None:
    """nfa and backtracking answer SEQ, eventLists ; and chains of single events."""
    with pytest.raises(NotSupportedError, match="eventLists"):
        matchSase("PATTERN SEQ(A+ a[])", [], evaluation="eventLists")
    with pytest.raises(NotSupportedError, match="nfa"):
        matchSase("PATTERN A;B", [], evaluation="nfa")
    with pytest.raises(InvalidArgumentError, match="HAVING"):
        matchSase("PATTERN SEQ(A a) HAVING a.x > 1", [], compressed=True)


def test_events_that_do_not_fit_are_refused() -> None:
    """An unknown attribute names its neighbour; a column of two kinds and a type that is no text are errors."""
    with pytest.raises(InputError, match="price"):
        matchSase("PATTERN SEQ(A a) WHERE a.prise > 1", [{"type": "A", "price": 3}])
    with pytest.raises(InputError, match="string"):
        matchSase(
            "PATTERN SEQ(A a) WHERE a.x > 1", [{"type": "A", "x": 3}, {"type": "A", "x": "y"}]
        )
    with pytest.raises(InputError, match="text"):
        matchSase("PATTERN SEQ(A a)", [{"type": 3}])


def rows(found: Any) -> list[tuple[int, int]]:
    return [(match["a"][0]["n"], match["b"][0]["n"]) for match in found]


@pytest.mark.parametrize(
    ("where", "pairs"),
    [
        ("upper(a.s) = upper(b.s)", [(0, 1), (4, 5)]),
        ("abs(a.x) = abs(b.x) AND b.s LIKE '_1'", [(0, 1)]),
        ("b.s NOT LIKE 'q%'", [(0, 1)]),
        ("b.x IN (4, 5) OR NOT b.x BETWEEN 0 AND 9", [(0, 2), (0, 3), (0, 5), (4, 5)]),
        ("length(concat(a.s, 'it''s')) = length(b.s) + 4 AND a.x < 0", [(0, 1), (0, 5)]),
    ],
)
def test_functions_of_one_event(where: str, pairs: list[tuple[int, int]]) -> None:
    """SQL that looks at one event computes an attribute of it; NULL is neither like nor unlike."""
    events = [
        {"n": n, "type": type_, "s": s, "x": x}
        for n, (type_, s, x) in enumerate(
            [
                ("A", "p1", -3),
                ("B", "P1", 3),
                ("B", "q", 4),
                ("B", None, 5),
                ("A", "qq", 2),
                ("B", "qq", -2),
            ]
        )
    ]
    query = parse(f"PATTERN SEQ(A a, B b) WHERE {where} WITHIN 9")
    assert parse(repr(query)) == query
    for evaluation in ("nfa", "backtracking", "eventLists"):
        assert sorted(rows(matchSase(query, events, evaluation=evaluation))) == pairs


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("PATTERN SEQ(A a, B b) WHERE upper(a.s, b.s) = 'X'", "column 40: upper(…) reads two"),
        ("PATTERN SEQ(A a, B b) WHERE upper('x') = 'X'", "column 29: upper(…) reads no event"),
        ("PATTERN SEQ(A a, B b) RETURN upper(a.s, b.s)", "column 41: upper(…) reads two"),
        ("PATTERN SEQ(A a, B b) WHERE upper(a.s = 1", "column 42: expected ')', got the end"),
        ("PATTERN SEQ(A a, B b) WHERE a.s LIKE 5", "column 38: expected a 'text', got '5'"),
        ("PATTERN SEQ(A a, B b) WHERE a.x IN 5", "column 36: expected '(', got '5'"),
        ("PATTERN SEQ(A a, B b) WHERE a.x BETWEEN 1 OR 3", "column 43: expected AND, got 'OR'"),
    ],
)
def test_functions_where_they_cannot_be(text: str, message: str) -> None:
    """A SQL function of two events or of none is refused, with its place."""
    with pytest.raises(InvalidArgumentError) as error:
        parse(text)
    assert message in str(error.value)


def test_one_unit_of_a_window_is_singular() -> None:
    """A window is shown as it is said; stored state keeps the text that earlier releases wrote."""
    shown = {
        "1 hour": ("WITHIN 1 hour", "WITHIN 1 hours"),
        "2 hours": ("WITHIN 2 hours", "WITHIN 2 hours"),
        "60 seconds": ("WITHIN 1 minute", "WITHIN 1 minutes"),
        "1 ms": ("WITHIN 1 ms", "WITHIN 1 ms"),
        "1 day": ("WITHIN 1 day", "WITHIN 1 days"),
    }
    queries = {text: seq("A a", "B b").within(text) for text in shown}
    lines = {
        text: (query_text(query).split("\n")[-1], stored_text(query.returns("a.x")).split("\n")[-1])
        for text, query in queries.items()
    }

    assert lines == shown
    assert stored_text(seq("A a")) == "PATTERN SEQ(A a)"
