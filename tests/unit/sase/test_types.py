# SPDX-License-Identifier: Apache-2.0
"""One check of types, and constants that are folded, in every evaluation."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from pyflinkcep.errors import InputError, InvalidArgumentError
from pyflinkcep.sase import parse
from pyflinkcep.tables.event_list import EventObjects
from pyflinkcep.testing import matchSase
from tests.property.optiseq_verify import start_cep

EVENTS = [
    {"type": "A", "s": "x", "x": 1, "y": 0.5, "flag": True, "day": date(2024, 1, 1), "none": None},
    {"type": "B", "s": "y", "x": 2, "y": 1.5, "flag": False, "day": date(2024, 1, 2), "none": None},
]
_SEQ = ("auto", "nfa", "backtracking", "eventLists")


def answers(text: str) -> Iterator[Any]:
    """Yield the number of matches, or the error, of every evaluation, and of compressed matches."""
    for form, evaluations in (("SEQ(A a, B b)", _SEQ), ("A a;B b", ("auto", "eventLists"))):
        for evaluation in evaluations:
            yield answer(f"PATTERN {form} {text}", evaluation=evaluation)
        if "HAVING" not in text:
            yield answer(f"PATTERN {form} {text}", compressed=True)


def answer(query: str, **how: Any) -> Any:
    try:
        found = matchSase(query, EVENTS, **how)
        return found.count() if how.get("compressed") else len(found)
    except (InputError, InvalidArgumentError) as error:
        return error.message.replace("A a;B b", "SEQ(A a, B b)")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("WHERE a.s > 3 WITHIN 5", "the condition 'a.s > 3': 'a.s > 3' puts string and bigint"),
        ("WHERE a.flag = 1", "puts boolean and bigint together"),
        ("WHERE b.x > 0 OR a.flag > b.y", "puts boolean and double together"),
        ("WHERE NOT a.x = b.s", "puts bigint and string together"),
        ("WHERE a.day > '2023-12-31'", "puts date and string together"),
        ("WHERE -a.s = b.s", "'-a.s' needs bigint or double, got string"),
        ("WHERE [s = 3]", "the test [s = 3]: 's = 3' puts string and bigint together"),
        ("WHERE a.x = 1 HAVING a.s > 3", "the output 'a.s > 3': 'a.s > 3' puts string and bigint"),
        ("RETURN a.s + 3 AS t", "the output 'a.s + 3': 'a.s + 3' needs bigint or double"),
        ("WHERE a.x = 1 AND 1 < 'a'", "puts bigint and string together"),
    ],
)
def test_incompatible_types_are_refused_alike(text: str, problem: str) -> None:
    """Every evaluation refuses values of different types, in the same words."""
    found = set(map(str, answers(text)))
    assert len({message.split(": ", 1)[1] for message in found}) == 1
    assert all(problem in message for message in found)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("WHERE a.none = 'x' OR a.x < b.y", 1),
        ("WHERE a.none > 3 OR a.none + 1 > b.none", 0),
        ("WHERE a.none IS NULL AND b.x > a.y", 1),
        ("WHERE a.x = 1 HAVING a.none IS NULL AND a.x < b.y", 1),
        ("WHERE [none = 'x']", 0),
        ("WHERE b.x = NULL", 0),
    ],
)
def test_null_fits_every_type(text: str, count: int) -> None:
    """An attribute that is NULL in every event is compared with anything, and never true."""
    assert set(answers(text)) == {count}


def test_no_events_have_no_types() -> None:
    """On an empty list every query has no match."""
    for evaluation in _SEQ:
        text = "PATTERN SEQ(A a, B b) WHERE a.s = 'x' AND b.x > 3 HAVING a.t > 'u' RETURN a.v + 1"
        assert matchSase(text, [], evaluation=evaluation) == []


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("(1 = 1 AND b.x > 0)", 1),
        ("1 = 1 AND b.x > 0", 1),
        ("(1 = 2 OR b.x > 0)", 1),
        ("(1 = 1 OR b.x > 5)", 1),
        ("NOT (1 = 2 AND b.x > 0)", 1),
        ("NOT (NULL = 1 OR b.x > 5)", 0),
        ("(NULL = 1 OR b.x > 0)", 1),
        ("(NULL = 1 AND b.x > 0)", 0),
        ("(NULL IS NULL AND b.x > 0)", 1),
        ("(2 + 3 * 2 = 9 AND b.x > 0)", 0),
        ("(10 / 0 > 1 OR b.x > 0)", 1),
        ("(1 IN (2, 3) OR a.x < b.x AND 'p' <> 'q')", 1),
        ("[s = 'x'] AND (1 = 1 AND b.x > 0)", 0),
        ("(1 = 2 AND a.x = 1) AND b.x > 0", 0),
    ],
)
def test_constants_are_folded(condition: str, count: int) -> None:
    """A condition that reads no event counts as true or false wherever it stands."""
    assert set(answers(f"WHERE {condition}")) == {count}
    assert set(answers(f"WHERE {condition} WITHIN 5")) == {count}
    query = parse(f"PATTERN A a;B b WHERE {condition}")
    assert parse(repr(query)) == query
    assert len(start_cep(query, EventObjects.of(EVENTS, None, "type", query).table)) == count
    having = condition.split("] AND ")[-1]
    expected = 1 if "[" in condition else count
    assert len(matchSase(f"PATTERN SEQ(A a, B b) HAVING {having}", EVENTS)) == expected


@pytest.mark.parametrize("never", ["(1 = 2 AND n.x > 0)", "(1 = 2 AND a[i].x > 0)"])
def test_a_condition_that_never_holds_leaves_no_match(never: str) -> None:
    """Whatever components it names: negated ones and loops too."""
    for evaluation in ("auto", "nfa", "backtracking"):
        text = f"PATTERN SEQ(A+ a[], ~N n, B b) WHERE {never}"
        assert matchSase(text, EVENTS, evaluation=evaluation) == []
        forbids = f"PATTERN SEQ(A+ a[], ~N n, B b) WHERE ({never} OR n.x < 5)"
        assert len(matchSase(forbids, EVENTS, evaluation=evaluation)) == 1


def test_where_must_name_a_variable() -> None:
    """A WHERE of constants alone is refused."""
    for condition in ("1 = 1", "(1 = 1 AND 2 = 2)", "1 = 1 AND NOT 1 = 2"):
        with pytest.raises(InvalidArgumentError, match="names no variable"):
            parse(f"PATTERN SEQ(A a) WHERE {condition}")


@pytest.mark.parametrize("pattern", ["SEQ(A a, B b)", "A a;B b"])
def test_aggregates_take_what_they_can_add(pattern: str) -> None:
    """Over compressed matches, texts, times and booleans have a least value, but no sum."""
    found = matchSase(f"PATTERN {pattern}", EVENTS, compressed=True)
    for text in ("sum(a.s)", "avg(b.s)", "sum(a.flag)", "avg(a.day)"):
        with pytest.raises(InputError, match=r"expected numbers, got (string|boolean|date)"):
            found.aggregate(text)
    assert found.aggregate("min(a.s)", "max(b.day)", "count(a.s)", "sum(a.none)") == {
        "min(a.s)": "x",
        "max(b.day)": date(2024, 1, 2),
        "count(a.s)": 1,
        "sum(a.none)": None,
    }
    exact = [{**event, "x": Decimal(event["x"])} for event in EVENTS]
    assert matchSase(f"PATTERN {pattern}", exact, compressed=True).aggregate("sum(b.x)") == {
        "sum(b.x)": 2
    }
