# SPDX-License-Identifier: Apache-2.0
"""Composed patterns: alternatives, any order, optional and counted components."""

from __future__ import annotations

from typing import Any

import pytest

from pyflinkcep.errors import InvalidArgumentError, NotSupportedError
from pyflinkcep.sase import SaseQuery, parse, seq
from pyflinkcep.sase.alternatives import alternatives
from pyflinkcep.sase.analysis import AnalysedQuery
from pyflinkcep.testing import matchSase
from tests.property.composed_queries import taken
from tests.property.composed_reference import matches


def events(letters: str) -> list[dict[str, Any]]:
    """``a1 b2`` are an A with x = 1 and a B with x = 2."""
    return [
        {"type": name[0].upper(), "x": int(name[1:]), "name": name, "id": at, "ts": at}
        for at, name in enumerate(letters.split())
    ]


def found(text: str, letters: str, evaluation: str = "auto") -> list[str]:
    rows = matchSase(text, events(letters), evaluation=evaluation)
    ways = [sorted((e for own in m.values() for e in own), key=lambda e: e["id"]) for m in rows]
    return sorted(" ".join(e["name"] for e in way) for way in ways)


NEXT, ANY, STRICT = "skip_till_next_match", "skip_till_any_match", "strict_contiguity"


@pytest.mark.parametrize(
    ("pattern", "strategy", "letters", "expected"),
    [
        ("SEQ(A a, B? b, C c)", NEXT, "a1 b1 c1", ["a1 b1 c1"]),
        ("SEQ(A a, B? b, C c)", ANY, "a1 b1 c1", ["a1 b1 c1", "a1 c1"]),
        ("SEQ(A a, B? b, C c)", NEXT, "a1 c1 b1 c2", ["a1 c1"]),
        ("SEQ(A a, B? b, C c)", STRICT, "a1 c1 a2 b2 c2 a3 b3 b4 c4", ["a1 c1", "a2 b2 c2"]),
        ("SEQ(A a, B? b)", NEXT, "a1 b1", ["a1", "a1 b1"]),
        ("SEQ(A? a, B b)", NEXT, "a1 b1", ["a1 b1", "b1"]),
        ("SEQ(A+ a[], B? b, C c)", NEXT, "a1 b1 c1", ["a1 b1 c1", "a1 c1"]),
        ("SEQ(A a, (B b | C c), D d)", NEXT, "a1 c1 b1 d1", ["a1 c1 d1"]),
        ("SEQ(A a, (B b | C c), D d)", ANY, "a1 c1 b1 d1", ["a1 b1 d1", "a1 c1 d1"]),
        ("SEQ(A a) | SEQ(B b, C c)", NEXT, "a1 b1 c1", ["a1", "b1 c1"]),
        ("AND(A a, B b)", NEXT, "b1 a1 b2", ["a1 b2", "b1 a1"]),
        ("AND(A a, SEQ(B b, C c))", ANY, "b1 a1 c1 a2", ["b1 a1 c1", "b1 c1 a2"]),
        ("SEQ(A a, B* b[], C c)", NEXT, "a1 b1 b2 c1", ["a1 b1 b2 c1"]),
        ("SEQ(A{2} a[])", ANY, "a1 a2 a3", ["a1 a2", "a1 a3", "a2 a3"]),
        ("SEQ(A{1,2} a[], B b)", NEXT, "a1 a2 a3 b1", ["a1 a2 b1", "a2 a3 b1", "a3 b1"]),
        ("SEQ(A{2,} a[], B b)", NEXT, "a1 a2 a3 b1", ["a1 a2 a3 b1", "a2 a3 b1"]),
        ("SEQ(A a, (SEQ(B b, ~(D d), C c))?, E e)", ANY, "a1 b1 d1 c1 e1", ["a1 e1"]),
        ("SEQ(A a, ~(SEQ(B b, C c)), D d)", ANY, "a1 b1 c1 d1 a2 c2 b2 d2", ["a2 d2"]),
        ("SEQ(A a, ~(SEQ(B b, C c)), D d)", NEXT, "a1 b1 a2 c1 d1", ["a2 d1"]),
        ("SEQ(A+ a[], ~(SEQ(B b, C c)), D d)", NEXT, "a1 b1 c1 a2 d1", ["a1 a2 d1", "a2 d1"]),
        ("SEQ(A a, ~(SEQ(B b, B c, B e)), D d)", ANY, "a1 b1 b2 d1 b3 d2", ["a1 d1"]),
        ("SEQ(A a, ~(N n), AND(B b, ~(C c), D d))", ANY, "a1 c1 b1 d1 c2 b2", ["a1 b1 d1"]),
        ("AND(A a, ~(N n), B b)", ANY, "n1 a1 b1 n2 a2", ["a1 b1"]),
        ("AND(A a, ~(N n), B b, C c)", ANY, "a1 b1 c1 n1 a2", ["a1 b1 c1"]),
        ("SEQ(AND(A a, ~(N n), B b){2}, C c)", ANY, "a1 b1 n1 b2 a2 c1", ["a1 b1 b2 a2 c1"]),
        ("SEQ(SEQ(A a, B b){1,2}, C c)", NEXT, "a1 b1 a2 b2 c1", ["a1 b1 a2 b2 c1", "a2 b2 c1"]),
        ("SEQ((A a){2}, C c)", NEXT, "a1 a2 a3 c1", ["a1 a2 c1", "a2 a3 c1"]),
        ("SEQ(A a, (B b | C c){0,2}, D d)", STRICT, "a1 c1 b1 d1 a2 d2", ["a1 c1 b1 d1", "a2 d2"]),
        ("SEQ(A a, B+ b[]){2}", NEXT, "a1 b1 b2 a2 b3", ["a1 b1 b2 a2 b3"]),
    ],
)
def test_what_composed_patterns_mean(
    pattern: str, strategy: str, letters: str, expected: list[str]
) -> None:
    """The examples of the documentation, in every evaluation and by the reference."""
    text = f"PATTERN {pattern} WHERE {strategy}"
    for evaluation in ("nfa", "backtracking", "eventLists"):
        if evaluation != "eventLists" or (strategy == ANY and "+" not in text and "[]" not in text):
            assert found(text, letters, evaluation) == expected
    rows = events(letters)
    assert taken(matchSase(text, rows)) == taken(matchSase(text, rows, compressed=True).unpack())
    assert set(taken(matchSase(text, rows))) == matches(parse(text), rows)


