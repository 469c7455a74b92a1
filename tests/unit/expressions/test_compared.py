# SPDX-License-Identifier: Apache-2.0
"""Which values a condition compared."""

from __future__ import annotations

from typing import Any

import pytest

from pyflinkcep.expressions.evaluator import compared_in_match, compared_in_sql
from pyflinkcep.expressions.parser import sql_condition
from pyflinkcep.expressions.tree import MatchExpression

EVENT = {"kind": "b", "price": 5, "note": None, "tag": ["x"]}
TAKEN = {"up": [{"price": 2}, {"price": 4}], "low": [{"price": 1}]}
ORDER = [*TAKEN["low"], *TAKEN["up"]]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("kind = 'a'", [("kind = 'a'", False, {"kind": "b"})]),
        (
            "price > 3 AND (kind = 'a' OR note IS NULL)",
            [
                ("price > 3", True, {"price": 5}),
                ("(kind = 'a' OR note IS NULL)", True, {"kind": "b", "note": None}),
            ],
        ),
        ("price * 2 >= 11 - price", None),
        ("note > 1", [("note > 1", False, {"note": None})]),
        ("price BETWEEN 6 AND 9", None),
        ("NOT price IN (1, 5)", None),
        ("upper(kind) LIKE 'A%'", None),
    ],
)
def test_each_part_of_a_condition_says_what_it_compared(
    text: str, parts: list[tuple[str, bool, dict[str, Any]]] | None
) -> None:
    """AND is taken apart; each part has its answer and the values beside its literals."""
    found = compared_in_sql(text, EVENT)

    if parts is None:
        assert found
        assert all(part.values for part in found)
    else:
        own = [(part.text.strip("()"), part.holds, dict(part.values)) for part in found]
        assert own == [(text.strip("()"), holds, values) for text, holds, values in parts]


@pytest.mark.parametrize(
    "text", ["no such SQL", "missing > 1", "my_function(kind) = 1", "1 / 0 > 1"]
)
def test_what_only_spark_can_say_has_no_values(text: str) -> None:
    """A trace does not fail for what it cannot show."""
    assert compared_in_sql(text, EVENT) == ()


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("price > avg(up.price)", {"price": 5, "avg(up.price)": 3.0}),
        ("price < last(up.price)", {"price": 5, "last(up.price)": 4}),
        ("price < last(up.price, 1)", {"price": 5, "last(up.price, 1)": 2}),
        ("price < first(up.price, 1)", {"price": 5, "first(up.price, 1)": 4}),
        ("count(up.*) = 3", {"count(up.*)": 2}),
        ("price = sum(match.price)", {"price": 5, "sum(match.price)": 7}),
        ("price > max(down.price)", {"price": 5, "max(down.price)": None}),
    ],
)
def test_sql_over_stages_says_what_the_partial_match_had(text: str, values: dict[str, Any]) -> None:
    """Aggregates have their value over the events taken."""
    condition = sql_condition(text, "now")
    assert isinstance(condition, MatchExpression)
    (found,) = compared_in_match(condition, EVENT, TAKEN, ORDER)

    assert dict(found.values) == values
