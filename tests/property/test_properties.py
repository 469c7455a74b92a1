# SPDX-License-Identifier: Apache-2.0
"""What must hold of every pattern and every input."""

from __future__ import annotations

from datetime import timedelta
from itertools import chain
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.testing import NFATestHarness, OperatorTestHarness
from tests.property.brute_force import brute_force
from tests.property.strategies import (
    Event,
    PatternSpec,
    StageSpec,
    patterns,
    plain_patterns,
    timed_events,
)

Timed = list[tuple[Event, int]]


def feed(harness: NFATestHarness, events: Timed) -> list[Any]:
    """Return all matches, those released by time among them."""
    found = []
    for event, time in events:
        found += harness.advanceTime(time)[0]
        found += harness.process(event, time)
    return found


def output(harness: OperatorTestHarness) -> tuple[Any, ...]:
    """Return all that an operator has said."""
    return (
        harness.matches,
        harness.timeouts,
        harness.lateData,
        harness.numLateRecordsDropped,
        harness.keysWithState,
    )


@given(patterns(), timed_events(), st.data())
def test_snapshots_change_nothing(spec: PatternSpec, events: Timed, data: st.DataObject) -> None:
    """Whenever state is saved and restored, the results and their order stay the same."""
    plain, restored = (OperatorTestHarness(spec.build(), True, True) for _ in range(2))
    watermarks = data.draw(st.lists(st.integers(0, 3), min_size=len(events), max_size=len(events)))
    restores = data.draw(st.lists(st.booleans(), min_size=len(events), max_size=len(events)))
    for (event, time), behind, restore in zip(events, watermarks, restores, strict=True):
        for harness in (plain, restored):
            harness.processElement(event, time, key=event.price % 2)
            harness.processWatermark(time - behind)
        if restore:
            restored = restored.snapshotAndRestore()
    for harness in (plain, restored):
        harness.close()

    assert output(restored) == output(plain)


@given(patterns(), timed_events())
def test_the_buffer_is_empty_when_no_partial_match_is_left(
    spec: PatternSpec, events: Timed
) -> None:
    """With the start state alone left, no event and no node is held."""
    harness = NFATestHarness(spec.build(), timeoutHandling=True)
    feed(harness, events)
    if spec.window is not None:
        harness.advanceTime(10_000)
    held = harness.bufferNodes + harness.bufferedEvents
    waiting = harness.partialMatches > 1

    assert waiting or held == 0


@given(patterns(st.tuples(st.integers(1, 9), st.just("FIRST_AND_LAST"))), timed_events())
def test_a_window_frees_everything(spec: PatternSpec, events: Timed) -> None:
    """After the window of the whole pattern has passed, a key holds nothing."""
    harness = NFATestHarness(spec.build())
    feed(harness, events)
    harness.advanceTime(10_000)

    assert (harness.partialMatches, harness.bufferNodes, harness.bufferedEvents) == (1, 0, 0)


@given(plain_patterns(), timed_events(most=14))
def test_plain_patterns_match_what_trying_every_way_finds(spec: PatternSpec, events: Timed) -> None:
    """Strict, relaxed and any contiguity give exactly the matches that their words describe."""
    found = [
        tuple(event.number for stage in match.values() for event in stage)
        for match in feed(NFATestHarness(spec.build()), events)
    ]
    expected = brute_force(spec, [event for event, _ in events])

    assert (set(found), len(found)) == (expected, len(expected))


def test_trying_every_way() -> None:
    """The matcher that tries every way gives what the words mean on a case counted by hand."""
    events = [Event(name, number, 1) for number, name in enumerate("aababc")]
    found = {
        op: brute_force(
            PatternSpec(
                (StageSpec("begin", frozenset("a")), StageSpec(op, frozenset("b"))),
            ),
            events,
        )
        for op in ("next", "followedBy", "followedByAny")
    }

    assert found == {
        "next": {(1, 2), (3, 4)},
        "followedBy": {(0, 2), (1, 2), (3, 4)},
        "followedByAny": {(0, 2), (0, 4), (1, 2), (1, 4), (3, 4)},
    }