@pytest.mark.usefixtures("each_path")
@pytest.mark.parametrize(
    ("condition", "letters", "expected"),
    [
        ("c.x > b.x", "a1 b2 c1 d1 a2 b1 c2 d2", ["a1 d1"]),
        ("c.text = b.text", "a1 b2 b3 c1 c3 d1 a2 b1 c2 d2", ["a2 d2"]),
        ("c.x > b.x + a.x AND b.x <> d.x", "a1 b1 c2 c3 d1 a2 b1 c3 c4 d2", ["a1 d1"]),
        ("b.x = 2 AND c.x = 3", "a1 c3 b2 d1 a2 b2 c3 d2", ["a1 d1"]),
        ("(c.x > b.x OR d.x > 1)", "a1 b2 c1 d1 a2 b2 c1 d2", ["a1 d1"]),
    ],
)
def test_conditions_of_a_negated_sequence(
    condition: str, letters: str, expected: list[str]
) -> None:
    """They join its events to each other and to the match; none of them alone forbids anything."""
    rows = [{**event, "text": event["name"][1:]} for event in events(letters)]
    near = f"{condition} AND d.id - a.id < 6"
    for gap in ("A a, ~(SEQ(B b, C c)), D d", "~(SEQ(B b, C c)), A a, D d"):
        query = parse(f"PATTERN SEQ({gap}) WHERE {ANY} AND {near} WITHIN 6")
        for evaluation in ("nfa", "backtracking", "eventLists"):
            own = matchSase(query, rows, "ts", evaluation=evaluation)
            assert set(taken(own)) == matches(query, rows)
            if gap.startswith("A"):
                assert [f"{m['a'][0]['name']} {m['d'][0]['name']}" for m in own] == expected
        assert matchSase(query, rows, "ts", compressed=True).count() == len(matches(query, rows))


