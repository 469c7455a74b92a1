# SPDX-License-Identifier: Apache-2.0
"""``start.where(...)`` on a line of its own is warned of, and nothing else is."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from pyflinkcep import Pattern, UnusedResultWarning
from pyflinkcep.testing import match

DROPPED: list[Callable[[Pattern], Any]] = [
    lambda p: p.where(lambda e: e > 2),
    lambda p: p.or_("x > 2"),
    lambda p: p.oneOrMore(),
    lambda p: p.where(lambda e: e > 2).oneOrMore(),
]
USES: list[Callable[[Pattern], Any]] = [
    lambda p: p.next("b"),
    lambda p: p.where("x = 1"),
    lambda p: Pattern.begin(p),
    lambda p: p.stages(),
    lambda p: match(p, [1]),
]


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("drop", DROPPED)
def test_a_dropped_result_is_warned_of(drop: Any, use: Any) -> None:
    """A pattern that is used after the result of a call on it was dropped warns, once."""
    start = Pattern.begin("a")
    drop(start)
    with pytest.warns(UnusedResultWarning, match=r"\(\.\.\.\) at test_unused.py:\d+ was dropped"):
        kept = use(start)

    assert use(start) is not kept


def test_the_warning_points_to_the_user() -> None:
    """The warning is on the user's line, and says what to write."""
    start = Pattern.begin("a")
    start.where(lambda e: e > 2)
    with pytest.warns(UnusedResultWarning, match=r"Write pattern = pattern.where\(") as caught:
        start.next("b")

    assert caught[0].filename == __file__


def test_a_dropped_call_on_an_earlier_stage() -> None:
    """In Flink a call on an earlier stage changes the longer pattern too; here it is warned of."""
    start = Pattern.begin("a")
    pattern = start.next("b")
    start.where(lambda e: e > 2)

    with pytest.warns(UnusedResultWarning):
        match(pattern, [1, 2])


def test_what_a_notebook_shows_it_keeps() -> None:
    """A result that was only shown, which a notebook keeps, counts as dropped."""
    start = Pattern.begin("a")
    out = start.where("x > 2")
    assert out._repr_html_()

    with pytest.warns(UnusedResultWarning):
        start.next("b")


@pytest.mark.parametrize(
    "use",
    [
        lambda p: p.next("b"),
        lambda p: p.oneOrMore(),
        lambda p: p.getCondition(),
        lambda p: p.describe(),
        lambda p: match(p, [1]),
        lambda p: None,
    ],
)
def test_what_is_kept_or_used_is_fine(use: Any) -> None:
    """Results that have a name, or were used, are not warned of."""
    start = Pattern.begin("a")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        strict = start.where(lambda e: e > 2)
        use(strict)
        start.next("b")
        start = start.oneOrMore()
        match(start, [1])


def test_a_refused_call_is_not_a_dropped_one() -> None:
    """A call that raised has no result that could be dropped."""
    start = Pattern.begin("a")
    with pytest.raises(ValueError, match="expected a condition"):
        start.where(3)  # type: ignore[arg-type]

    assert start.next("b").describe() == "a ⇒ b"


def test_a_travelling_pattern_forgets() -> None:
    """What was dropped on the driver is not warned of again in the workers."""
    start = Pattern.begin("a")
    start.where("x > 2")
    copy = pickle.loads(pickle.dumps(start))

    assert copy.next("b").describe() == "a ⇒ b"
