# SPDX-License-Identifier: Apache-2.0
"""The operator in processing time: the clock is the time of every event."""

from __future__ import annotations

from typing import Any

from pyflinkcep import Pattern
from pyflinkcep.testing import OperatorTestHarness
from tests.shorthand import braces, parse


def clocked(pattern: Pattern, line: str, **options: Any) -> OperatorTestHarness:
    """Run ``a@5``, an event when the clock shows 5; ``@9`` moves the clock alone."""
    harness = OperatorTestHarness(pattern, processingTime=True, **options)
    feed(harness, line)
    return harness


def feed(harness: OperatorTestHarness, line: str, key: Any = None) -> None:
    """Move the clock and hand in events; their own time is nonsense on purpose."""
    for word in line.split():
        event, _, clock = word.partition("@")
        harness.setProcessingTime(int(clock))
        if event:
            harness.processElement(event, -77, key)


def results(rows: list[tuple[Any, int, Any]]) -> list[str]:
    """Return matches or timeouts as ``5:{a b}``."""
    return [f"{timestamp}:{braces(match)}" for _, timestamp, match in rows]


def test_events_are_matched_at_once() -> None:
    """Without a comparator nothing waits, and the clock is the time of the match."""
    harness = clocked(Pattern.begin("any"), "a@1 b@2")

    assert results(harness.matches) == ["1:{a}", "2:{b}"]


def test_timeouts() -> None:
    """A match has the time of its last event, a timeout that of the end of its window."""
    harness = clocked(parse("any[*] >> c within[10]"), "a@3 c@5 b@20", timeoutHandling=True)

    assert (results(harness.matches), results(harness.timeouts)) == (["5:{a c}"], ["15:{c}"])


def test_a_timer_fires_after_the_window() -> None:
    """Without an event the timeout comes one millisecond after the end of the window."""
    harness = clocked(parse("a -> b within[10]"), "a@3 @13", timeoutHandling=True)
    at_the_end = results(harness.timeouts)
    feed(harness, "@14")

    assert (at_the_end, results(harness.timeouts), harness.keysWithState) == (
        [],
        ["13:{a}"],
        0,
    )


def test_no_timer_at_the_end_of_input() -> None:
    """Closing does not move the clock."""
    harness = clocked(parse("a -> b within[10]"), "a@3", timeoutHandling=True)
    harness.close()

    assert harness.timeouts == []


def test_a_comparator_makes_events_wait() -> None:
    """Events of one instant are ordered once the clock has moved on."""
    harness = clocked(parse("a ->> b"), "b2@3 a@3 b1@3", comparator=lambda event: event)
    waiting = results(harness.matches)
    feed(harness, "@4")

    assert (waiting, results(harness.matches)) == ([], ["3:{a b1}", "3:{a b2}"])


def test_state_is_restored_between_events() -> None:
    """A snapshot between any two events changes nothing, and matched keys are forgotten."""
    harness = OperatorTestHarness(parse("c -> a -> b within[10]"), processingTime=True)
    for word in ["c@1", "d@2", "a@3", "b@4"]:
        feed(harness, word, key=1)
        harness = harness.snapshotAndRestore()

    assert (results(harness.matches), harness.keysWithState) == (["4:{c a b}"], 0)


def test_expiry_frees_the_buffer() -> None:
    """When the window is over nothing of the key is left."""
    harness = clocked(parse("a ->> b ->> c within[10]"), "a1@1 b1@2 a2@3 b2@4 c@5")
    matched = len(harness.matches)
    feed(harness, "@14")

    assert (matched, harness.keysWithState) == (3, 0)
