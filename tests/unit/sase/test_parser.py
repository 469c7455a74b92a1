# SPDX-License-Identifier: Apache-2.0
"""Texts of queries: what is read, and where errors are."""

from __future__ import annotations

from typing import Any

import pytest

from pyflinkcep.engines.sequences.compiler import LOOPING, WAITING, compile_query, live_slots
from pyflinkcep.errors import InputError, InvalidArgumentError, NotSupportedError
from pyflinkcep.expressions.program import Kind
from pyflinkcep.expressions.tree import Column, leaves
from pyflinkcep.sase import analysis, elements, parse, seq
from pyflinkcep.sase.analysis import AnalysedQuery
from pyflinkcep.sase.attributes import owned_sql
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


# --- names as data has them: quoted, dotted, and of any alphabet


TYPES = ("login-failed", "com.foo.Bar", "Überweisung", "it's", "a b", "von.b c")
EVENTS: list[dict[str, Any]] = [
    {"type": type_, "n": n, "größe": n, "x y": n, "x`z": n, "k k": "p"}
    for n, type_ in enumerate(TYPES)
]
EVALUATIONS = ("nfa", "backtracking", "eventLists")


@pytest.mark.usefixtures("each_path")
@pytest.mark.parametrize(
    ("query", "positions"),
    [
        ("PATTERN SEQ('login-failed' a, com.foo.Bar b) WHERE b.`x y` > a.`x``z`", [0, 1]),
        ("PATTERN SEQ(`com`.foo.Bar a, Überweisung ü) WHERE ü.größe = a.größe + 1", [1, 2]),
        ("PATTERN SEQ('it''s' a, 'a b' `b c`) WHERE [`k k`] AND `b c`.n > a.n", [3, 4]),
        ("PATTERN SEQ('com.foo.Bar' `not`, 'von.b c' b) WHERE `not`.n < b.n", [1, 5]),
        ("PATTERN 'login-failed';com.foo.Bar;Überweisung WHERE bar.n > `login-failed`.n", [0, 1, 2]),
        ("PATTERN('login-failed';!'it''s';com.foo.Bar `where`) WITHIN 5 s", [0, 1]),
        ("PATTERN (SEQ('a b' a, 'von.b c' b)) WHERE upper(b.`k k`) = 'P' AND b.`k k` LIKE 'p'", [4, 5]),
    ],
)  # fmt: skip
def test_any_name_can_be_written(query: str, positions: list[int]) -> None:
    """Every evaluation finds types, variables and attributes of any name, and repr writes them again."""
    asked = parse(query + ("" if "WITHIN" in query else " WITHIN 1 min"))
    assert parse(repr(asked)) == asked
    for evaluation in EVALUATIONS if "SEQ" in query else EVALUATIONS[2:]:
        found = matchSase(asked, EVENTS, evaluation=evaluation)
        assert [[e["n"] for own in m.values() for e in own] for m in found] == [positions]
    compressed = matchSase(asked, EVENTS, compressed=True)
    variable = asked.variables[-1].replace("`", "``")
    assert compressed.aggregate(f"sum(`{variable}`.`x y`) AS `a b`") == {"a b": positions[-1]}


def test_columns_of_any_name() -> None:
    """RETURN and HAVING read attributes of any name, and AS gives columns one."""
    text = (
        "PATTERN SEQ('login-failed' a, com.foo.Bar `b b`) HAVING `b b`.`x y` = 1 "
        "RETURN a.`x``z` AS `out put`, `b b`.größe"
    )
    assert matchSase(text, EVENTS) == [{"out put": 0, "b b_größe": 1}]
    assert repr(parse(text)).endswith("RETURN a.`x``z` AS `out put`, `b b`.größe")


