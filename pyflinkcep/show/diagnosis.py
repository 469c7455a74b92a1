# SPDX-License-Identifier: Apache-2.0
"""What counters of a stream mean where it writes nothing, or less than expected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import Any

import attrs

from pyflinkcep.show.query_history import PatternPoint, Point, Query


@attrs.frozen
class Sign:
    """What a counter tells. The manual has each, in the same words."""

    what: str  # What it is
    helps: str  # What helps

    def text(self, stage: str = "") -> str:
        """Return it as a sentence, of a stage if it is about one."""
        about = f"{stage}: " if stage else ""
        return f"{about}{self.what[0].upper()}{self.what[1:]}. What helps: {self.helps}."


NO_INPUT = Sign(
    "no events arrive", "look at the source; sources of the progress has a number for each"
)
HELD_BACK = Sign(
    "the watermark is held back: all events wait for it",
    "waiting(checkpoint) says what holds it back",
)
OUT_OF_TIME = Sign(
    "events are behind or far ahead",
    "a longer delay of the watermark; sideOutputLateData and sideOutputAheadData have them",
)
WITHOUT_KEY_OR_TIME = Sign("they have no key or no time", "sideOutputNullData has them")
NO_BEGINNING = Sign(
    "no event begins a match",
    "whyNot() on a bounded part of the same events: the first condition",
)
ALL_WAIT = Sign("all wait for the next", "that stage's condition; waiting(checkpoint)")
ALL_END = Sign("they begin and end", "a longer window, or followedBy in place of next")
MATCHES_WAIT = Sign("matches wait for the skip strategy", "a window")
IT_MATCHES = Sign(
    "it does match", "what comes after the pattern: the output mode, a join, the sink"
)

SIGNS = (
    NO_INPUT, HELD_BACK, OUT_OF_TIME, WITHOUT_KEY_OR_TIME, NO_BEGINNING, ALL_WAIT, ALL_END,
    MATCHES_WAIT, IT_MATCHES,
)  # fmt: skip

_LOOKED_AT = 5
_FEWEST = 3


def has_no_input(query: Query) -> bool:
    """Whether no events arrive, in the last micro-batches or since them."""
    last = _last(query.points)[-_FEWEST:]
    return query.is_idle or (len(last) == _FEWEST and not any(point.rows for point in last))


def signs_of(points: Sequence[Point], pattern: str) -> Iterator[tuple[Sign, str]]:
    """Yield what the last micro-batches tell of a pattern, with the stage that it is about."""
    last = _last(points)
    own = [point.patterns[pattern] for point in last]
    matches = _sum(own, "numMatches")
    if _sum(own, "numLateRecordsDropped", "numAheadRecordsDropped"):
        yield OUT_OF_TIME, ""
    if _sum(own, "numNullRecordsDropped"):
        yield WITHOUT_KEY_OR_TIME, ""
    if matches:
        yield IT_MATCHES, ""
    if len(own) < _FEWEST:
        return
    if _grows(own, "numMatchesHeldBack"):
        yield MATCHES_WAIT, ""
    marks = {point.gauges.get("watermark") for point in own}
    if len(marks) == 1 and _grows(own, "numEventsQueued"):
        yield HELD_BACK, ""
        return
    stages = own[-1].stages
    for stage in stages:
        counts = [point.stages.get(stage, 0) for point in own]
        if all(before < after for before, after in pairwise(counts)):
            yield ALL_WAIT, stage
    if stages and not matches:
        if _sum(own, "endedByWindow", "endedByContiguity"):
            yield ALL_END, ""
        elif any(point.rows for point in last) and not _begins(own):
            yield NO_BEGINNING, ""


def _last(points: Sequence[Point]) -> list[Point]:
    return list(islice(reversed(points), _LOOKED_AT))[::-1]


def _sum(own: Sequence[PatternPoint], *counters: str) -> float:
    return sum(point.counters[counter] for point in own for counter in counters)


def _grows(own: Sequence[PatternPoint], gauge: str) -> bool:
    values: list[Any] = [point.gauges.get(gauge) or 0 for point in own]
    return values[-1] > values[0] and all(one <= other for one, other in pairwise(values))


def _begins(own: Sequence[PatternPoint]) -> bool:
    """Whether a partial match began, whatever became of it."""
    ends = ("endedBySkipStrategy", "endedByUntil", "endedByNotStage", "numPartialMatchesDropped")
    return bool(_sum(own, *ends)) or any(any(point.stages.values()) for point in own)
