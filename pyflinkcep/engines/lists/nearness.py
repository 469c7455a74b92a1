# SPDX-License-Identifier: Apache-2.0
"""Drop the events that are too far in time from every event of the rarest element."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from pyflinkcep.engines.lists.candidates import Ranks
from pyflinkcep.engines.lists.ranges import Ints, Stretches, earlier, expanded, later
from pyflinkcep.sase.model import Query

__all__ = ["near_the_rarest", "spans", "stretches_near_the_rarest"]

_RARER = 16
"""How many times rarer than another an element must be for a search to pay off."""


def near_the_rarest(query: Query, ranks: Ranks, own: Mapping[str, Ints]) -> Mapping[str, Ints]:
    """
    Return the events that may take part in a match, or forbid one.

    Parameters
    ----------
    query : Query
        The query.
    ranks : Ranks
        The order of the events.
    own : mapping of str to array of int
        The positions of the events that fit each element, in order.

    Returns
    -------
    mapping of str to array of int
        The same without events that are too far away; all of them if few would be dropped.
    """
    counts = {name: len(positions) for name, positions in own.items()}
    stretches = stretches_near_the_rarest(query, ranks, counts, own.__getitem__)
    if stretches is None:
        return own
    return {name: _inside(positions, stretches) for name, positions in own.items()}


def stretches_near_the_rarest(
    query: Query, ranks: Ranks, counts: Mapping[str, int], events_of: Callable[[str], Ints]
) -> Stretches | None:
    """
    Return the stretches that hold all events that may take part in a match, or forbid one.

    All events of a match, and those that a negated element or a closure reads, are within the
    window of every single event of the match, including one of the rarest element.

    Parameters
    ----------
    query : Query
        The query.
    ranks : Ranks
        The order of the events.
    counts : mapping of str to int
        How frequent the events of each element are, in a sample or overall.
    events_of : callable
        Returns the positions of an element's events, in order.

    Returns
    -------
    Stretches or None
        None if few events lie outside them.
    """
    singles = [part.variable for part in query.positive if not part.repeats]
    if query.window is None or not ranks.is_one_group or not singles:
        return None
    rarest = min(singles, key=counts.__getitem__)
    if counts[rarest] * _RARER > max(counts.values()):
        return None
    low, high = spans(query.window, ranks.times, events_of(rarest))
    return None if 2 * int((high - low).sum()) > ranks.size else (low, high)


def spans(window: int, times: Ints, positions: Ints) -> Stretches:
    """Return the stretches near some events; no two of them touch."""
    moments = np.take(times, positions)
    low = np.searchsorted(times, earlier(moments, window), "left")
    high = np.searchsorted(times, later(moments, window), "right")
    begins = np.ones(len(low), bool)
    begins[1:] = low[1:] > high[:-1]  # times ascend, and so do low and high
    ends = np.append(begins[1:], True)[: len(high)]
    return low[begins], high[ends]


def _inside(positions: Ints, stretches: Stretches) -> Ints:
    begin, end = (np.searchsorted(positions, bounds) for bounds in stretches)
    _, numbers = expanded(begin, end)
    return np.take(positions, numbers)