def test_the_variable_of_an_element_is_its_type() -> None:
    """In lower case; of a dotted type the last part."""
    query = elements("A", "com.foo.Bar", "'login-failed'", "'x. y'", "C `c d`")
    assert query.variables == ["a", "bar", "login-failed", "x. y", "c d"]
    assert repr(query) == "PATTERN A; com.foo.Bar; 'login-failed'; 'x. y'; C `c d`"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("PATTERN SEQ(A `a", "line 1, column 15: the name `a does not end"),
        ("PATTERN SEQ(A a) WHERE a.`` = 1", "column 26: the name `` = 1 does not end"),
        ("PATTERN SEQ(A a) WHERE [`(x)`]", "column 25: expected a column in a test, got `(x)`"),
        ("PATTERN SEQ(A a) WHERE [user.id]", "column 25: expected a column in a test, got user."),
        ("PATTERN (SEQ(A a)", "column 18: expected ')', got the end"),
        ("PATTERN SEQ(com. a)", "column 19: expected a variable, got ')'"),
        ("PATTERN SEQ(login-failed a)", "quote the type: 'login-failed'"),
    ],
)
def test_names_that_do_not_end(text: str, message: str) -> None:
    """What cannot be read says where, and how it is quoted."""
    with pytest.raises(InvalidArgumentError) as error:
        parse(text)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("written", "milliseconds", "shown"),
    [
        ("5", 5, "5 ms"), ("5 ms", 5, "5 ms"), ("5s", 5000, "5 seconds"), ("2 m", 120_000, "2 minutes"),
        ("2 MIN", 120_000, "2 minutes"), ("3 h", 10_800_000, "3 hours"), ("1d", 86_400_000, "1 day"),
        ("1.5 h", 5_400_000, "90 minutes"), ("90 secs", 90_000, "90 seconds"),
    ],
)  # fmt: skip
def test_units_of_a_window(written: str, milliseconds: int, shown: str) -> None:
    """Short units stand beside the long ones; without a unit a window is of milliseconds."""
    query = parse(f"PATTERN SEQ(A a, B b) WITHIN {written}")
    assert query.window == milliseconds
    assert repr(query).endswith(f"WITHIN {shown}")


# --- what SQL computes from one event, as SQL over a stage or the fields of a struct


OWNED = {
    "a.`x y` = b.s": "e.`x y`",
    "upper(a.s) = 'X'": "(upper ( e.`s` ))",
    "concat(a.s, a.`t u`, '`', 'it''s') = b.s": "(concat ( e.`s` , e.`t u` , '`' , 'it\\'s' ))",
    "a.u.v[0].`w x`['k''`'] = 1": "(e.`u`.`v`[0].`w x`['k\\'`'])",
    "upper(a.u.v) = 'X'": "(upper ( (e.`u`.`v`) ))",
    "a.s LIKE 'x`%'": "(cast ( e.`s` like 'x`%' as int ))",
    "lower(a.s) LIKE 'q%'": "(cast ( (lower ( e.`s` )) like 'q%' as int ))",
    "a.s || a.t.u = 'k'": "((e.`s` || (e.`t`.`u`)))",
    "size(filter(a.xs, `y` -> `y` <=> 1)) > 0": "(size ( filter ( e.`xs` , `y` -> `y` <=> 1 ) ))",
    "hash(a.x < -1, a.y) > 0": "(hash ( e.`x` < - 1 , e.`y` ))",
}


@pytest.mark.parametrize(("condition", "expected"), OWNED.items())
def test_columns_of_the_event_get_an_owner_and_nothing_else_does(
    condition: str, expected: str
) -> None:
    """Not what is in a text, a field of a struct, or a variable of a lambda in backticks."""
    query = parse(f"PATTERN SEQ(A a, B b) WHERE {condition}")
    value = next(leaves(query.conditions[0]))
    assert owned_sql(value.over, "e") == expected
    assert str(value.over.sql) == expected.replace("e.`", "`")


def test_a_path_names_its_column() -> None:
    """A field or element gives its column of RETURN a name, any other function a number."""
    asked = "a.u.v[0].`w x`['k'''], upper(a.s), b.s, b.`(x`.y, max(c[].u['k']), c[1].u.v"
    query = parse(f"PATTERN SEQ(A a, B b, C+ c[]) RETURN {asked}")
    names = [column.name for column in query.columns or ()]
    assert names == ["a_u_v_0_w_x_k", "_2", "b_s", "b_x_y", "_5", "_6"]
    assert isinstance(query.columns[0].value, Column) if query.columns else False


# --- an analysed query computes each result once, however many ask


