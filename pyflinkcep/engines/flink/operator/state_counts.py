# SPDX-License-Identifier: Apache-2.0
"""
Counts of what stored states hold, without making keys of them.

Specifies ``kernel/src/flink/state_counts.c``; they must be changed together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

import attrs

__all__ = ["NO_START", "StateCounts", "count_states"]

NO_START = (1 << 63) - 1
"""The earliest start if there is none."""


@attrs.define
class StateCounts:
    """
    What the states of many keys hold.

    Attributes
    ----------
    held : int
        Matches that a skip strategy holds back.
    largest : int
        The partial matches of the key with the most.
    oldest : int, epoch milliseconds
        The earliest start of a partial match, or of a match held back; :data:`NO_START` if none.
    by_stage : list of int
        The partial matches by the stage of their last event.
    """

    held: int
    largest: int
    oldest: int
    by_stage: list[int]


def count_states(
    numbers: Sequence[int], lengths: Sequence[int], stages: Sequence[str]
) -> StateCounts:
    """
    Count what states hold.

    Numbers that no key could have end the counts of that key; whoever reads it refuses them.

    Parameters
    ----------
    numbers : sequence of int
        The concatenated states of keys; see ``StateWriter``.
    lengths : sequence of int
        How many numbers belong to each key.
    stages : sequence of str
        The stages by number.
    """
    counts = StateCounts(0, 0, NO_START, [0] * len(stages))
    at = 0
    for length in lengths:
        with suppress(StopIteration):
            _count_key(iter(numbers[at : at + length]), counts)
        at += length
    return counts


def _count_key(numbers: Iterator[int], counts: StateCounts) -> None:
    _pass(numbers, next(numbers))  # timers
    _pass(numbers, 2)
    _pass(numbers, 2 * next(numbers))  # versions
    stage_of: list[int] = []
    for _ in range(next(numbers)):
        _pass(numbers, 4)
        for _ in range(next(numbers)):
            stage_of.append(next(numbers))
            _pass(numbers, 2)
    for _ in stage_of:
        _pass(numbers, 3 * next(numbers))  # edges
    partials = _nodes(numbers, counts)
    counts.largest = max(counts.largest, len(partials))
    for node in partials:
        if 0 <= node < len(stage_of) and 0 <= stage_of[node] < len(counts.by_stage):
            counts.by_stage[stage_of[node]] += 1
    counts.held += len(_nodes(numbers, counts))


def _nodes(numbers: Iterator[int], counts: StateCounts) -> list[int]:
    """Return the node of each partial match but the start state."""
    nodes = []
    for _ in range(next(numbers)):
        _pass(numbers, 2)
        node, start, start_id = next(numbers), next(numbers), next(numbers)
        if start_id >= 0:
            counts.oldest = min(counts.oldest, start)
            nodes.append(node)
    return nodes


def _pass(numbers: Iterator[int], count: int) -> None:
    for _ in range(count):
        next(numbers)
