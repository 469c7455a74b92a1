# SPDX-License-Identifier: Apache-2.0
"""Drop the events that are too far in time from every event of the rarest element."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pyflinkcep.eventlists.frame import Ints, expanded
from pyflinkcep.eventlists.lists import Ranks
from pyflinkcep.sase.model import Query

__all__ = ["near_the_rarest"]

_RARER = 16
"""How many times rarer than another an element is for a search to be worth while."""


def near_the_rarest(query: Query, ranks: Ranks, own: Mapping[str, Ints]) -> Mapping[str, Ints]:
    """
    Return the events that may be in a match, or forbid one.

    All events of a match, and those that a negated element or a closure looks at, are within the
    window of each single event of the match, so of one of the rarest.

    Parameters
    ----------
    query : Query
        The query.
    ranks : Ranks
        The order of the events.
    own : mapping of str to array of int
        For each element the positions of the events that fit it, in order.

    Returns
    -------
    mapping of str to array of int
        The same without events that are too far; all of them if few would go.
    """
    counts = {p.variable: len(own[p.variable]) for p in query.positive if not p.repeats}
    most = max(map(len, own.values()), default=0)
    if query.window is None or not ranks.is_one_group or not counts:
        return own
    rarest = min(counts, key=counts.__getitem__)
    if not 0 < counts[rarest] * _RARER <= most:
        return own
    low, high = _spans(query.window, ranks.times, own[rarest])
    if 2 * int((high - low).sum()) > ranks.size:
        return own
    return {
        name: positions if name == rarest else _inside(positions, low, high)
        for name, positions in own.items()
    }


def _spans(window: int, times: Ints, positions: Ints) -> tuple[Ints, Ints]:
    """Return where stretches near some events begin and end; no two of them touch."""
    moments = np.take(times, positions)
    low = np.searchsorted(times, moments - window, "left")
    high = np.searchsorted(times, moments + window, "right")
    begins = np.ones(len(low), bool)
    begins[1:] = low[1:] > high[:-1]  # times never fall, nor do low and high
    ends = np.append(begins[1:], True)
    return low[begins], high[ends]


def _inside(positions: Ints, low: Ints, high: Ints) -> Ints:
    begin, end = np.searchsorted(positions, low), np.searchsorted(positions, high)
    _, numbers = expanded(begin, end)
    return np.take(positions, numbers)
