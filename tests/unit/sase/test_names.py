# SPDX-License-Identifier: Apache-2.0
"""Names as data has them: quoted, dotted, and of any alphabet."""

from __future__ import annotations

from typing import Any

import pytest

from pyflinkcep.errors import InvalidArgumentError
from pyflinkcep.sase import elements, parse
from pyflinkcep.testing import matchSase

TYPES = ("login-failed", "com.foo.Bar", "Überweisung", "it's", "a b", "von.b c")
EVENTS: list[dict[str, Any]] = [
    {"type": type_, "n": n, "größe": n, "x y": n, "x`z": n, "k k": "p"}
    for n, type_ in enumerate(TYPES)
]
EVALUATIONS = ("nfa", "backtracking", "eventLists")


@pytest.mark.parametrize("switch", ["1", "0"])
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
def test_any_name_can_be_written(
    query: str, positions: list[int], switch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every evaluation finds types, variables and attributes of any name, and repr writes them again."""
    monkeypatch.setenv("PYFLINKCEP_KERNEL", switch)
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