def test_a_condition_is_about_present_components() -> None:
    """A clause that names an absent component is not evaluated."""
    text = (
        f"PATTERN SEQ(A a, (B b | C c)?, D d) WHERE {ANY} AND d.x > b.x AND d.x > c.x AND b.x > 1 "
        "HAVING count(b) = 0 OR b.x < 9 RETURN a.x AS a, b.x AS b, c.x AS c, d.x AS d, count(c) AS n"
    )
    rows = matchSase(text, events("a1 b1 b3 c3 d3 d4"))
    assert sorted(map(tuple, (row.values() for row in rows)), key=str) == sorted(
        [(1, None, None, 3, 0), (1, None, None, 4, 0), (1, 3, None, 4, 0), (1, None, 3, 4, 1)],
        key=str,
    )


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("SEQ(A a, (B b | C c)?, D d)", ["a b d", "a c d", "a d"]),
        ("SEQ(A a, SEQ(B b, C? c))", ["a b c", "a b"]),
        ("AND(A a, B b, C c)", ["a b c", "a c b", "c a b", "b a c", "b c a", "c b a"]),
        ("AND(SEQ(A a, B b), C* c[])", ["a b c", "a c b", "c a b", "a b"]),
        ("SEQ(A a, ~(N n), B? b, C c)", ["a n b c", "a n c"]),
    ],
)
def test_the_words_of_a_pattern(pattern: str, words: list[str]) -> None:
    """A pattern stands for sequences of its components, and its text for itself."""
    query = parse(f"PATTERN {pattern}")
    assert sorted(" ".join(word) for word in query.words()) == sorted(words)
    assert parse(repr(query)) == query
    assert seq("A a", "B? b", "(C c | D{2,3} d[])?").words()[0] == ("a", "b", "c")
    assert len(alternatives(query)) == len(words)


def test_conditions_hold_in_each_iteration_of_a_group() -> None:
    """Variables of a group are of one iteration; a[i-1] is of the one before; others of all."""
    rises = f"PATTERN SEQ(S s, SEQ(A a, B b)+) WHERE {NEXT} AND b.x > a.x WITHIN 5 EVENTS"
    assert found(rises, "s1 a1 b2 a3 b4") == ["s1 a1 b2", "s1 a1 b2 a3 b4"]
    assert found(rises.replace("b.x > a.x", "a.x > a[i-1].x"), "s1 a4 b2 a3 b4") == ["s1 a4 b2"]
    assert found(rises.replace("b.x > a.x", "b.x > s.x"), "s3 a4 b2 a3 b4") == ["s3 a4 b4"]
    before = rises.replace("b.x > a.x", "a.x > b[i-1].x")
    assert found(before, "s1 a1 b2 a3 b1") == ["s1 a1 b2", "s1 a1 b2 a3 b1"]
    returned = "RETURN a.x, b[1].x AS first, a[LEN].x AS last, sum(b[].x) AS total, count(a) AS n"
    rows = matchSase(f"{rises} {returned}", events("s1 a1 b2 a3 b4"))
    assert {"a_x": [1, 3], "first": 2, "last": 3, "total": 6, "n": 2} in rows
    query = parse(rises)
    assert "1 or more" in query.diagram().svg
    with pytest.raises(NotSupportedError, match="a group repeats"):
        parse("PATTERN SEQ(A a, B b){2}").asPattern()


