# SPDX-License-Identifier: Apache-2.0
"""Which event times of a micro-batch are believed, if some may be far ahead of the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pyflinkcep.matching.columns import Ints

__all__ = ["believed", "joined", "spans_of"]


def spans_of(times: Ints, gap: int) -> Ints:
    """
    Return the spans that times lie in, as rows of (earliest, latest, number of times).

    Parameters
    ----------
    times : array of int, epoch milliseconds
        Times in any order.
    gap : int, milliseconds
        The most between a time and the next of its span.

    Examples
    --------
    >>> spans_of(np.array([4, 90, 1, 8]), 5).tolist()
    [[1, 8, 3], [90, 90, 1]]
    """
    ordered = np.sort(times)
    return joined(np.column_stack([ordered, ordered, np.ones_like(ordered)]), gap)


def joined(spans: Ints, gap: int) -> Ints:
    """Join spans no further apart than a gap; those of all parts give those of the whole."""
    if len(spans) < 2:
        return spans
    spans = spans[np.argsort(spans[:, 0], kind="stable")]
    latest = np.maximum.accumulate(spans[:, 1])
    # Unsigned distances cannot overflow.
    apart = spans[1:, 0].view(np.uint64) - latest[:-1].view(np.uint64)
    is_next = (spans[1:, 0] > latest[:-1]) & (apart > np.uint64(gap))
    starts = np.flatnonzero(np.r_[True, is_next])
    counts = np.add.reduceat(spans[:, 2], starts)
    return np.column_stack([spans[starts, 0], latest[np.r_[starts[1:], len(spans)] - 1], counts])


def believed(spans: Sequence[Ints], last: int | None, gap: int) -> int | None:
    """
    Return the latest event time that is not too far ahead of the others.

    Parameters
    ----------
    spans : sequence of arrays
        The spans of each part of a micro-batch; see :func:`spans_of`.
    last : int or None, epoch milliseconds
        The latest that was believed before; None in the first micro-batch.
    gap : int, milliseconds
        How far an event may be ahead of the ones before it in time.

    Returns
    -------
    int or None
        From `last` on, the times are followed as long as each is at most `gap` after the one
        before. The first micro-batch begins with the span of most events, or the first of these.
        None if there are neither times nor `last`.

    Examples
    --------
    >>> part, other = spans_of(np.array([10, 14, 990]), 5), spans_of(np.array([18, 7]), 5)
    >>> believed([part, other], None, 5), believed([part, other], 986, 5), believed([part], 2, 5)
    (18, 990, 2)
    """
    whole = joined(np.concatenate(spans), gap) if spans else np.empty((0, 3), np.int64)
    if last is None:
        return int(whole[np.argmax(whole[:, 2]), 1]) if len(whole) else None
    for first, latest, _ in whole.tolist():
        if first > last + gap:
            break
        last = max(last, latest)
    return last
