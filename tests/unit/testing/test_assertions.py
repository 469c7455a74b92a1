# SPDX-License-Identifier: Apache-2.0
"""What ``assertMatches`` takes for the same, and how it shows a difference."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pyflinkcep.errors import InputError, InvalidArgumentError
from pyflinkcep.testing import assertMatches

FOUND = [{"a": [{"id": 1}], "b": [{"id": 2}, {"id": 3}]}, {"a": [{"id": 4}], "b": [{"id": 5}]}]


@pytest.mark.parametrize(
    ("expected", "settings"),
    [
        (FOUND, {}),
        ([{"a": [1], "b": [2, 3]}, {"a": [4], "b": [5]}], {"by": "id"}),
        ([{"a": [1.0], "b": (2, 3)}, {"a": [4], "b": [5]}], {"by": lambda e: e["id"]}),
        (FOUND[::-1], {"ignoreOrder": True}),
    ],
)
def test_equal(expected: Any, settings: Any) -> None:
    """Matches are compared by equality, whole or by a value of each event."""
    assertMatches(FOUND, expected, **settings)


@pytest.mark.parametrize(
    ("expected", "settings", "message"),
    [
        (
            [{"a": [1], "b": [2]}, {"a": [4], "b": [5]}],
            {},
            "1 of 2 expected matches missing, 1 unexpected:\n"
            "- a: 1 | b: 2\n+ a: 1 | b: 2, 3\n  a: 4 | b: 5",
        ),
        (
            [],
            {},
            "0 of 0 expected matches missing, 2 unexpected:\n+ a: 1 | b: 2, 3\n+ a: 4 | b: 5",
        ),
        (
            [{"a": [4], "b": [5]}, {"a": [1], "b": [2, 3]}, {"a": [4], "b": [5]}],
            {"ignoreOrder": True},
            "1 of 3 expected matches missing, 0 unexpected:\n"
            "  a: 1 | b: 2, 3\n- a: 4 | b: 5\n  a: 4 | b: 5",
        ),
    ],
)
def test_different(expected: Any, settings: Any, message: str) -> None:
    """The message has a line for each match: missing, surplus or in both."""
    with pytest.raises(AssertionError) as caught:
        assertMatches(FOUND, expected, by="id", **settings)

    assert sorted(str(caught.value).split("\n")) == sorted(message.split("\n"))


def test_order_counts() -> None:
    """Matches have an order, which is compared unless told otherwise."""
    with pytest.raises(AssertionError, match="expected matches"):
        assertMatches(FOUND, FOUND[::-1])


MISUSED: dict[str, tuple[Any, Any, Any, str]] = {
    "None": (FOUND, None, None, "expected: expected a list of matches, got None"),
    "one match": (FOUND, {"a": [1]}, None, "expected: expected a list of matches, got {"),
    "a text": ("ab", [], None, "actual: expected a list of matches, got 'ab'"),
    "of a harness": ([(None, 1, {})], [], None, "actual: expected a dict of stage to events, got"),
    "one event": (FOUND, [{"a": 1}], None, "expected: expected a list of events of 'a', got 1"),
    "a text of events": (FOUND, [{"a": "x"}], None, "expected a list of events of 'a', got 'x'"),
    "a position": (FOUND, [], 5, "by: expected the name of a field or a function"),
    "no such field": (FOUND, [], "idd", "by='idd': the event"),
}


@pytest.mark.parametrize("case", MISUSED)
def test_misuse(case: str) -> None:
    """What is not a list of matches, or names no field, is refused with a hint."""
    actual, expected, by, message = MISUSED[case]
    with pytest.raises((InvalidArgumentError, InputError), match=re.escape(message)) as caught:
        assertMatches(actual, expected, by)

    assert caught.value.hint