def test_other_components_end_a_waiting_run() -> None:
    """Under skip_till_next_match an event is consumed by whatever it begins, conditions included."""
    text = f"PATTERN SEQ(A a, B? b, C c) WHERE {NEXT} AND b.x > a.x"
    assert found(text, "a1 b1 c1") == ["a1 c1"]
    assert found(text, "a1 b2 c1") == ["a1 b2 c1"]
    assert [len(query.components) for query in alternatives(parse(text))] == [4, 3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SEQ(A? a)", "column 13: the pattern may have no event"),
        ("SEQ(A a, AND(B b, C c, D d, E e, F f, G g))", "more than 128 sequences"),
        ("SEQ(A a, (B b | C c), D d) WHERE b.x < c.x", "column 42: no match has all of 'b', 'c'"),
        ("SEQ(A a, (B b | ~(N n)), D d)", "'n' is negated alone in an alternative"),
        ("AND(A a, SEQ(B b, ~(N n), C c))", "'n' is negated in a part of AND"),
        ("AND(A a, ~(SEQ(B b, C c)), D d)", "'b' is negated in a part of AND"),
        ("AND(A a, ~(N n))", "'n' is negated in AND without two components around it"),
        ("SEQ(A a, (B b | SEQ(~(N n), ~(C c))), D d)", "'n' is negated alone in an alternative"),
        ("SEQ(A a, (B b | ~(SEQ(B n, C c))), D d)", "'n' is negated alone in an alternative"),
        ("SEQ(A a, ~(AND(B b, C c)), D d)", "expected a component or SEQ after ~, got 'AND'"),
        ("SEQ(A a, ~(B b | C c), D d)", "expected ')', got '|'"),
        ("SEQ(A a, ~(SEQ(B b, C+ c[])), D d)", "'c' is not a single component in ~SEQ"),
        ("SEQ(A a, ~(SEQ(B b, C? c)), D d)", "'c' is not a single component in ~SEQ"),
        ("SEQ(A a, ~(SEQ(B b, (C c | E e))), D d)", "'c' is not a single component in ~SEQ"),
        ("SEQ(A a, ~(SEQ(B b, ~(C c))), D d)", "'c' is negated in ~SEQ"),
        ("SEQ(A a, ~(SEQ(B b, C c)))", "'c' is negated at an end of the pattern without WITHIN"),
        ("SEQ(A a, ~(SEQ(B b, C c)), ~(N n), D d) WHERE b.x > n.x", "names two negated components"),
        ("SEQ(A? a, ~(N n), B b)", "'n' is negated at an end of the pattern without WITHIN"),
        ("SEQ(A a, (SEQ(~(N n), B? b) | C? c), D d)", "two alternatives are both a, d"),
        ("SEQ(A a, SEQ(B b, C c)+, D d)", "nothing bounds how often the group of 'b' repeats"),
        ("SEQ(A a, (B b | C c){8})", "more than 128 sequences"),
        ("SEQ(S s, SEQ(A? a, B? b){0,2})", "'b' may belong to two iterations of its group"),
        ("SEQ(A+ a[]){2}", "'a' may belong to two iterations of its group"),
        ("SEQ(A a, B b){2} WHERE a[1].x > 2", "'a' has one event in each iteration"),
        ("SEQ(A a, B b){2} WHERE count(a[]) > 2", "'a' has one event in each iteration"),
        ("SEQ(A a, B b){2} WHERE a[i-1].x > 2", "a[i-1] without an event of this iteration"),
        ("SEQ(SEQ(A a, B b){2}, C c) WHERE c.x > a[i-1].x", "a[i-1] without an event of"),
        ("SEQ(A a, B b){1} WHERE a.x > a[i-1].x", "no match has all of 'a'"),
        ("SEQ(A a, B{3,2} b[])", "{3,2} has no number of events"),
        ("SEQ(A a, B{0} b[])", "{0,0} has no number of events"),
        ("SEQ(A a, B{x} b[])", "expected a number of events, got 'x'"),
        ("SEQ(A a, ~(B? b), C c)", "'b' is negated and repeats"),
        ("SEQ(A a, B? a)", "two components are named 'a'"),
        (
            "SEQ(A a, B* b[]) WHERE skip_till_next_match(a) { } AND skip_till_any_match(b[]) { }",
            "has several strategies and the loop 'b'",
        ),
        ("SEQ(" + "(" * 60 + "A a" + ")" * 60 + ")", "at most 50 nested groups"),
    ],
)
def test_patterns_without_a_meaning(text: str, message: str) -> None:
    """Each is refused, with its place and a hint."""
    with pytest.raises(InvalidArgumentError) as error:
        parse(f"PATTERN {text}")
    assert message in str(error.value)
    assert error.value.hint


