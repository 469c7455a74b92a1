# SPDX-License-Identifier: Apache-2.0
"""All matches of a plain pattern, by trying every way; slow, and plainly what the words mean."""

from __future__ import annotations

from collections.abc import Sequence

from tests.property.strategies import Event, PatternSpec

Way = tuple[int, ...]


def brute_force(spec: PatternSpec, events: Sequence[Event]) -> set[Way]:
    """
    Give every match of a plain pattern as the positions of its events.

    ``next`` takes the very next event; ``followedBy`` the first later one that fits;
    ``followedByAny`` any later one that fits.
    """
    first, *rest = spec.stages
    ways: set[Way] = {(at,) for at, event in enumerate(events) if event.name in first.names}
    for stage in rest:
        longer: set[Way] = set()
        for way in ways:
            later = range(way[-1] + 1, len(events))
            fitting = [at for at in later if events[at].name in stage.names]
            if stage.op == "next":
                fitting = [at for at in fitting if at == way[-1] + 1]
            elif stage.op == "followedBy":
                fitting = fitting[:1]
            longer |= {(*way, at) for at in fitting}
        ways = longer
    return ways
