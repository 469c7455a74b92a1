# SPDX-License-Identifier: Apache-2.0
"""The timers that wake a key when a window ends."""

from __future__ import annotations

from typing import Any

import pytest

from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.engines.flink.operator import CepOperator
from tests.shorthand import parse


class Nowhere:
    """Receives results and forgets them."""

    def match(self, *result: Any) -> None:
        """Forget a match."""

    def timeout(self, *result: Any) -> None:
        """Forget a timeout."""


def timers(pattern: str, *calls: str) -> set[int]:
    """Process events such as ``a@5``, a call at a time; give the timers then set."""
    operator = CepOperator(NFACompiler.compile(parse(pattern)))
    state = operator.new_key()
    for call in calls:
        named = [event.split("@") for event in call.split()]
        times = [int(time) for _, time in named]
        operator.process_events("k", state, times, [name for name, _ in named], Nowhere())
    return state.timers


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        (("a@5",), {15}),
        (("a@5 a@9 b@10",), {15, 19}),
        (("a@5", "a@9 b@10", "x@11"), {15, 19}),
        (("a@0 x@1",), set()),
        (("a@0 a@3 x@4",), {13, 14}),
    ],
)
def test_one_timer_for_each_window(calls: tuple[str, ...], expected: set[int]) -> None:
    """Partial matches have a timer each, but those that began at or before the epoch."""
    assert timers("a ->> b -> c within[10]", *calls) == expected


@pytest.mark.parametrize("calls", [("x@1 a@2 x@3 x@4",), ("x@1 a@2", "x@3 x@4")])
def test_with_gaps_every_event_sets_a_timer(calls: tuple[str, ...]) -> None:
    """From the first start on, every event's timer may be the one that finds a gap over."""
    assert timers("a -> b gap[5] -> c within[10]", *calls) == {12, 13, 14}
