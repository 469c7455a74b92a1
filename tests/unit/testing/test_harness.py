# SPDX-License-Identifier: Apache-2.0
"""The harnesses themselves."""

from __future__ import annotations

from pyflinkcep.testing import NFATestHarness, OperatorTestHarness
from tests.shorthand import parse


def test_the_start_state_is_a_partial_match() -> None:
    """A fresh automaton has one partial match, its start state, and an empty buffer."""
    harness = NFATestHarness(parse("a -> b"))

    assert (harness.partialMatches, harness.bufferNodes, harness.bufferedEvents) == (1, 0, 0)


def test_stages_are_in_pattern_order_and_empty_ones_absent() -> None:
    """A match lists its stages in the order of the pattern and leaves out what stayed empty."""
    harness = NFATestHarness(parse("z -> a? -> b+ -> c"))
    found = [list(m) for t, e in enumerate("zbc") for m in harness.process(e, t)]

    assert found == [["z", "b", "c"]]


def test_timeouts_have_the_end_of_their_window() -> None:
    """``advanceTime`` gives partial matches with the time at which their window ended."""
    harness = NFATestHarness(parse("a -> b within[10]"), timeoutHandling=True)
    harness.process("a", 3)

    assert [harness.advanceTime(12), harness.advanceTime(99)] == [
        ([], []),
        ([], [({"a": ["a"]}, 13)]),
    ]


def test_a_copy_is_independent() -> None:
    """What happens to a restored harness does not happen to the one it was made of."""
    first = OperatorTestHarness(parse("a -> b"), lateDataOutput=True)
    first.processElement("a", 1)
    first.processWatermark(1)
    first.processElement("late", 1)
    copy = first.snapshotAndRestore()
    copy.processElement("b", 2)
    copy.processElement("later", 1)
    copy.close()

    assert (first.matches, first.lateData, copy.matches, copy.lateData) == (
        [],
        [(None, "late")],
        [(None, 2, {"a": ["a"], "b": ["b"]})],
        [(None, "late"), (None, "later")],
    )


def test_a_copy_continues_timeouts_and_counts() -> None:
    """Results, the watermark and the count of dropped events are carried over."""
    first = OperatorTestHarness(parse("a -> b within[5]"), timeoutHandling=True)
    first.processWatermark(3)
    first.processElement("late", 1)
    first.processElement("a", 4)
    copy = first.snapshotAndRestore().snapshotAndRestore()
    copy.processElement("late", 2)
    copy.close()

    assert (copy.numLateRecordsDropped, copy.timeouts) == (2, [(None, 9, {"a": ["a"]})])
