# SPDX-License-Identifier: Apache-2.0
"""The versioned shared buffer: sharing, extraction, release."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from typing import Any

import pytest

from pyflinkcep import AfterMatchSkipStrategy as Skip
from pyflinkcep import Pattern
from pyflinkcep.engines.flink.sharedbuffer import (
    DeweyNumber,
    LockableEvent,
    ManyEdges,
    SharedBuffer,
    SharedBufferAccessor,
    SharedBufferEdge,
    SharedBufferNode,
)
from pyflinkcep.errors import InvalidArgumentError
from pyflinkcep.pattern.aftermatch import SkipToElementStrategy
from pyflinkcep.testing import NFATestHarness, OperatorTestHarness
from tests.shorthand import braces, parse, run


def dewey(text: str) -> DeweyNumber:
    """Read a version."""
    return DeweyNumber.of(map(int, text.split(".")))


class Fixture:
    """A buffer with a register of its events and nodes by name."""

    def __init__(self) -> None:
        self.buffer = SharedBuffer()
        self.accessor: SharedBufferAccessor = self.buffer.get_accessor()
        self.events: dict[str, LockableEvent] = {}
        self.nodes: dict[str, SharedBufferNode] = {}

    def put(self, node: str, before: str | None, version: str) -> None:
        """Take event 3 for stage a as node ``a3``, after another node."""
        stage, event = node[:-1], node[-1]
        if event not in self.events:
            self.events[event] = self.accessor.register_event(f"e{event}", int(event))
        previous = None if before is None else self.nodes[before]
        self.nodes[node] = self.accessor.put(stage, self.events[event], previous, dewey(version))

    def lock(self, node: str, version: str) -> None:
        """Hold on to the end of a run."""
        self.accessor.lock_node(self.nodes[node], dewey(version))

    def release(self, node: str, version: str) -> None:
        """Let the end of a run go."""
        self.accessor.release_node(self.nodes[node], dewey(version))

    def forget_events(self) -> None:
        """Return back what registering took."""
        for entry in self.events.values():
            self.accessor.release_event(entry)

    def paths(self, node: str, version: str) -> list[dict[str, list[Any]]]:
        """Return the ways of a run, by event."""
        paths = self.accessor.extract_patterns(self.nodes[node], dewey(version))
        return [{stage: [e.event for e in path[stage]] for stage in path} for path in paths]


def sase_example() -> Fixture:
    """Build the buffer of the SASE+ paper's example: one first event, a loop, an end, thrice."""
    f = Fixture()
    f.put("first1", None, "1")
    f.put("loop2", "first1", "1.0")
    f.put("first3", None, "2")
    f.put("loop3", "loop2", "1.0")
    f.put("loop4", "loop3", "1.0")
    f.put("loop4", "first3", "2.0")
    f.put("loop5", "loop4", "1.1")
    f.put("end6", "loop4", "1.0.0")
    f.put("end6", "loop4", "2.0.0")
    f.put("loop6", "loop5", "1.1")
    f.put("end8", "loop6", "1.1.0")
    for node, version in [("end6", "1.0.0"), ("end6", "2.0.0"), ("end8", "1.1.0")]:
        f.lock(node, version)
    return f


def test_each_run_finds_its_own_way() -> None:
    """Three matches that share nodes come out as three different sequences of events."""
    f = sase_example()

    assert [f.paths("end6", "1.0.0"), f.paths("end6", "2.0.0"), f.paths("end8", "1.1.0")] == [
        [{"first": ["e1"], "loop": ["e2", "e3", "e4"], "end": ["e6"]}],
        [{"first": ["e3"], "loop": ["e4"], "end": ["e6"]}],
        [{"first": ["e1"], "loop": ["e2", "e3", "e4", "e5", "e6"], "end": ["e8"]}],
    ]


def test_a_released_run_is_gone() -> None:
    """After the release of a match nothing is found for it, while the others are untouched."""
    f = sase_example()
    f.release("end8", "1.1.0")

    assert (f.paths("end8", "1.1.0"), len(f.paths("end6", "1.0.0"))) == ([], 1)


def test_the_buffer_is_empty_after_all_is_released() -> None:
    """Releasing every run, in any order, leaves neither events nor nodes."""
    orders = [
        [("end6", "1.0.0"), ("end6", "2.0.0"), ("end8", "1.1.0")],
        [("end8", "1.1.0"), ("end6", "2.0.0"), ("end6", "1.0.0")],
    ]
    left = []
    for order in orders:
        f = sase_example()
        f.forget_events()
        for node, version in order:
            f.release(node, version)
        left.append((not f.buffer.events, f.buffer.node_count))

    assert left == [(True, 0), (True, 0)]


