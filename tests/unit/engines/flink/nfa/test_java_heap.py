# SPDX-License-Identifier: Apache-2.0
"""Ties come out of the heap in the order of Java's priority queue."""

from __future__ import annotations

import pytest

from pyflinkcep.engines.flink.nfa.emission import heap_add, heap_poll, heap_remove_if

# Recorded from java.util.PriorityQueue (JDK 17): items are ordered by their digit alone.
# Added in this order; the array then; the items removed; the array then; the order of polls.
RECORDED = [
    ("1a 1b 1c 1d 1e 1f 1g", "1a 1b 1c 1d 1e 1f 1g", "", "1a 1b 1c 1d 1e 1f 1g", "agfedcb"),
    ("2a 2b 1c 1d", "1c 1d 2a 2b", "a", "1c 1d 2b", "cdb"),
    ("0a 1b 1c 2d 2e", "0a 1b 1c 2d 2e", "a", "1b 1c 2d 2e", "bcde"),
    ("3a 1b 2c 1d 2e 3f 1g 2h", "1b 1d 1g 2h 2e 3f 2c 3a", "bd", "1g 2h 2e 3f 2c 3a", "ghcefa"),
    ("1a 1b 2c 2d 3e", "1a 1b 2c 2d 3e", "a", "1b 2c 2d 3e", "bcde"),
    (
        "2a 1b 2c 1d 2e 1f 2g 1h 2i",
        "1b 1d 1f 1h 2e 2c 2g 2a 2i",
        "bfh",
        "1d 2e 2c 2g 2a 2i",
        "diagce",
    ),
    ("5a 4b 3c 2d 1e 0f", "0f 2d 1e 5a 3c 4b", "f", "1e 2d 5a 3c 4b", "edcba"),
]


def _digit(item: str) -> int:
    return int(item[0])


@pytest.mark.parametrize(("added", "filled", "removed", "left", "polled"), RECORDED)
def test_recorded_orders(added: str, filled: str, removed: str, left: str, polled: str) -> None:
    """Adding, removing and polling keep the array, and so the ties, as Java does."""
    heap: list[str] = []
    for item in added.split():
        heap_add(heap, item, _digit)
    after_adding = " ".join(heap)
    heap_remove_if(heap, lambda item: item[1] in removed, _digit)
    after_removing = " ".join(heap)
    order = "".join(heap_poll(heap, _digit)[1] for _ in range(len(heap)))

    assert (after_adding, after_removing, order) == (filled, left, polled)
