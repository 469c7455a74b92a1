# SPDX-License-Identifier: Apache-2.0
"""What must hold of every pattern and every input."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from itertools import chain
from typing import Any

import attrs
import pyarrow as pa
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from pyflinkcep import AfterMatchSkipStrategy, match
from pyflinkcep.engines.flink.nfa import NFA, NFACompiler
from pyflinkcep.engines.flink.nfa.analysis import Relevance
from pyflinkcep.testing import NFATestHarness, OperatorTestHarness, trace
from tests.property.strategies import (
    Event,
    PatternSpec,
    StageSpec,
    is_buildable,
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
            PatternSpec((StageSpec("begin", frozenset("a")), StageSpec(op, frozenset("b")))), events
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
    for found in feed(NFATestHarness(spec.build()), events):
        numbers = [[event.number for event in taken] for taken in found.values()]
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


# --- events as a list and as a table have the same matches and the same timeouts


Numbers = dict[str, list[int]]


def one_of(names: frozenset[str]) -> str:
    """Return a condition that a table computes by columns."""
    return f"name IN ({', '.join(map(repr, sorted(names)))})"


def numbers(found: dict[str, list[Any]]) -> Numbers:
    """Return what stages took, by the numbers of events."""
    return {stage: [event["number"] for event in events] for stage, events in found.items()}


def outcome(found: Any) -> tuple[list[Numbers], list[tuple[int, Numbers]]]:
    """Return the matches and the timeouts."""
    timeouts = [(timeout.timestamp, numbers(timeout.match)) for timeout in found.timeouts]
    return list(map(numbers, found)), timeouts


_A = frozenset("a")
_OPTIONAL = (("optional", ()),)
SKIPPED = PatternSpec(
    (
        StageSpec("begin", _A, calls=_OPTIONAL),
        StageSpec("next", _A, calls=_OPTIONAL),
        StageSpec("next", _A),
        StageSpec("notFollowedBy", _A),
    ),
    AfterMatchSkipStrategy.skipPastLastEvent(),
    (2, "FIRST_AND_LAST"),
)
"""The end of the first window releases a match, which skips what the later one would end."""


@given(patterns(), timed_events())
@example(SKIPPED, [(Event("a", 0, 1), 1), (Event("a", 1, 1), 2)])
def test_a_list_and_a_table_are_alike(spec: PatternSpec, events: list[tuple[Event, int]]) -> None:
    """The end of the input ends windows one after another, however the events are given."""
    without = attrs.evolve(spec, stages=tuple(map(_plain, spec.stages)))
    pattern = without.build(one_of)
    rows = [
        {"name": event.name, "number": event.number, "price": event.price, "ts": time}
        for event, time in events
    ]
    schema = pa.schema(
        [("name", "string"), ("number", "int64"), ("price", "int64"), ("ts", "int64")]
    )
    by_row = match(pattern, rows, timestamp="ts")
    by_column = match(pattern, pa.Table.from_pylist(rows, schema), timestamp="ts")
    assert outcome(by_row) == outcome(by_column)
    shown = trace(pattern, rows, timestamp="ts")
    assert [numbers(found) for found in shown.matches] == outcome(by_row)[0]


def _plain(stage: Any) -> Any:
    """Return a stage whose conditions are SQL alone."""
    return attrs.evolve(stage, rising=False, group=tuple(map(_plain, stage.group)))


# --- dropping the events that are said to change nothing changes nothing, on random patterns


MANY = settings.default.max_examples * 2


@attrs.frozen
class Trial:
    """A pattern, which of its conditions are known beforehand, and an input."""

    spec: PatternSpec
    events: Timed
    delays: list[int]
    wants_timeouts: bool
    shows_time: bool
    unknown: int

    def relevance(self, nfa: NFA) -> Relevance:
        """Decide what may be dropped."""
        return Relevance.of(nfa, self.known(nfa), self.shows_time)

    def known(self, nfa: NFA) -> int:
        """Return the conditions that are known: all simple ones, or all but some."""
        return sum(atom.bit for atom in nfa.atoms) & ~self.unknown

    def run(self, events: Timed, watermarks: list[int]) -> OperatorTestHarness:
        """Return what Flink's operator gives for some of the events, and all watermarks."""
        harness = OperatorTestHarness(self.spec.build(), self.wants_timeouts)
        at = 0
        for watermark in watermarks:
            while at < len(events) and events[at][1] <= watermark:
                harness.processElement(*events[at])
                at += 1
            harness.processWatermark(watermark)
        for event in events[at:]:
            harness.processElement(*event)
        harness.close()
        return harness

    def result(self, harness: OperatorTestHarness, nfa: NFA) -> tuple[Any, Any]:
        """Return what can be seen: where time is hidden, a trailing NOT's matches have no order."""
        matches = [(ts if self.shows_time else 0, match) for _, ts, match in harness.matches]
        if any(table.is_pending for table in nfa.tables.values()):
            matches.sort(key=repr)
        return matches, harness.timeouts