def test_branches_with_several_edges_between_nodes() -> None:
    """Releasing one branch keeps what another branch, over the same nodes, still needs."""
    f = Fixture()
    f.put("a1", None, "1")
    f.put("b2", "a1", "1.0")
    f.put("b3", "b2", "1.0")
    f.put("b3", "a1", "1.1")
    f.put("b4", "b3", "1.0.0")
    f.put("b4", "b3", "1.1.0")
    f.lock("b2", "1.0.0")
    f.lock("b4", "1.0.0.0")
    f.lock("b4", "1.1.0.0")
    f.forget_events()
    f.release("b4", "1.0.0.0")
    f.release("b4", "1.1.0.0")
    held = sorted(entry.event for entry in f.buffer.events.values())
    f.release("b2", "1.0.0")

    assert (held, not f.buffer.events) == (["e1", "e2"], True)


def test_stages_come_in_the_order_of_the_run() -> None:
    """The keys of an extracted match are in the order in which the run entered the stages."""
    f = Fixture()
    before: str | None = None
    version = "1"
    for node in ["a1", "b2", "aa3", "bb4", "c5"]:
        f.put(node, before, version)
        before, version = node, version + ".0"

    assert list(f.paths("c5", version)[0]) == ["a", "b", "aa", "bb", "c"]


def test_counters_of_the_past_are_cleared() -> None:
    """Only the counter of the newest timestamp is kept, and ids never collide."""
    buffer = SharedBuffer()
    accessor = buffer.get_accessor()

    ids = [accessor.register_event("e", time).event_id for time in (5, 5, 7, 5, 8)]

    assert ids == [(5, 0), (5, 1), (7, 0), (5, 2), (8, 0)]
    assert sorted(ids) == [(5, 0), (5, 1), (5, 2), (7, 0), (8, 0)]
    assert (buffer.timestamp, buffer.event_count) == (8, 1)


@pytest.mark.slow
def test_a_long_chain_is_released_without_recursion() -> None:
    """A path of 30,000 nodes is freed by releasing its end."""
    buffer = SharedBuffer()
    accessor = buffer.get_accessor()
    version = DeweyNumber.of([1])
    node = None
    for timestamp in range(30_000):
        entry = accessor.register_event(timestamp, timestamp)
        node = accessor.put("a", entry, node, version)
        accessor.release_event(entry)
    assert node is not None
    accessor.lock_node(node, version)
    accessor.release_node(node, version)

    assert (not buffer.events, buffer.node_count) == (True, 0)


def test_nothing_is_extracted_from_nothing() -> None:
    """A run that has taken no event has no path."""
    assert SharedBuffer().get_accessor().extract_patterns(None, DeweyNumber.of([1])) == []


def test_locking_or_releasing_a_node_that_is_gone_does_nothing() -> None:
    """As in Flink a missing node is passed over in silence."""
    f = Fixture()
    f.put("a1", None, "1")
    f.lock("a1", "1")
    f.release("a1", "1")
    f.lock("a1", "1")
    f.release("a1", "1")
    f.forget_events()

    assert (not f.buffer.events, f.buffer.node_count) == (True, 0)


# --- dewey numbers


def test_increase_and_add_stage() -> None:
    """Increasing counts up the last digit, a stage adds a digit 0."""
    steps = [
        dewey("1").increase(),
        dewey("2").add_stage(),
        dewey("1.0").increase(),
        dewey("1.1").add_stage(),
        dewey("1.0.3").increase(4),
        dewey("1.2").increase(0),
    ]

    assert list(map(str, steps)) == ["2", "2.0", "1.1", "1.1.0", "1.0.7", "1.2"]


@pytest.mark.parametrize(
    ("version", "edge", "compatible"),
    [
        ("1.0", "1", True),
        ("1.1", "1.0", True),
        ("1.0", "1.0", True),
        ("1.1.0", "1.1", True),
        ("1.1.0.5", "1.1", True),
        ("1.1.0", "1.0", False),
        ("2.0", "1.0", False),
        ("1.0", "2.0", False),
        ("1.0", "1.1", False),
        ("1.1", "1.1.0", False),
    ],
)
def test_compatibility(version: str, edge: str, compatible: bool) -> None:
    """A run may walk edges of its own past, and of siblings that branched off before it."""
    assert dewey(version).is_compatible_with(dewey(edge)) is compatible


def test_a_number_without_digits() -> None:
    """A number has at least one digit."""
    with pytest.raises(InvalidArgumentError, match="without digits") as caught:
        DeweyNumber.of([])

    assert caught.value.hint


@pytest.mark.parametrize("text", ["1", "1.0.2", "10.20"])
def test_round_trips(text: str) -> None:
    """A number reads what it writes, and survives pickling as the same type."""
    copy = pickle.loads(pickle.dumps(dewey(text)))

    assert (str(dewey(text)), copy, type(copy)) == (text, dewey(text), DeweyNumber)


# --- what is held while patterns run: shared, and no longer than needed


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


@pytest.mark.slow
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
