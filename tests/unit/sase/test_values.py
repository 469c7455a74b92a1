# SPDX-License-Identifier: Apache-2.0
"""Values as data has them: booleans, fields of structs and maps, CASE, functions of several events."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from pyflinkcep.errors import InputError, InvalidArgumentError, NotSupportedError, StateLimitError
from pyflinkcep.sase import parse
from pyflinkcep.sase.text import stored_text
from pyflinkcep.testing import matchSase

Event = dict[str, Any]


def events() -> list[Event]:
    chance = random.Random(23)
    return [
        {
            "n": n,
            "type": "AB"[n % 2],
            "flag": chance.choice([True, False, None]),
            "x": chance.choice([None, -2, 0, 1, 2, 3]),
            "s": chance.choice([None, "p", "q", "pq"]),
            "true": chance.randrange(2),
            "user": chance.choice([None, {"id": chance.randrange(2), "at": {"zip": "p"}}]),
            "props": {"k": chance.randrange(3), "o k": None},
            "(a)": chance.randrange(2),
        }
        for n in range(16)
    ]


def known(*values: Any) -> bool:
    return None not in values


def field(event: Event, *path: str) -> Any:
    value: Any = event
    for name in path:
        value = None if value is None else value[name]
    return value


RULES: dict[str, Callable[[Event, Event], bool]] = {
    "a.flag": lambda a, b: a["flag"] is True,
    "NOT a.flag": lambda a, b: a["flag"] is False,
    "a.flag = TRUE AND b.flag <> true": lambda a, b: (a["flag"], b["flag"]) == (True, False),
    "(a.flag OR b.flag)": lambda a, b: True in (a["flag"], b["flag"]),
    "NOT (a.flag AND b.flag)": lambda a, b: False in (a["flag"], b["flag"]),
    "a.flag = b.flag": lambda a, b: known(a["flag"], b["flag"]) and a["flag"] == b["flag"],
    "a.flag IS TRUE": lambda a, b: a["flag"] is True,
    "a.flag IS NOT TRUE": lambda a, b: a["flag"] is not True,
    "NOT (b.flag IS FALSE)": lambda a, b: b["flag"] is not False,
    "(a.flag IS NULL OR b.x > 1)": lambda a, b: a["flag"] is None or (known(b["x"]) and b["x"] > 1),
    "FALSE OR b.x > 1": lambda a, b: known(b["x"]) and b["x"] > 1,
    "(TRUE AND b.true = 1)": lambda a, b: b["true"] == 1,
    "a.user.id = b.user.id": lambda a, b: (
        known(a["user"], b["user"]) and field(a, "user", "id") == field(b, "user", "id")
    ),
    "a.user.`at`.zip = 'p' AND b.x > 0": lambda a, b: (
        a["user"] is not None and known(b["x"]) and b["x"] > 0
    ),
    "b.props['k'] > a.props['k']": lambda a, b: b["props"]["k"] > a["props"]["k"],
    "b.props['o k'] IS NULL AND a.x = 1": lambda a, b: a["x"] == 1,
    "upper(a.user.at.zip) = 'P'": lambda a, b: a["user"] is not None,
    "a.`(a)` < b.`(a)`": lambda a, b: a["(a)"] < b["(a)"],
    "abs(a.x - b.x) <= 1": lambda a, b: known(a["x"], b["x"]) and abs(a["x"] - b["x"]) <= 1,
    "abs(a.x) > 1 AND abs(b.x / 2) < 1": lambda a, b: (
        known(a["x"], b["x"]) and abs(a["x"]) > 1 and abs(b["x"]) < 2
    ),
    "a.s || b.s = 'pq'": lambda a, b: known(a["s"], b["s"]) and a["s"] + b["s"] == "pq",
    "a.s || 'q' = b.s": lambda a, b: known(a["s"], b["s"]) and a["s"] + "q" == b["s"],
    "concat(a.s, '-', b.s) = 'p-q'": lambda a, b: (a["s"], b["s"]) == ("p", "q"),
    "CASE WHEN a.x > 1 THEN b.x WHEN a.flag THEN 7 ELSE 0 - b.x END > 1": lambda a, b: _case(a, b) > 1,
    "(CASE a.s WHEN 'p' THEN 1 WHEN 'q' THEN 2 END) = b.x": lambda a, b: (
        known(b["x"]) and {"p": 1, "q": 2}.get(a["s"]) == b["x"]
    ),
    "coalesce(a.x, b.x, 9) = 9": lambda a, b: not known(a["x"]) and not known(b["x"]),
    "greatest(a.x, b.x) = 2": lambda a, b: max((v for v in (a["x"], b["x"]) if known(v)), default=0) == 2,
    "least(a.x, b.x, 3) = 3": lambda a, b: min((v for v in (a["x"], b["x"]) if known(v)), default=3) == 3,
    "if(a.x > b.x, a.flag, b.flag)": lambda a, b: (
        a["flag"] if known(a["x"], b["x"]) and a["x"] > b["x"] else b["flag"]
    ) is True,
    "nullif(a.x, b.x) IS NULL": lambda a, b: a["x"] is None or a["x"] == b["x"],
}  # fmt: skip
"""Conditions, and what they mean."""


def _case(a: Event, b: Event) -> int:
    if known(a["x"]) and a["x"] > 1:
        return b["x"] if known(b["x"]) else -9
    if a["flag"] is True:
        return 7
    return -b["x"] if known(b["x"]) else -9


def pairs(rule: Callable[[Event, Event], bool]) -> set[tuple[int, int]]:
    rows = events()
    return {
        (a["n"], b["n"]) for b in rows[1::2] for a in rows[0::2] if a["n"] < b["n"] and rule(a, b)
    }


@pytest.mark.usefixtures("each_path")
def test_conditions_mean_the_same_in_every_evaluation() -> None:
    """Also compressed, as a negated component, as HAVING, and written again by repr."""
    for text, rule in RULES.items():
        expected, query = pairs(rule), parse(f"PATTERN SEQ(A a, B b) WHERE {text} WITHIN 99")
        assert 0 < len(expected) < 36, text
        assert parse(repr(query)) == query
        having = parse(f"PATTERN SEQ(A a, B b) HAVING {text}")
        assert parse(repr(having)) == having
        asked = {"nfa": query, "backtracking": query, "eventLists": query, "auto": having}
        for evaluation, own in asked.items():
            if evaluation == "eventLists" and "||" in repr(query):
                continue
            found = matchSase(own, events(), evaluation=evaluation)
            got = {(m["a"][0]["n"], m["b"][0]["n"]) for m in found}
            assert (text, evaluation, got) == (text, evaluation, expected)
        assert matchSase(query, events(), compressed=True).count() == len(expected)


def test_loops_and_negations_read_such_values() -> None:
    """Booleans, fields and functions stand in conditions of loops and negated components."""
    rows = [
        {"type": t, "flag": f, "p": {"x": x}}
        for t, f, x in [
            ("A", True, 1),
            ("A", None, 2),
            ("A", True, 5),
            ("N", False, 0),
            ("B", True, 4),
        ]
    ]
    loop = (
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match AND a[].flag AND "
        "abs(b.p.x - a[LEN].p.x) < 2 HAVING max(a[].p.x) = 5 "
        "RETURN a[].p.x AS xs, sum(a[].p.x) AS total, max(abs(a[].p.x)), b.p.x, count(a[]) AS n"
    )
    query = parse(loop)
    assert parse(repr(query)) == query
    expected = [
        {"xs": [5], "total": 5, "_3": 5, "b_p_x": 4, "n": 1},
        {"xs": [1, 5], "total": 6, "_3": 5, "b_p_x": 4, "n": 2},
    ]
    for evaluation in ("nfa", "backtracking"):
        found = sorted(matchSase(query, rows, evaluation=evaluation), key=lambda row: row["n"])
        assert found == expected
    for condition, count in (("n.flag", 3), ("NOT n.flag", 0), ("n.p.x < b.p.x AND NOT n.flag", 0)):
        text = f"PATTERN SEQ(A a, ~N n, B b) WHERE {condition}"
        assert [len(matchSase(text, rows, evaluation=e)) for e in ("nfa", "eventLists")] == [
            count
        ] * 2


def test_columns_are_computed() -> None:
    """RETURN has functions of one event, and of several."""
    rows = [{"type": "A", "s": "x", "x": 3}, {"type": "B", "s": "y", "x": None}]
    text = (
        "PATTERN SEQ(A a, B b) HAVING upper(b.s) = 'Y' RETURN upper(a.s) AS u, a.s || b.s AS both, "
        "CASE WHEN b.x IS NULL THEN 'none' ELSE 'some' END AS c, coalesce(b.x, a.x) AS x, "
        "a.x > 1 AS big, TRUE AS t"
    )
    with pytest.raises(InvalidArgumentError, match="expected the end, got '>'"):
        parse(text)
    text = text.replace("a.x > 1 AS big, ", "")
    assert matchSase(text, rows) == [{"u": "X", "both": "xy", "c": "none", "x": 3, "t": True}]
    assert parse(repr(parse(text))) == parse(text)


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("a.x AND b.x > 1", "'a.x': expected a comparison or a boolean, got bigint"),
        ("[flag = 1]", "'flag = 1' puts boolean and bigint together"),
        ("a.s || b.x = 'p'", "needs string, got bigint"),
        ("startswith(b.s, a.s) = TRUE", "startswith(b.s, a.s) is a condition"),
        ("CASE b.x = 1", "expected WHEN, got '='"),
        ("CASE WHEN b.x = 1 THEN 1 b.x = 1", "expected END, got 'b'"),
        ("a.user.id[x] = 1", "expected a 'key' or a number, got 'x'"),
        ("coalesce() = a.x", "coalesce(…) reads no event"),
        ("if(a.x = b.x, 1) = 1", "if(…) has 2 arguments"),
    ],
)
def test_values_that_have_no_meaning(condition: str, message: str) -> None:
    """Types are checked, and what cannot be read says where."""
    with pytest.raises((InputError, InvalidArgumentError)) as error:
        matchSase(f"PATTERN SEQ(A a, B b) WHERE {condition}", events())
    assert message in str(error.value)


def test_lists_refuse_what_they_do_not_compute() -> None:
    """By name; auto takes another evaluation, and a ; query, which has no other, is refused."""
    with pytest.raises(NotSupportedError, match=r"\|\| of several events"):
        matchSase("PATTERN A;B WHERE a.s || b.s = 'pq'", events())
    one = "PATTERN A;B WHERE CASE WHEN a.x > 1 THEN a.x END = 2 AND b.s || 'q' = 'pq' WITHIN 99"
    expected = pairs(lambda a, b: a["x"] == 2 and b["s"] == "p")
    assert {(m["a"][0]["n"], m["b"][0]["n"]) for m in matchSase(one, events())} == expected


def test_without_events_nothing_is_known_to_be_boolean() -> None:
    """An attribute alone is refused then, as its type is unknown; compared, it is NULL."""
    with pytest.raises(InputError, match="expected a comparison or a boolean"):
        matchSase("PATTERN SEQ(A a) WHERE a.flag", [])
    assert matchSase("PATTERN SEQ(A a) WHERE a.flag = TRUE", []) == []


def test_sql_sees_the_events_of_the_types_that_need_it() -> None:
    """As on Spark: an element beyond the end, or a text that is no number, of another type is no error."""
    events = [
        {"type": "A", "l": [1], "s": "5"}, {"type": "B", "l": [], "s": "n/a"},
        {"type": "B", "l": [], "s": None},
    ]  # fmt: skip
    text = "PATTERN SEQ(A a, B b) WHERE a.l[0] = 1 AND cast(a.s AS int) = 5"
    for evaluation in ("nfa", "backtracking", "eventLists"):
        assert len(matchSase(text, events, evaluation=evaluation)) == 2
    returned = f"{text} HAVING cast(a.s AS int) > 1 RETURN a.l[0] + 1 AS l"
    assert matchSase(returned, events) == [{"l": 2}, {"l": 2}]


# --- matches as events, which another query of the same text reads


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
