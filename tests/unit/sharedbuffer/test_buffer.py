# SPDX-License-Identifier: Apache-2.0
"""The shared buffer: ids, ways through it, and what is shared between them."""

from __future__ import annotations

from pyflinkcep.sharedbuffer import (
    EventId,
    NodeId,
    SharedBuffer,
    SharedBufferNode,
    extract_path,
    live_nodes,
    materialize_match,
)


def take(before: SharedBufferNode | None, *nodes: str) -> SharedBufferNode:
    """Take event 3 for stage a as ``a3``, and so on."""
    node = before
    for name in nodes:
        node = SharedBufferNode(name[0], EventId(int(name[1:]), 0), f"e{name[1:]}", node)
    assert node is not None
    return node


def test_ids_count_within_a_timestamp() -> None:
    """Events of one time are told apart by a counter, which begins again with the next time."""
    buffer = SharedBuffer()

    ids = [buffer.register_event(time) for time in (5, 5, 7, 8, 8)]

    assert ids == [(5, 0), (5, 1), (7, 0), (8, 0), (8, 1)]


def test_ids_are_ordered_by_time_first() -> None:
    """An id compares by timestamp, then by counter; it prints as in Flink."""
    first, second, third = EventId(1, 7), EventId(2, 0), EventId(2, 1)

    assert first < second < third
    assert repr(third) == "EventId{id=1, timestamp=2}"


def test_a_way_is_in_the_order_of_taking() -> None:
    """Stages come in the order in which they were entered, events oldest first."""
    end = take(None, "a1", "b2", "b3", "c4", "b5")

    assert list(materialize_match(end).items()) == [
        ("a", ["e1"]),
        ("b", ["e2", "e3", "e5"]),
        ("c", ["e4"]),
    ]


def test_a_path_holds_the_nodes_of_the_match() -> None:
    """The path has for each event of the match its node."""
    path = extract_path(take(None, "a1", "b2"))

    assert {stage: [n.nodeId for n in path[stage]] for stage in path} == {
        "a": [NodeId(EventId(1, 0), "a")],
        "b": [NodeId(EventId(2, 0), "b")],
    }


def test_the_start_has_no_way() -> None:
    """Where nothing was taken there is an empty path, and nothing alive."""
    assert (extract_path(None), materialize_match(None), live_nodes([None])) == ({}, {}, [])


def test_live_nodes_come_once_and_after_the_node_before() -> None:
    """Common beginnings are listed once; a list can be restored from its front to its end."""
    common = take(None, "a1", "b2")
    ends = [take(common, "b3"), take(common, "b3", "c4"), common]

    nodes = live_nodes(ends)

    assert len(nodes) == len(set(nodes)) == 5
    assert all(n.previous is None or nodes.index(n.previous) < nodes.index(n) for n in nodes)


def test_a_way_of_many_events_is_let_go_without_recursion() -> None:
    """The last reference to a way of 200,000 events goes, and the interpreter stays."""
    end = take(None, *(f"a{number}" for number in range(200_000)))

    assert len(materialize_match(end)["a"]) == 200_000
    del end
