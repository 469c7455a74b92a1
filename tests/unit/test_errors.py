# SPDX-License-Identifier: Apache-2.0
"""What errors say, and what they learn on their way to the user."""

from __future__ import annotations

import pytest

from pyflinkcep.errors import CepError, CepRuntimeError, ConditionError, MalformedPatternException


def test_the_hint_comes_after_a_blank_line() -> None:
    """The text of an error is its message and what to do instead."""
    error = MalformedPatternException("times(3) after times(2)", "quantify a stage once")

    assert str(error) == "times(3) after times(2)\n\nHint: quantify a stage once"


def test_facts_are_in_the_text() -> None:
    """A failure at run time tells stage, key and time in its text, for the class may get lost."""
    error = ConditionError("boom", "fix it", stage="a", key="'k'", timestamp_ms=5)

    assert str(error) == "boom (stage 'a', key 'k', event time 5 ms)\n\nHint: fix it"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ConditionError("boom"), "boom"),
        (ConditionError("boom", stage="a"), "boom (stage 'a')"),
        (ConditionError("boom", timestamp_ms=0), "boom (event time 0 ms)"),
    ],
)
def test_unknown_facts_are_left_out(error: CepRuntimeError, text: str) -> None:
    """What is not known is not mentioned; a time of 0 is known."""
    assert str(error) == text


def test_the_key_is_filled_in_on_the_way() -> None:
    """``at_key`` gives the same error with the key, and keeps type, facts and cause."""
    error = ConditionError("boom", "fix it", stage="a", timestamp_ms=5)
    error.__cause__ = KeyError("x")
    found = error.at_key(("u", 1))

    assert (type(found), found.key, found.stage, found.timestamp_ms, found.__cause__) == (
        ConditionError,
        "('u', 1)",
        "a",
        5,
        error.__cause__,
    )


def test_the_time_is_filled_in_on_the_way() -> None:
    """``at_time`` gives the same error with the event's time."""
    assert ConditionError("boom").at_time(9).timestamp_ms == 9


def test_facts_that_are_known_stay() -> None:
    """The place nearest to the failure knows best."""
    error = ConditionError("boom", key="'first'", timestamp_ms=1)

    assert (error.at_key("second"), error.at_time(2)) == (error, error)


def test_one_parent_of_all() -> None:
    """Everything that this project raises on purpose is a CepError."""
    assert issubclass(MalformedPatternException, CepError)
    assert issubclass(ConditionError, CepError)


def test_the_pattern_is_filled_in_on_the_way() -> None:
    """``in_pattern`` puts the pattern first among the facts."""
    error = ConditionError("boom", stage="a").in_pattern("a → b").in_pattern("other")

    assert str(error) == "boom (pattern a → b, stage 'a')"
