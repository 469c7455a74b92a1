# SPDX-License-Identifier: Apache-2.0
"""
Stable orders of numbers, several times as fast as numpy's own.

Numbers of 16 bits are sorted by their digits. A larger one is combined with its position in an
integer, so that integers are sorted, not indices, which numpy does with vector instructions.
"""

from __future__ import annotations

import numpy as np

from pyflinkcep.matching.columns import Ints

__all__ = ["order_by_group", "order_by_group_and_time", "order_by_hash_and_time"]

_AT_ONCE = 1 << 16
_SHORT = (1 << 16) - 1


def order_by_group(groups: Ints) -> Ints:
    """
    Return the stable order of small numbers.

    Parameters
    ----------
    groups : array of int, -2**31 to 2**31
        The numbers; fewer than 2**31 of them.

    Examples
    --------
    >>> order_by_group(np.array([2, 0, 2, -1])).tolist()
    [3, 1, 0, 2]
    """
    if len(groups) and groups.min() >= 0 and groups.max() <= _SHORT:
        short: Ints = np.argsort(groups.astype(np.uint16), kind="stable")  # by digits, in numpy
        return short
    bits = _bits(groups)
    numbers = groups.astype(np.int64)
    numbers <<= bits
    return _positions(numbers, bits)


def order_by_group_and_time(groups: Ints, times: Ints) -> Ints:
    """
    Return the stable order of small numbers; equal ones are ordered by time.

    Parameters
    ----------
    groups : array of int, -2**31 to 2**31
        The numbers; fewer than 2**31 of them.
    times : array of int64
        The times.

    Examples
    --------
    >>> order_by_group_and_time(np.array([2, 0, 2, 2]), np.array([5, 4, 3, 5])).tolist()
    [1, 2, 0, 3]
    """
    if not (times[1:] < times[:-1]).any():
        return order_by_group(groups)
    by_time = np.argsort(times, kind="stable")
    return by_time[order_by_group(groups[by_time])]


def order_by_hash_and_time(hashes: Ints, times: Ints | None) -> Ints:
    """
    Return the stable order of hashes; equal ones are ordered by time.

    Parameters
    ----------
    hashes : array of int64
        The hashes.
    times : array of int64 or None
        The times; None if they do not matter.

    Examples
    --------
    >>> order_by_hash_and_time(np.array([7 << 40, 5, 7 << 40]), np.array([3, 2, 1])).tolist()
    [1, 2, 0]
    """
    by_time = None
    if times is not None and (times[1:] < times[:-1]).any():
        by_time = np.argsort(times, kind="stable")
    ranked = hashes if by_time is None else hashes[by_time]
    bits = _bits(hashes)
    order = _positions(ranked >> bits << bits, bits)  # the lowest bits of a hash are dropped
    found = ranked[order]
    if (found[1:] < found[:-1]).any():  # two hashes differ only in these bits, which is very rare
        order = np.argsort(ranked, kind="stable")
    return order if by_time is None else by_time[order]


def _bits(numbers: Ints) -> int:
    """Return the number of bits that a position takes."""
    return len(numbers).bit_length()


def _positions(numbers: Ints, bits: int) -> Ints:
    """Return the positions of new numbers with `bits` free low bits, in their place, in order."""
    for begin in range(0, len(numbers), _AT_ONCE):
        part = numbers[begin : begin + _AT_ONCE]
        part |= np.arange(begin, begin + len(part))
    numbers.sort()
    numbers &= (1 << bits) - 1
    return numbers
