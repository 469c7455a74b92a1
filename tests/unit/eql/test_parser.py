# SPDX-License-Identifier: Apache-2.0
"""Reading EQL: what the grammar has, and what is refused, by name and with a place."""

from __future__ import annotations

import pytest

from pyflinkcep import CepError, Eql, InvalidArgumentError, NotSupportedError
from pyflinkcep.eql.model import Field, Filter, Pipe
from pyflinkcep.expressions.tree import Call, Column, Literal, Operation


def condition(text: str) -> object:
    return Eql(f"any where {text}").model.steps[0].filter.condition


A, B = Column("`a`"), Column("`b`")


class TestQueries:
    def test_sequence(self) -> None:
        """A sequence has steps with the common keys first, runs, until and a maxspan."""
        text = """
            sequence by user with maxspan=2h  // a comment
              [process where true] by pid with runs=3 /* another */
              ![ "any" where false ] by ?parent.pid
              [any where true] by pid
            until [file where a] by pid
            | head 5 | tail 2
        """
        model = Eql(text).model
        assert [step.runs for step in model.steps] == [3, 1, 1]
        assert [step.is_missing for step in model.expanded] == [False, False, False, True, False]
        assert model.steps[1].keys == (Field("user"), Field("parent.pid", True))
        assert [step.filter.category for step in model.steps] == ["process", "any", None]
        assert model.until is not None
        assert model.until.filter == Filter("file", A)
        assert model.maxspan == 7_200_000
        assert model.pipes == (Pipe(True, 5), Pipe(False, 2))

    def test_single_events(self) -> None:
        """A category and a condition are a query about single events."""
        model = Eql("process where a").model
        assert not model.is_sequence
        assert model.steps[0].filter == Filter("process", A)

    def test_keywords_are_names_elsewhere(self) -> None:
        """Keywords are lower case; after a dot and in backquotes they are names."""
        assert condition("And or `sequence` or a.where") == Operation(
            "or", (Column("`And`"), Column("`sequence`"), Column("`a.where`"))
        )
        assert condition("`a``b`") == Column("`a``b`")
        assert condition("@timestamp") == Column("`@timestamp`")


class TestConditions:
    def test_precedence(self) -> None:
        """Or binds less than and, that less than not, then comparisons, sums and products."""
        assert condition("a or b and not a == 1 + 2 * 3") == Operation("or", (A, Operation("and", (
            B,
            Operation("not", (Operation("=", (A, Call("add", (
                Literal(1), Call("multiply", (Literal(2), Literal(3))),
            )))),)),
        ))))  # fmt: skip

    def test_tests_bind_to_one_value(self) -> None:
        """In and the tests of texts follow a value, before operators."""
        assert condition("a + b in (1, 2)") == Call(
            "add", (A, Call("in", (B, Literal(1), Literal(2))))
        )
        assert condition('a not in~ ("x")') == Operation("not", (Call("in~", (A, Literal("x"))),))
        assert condition('a : ("x", "y")') == Call(":", (A, Literal("x"), Literal("y")))

    def test_texts(self) -> None:
        """Texts have escapes, raw ones none."""
        assert condition(r'"\n\\\"\u{1F600}"') == Literal('\n\\"\U0001f600')
        assert condition(r'"""C:\n"x" """') == Literal('C:\\n"x" ')

    def test_numbers(self) -> None:
        """Numbers with a point or exponent are fractions; a sign before one is part of it."""
        assert [condition(text) for text in ("-1", "+2", "1.5", "1e2")] == [
            Literal(-1), Literal(2), Literal(1.5), Literal(100.0),
        ]  # fmt: skip


REFUSED = [
    ("sample by host [any where true] [any where true]", "sample is not supported"),
    ("join by host [any where true] [any where true]", "join is not supported"),
    ("any where true | count", "the pipe count is not supported"),
    ("process where child of [any where true]", "child of is not supported"),
    ("any where a[0] == 1", "a position in an array is not supported"),
    ('any where wildcard(a, "x*")', "the function wildcard is not supported"),
    ("any where arrayContains(a, 1)", "the function arrayContains is not supported"),
    ("sequence [any where a] fork=true [any where a]", "fork is not supported"),
]

WRONG = [
    ("any where a = 1", "write == to compare"),
    ("any where a == 'x'", 'write "text"'),
    ("any where a < b < 1", "write a < b and b < c"),
    ("sequence [any where a]", "write a second"),
    ("sequence [any where a] by a [any where b]", "as many keys"),
    ("sequence by length(a) [any where a] [any where b]", "keys are fields"),
    ("sequence with maxspan=5 [any where a] [any where b]", "with maxspan=5m"),
    ("sequence with maxspan=1.5s [any where a] [any where b]", "with maxspan=5m"),
    ("sequence with maxspan=0s [any where a] [any where b]", "with maxspan=5m"),
    ("sequence [any where a] ![any where b]", "with maxspan=5m"),
    ("sequence with maxspan=1s ![any where a] ![any where b]", "write one step as ["),
    ("sequence [any where a] with runs=101 [any where b]", "from 1 to 100"),
    ("sequence [any where a] [any where b] until ![any where a]", "until [ … ]"),
    ("any where lenght(a) > 1", "did you mean 'length'?"),
    ("any where length~(a) > 1", "write length(…)"),
    ("any where length() > 1", "write length(s)"),
    ("any where a : 5", "=="),
    ('any where "\\d"', "raw text"),
    (r'any where a == "\u{d800}"', "raw text"),
    ('any where "x', 'close it with "'),
    ("any where a in ()", "at least one value"),
    ("any where 99999999999999999999 > a", "write a fraction"),
    (f"any where {'9' * 5000} > a", "write a fraction"),
    ("any where a < 1e999", "write up to 1.79e308"),
    (f"sequence [any where a] with runs={'9' * 5000} [any where b]", "from 1 to 100"),
    ("sequence with maxspan=999999999999999d [any where a] [any where b]", "at most 999999999d"),
    ("any where " + "(" * 100 + "a" + ")" * 100, "split the rule"),
]


@pytest.mark.parametrize(("text", "what"), REFUSED)
def test_refused_by_name(text: str, what: str) -> None:
    """What the language has elsewhere and not here is refused by name, with a hint and a place."""
    with pytest.raises(NotSupportedError, match=what) as caught:
        Eql(text)
    assert caught.value.hint
    assert caught.value.span is not None


@pytest.mark.parametrize(("text", "hint"), WRONG)
def test_wrong_queries(text: str, hint: str) -> None:
    """What is no query is refused with a hint, and the place in the text."""
    with pytest.raises(InvalidArgumentError) as caught:
        Eql(text)
    assert hint in (caught.value.hint or "")
    assert caught.value.span is not None
    assert "line 1, column" in caught.value.message


def test_only_texts_are_queries() -> None:
    """What is no text is refused."""
    with pytest.raises(CepError, match="expected a text, got int"):
        Eql(5)


def test_place_in_several_lines() -> None:
    """A message says line and column, counted from 1."""
    with pytest.raises(CepError, match="line 2, column 7"):
        Eql("sequence\n [any of where true]")
