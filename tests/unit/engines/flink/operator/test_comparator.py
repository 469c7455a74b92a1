# SPDX-License-Identifier: Apache-2.0
"""The order of events of equal time."""

from __future__ import annotations

from typing import Any

import pytest

from pyflinkcep import EventComparator, Pattern
from pyflinkcep.engines.flink.operator import comparator_key
from pyflinkcep.errors import InvalidArgumentError
from pyflinkcep.testing import OperatorTestHarness
from tests.shorthand import braces, parse


def by_length(event: str) -> int:
    """Sort by length."""
    return len(event)


def compare_lengths(left: str, right: str) -> int:
    """Compare by length, as a comparator of Java does."""
    return len(left) - len(right)


class Comparator:
    """An object as Flink users would port it."""

    def compare(self, left: str, right: str) -> int:
        """Compare by length."""
        return len(left) - len(right)


@pytest.mark.parametrize("comparator", [by_length, compare_lengths, Comparator(), len])
def test_kinds_of_comparators(comparator: Any) -> None:
    """A sort key, a function of two and an object with ``compare`` all give the same order."""
    assert sorted(["aaa", "a", "bb", "c"], key=comparator_key(comparator)) == [
        "a",
        "c",
        "bb",
        "aaa",
    ]


def test_a_builtin_that_tells_nothing_is_a_sort_key() -> None:
    """A callable without a signature is taken for a key."""
    assert sorted([10, 9], key=comparator_key(str)) == [10, 9]


def test_no_comparator() -> None:
    """Without one there is no sort key."""
    assert comparator_key(None) is None


def test_what_is_no_comparator() -> None:
    """Anything else is refused with a hint."""
    with pytest.raises(InvalidArgumentError, match="expected a comparator, got 5") as caught:
        comparator_key(5)  # type: ignore[arg-type]

    assert caught.value.hint


def test_events_of_equal_time_are_sorted() -> None:
    """The comparator orders events of one time; times come first."""
    harness = OperatorTestHarness(parse("start ->> middle ->> end"), comparator=lambda event: event)
    for event, time in [
        ("start1", 1),
        ("middle2", 5),
        ("start2", 2),
        ("middle1", 5),
        ("end", 7),
    ]:
        harness.processElement(event, time)
    harness.close()

    assert [braces(match) for _, _, match in harness.matches] == [
        "{start1 middle1 end}",
        "{start1 middle2 end}",
        "{start2 middle1 end}",
        "{start2 middle2 end}",
    ]


def test_equal_events_keep_the_order_of_arrival() -> None:
    """The sort is stable."""
    harness = OperatorTestHarness(Pattern.begin("any"), comparator=by_length)
    for event in ("bb", "b", "a", "aa"):
        harness.processElement(event, 1)
    harness.close()

    assert [match["any"] for _, _, match in harness.matches] == [["b"], ["a"], ["bb"], ["aa"]]


def test_the_order_survives_a_restore() -> None:
    """A restored operator sorts its queue as before."""
    harness = OperatorTestHarness(Pattern.begin("any"), comparator=by_length)
    harness.processElement("bb", 1)
    harness = harness.snapshotAndRestore()
    harness.processElement("a", 1)
    harness.close()

    assert [match["any"] for _, _, match in harness.matches] == [["a"], ["bb"]]


def test_an_event_comparator_orders_events() -> None:
    """Flink's interface, as a class with compare, serves as a comparator."""

    class Longest(EventComparator):
        def compare(self, first: str, second: str) -> int:
            return len(second) - len(first)

    assert sorted(["a", "ccc", "bb"], key=comparator_key(Longest())) == ["ccc", "bb", "a"]
