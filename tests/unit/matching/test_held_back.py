# SPDX-License-Identifier: Apache-2.0
"""How far behind the watermark the events of a match can be."""

from __future__ import annotations

import pytest

from pyflinkcep import Pattern, WithinType
from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.matching.held_back import HeldBack
from pyflinkcep.sase import parse
from tests.shorthand import ms

GAP = WithinType.PREVIOUS_AND_CURRENT
a = Pattern.begin("a")


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (a, 0),
        (a.followedBy("b").within(ms(9)), 9),
        (a.oneOrMore().notFollowedBy("b").within(ms(9)), 9),
        (a.followedBy("b"), None),
        (a.next("b"), None),
        (a.oneOrMore(), None),
        (a.followedBy("b").within(ms(9), GAP), 9),
        (a.followedBy("b").within(ms(9), GAP).followedBy("c").within(ms(4), GAP), 13),
        (a.followedBy("b").optional().within(ms(9), GAP).next("c").within(ms(4), GAP), 13),
        (a.followedBy("b").within(ms(9), GAP).followedBy("c"), None),
        (a.followedBy("b").oneOrMore().within(ms(9), GAP), None),
    ],
)
def test_of_a_pattern(pattern: Pattern, expected: int | None) -> None:
    """It is the window, or the sum of the gaps; a loop, or a stage without a gap, has no bound."""
    assert HeldBack.by_pattern(NFACompiler.compile(pattern)) == HeldBack(expected, 0)


@pytest.mark.parametrize(
    ("text", "output", "compressed", "expected"),
    [
        ("PATTERN SEQ(A a, B b) WITHIN 9", "all", False, HeldBack(9, 0)),
        ("PATTERN SEQ(A a, B b) WITHIN 9", "onePerStart", False, HeldBack(9, 9)),
        ("PATTERN SEQ(A a, ~(B b)) WITHIN 9", "all", False, HeldBack(9, 9)),
        ("PATTERN SEQ(A a, ~(B b)) WITHIN 9", "all", True, HeldBack(18, 9)),
        ("PATTERN SEQ(A a, B b)", "all", False, HeldBack(None, 0)),
        ("PATTERN SEQ(A a, B b)", "nonOverlapping", False, HeldBack(None, None)),
    ],
)
def test_of_a_query(text: str, output: str, compressed: bool, expected: HeldBack) -> None:
    """Matches that later events may undo wait for their window; compressed ones for one more."""
    assert HeldBack.by_query(parse(text), output, compressed=compressed) == expected


def test_of_a_query_that_runs_as_a_pattern() -> None:
    """The time of its matches is that of their last event, also of those that wait."""
    waiting = a.notFollowedBy("b").within(ms(9))

    for pattern, lag in ((waiting, 9), (a.followedBy("b").within(ms(9)), 0)):
        nfa = NFACompiler.compile(pattern)
        assert HeldBack.by_pattern(nfa, of_query=True) == HeldBack(9, lag)
