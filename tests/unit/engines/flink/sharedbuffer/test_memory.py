# SPDX-License-Identifier: Apache-2.0
"""What is held while patterns run: shared, and no longer than needed."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from pyflinkcep import AfterMatchSkipStrategy as Skip
from pyflinkcep import Pattern
from pyflinkcep.engines.flink.sharedbuffer import DeweyNumber, SharedBufferEdge
from pyflinkcep.engines.flink.sharedbuffer.elements import ManyEdges
from pyflinkcep.pattern.aftermatch import SkipToElementStrategy
from pyflinkcep.testing import NFATestHarness, OperatorTestHarness
from tests.shorthand import braces, parse, run


@pytest.mark.parametrize(
    ("pattern", "events"),
    [
        ("a -> b", "a b"),
        ("a >> b", "a x"),
        ("a ->> b within[5]", "a@1 b@2 b@3 @6"),
        ("a+:any -> b within[5]", "a@1 a@2 a@3 b@4 @50"),
        ("a -> (b -> c)+ -> d within[9]", "a@1 b@2 c@3 b@4 c@5 d@6 @99"),
        ("a !-> b -> c", "a b"),
        ("a !-> b within[5]", "a@1 @6"),
        ("a -> b+ !-> c -> d within[5]", "a@1 b@2 b@3 d@4 @50"),
    ],
)
def test_nothing_is_left_when_no_partial_match_is(pattern: str, events: str) -> None:
    """Matched, discarded and expired runs leave neither nodes nor events."""
    harness = run(pattern, events).harness

    assert (harness.partialMatches, harness.bufferNodes, harness.bufferedEvents) == (1, 0, 0)


def test_pruned_runs_leave_nothing() -> None:
    """What a skip strategy discards is freed."""
    harness = run("a+ -> b+ -> c", "a1 a2 b1 b2 c", Skip.skipPastLastEvent()).harness

    assert (harness.partialMatches, harness.bufferNodes, harness.bufferedEvents) == (1, 0, 0)


def test_common_beginnings_are_shared() -> None:
    """Two runs that branched hold their common event once."""
    harness = run("a ->> b ->> c", "a b1 b2 b3").harness

    assert (harness.partialMatches, harness.bufferNodes, harness.bufferedEvents) == (5, 4, 4)


def test_events_nobody_takes_are_not_held() -> None:
    """An event that only passes by takes no memory."""
    harness = run("a -> b", "a x y z").harness

    assert harness.bufferedEvents == 1


def test_a_long_match_needs_no_recursion() -> None:
    """A match of 20,000 events is kept, restored, emitted and freed."""
    harness = OperatorTestHarness(parse("s >> a+:cons:greedy >> c"))
    harness.processElement("s", 0)
    for time in range(1, 20_000):
        harness.processElement("a", time)
    harness.processWatermark(19_999)
    harness = harness.snapshotAndRestore()
    harness.processElement("c", 20_000)
    harness.close()
    [(_, timestamp, match)] = harness.matches

    assert (timestamp, len(match["a"]), harness.keysWithState) == (20_000, 19_999, 0)


def test_an_abandoned_long_run_needs_no_recursion() -> None:
    """A run of 20,000 events that fails is freed in one step."""
    harness = NFATestHarness(parse("s >> a+:cons >> c"))
    harness.process("s", 0)
    for time in range(1, 20_000):
        harness.process("a", time)
    held = harness.bufferedEvents
    harness.process("x", 20_000)

    assert (held, harness.bufferedEvents, harness.bufferNodes) == (20_000, 0, 0)


def test_events_of_one_time_are_told_apart() -> None:
    """Equal events at equal times are different events of a match."""
    harness = NFATestHarness(parse("a{3}"))
    found = [match for _ in range(4) for match in harness.process("a", 7)]

    assert list(map(braces, found)) == ["{a a a}", "{a a a}"]


def count_comparisons(matching: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> int:
    """Count how often versions are compared."""
    count = 0
    compatible = DeweyNumber.is_compatible_with

    def counted(self: DeweyNumber, other: DeweyNumber) -> bool:
        nonlocal count
        count += 1
        return compatible(self, other)

    with monkeypatch.context() as patched:
        patched.setattr(DeweyNumber, "is_compatible_with", counted)
        matching()
    return count


def compared_versions(times: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Count how often versions are compared while many matches of one stage begin and end."""

    def matching() -> None:
        harness = NFATestHarness(Pattern.begin("a").where(lambda _: True).times(times))
        found = [len(harness.process(n, n)) for n in range(2 * times)]
        assert (sum(found), harness.partialMatches) == (times + 1, times)

    return count_comparisons(matching, monkeypatch)


def test_long_repetitions_cost_the_square(monkeypatch: pytest.MonkeyPatch) -> None:
    """times(n) of a stage: n runs take each event, and none looks at what the others do."""
    short, long = (compared_versions(times, monkeypatch) for times in (40, 80))

    assert long < 5 * short


def test_edges_of_many_runs_are_those_of_a_list() -> None:
    """However many runs came to a node: what a run may walk is the same, and in the same order."""
    chance = random.Random(1)
    digits = [
        [chance.randrange(1, 5), *chance.choices(range(3), k=chance.randrange(5))]
        for _ in range(300)
    ]
    edges = [SharedBufferEdge(0, None, DeweyNumber.of(number)) for number in digits]
    many, plain = ManyEdges(edges), list(edges)
    for edge in chance.sample(edges, 290):
        many.remove(edge)
        plain.remove(edge)

        version = DeweyNumber.of([*chance.choice(digits), *chance.choice([(0,), (2,), (0, 1)])])
        walked = [e for e in many.of(version) if version.is_compatible_with(e.version)]
        assert walked == [e for e in plain if version.is_compatible_with(e.version)]
        assert (list(many), len(many), many[0]) == (plain, len(plain), plain[0])


def test_combinations_cost_as_much_as_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop that takes any combination: no partial match looks at the ways of the others."""
    compared = [
        count_comparisons(lambda n=n: run("a+:any ->> b", "a " * n + "b"), monkeypatch)
        for n in (7, 10)
    ]

    assert compared[1] < 2 * 8 * compared[0]


def test_a_skip_strategy_looks_once_at_what_it_skips(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matches that skip to the same event ask no more of the others than the first of them."""
    asked = []
    should_prune = SkipToElementStrategy.should_prune

    def counted(self: Any, start: Any, pruning_id: Any) -> bool:
        asked.append(start)
        return should_prune(self, start, pruning_id)

    monkeypatch.setattr(SkipToElementStrategy, "should_prune", counted)
    matches = run("a+:any -> b", "a " * 8 + "b", Skip.skipToFirst("a")).matches

    assert (len(matches), len(asked) < 5 * len(matches)) == (128, True)