def test_what_composed_patterns_do_not_have() -> None:
    """Refused by name: an equal pattern, lists of loops."""
    query = parse("PATTERN SEQ(A a, B* b[], C c)")
    with pytest.raises(NotSupportedError, match="eventLists"):
        matchSase(query, [], evaluation="eventLists")
    for text, why in (
        (f"PATTERN SEQ(A a, B* b[], C c) WHERE {ANY}", "it is composed, and 'b' repeats"),
        (f"PATTERN SEQ(A a, B? b, C c) WHERE {NEXT}", "are skipped for no other"),
        (f"PATTERN AND(A a, SEQ(B b, C c)) WHERE {ANY}", "of a SEQ within AND"),
        (f"PATTERN SEQ(A a, (B? b | C? c)) WHERE {ANY}", "several alternatives may match"),
        (f"PATTERN SEQ(A? a, B b) WHERE {ANY} AND [k]", "one event may be a match"),
        ("PATTERN SEQ(A a, ~(SEQ(B b, C c)), D d)", "a sequence of events is negated"),
        ("PATTERN AND(A a, ~(N n), B b)", "it is composed, and 'n' is negated"),
    ):
        with pytest.raises(NotSupportedError, match=why):
            parse(text).asPattern()
    assert "SEQ(A a, B* b[], C c)" in query._repr_html_()
    assert AnalysedQuery(query).slots == {}


def test_a_composed_query_as_a_pattern() -> None:
    """Under skip_till_any_match it is groups of patterns; a condition asks who has come."""
    query = parse(
        f"PATTERN SEQ(A a, (B b | SEQ(C c, D d))?, AND(E e, F f)) WHERE {ANY} "
        "AND e.x > f.x AND e.x > b.x AND e.x > a.x WITHIN 9"
    )
    pattern = query.asPattern("kind")
    text = str(pattern._repr_html_())

    assert repr(pattern) == "Pattern(a ⇢ (b | c ⇢ d)? ⇢ (e &⇢ f))"
    assert "count(f.*) = 0 OR" in text
    assert "count(b.*) = 0 OR" in text
    assert "count(a.*)" not in text


def test_several_strategies() -> None:
    """A run waits for each component by the strategy of its own, as the reference does."""
    pattern = "SEQ(A a, (B b | C c), D d)"
    for of_b, of_c, letters, expected in (
        (ANY, NEXT, "a1 b1 b2 c1 d1", ["a1 b1 d1", "a1 b2 d1"]),
        (ANY, STRICT, "a1 x1 c1 b1 d1", ["a1 b1 d1"]),
        (STRICT, ANY, "a1 b1 c1 d1", ["a1 b1 d1", "a1 c1 d1"]),
    ):
        where = f"{of_b}(b) {{ }} AND {of_c}(c) {{ }} AND {NEXT}(a, d) {{ }}"
        text = f"PATTERN {pattern} WHERE {where}"
        assert found(text, letters) == found(text, letters, "backtracking") == expected
        assert len(matches(parse(text), events(letters))) == len(expected)


def test_a_test_of_equality_holds_in_the_words_without_a_strict_component() -> None:
    """Where [attr] is a condition and no partition, it is one in every word: k has no key here."""
    text = """PATTERN SEQ(A? a, B? b, A c)
        WHERE strict_contiguity(a) { } AND skip_till_next_match(b, c) { [k] } WITHIN 6"""
    rows = [
        {"ts": at, "type": kind, "k": k}
        for at, (kind, k) in enumerate([("A", 0), ("B", None), ("A", None), ("B", 1), ("A", 0)])
    ]
    listed = [match for match in matchSase(text, rows, "ts") if "b" in match]
    assert all(word.is_global for word in alternatives(parse(text)))
    assert listed == []

    (whole,) = matchSase(f"{text} SLIDE 6 RETURN count(*) AS n", rows, "ts")
    assert whole["n"] == len(matchSase(text, rows, "ts"))


@pytest.mark.parametrize("evaluation", ["backtracking", "eventLists"])
def test_the_first_match_of_a_start(evaluation: str) -> None:
    """That which takes where others skip, earlier components first, the shorter of two."""

    def firsts(pattern: str, letters: str, output: str) -> list[str]:
        text = f"PATTERN {pattern} WHERE {ANY}"
        rows = matchSase(text, events(letters), evaluation=evaluation, output=output)
        return [" ".join(e["name"] for own in m.values() for e in own) for m in rows]

    pattern = "SEQ(A a, (B b | C c), D d)"
    assert firsts(pattern, "a1 c1 b1 d1 a2 b2 d2", "onePerStart") == ["a1 c1 d1", "a2 b2 d2"]
    assert firsts(pattern, "a1 a2 b1 d1 a3 c1 d2", "nonOverlapping") == ["a1 b1 d1", "a3 c1 d2"]
    assert firsts("SEQ(A a, B? b, C c)", "a1 b1 c1", "onePerStart") == ["a1 b1 c1"]
    assert firsts("SEQ(A a, B? b)", "a1 b1", "onePerStart") == ["a1"]
    assert firsts("AND(A a, A b)", "a1 a2", "onePerStart") == ["a1 a2"]


