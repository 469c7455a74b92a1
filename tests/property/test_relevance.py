# SPDX-License-Identifier: Apache-2.0
"""Dropping the events that are said to change nothing changes nothing, on random patterns."""

from __future__ import annotations

from typing import Any

import attrs
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pyflinkcep.engines.flink.nfa import NFA, NFACompiler
from pyflinkcep.engines.flink.nfa.relevance import Relevance
from pyflinkcep.testing import OperatorTestHarness
from tests.property.strategies import Event, PatternSpec, StageSpec, is_buildable, patterns

Timed = list[tuple[Event, int]]
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
