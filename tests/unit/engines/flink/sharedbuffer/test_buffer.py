# SPDX-License-Identifier: Apache-2.0
"""The versioned shared buffer: sharing, extraction, release."""

from __future__ import annotations

from typing import Any

from pyflinkcep.engines.flink.sharedbuffer import (
    DeweyNumber,
    LockableEvent,
    SharedBuffer,
    SharedBufferAccessor,
    SharedBufferNode,
)


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
        left.append((f.buffer.is_empty(), f.buffer.node_count))

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

    assert (held, f.buffer.is_empty()) == (["e1", "e2"], True)


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

    assert [(i.timestamp, i.id) for i in ids] == [(5, 0), (5, 1), (7, 0), (5, 2), (8, 0)]
    assert (buffer.timestamp, buffer.event_count) == (8, 1)


def test_ids_of_one_timestamp_count_up() -> None:
    """Events of equal time are told apart by a counter, and ordered by it."""
    accessor = SharedBuffer().get_accessor()
    ids = [accessor.register_event("e", t).event_id for t in (5, 5, 4)]

    assert (ids, sorted(ids)) == ([(5, 0), (5, 1), (4, 0)], [(4, 0), (5, 0), (5, 1)])


def test_a_long_chain_is_released_without_recursion() -> None:
    """A path of 100,000 nodes is freed by releasing its end."""
    buffer = SharedBuffer()
    accessor = buffer.get_accessor()
    version = DeweyNumber.of([1])
    node = None
    for timestamp in range(100_000):
        entry = accessor.register_event(timestamp, timestamp)
        node = accessor.put("a", entry, node, version)
        accessor.release_event(entry)
    assert node is not None
    accessor.lock_node(node, version)
    accessor.release_node(node, version)

    assert (buffer.is_empty(), buffer.node_count) == (True, 0)


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

    assert (f.buffer.is_empty(), f.buffer.node_count) == (True, 0)