_SEQ = "PATTERN SEQ(A a, B+ b[], C c) WHERE upper(a.name) = 'X' AND b[i].x > b[i-1].x"
_RESULTS = ("edges", "slots", "computed", "usable_sql", "why_no_pattern", "pattern")
_FUNCTIONS = ("placed", "computed_for", "why_no_pattern")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Count the calls of what an analysed query asks."""
    counted = dict.fromkeys(_FUNCTIONS, 0)

    def counting(name: str) -> None:
        function = getattr(analysis, name)

        def call(*arguments: Any) -> Any:
            counted[name] += 1
            return function(*arguments)

        monkeypatch.setattr(analysis, name, call)

    for name in _FUNCTIONS:
        counting(name)
    return counted


def test_each_result_is_computed_once(calls: dict[str, int]) -> None:
    """What all results need, such as where clauses are placed, is computed once too."""
    query = AnalysedQuery(parse(_SEQ), "kind")
    assert not any(calls.values())  # nothing until it is asked for
    for _ in range(3):
        for name in _RESULTS:
            assert getattr(query, name) is getattr(query, name)
    assert calls == dict.fromkeys(_FUNCTIONS, 1)


def test_a_pattern_that_there_is_not(calls: dict[str, int]) -> None:
    """The refusal names the reason, which is found once; elements with ; have no edges."""
    query = AnalysedQuery(parse("PATTERN A;B WHERE a.x < b.x WITHIN 5"))
    for _ in range(2):
        with pytest.raises(NotSupportedError, match=str(query.why_no_pattern)):
            _ = query.pattern
    assert (query.edges, query.slots, calls["placed"], calls["why_no_pattern"]) == ({}, {}, 0, 1)
    assert query.usable_sql == "(`type` = 'A') OR (`type` = 'B')"


# --- which slots keep runs apart: those that a condition still ahead reads


_QUERIES = [
    ("SEQ(A a, B b, C c)", "", {"a": (), "b": (), "c": ()}),
    ("SEQ(A a, B b, C c)", "b.x > a.x", {"a": ("first(a.x)",), "b": (), "c": ()}),
    ("SEQ(A a, B b, C c)", "c.x > a.x", {"a": ("first(a.x)",), "b": ("first(a.x)",), "c": ()}),
    ("SEQ(A a, B+ b[], C c)", "b[i].x > b[i-1].x", {"a": (), "b": ("last(b.x)",), "c": ()}),
    ("SEQ(A+ a[], B b)", "a[i].x > avg(a[..i-1].x)", {"a": ("avg(a.x)",), "b": ()}),
    ("SEQ(A a, B+ b[])", "count(b[]) > 2", {"a": (), "b": ("count(b.*)",)}),
    ("SEQ(A a, ~(B n), C c)", "n.x > a.x", {"a": ("first(a.x)",), "c": ()}),
]


@pytest.mark.parametrize(("pattern", "where", "expected"), _QUERIES)
def test_what_is_still_read(pattern: str, where: str, expected: dict[str, tuple[str, ...]]) -> None:
    """A variable's slots are read by later edges, or by the loop itself."""
    query = parse(f"PATTERN {pattern}" + (f" WHERE {where}" if where else ""))
    assert {v: tuple(map(_plain, own)) for v, own in AnalysedQuery(query).slots.items()} == {
        v: tuple(map(_plain, own)) for v, own in expected.items()
    }


@pytest.mark.parametrize(("pattern", "where"), [(p, w) for p, w, _ in _QUERIES])
def test_the_automaton_keeps_the_same_apart(pattern: str, where: str) -> None:
    """A state has live slots exactly if explain() names some for its variable."""
    query = parse(f"PATTERN {pattern}" + (f" WHERE {where}" if where else ""))
    automaton = compile_query(query, {"x": Kind.BIGINT})
    live = live_slots(automaton)
    own = [slot.stage for slot in automaton.expressions.slots]
    names = [part.variable for part in query.positive]
    for number, (name, texts) in enumerate(AnalysedQuery(query).slots.items()):
        if name == names[-1] and not automaton.loops[number]:
            continue  # a match: nothing is ahead
        mode = LOOPING if automaton.loops[number] else WAITING
        taken = [n for n in live[4 * number + mode] if own[n] in names[: number + 1]]
        assert bool(taken) == bool(texts), name


def _plain(text: str) -> str:
    return text.replace("first(", "last(")  # of a single event both are its value


def test_the_lines_of_explain() -> None:
    """A line for each variable but a match's last; the window tells runs apart too."""
    loop = "PATTERN SEQ(A a, B+ b[], C c) WHERE b[i].x > b[i-1].x"

    def lines(text: str) -> list[str]:
        query = parse(text)
        return list(AnalysedQuery(query).slots_explained())

    assert lines(loop) == ["after a: nothing, they are one run", "after b: last(b.x)"]
    assert lines(loop + " WITHIN 5") == [
        "after a: the time of its first event",
        "after b: last(b.x), the time of its first event",
    ]
