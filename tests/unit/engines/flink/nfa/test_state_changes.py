# SPDX-License-Identifier: Apache-2.0
"""What counts as a change of a key's state, so that it must be written."""

from __future__ import annotations

from pyflinkcep import AfterMatchSkipStrategy as Skip
from pyflinkcep.testing import NFATestHarness
from tests.shorthand import parse


def test_only_events_that_change_something_count() -> None:
    """An event nobody waits for, or that is only passed by again, changes nothing."""
    pattern = "start[a] ->> middle[b]+:any? -> middle2[d] -> end[e] within[10]"
    harness = NFATestHarness(parse(pattern), timeoutHandling=True)
    changes = []
    for event, time in [("b", 1), ("a", 2), ("f", 3), ("f", 4), ("b", 5), ("d", 6)]:
        harness.process(event, time)
        changes.append(harness.stateChanged)

    assert changes == [False, True, True, False, True, True]


def test_time_that_ends_nothing_changes_nothing() -> None:
    """Advancing time is a change only where a window ends."""
    harness = NFATestHarness(parse("a -> b within[10]"), timeoutHandling=True)
    harness.process("a", 2)
    changes = [harness.stateChanged]
    for time in (8, 11, 12):
        timed_out = harness.advanceTime(time)[1]
        changes.append(harness.stateChanged)

    assert (changes, timed_out) == ([True, False, False, True], [({"a": ["a"]}, 12)])


def test_one_new_partial_match_is_a_change() -> None:
    """A partial match that goes on as exactly one other has changed."""
    harness = NFATestHarness(parse("start -> m[a]+? >> end[b] within[10]"))
    changes = []
    for event, time in [("start", 6), ("a", 7)]:
        harness.process(event, time)
        changes.append(harness.stateChanged)

    assert changes == [True, True]


def test_an_expired_match_without_pruning_is_a_change() -> None:
    """A window that ends changes the state whatever the skip strategy."""
    for skip in (Skip.noSkip(), Skip.skipToNext()):
        harness = NFATestHarness(parse("start -> end within[10]", skip))
        harness.process("start", 6)
        before = harness.stateChanged
        harness.advanceTime(17)

        assert (before, harness.stateChanged) == (True, True)


def test_a_match_is_a_change() -> None:
    """A pattern of one stage changes with every match."""
    harness = NFATestHarness(parse("a"))
    found = harness.process("a", 1)

    assert (len(found), harness.stateChanged, harness.stateChanged) == (1, True, False)
