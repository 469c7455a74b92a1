# SPDX-License-Identifier: Apache-2.0
"""Patterns whose partial matches have ways of their own: links find what the automaton finds."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyflinkcep import AfterMatchSkipStrategy, Pattern, WithinType, match
from pyflinkcep.engines.flink import bridge
from pyflinkcep.engines.flink.bridge import make_kernel
from pyflinkcep.engines.flink.nfa import NFA, NFACompiler
from pyflinkcep.engines.flink.nfa.analysis import Unbranched, bits_of_own_ways
from pyflinkcep.engines.flink.nfa.atoms import known_bits
from pyflinkcep.matching import matcher
from pyflinkcep.matching.results import Found
from tests.kernel_harness import needs_kernel
from tests.property.strategies import Event, PatternSpec, StageSpec, patterns, timed_events

KEYS = 3


def sql(names: frozenset[str]) -> str:
    """Return the condition that an event has one of some names."""
    return f"name IN ({', '.join(map(repr, sorted(names)))})"


def has_own_ways(pattern: Pattern) -> bool:
    nfa = NFACompiler.compile(pattern, timeoutHandling=True)
    return bits_of_own_ways(nfa, known_bits(nfa.atoms)) is not None


def by_events(spec: PatternSpec) -> PatternSpec:
    """Return the pattern without what is never left to links."""
    window = None if spec.window is None else (spec.window[0], WithinType.FIRST_AND_LAST.name)
    return PatternSpec(tuple(map(_without_rising, spec.stages)), None, window)


def _without_rising(stage: StageSpec) -> StageSpec:
    return attrs.evolve(stage, rising=False, group=tuple(map(_without_rising, stage.group)))


def is_linked(spec: PatternSpec) -> bool:
    """Whether the kernel links events, which it does for no pattern that queues are enough for."""
    pattern = spec.build(sql)
    nfa = NFACompiler.compile(pattern, timeoutHandling=True)
    return has_own_ways(pattern) and Unbranched.of(nfa, known_bits(nfa.atoms)) is None


SPECS = patterns().map(by_events).filter(is_linked)


@given(SPECS, timed_events(40), st.sampled_from([1, 5, matcher.MOST_EVENTS]))
def test_matches_and_timeouts_are_those_of_the_automaton(
    spec: PatternSpec, timed: list[tuple[Event, int]], most_events: int
) -> None:
    """Of a table's keys links find the same, in the same order, whenever results are taken."""
    pattern, how = spec.build(sql), {"timestamp": "at", "key": "key"}
    rows = [{"key": e.number % KEYS, "at": at, "name": e.name, "no": e.number} for e, at in timed]
    names = {"key": pa.int64(), "at": pa.int64(), "name": pa.string(), "no": pa.int64()}
    table = pa.Table.from_pylist(rows, pa.schema(names))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matcher, "MOST_EVENTS", most_events)
        found = match(pattern, table, **how)
    automaton = match(pattern, rows, **how)

    assert found == automaton
    assert found.timeouts == automaton.timeouts


@needs_kernel
@given(SPECS, timed_events(40), st.integers(1, 3), st.sampled_from([1, 5, matcher.MOST_EVENTS]))
def test_the_kernel_gives_the_same_with_links_and_with_a_buffer(
    spec: PatternSpec, timed: list[tuple[Event, int]], keys: int, most_events: int
) -> None:
    """Results and counts of how partial matches ended are alike to the last number."""
    nfa = NFACompiler.compile(spec.build(sql), timeoutHandling=True)
    with pytest.MonkeyPatch.context() as patch:
        linked = _all_of(make_kernel(nfa, known_bits(nfa.atoms)), nfa, timed, keys, most_events)
        patch.setattr(bridge, "bits_of_own_ways", lambda nfa, known: None)
        plain = make_kernel(nfa, known_bits(nfa.atoms))

    assert linked == _all_of(plain, nfa, timed, keys, matcher.MOST_EVENTS)


def _all_of(
    kernel: Any, nfa: NFA, timed: list[tuple[Event, int]], keys: int, most_events: int
) -> tuple[list[Any], Any]:
    """Return the results of events of some keys, and how many partial matches ended."""
    ordered = sorted(timed, key=lambda one: one[0].number % keys)
    times = np.asarray([at for _, at in ordered], np.int64)
    of_key = np.asarray([event.number % keys for event, _ in ordered], np.int64)
    bounds = np.append(np.searchsorted(of_key, np.arange(keys + 1)), len(times))
    bits = np.asarray(
        [
            sum(atom.bit for atom in nfa.atoms if f"'{event.name}'" in repr(atom.condition))
            for event, _ in ordered
        ],
        np.int64,
    )
    results: list[Any] = []
    stretch, row = 0, 0
    while stretch < keys + 1:
        stretch, row, _open = kernel.run(
            None, times, None, 0, bits, bounds, np.ones(keys + 1, bool), stretch, row, most_events
        )
        results += Found.of(list(nfa.stages), kernel.take_found()[:-1]).results()
    return results, kernel.take_ended()


A = Pattern.begin("a").where("n = 1")
B = A.followedBy("b").where("n = 2")
SKIPS = Pattern.begin("a", AfterMatchSkipStrategy.skipPastLastEvent()).where("n = 1")


@pytest.mark.parametrize(
    "pattern",
    [
        B,
        B.oneOrMore().followedBy("c").where("n = 3"),
        A.followedByAny("b").where("n = 2").followedByAny("c").where("n = 3"),
        B.optional().followedBy("c").where("n = 3"),
        A.oneOrMore().next("b").where("n = 2"),
    ],
    ids=["chain", "loop", "any", "optional", "loop at the beginning"],
)
def test_branches_that_never_meet_again_are_linked(pattern: Pattern) -> None:
    """Two partial matches of one beginning never take an event for one stage, and go on."""
    assert has_own_ways(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        A,
        B.oneOrMore().allowCombinations().followedBy("c").where("n = 3"),
        A.followedByAny("b").where("n = 2").followedByAny("c").where("n = 3").next("d"),
        A.optional().followedBy("b").where("n = 2").followedBy("c"),
        A.followedBy("b").where(lambda event: event.n == 2),
        SKIPS.followedBy("b").where("n = 2"),
    ],
    ids=["alone", "combinations", "any, and on", "optional at first", "function", "skips"],
)
def test_others_are_left_to_the_automaton(pattern: Pattern) -> None:
    """Ways that meet need versions, and what is more than conditions of an event its own rules."""
    assert not has_own_ways(pattern)