@given(patterns(), timed_events())
def test_events_of_a_match_fit_their_stages(spec: PatternSpec, events: Timed) -> None:
    """Every event of a match fulfils the condition of the stage it stands under."""
    conditions = spec.conditions()
    wrong = [
        (stage, event)
        for match in feed(NFATestHarness(spec.build()), events)
        for stage, taken in match.items()
        for event in taken
        if event.name not in conditions[stage]
    ]

    assert wrong == []


@given(patterns(), timed_events())
def test_events_of_a_match_are_in_order_and_taken_once(spec: PatternSpec, events: Timed) -> None:
    """In every stage events are in order of arrival, and no event stands twice in a match."""
    for match in feed(NFATestHarness(spec.build()), events):
        numbers = [[event.number for event in taken] for taken in match.values()]
        flat = list(chain.from_iterable(numbers))

        assert ([sorted(taken) for taken in numbers], len(set(flat))) == (numbers, len(flat))


@given(patterns(st.tuples(st.integers(1, 9), st.just("FIRST_AND_LAST"))), timed_events())
def test_matches_fit_their_window(spec: PatternSpec, events: Timed) -> None:
    """The first and last event of a match are less than the window apart."""
    assert spec.window is not None
    times = {event.number: time for event, time in events}
    spans = [
        max(found) - min(found)
        for match in feed(NFATestHarness(spec.build()), events)
        if (found := [times[event.number] for taken in match.values() for event in taken])
    ]

    assert [span for span in spans if span >= spec.window[0]] == []


@given(patterns(), timed_events())
def test_stages_of_a_match_are_known(spec: PatternSpec, events: Timed) -> None:
    """A match has only stages of the pattern that take events, and none that is empty."""
    nots = {f"s{n}" for n, stage in enumerate(spec.stages) if stage.is_not}
    known = set(spec.conditions()) - nots
    wrong = [
        match
        for match in feed(NFATestHarness(spec.build()), events)
        if not (set(match) <= known and all(match.values()))
    ]

    assert wrong == []


@given(patterns(), timed_events())
def test_one_pattern_serves_many_keys(spec: PatternSpec, events: Timed) -> None:
    """A key's results do not depend on the other keys."""
    together = OperatorTestHarness(spec.build(), True)
    for event, time in events:
        for key in ("x", "y"):
            together.processElement(event, time, key)
    together.close()
    alone = OperatorTestHarness(spec.build(), True)
    for event, time in events:
        alone.processElement(event, time, "x")
    alone.close()

    for key in ("x", "y"):
        for rows, expected in (
            (together.matches, alone.matches),
            (together.timeouts, alone.timeouts),
        ):
            assert [row[1:] for row in rows if row[0] == key] == [row[1:] for row in expected]


@given(patterns(), timed_events())
def test_compiling_twice_gives_the_same(spec: PatternSpec, events: Timed) -> None:
    """A pattern may be compiled any number of times, and behaves the same each time."""
    pattern = spec.build()
    first = feed(NFATestHarness(pattern), events)
    states = list(NFACompiler.compile(pattern).tables)

    assert (feed(NFATestHarness(pattern), events), list(NFACompiler.compile(pattern).tables)) == (
        first,
        states,
    )


@given(patterns(st.none()), timed_events(), st.integers(1, 1000))
def test_without_windows_only_the_order_counts(
    spec: PatternSpec, events: Timed, shift: int
) -> None:
    """A pattern without windows gives the same matches wherever in time its events lie."""
    moved = [(event, time + shift) for event, time in events]

    assert feed(NFATestHarness(spec.build()), moved) == feed(NFATestHarness(spec.build()), events)


@given(patterns(), timed_events())
def test_a_window_so_long_that_it_never_ends(spec: PatternSpec, events: Timed) -> None:
    """A window longer than the input gives the matches of the pattern without a window."""
    assume(not spec.ends_with_not)
    plain = PatternSpec(spec.stages, spec.skip)
    windowed = plain.build().within(timedelta(days=1))

    assert feed(NFATestHarness(windowed), events) == feed(NFATestHarness(plain.build()), events)
