# SPDX-License-Identifier: Apache-2.0
"""Java's priority queue on a list: its order of ties is Flink's order of matches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["heap_add", "heap_poll", "heap_remove_if"]

T = TypeVar("T")
Key = Callable[[T], Any]


def heap_add(heap: list[T], item: T, key: Key[T]) -> None:
    """
    Add an item, moving it up past parents that are strictly larger.

    Notes
    -----
    Ports ``java.util.PriorityQueue.add``; :mod:`heapq` sifts differently and so orders items
    of equal keys differently.
    """
    heap.append(item)
    index, wanted = len(heap) - 1, key(item)
    while index > 0:
        parent = (index - 1) >> 1
        if wanted >= key(heap[parent]):
            break
        heap[index] = heap[parent]
        index = parent
    heap[index] = item


def heap_poll(heap: list[T], key: Key[T]) -> T:
    """Take the smallest item; ports ``java.util.PriorityQueue.poll``."""
    first, last = heap[0], heap.pop()
    if heap:
        heap[0] = last
        _sift_down(heap, 0, key)
    return first


def heap_remove_if(heap: list[T], predicate: Callable[[T], bool], key: Key[T]) -> None:
    """Drop items and restore the heap; ports ``java.util.PriorityQueue.removeIf``."""
    kept = [item for item in heap if not predicate(item)]
    if len(kept) == len(heap):
        return
    heap[:] = kept
    for index in range((len(heap) >> 1) - 1, -1, -1):
        _sift_down(heap, index, key)


def _sift_down(heap: list[T], index: int, key: Key[T]) -> None:
    item, size = heap[index], len(heap)
    wanted = key(item)
    while index < size >> 1:
        child = 2 * index + 1
        if child + 1 < size and key(heap[child]) > key(heap[child + 1]):
            child += 1
        if wanted <= key(heap[child]):
            break
        heap[index] = heap[child]
        index = child
    heap[index] = item