def test_a_counted_loop_alone_has_every_output() -> None:
    """It is one sequence of components, whose first match of a start is searched for as ever."""
    query: SaseQuery = parse(f"PATTERN SEQ(A{{2,3}} a[], B b) WHERE {NEXT}")
    rows = events("a1 a2 a3 a4 b1 a5 a6 b2")
    assert len(matchSase(query, rows)) == len(matches(query, rows)) == 8
    assert len(matchSase(query, rows, output="onePerStart")) == 5
    assert len(matchSase(query, rows, output="nonOverlapping")) == 2
    query.diagram()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SEQ(A a, B b) WHERE skip_till_any_match WITHIN 2 EVENTS", ["a1 b1", "a2 b2"]),
        ("SEQ(A a, B b) WHERE skip_till_any_match WITHIN 4 EVENTS", ["a1 b1", "a2 b2"]),
        ("SEQ(A a, B b) WHERE skip_till_any_match WITHIN 5 EVENTS", ["a1 b1", "a1 b2", "a2 b2"]),
        ("SEQ(A a, ~(C c)) WITHIN 2 EVENTS", ["a1", "a2"]),
        ("SEQ(A a, ~(C c)) WITHIN 3 event", ["a2"]),
        ("SEQ(A a, C? c, B b) WHERE skip_till_next_match WITHIN 3 EVENTS", ["a1 b1", "a2 b2"]),
        ("SEQ(A a) WITHIN 1 EVENTS", ["a1", "a2"]),
    ],
)
def test_windows_count_events(text: str, expected: list[str]) -> None:
    """Of any type, from the first event of a match to its last, inclusive."""
    letters = "a1 b1 c1 a2 b2"
    query = parse(f"PATTERN {text}")
    assert parse(repr(query)) == query
    assert (query.window, query.most_events is None) == (None, False)
    for evaluation in ("auto", "nfa", "backtracking"):
        assert found(f"PATTERN {text}", letters, evaluation) == expected
    assert matchSase(query, events(letters), compressed=True).count() == len(expected)
    assert set(taken(matchSase(query, events(letters)))) == matches(query, events(letters))


def test_windows_of_events_and_partitions() -> None:
    """The events of other partitions do not count; outputs, the builder and refusals know them."""
    rows = [{"type": t, "k": k} for t, k in zip("AABB", "pqpq", strict=True)]
    query = seq("A a", "B b").same("k").within("2 events")
    assert len(matchSase(query, rows, output="onePerStart")) == 2
    assert len(matchSase(seq("A a", "B b").within("2 events"), rows)) == 1
    assert query.within("5 min").most_events is None
    assert "WITHIN 2 EVENTS" in repr(query.where("b.k = 'p'"))
    with pytest.raises(NotSupportedError, match="EVENTS, whose window"):
        matchSase(query, rows, evaluation="eventLists")
    with pytest.raises(NotSupportedError, match="counts events"):
        query.asPattern()
    for text, message in (
        ("PATTERN A;B WITHIN 3 EVENTS", "which goes by time"),
        ("PATTERN SEQ(A a) WITHIN 0 EVENTS", "WITHIN 0 EVENTS is out of range"),
        ("PATTERN SEQ(A a) WITHIN 1.5 EVENTS", "WITHIN 1.5 EVENTS is out of range"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            parse(text)


def test_refusals_of_equal_queries_have_their_own_places() -> None:
    """What is refused of a plain query is told where this text has it, not where another has."""
    where = "WHERE skip_till_next_match(a, b[]) { b[i].x > a.x } WITHIN 8"
    for before, place in (("\n", "line 2, column 47"), ("   ", "line 1, column 75")):
        with pytest.raises(InvalidArgumentError, match=f"{place}: expected an index after 'a'"):
            parse(f"PATTERN SEQ(A* a, B+ b[]){before}{where}")
