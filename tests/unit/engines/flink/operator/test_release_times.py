# SPDX-License-Identifier: Apache-2.0
"""The time of a match that had to wait: ``matchTimestamp`` and MATCH_ROWTIME()."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest

from pyflinkcep import AfterMatchSkipStrategy, Pattern
from pyflinkcep.engines.flink.nfa import NFA, NFACompiler
from pyflinkcep.engines.flink.operator import CepOperator
from pyflinkcep.engines.flink.operator.keyed_operator import KeyedCepOperator
from pyflinkcep.time import MAX_WATERMARK
from tests.shorthand import parse

PAST_LAST = AfterMatchSkipStrategy.skipPastLastEvent()
TO_NEXT = AfterMatchSkipStrategy.skipToNext()
PATTERNS = [
    "pairs",
    "a -> b within[7]",
    "a -> b -> c within[7]",
    "a -> b+ -> c within[9]",
    "a >> b+ >> c within[6]",
    "a -> b !-> c within[5]",
    "a+ !-> c within[5]",
    "a -> b? -> x within[6]",
    "a -> b gap[3] -> c within[8]",
]


class Times:
    """Receives matches, with their times."""

    def __init__(self) -> None:
        self.found: list[tuple[int, Any]] = []

    def match(self, key: Any, timestamp: int, match: Any) -> None:
        """Receive a match."""
        self.found.append((timestamp, match))

    def timeout(self, *result: Any) -> None:
        """Forget a timeout."""


def times_of(
    nfa: NFA, events: list[tuple[int, str]], watermarks: list[int], *, by_windows: bool
) -> list[tuple[int, Any]]:
    """Return the matches of events, sorted, with the watermark moved to these times and then the end."""
    output = Times()
    operator = KeyedCepOperator(CepOperator(nfa, by_windows=by_windows), output)
    left = list(events)
    for watermark in [*watermarks, MAX_WATERMARK]:
        while left and left[0][0] <= watermark:
            time, name = left.pop(0)
            operator.process_element("k", name, time)
        operator.advance_watermark(watermark)
    return sorted(output.found, key=repr)


@pytest.mark.parametrize("skip", [None, PAST_LAST, TO_NEXT])
@pytest.mark.parametrize("text", PATTERNS)
def test_wherever_watermarks_stand(text: str, skip: AfterMatchSkipStrategy | None) -> None:
    """It is what Flink gives if the watermark moves with every millisecond."""
    random_ = random.Random(text)
    pattern = of_one_number(skip) if text == "pairs" else parse(text, skip)
    nfa = NFACompiler.compile(pattern)
    for _ in range(40):
        time, events = 1, []
        for _ in range(random_.randint(3, 14)):
            time += random_.choice([0, 1, 1, 2, 4])
            events.append((time, random_.choice("aabbcx") + random_.choice("123")))
        every = range(1, time + 20)
        few = sorted(random_.sample(every, 4))

        expected = times_of(nfa, events, list(every), by_windows=False)

        assert times_of(nfa, events, [], by_windows=True) == expected
        assert times_of(nfa, events, few, by_windows=True) == expected


def of_one_number(skip: AfterMatchSkipStrategy | None) -> Pattern:
    """Return an event a, followed by an event b of the same number, within 10."""

    def is_partner(event: str, context: Any) -> bool:
        (first,) = context.getEventsForPattern("a")
        return event[0] == "b" and event[1] == first[1]

    pattern = Pattern.begin("a", skip).where(lambda event: event[0] == "a").followedBy("b")
    return pattern.where(is_partner).within(timedelta(milliseconds=10))


@pytest.mark.parametrize(
    ("skip", "line", "expected"),
    [
        (PAST_LAST, "a1@1 a2@2 b2@3", [11]),
        (PAST_LAST, "a1@1 a2@2 b2@3 x0@30", [11]),
        (TO_NEXT, "a1@1 a2@2 b2@3 b1@7", [7, 7]),
        (PAST_LAST, "a1@1 a2@2 a3@3 b3@4 b2@5 x0@13", [11]),
        (None, "a1@1 a2@2 b2@3", [3]),
    ],
)
def test_what_released_a_match(
    skip: AfterMatchSkipStrategy | None, line: str, expected: list[int]
) -> None:
    """It is the event's time, or the end of the last window of those that held it back."""
    nfa = NFACompiler.compile(of_one_number(skip))
    named = (word.split("@") for word in line.split())
    events = [(int(time), name) for name, time in named]

    for watermarks in ([], [4, 20], list(range(40))):
        found = times_of(nfa, events, watermarks, by_windows=True)
        assert [time for time, _ in found] == expected
