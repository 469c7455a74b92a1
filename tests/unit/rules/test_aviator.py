# SPDX-License-Identifier: Apache-2.0
"""Conditions in Aviator: what they mean in SQL, and what is refused at which place."""

from __future__ import annotations

import pytest

from pyflinkcep import InvalidArgumentError, Pattern, match
from pyflinkcep.rules.aviator import aviator_of_sql, sql_of_aviator


@pytest.mark.parametrize(
    ("aviator", "sql"),
    [
        ("a == b > c", "a = (b > c)"),
        ("!a == b", "(NOT a) = b"),
        ("!(a == b)", "NOT (a = b)"),
        ("a - (b - c) > -(-3)", "a - (b - c) > -(-3)"),
        ("nil != a.b", "a.b IS NOT NULL"),
        ("a < nil", "a < NULL"),
        ("in == 'it\\'s' || a", "`in` = 'it\\'s' OR a"),
        ('a == "x" && true', "a = 'x' AND true"),
        ("a=~/\\d+\\/x/", "a RLIKE '^(?:\\\\d+/x)\\\\z'"),
    ],
)
def test_meaning(aviator: str, sql: str) -> None:
    """Operators bind as in Aviator, nil is tested and not compared, words of SQL are columns."""
    assert sql_of_aviator(aviator) == sql


@pytest.mark.parametrize(
    ("text", "problem", "start"),
    [
        ("string.contains(user, 'a')", "the call of 'string.contains' is not read", 0),
        ("a == b.c(1)", "the call of 'b.c' is not read", 5),
        ("x = 1; y", "expected an operator or the end, got '='", 2),
        ("a + 'x' == b", "+ of a text is not read", 2),
        ("a == '#{b}'", "#{…} in a text is not read", 5),
        (r"a == '\\ \u0041'", r"the escape \u is not read", 5),
        ("a ==", "expected a value, got 'the end'", 4),
        ("a == @", "expected a condition, got '@'", 5),
        ("(a == 1", "expected ')', got 'the end'", 7),
        ("a =~ b", "expected an operator or the end, got '='", 2),
        ("(" * 100, "too many parentheses", 0),
    ],
)
def test_refusals(text: str, problem: str, start: int) -> None:
    """What is not read is refused by name, at its place."""
    with pytest.raises(InvalidArgumentError) as refused:
        sql_of_aviator(text)

    assert (refused.value.problem, refused.value.span and refused.value.span[0]) == (problem, start)
    assert refused.value.hint


@pytest.mark.parametrize(
    "sql", ["upper(a) = 'X'", "a / 2 > 1", "`my column` = 1", "a IN (1, 2)", "x = 1e3", "a ="]
)
def test_sql_that_aviator_lacks(sql: str) -> None:
    """Division, functions and names with spaces are not written: they mean something else there."""
    assert aviator_of_sql(sql) is None


def test_a_regular_expression_is_about_the_whole_text() -> None:
    """`=~` compares the whole text, its last line end too, and not a part of it."""
    events = {"name": ["ab", "ab\n", "xab", "abx", "ac"]}
    pattern = Pattern.begin("a").where(sql_of_aviator("name =~ /a(b|c)/"))

    assert [found["a"][0]["name"] for found in match(pattern, events)] == ["ab", "ac"]