def trials(spec: st.SearchStrategy[PatternSpec]) -> st.SearchStrategy[Trial]:
    """Return trials; half of the events fulfil no condition."""
    return st.builds(
        Trial,
        spec,
        _events(),
        st.lists(st.integers(0, 6), max_size=4),
        st.booleans(),
        st.booleans(),
        st.sampled_from([0, 0, 0, 1, 2, 4, 6]),
    )


@st.composite
def _events(draw: st.DrawFn) -> Timed:
    time, events = 1, []
    rows = st.tuples(st.sampled_from("abcxyz"), st.integers(1, 4), st.sampled_from([0, 1, 1, 3]))
    for number, (name, price, step) in enumerate(draw(st.lists(rows, min_size=4, max_size=20))):
        time += step
        events.append((Event(name, number, price), time))
    return events


def bits(nfa: NFA, event: Event) -> int:
    """Return the bits of the simple conditions that an event fulfils."""
    return sum(atom.bit for atom in nfa.atoms if atom.bit and atom.function(event))


def check(trial: Trial) -> None:
    """Compare the results with and without what may be dropped, if anything may."""
    nfa = NFACompiler.compile(trial.spec.build(), trial.wants_timeouts)
    droppable, known = trial.relevance(nfa).droppable, trial.known(nfa)
    kept = [timed for timed in trial.events if bits(nfa, timed[0]) & known not in droppable]
    assume(len(kept) < len(trial.events))  # else both runs are the same
    watermarks = [trial.events[at % len(trial.events)][1] + at % 2 for at in trial.delays]
    watermarks.sort()
    everything = trial.run(trial.events, watermarks)
    without = trial.run(kept, watermarks)

    assert trial.result(without, nfa) == trial.result(everything, nfa)


def _without_strictness(stage: StageSpec) -> StageSpec:
    """Return a stage as it would be were there neither strict contiguity nor notNext."""
    relaxed = {"next": "followedBy", "notNext": "notFollowedBy"}
    calls = [("allowCombinations", ()) if c == ("consecutive", ()) else c for c in stage.calls]
    group = tuple(map(_without_strictness, stage.group))
    return attrs.evolve(stage, op=relaxed.get(stage.op, stage.op), calls=tuple(calls), group=group)


def relaxed_patterns() -> st.SearchStrategy[PatternSpec]:
    """Return patterns most of which let events pass by."""
    windows = st.one_of(st.none(), st.tuples(st.integers(2, 9), st.just("FIRST_AND_LAST")))

    def relax(spec: PatternSpec) -> PatternSpec:
        return attrs.evolve(spec, stages=tuple(map(_without_strictness, spec.stages)))

    return patterns(windows).map(relax).filter(is_buildable)


@settings(max_examples=MANY)
@given(trials(relaxed_patterns()))
def test_what_may_be_dropped_of_relaxed_patterns_changes_no_result(trial: Trial) -> None:
    """The same where half of the patterns let something be dropped."""
    check(trial)


@settings(max_examples=MANY)
@given(trials(patterns()))
def test_what_may_be_dropped_changes_no_result(trial: Trial) -> None:
    """Matches, timeouts, their order and times are the same with and without the events."""
    check(trial)


# --- all matches of a plain pattern, by trying every way; slow, and plainly what the words mean


Way = tuple[int, ...]


def brute_force(spec: PatternSpec, events: Sequence[Event]) -> set[Way]:
    """
    Give every match of a plain pattern as the positions of its events.

    ``next`` takes the very next event; ``followedBy`` the first later one that fits;
    ``followedByAny`` any later one that fits.
    """
    first, *rest = spec.stages
    ways: set[Way] = {(at,) for at, event in enumerate(events) if event.name in first.names}
    for stage in rest:
        longer: set[Way] = set()
        for way in ways:
            later = range(way[-1] + 1, len(events))
            fitting = [at for at in later if events[at].name in stage.names]
            if stage.op == "next":
                fitting = [at for at in fitting if at == way[-1] + 1]
            elif stage.op == "followedBy":
                fitting = fitting[:1]
            longer |= {(*way, at) for at in fitting}
        ways = longer
    return ways
