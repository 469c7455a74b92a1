# SPDX-License-Identifier: Apache-2.0
"""What is told of the partial matches and matches that a stream holds."""

from __future__ import annotations

from datetime import timedelta

import pytest

from pyflinkcep import AfterMatchSkipStrategy, Pattern
from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.spark.worker.waiting import HELD, PARTIAL, _facts
from pyflinkcep.testing import OperatorTestHarness

NEXT = (
    Pattern.begin("a", AfterMatchSkipStrategy.skipToNext())
    .where(lambda n: n > 0)
    .followedBy("b")
    .where(lambda n, ctx: n == next(iter(ctx.getEventsForPattern("a"))) + 1)
)


@pytest.mark.parametrize(
    ("pattern", "last"),
    [
        (NEXT, (HELD, "b", "partial matches that began earlier")),
        (NEXT.notFollowedBy("never").where(lambda n: n < 0), (PARTIAL, "b", "not never")),
    ],
)
def test_all_that_waits_says_for_what(pattern: Pattern, last: tuple[str, str, str]) -> None:
    """Partial matches wait for stages or the end of a NOT stage, matches for what began earlier."""
    pattern = pattern.within(timedelta(milliseconds=10))
    harness = OperatorTestHarness(pattern)
    for time, number in enumerate((9, 1, 2)):
        harness.processElement(number, time)
    harness.processWatermark(5)
    nfa = NFACompiler.compile(pattern)
    ((_, context),) = harness._operator.keys.items()
    states = context.state.nfa_state

    told = {
        _facts(nfa, what, state, 1)
        for what, kept in ((PARTIAL, states.partial_matches), (HELD, states.completed_matches))
        for state in kept
        if state.previous_node is not None
    }
    assert {facts[:3] for facts in told} == {(PARTIAL, "a", "b"), last}
    assert all(end == began + 10 for *_, began, end in told if end is not None)
