# SPDX-License-Identifier: Apache-2.0
"""Patterns whose latest partial matches live."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from pyflinkcep import AfterMatchSkipStrategy, NotSupportedError, Pattern, WithinType, match
from pyflinkcep.conditions import IterativeCondition
from pyflinkcep.engines.latest.machine import LatestMachine, LatestRule, Offer
from tests.seeds import each_seed
from tests.shorthand import ms

A, B, C = "a = 1", "b = 1", "c = 1"


def _events(seed: int) -> list[dict[str, Any]]:
    """Return events that satisfy some of three conditions, some of them at one time."""
    rng, time = random.Random(seed), 0
    found = []
    for number in range(40):
        time += rng.choice([0, 1, 1, 3])
        bits = {name: int(rng.random() < 0.4) for name in "abc"}
        found.append({"id": number, "t": time, "k": rng.choice("xy"), **bits})
    return found


def _ids(matches: Any) -> list[list[int]]:
    return [[event["id"] for own in found.values() for event in own] for found in matches]


@each_seed(40)
def test_two_stages_are_what_flink_can_say(seed: int) -> None:
    """A then B is: no other A between them, in a window a millisecond longer than its span."""
    events = _events(seed)
    latest = Pattern.begin("a").where(A).followedBy("b").where(B).within(ms(8))
    said = (
        Pattern.begin("a")
        .where(A)
        .notFollowedBy("other")
        .where(f"{A} AND NOT ({B})")
        .followedBy("b")
        .where(B)
        .within(ms(8))
    )

    found = _ids(match(latest, events, "t", "k", evaluation="latest"))
    assert sorted(found) == sorted(_ids(match(said, events, "t", "k")))
    assert found == sorted(found, key=lambda ids: ids[-1])
    assert found


def _by_machine(events: list[dict[str, Any]]) -> Iterator[Any]:
    """Yield the matches of A twice, then no C, then B, then no C in 12 ms."""
    machine = LatestMachine([LatestRule((False, False, True, False, True), 12)])
    fields = ("a", "a", "c", "b", "c")
    for event in events:
        offers = [Offer(0, n, event["k"]) for n, name in enumerate(fields) if event[name]]
        yield from machine.process(event, event["t"], offers)
    yield from machine.finish()


@each_seed(40)
def test_stages_are_steps(seed: int) -> None:
    """A stage that repeats is as many steps, and a NOT stage is a missing one."""
    events = _events(seed)
    pattern = (
        Pattern.begin("a")
        .where(lambda event: event.a == 1)
        .times(2)
        .notFollowedBy("no")
        .where(C)
        .followedBy("b")
        .where(B)
        .notFollowedBy("later")
        .where(C)
        .within(ms(13))
    )
    expected = sorted(_by_machine(events), key=lambda found: found.number)

    found = match(pattern, events, "t", "k", evaluation="latest")
    assert _ids(found) == [[event["id"] for event in own.events] for own in expected]
    assert all(len(one["a"]) == 2 for one in found)


def test_without_a_window() -> None:
    """A partial match without a window lives until a later one takes its place."""
    events = [{"id": n, "a": n < 2, "b": n == 2} for n in range(3)]
    pattern = Pattern.begin("a").where("a").followedBy("b").where("b")

    assert _ids(match(pattern, events, evaluation="latest")) == [[1, 2]]


_FIRST = Pattern.begin("a").where(A)
_TWO = _FIRST.followedBy("b").where(B)


class _LooksBack(IterativeCondition):
    def filter(self, value: Any, ctx: Any) -> bool:
        return len(ctx.getEventsForPattern("a")) == 1


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        (_FIRST.next("b").where(B), "stage 'b' is not joined by followedBy"),
        (_FIRST.followedByAny("b").where(B), "stage 'b' is not joined by followedBy"),
        (_FIRST.notNext("b").where(B).followedBy("c"), "stage 'b' is not joined by followedBy"),
        (_TWO.oneOrMore(), "stage 'b' repeats without a fixed number"),
        (_TWO.optional(), "stage 'b' repeats without a fixed number, or is optional"),
        (_TWO.times(2, 3), "stage 'b' repeats without a fixed number"),
        (_TWO.times(2).consecutive(), "repetitions of stage 'b' are consecutive"),
        (_TWO.times(2).allowCombinations(), "repetitions of stage 'b' are"),
        (_TWO.times(2, ms(3)), "a gap between"),
        (_FIRST.notFollowedBy("b").where(B).followedBy("c"), "needs a window"),
        (_FIRST.followedBy(Pattern.begin("g")), "a group"),
        (_FIRST.followedBy("b").where("b > last(a.b)"), "of stage 'b' reads other events"),
        (_FIRST.followedBy("b").where(_LooksBack()), "of stage 'b' reads other events"),
        (_TWO.within(ms(5), WithinType.PREVIOUS_AND_CURRENT), "a gap between"),
        (Pattern.begin("a", AfterMatchSkipStrategy.skipToNext()), "a skip strategy"),
    ],
)
def test_refusals(pattern: Pattern, why: str) -> None:
    """What latest runs cannot say is refused by its name."""
    with pytest.raises(NotSupportedError, match=why):
        match(pattern, _events(1), "t", evaluation="latest")


def test_what_needs_all_partial_matches_is_refused() -> None:
    """Bounds, late events and timeouts are of the automaton."""
    with pytest.raises(NotSupportedError, match="maxPartialMatches"):
        match(_TWO, [], evaluation="latest", maxPartialMatches=1)
    with pytest.raises(NotSupportedError, match="delayThreshold"):
        match(_TWO, [], evaluation="latest", delayThreshold=ms(0))
    with pytest.raises(NotSupportedError, match="timeouts"):
        match(_TWO, [], evaluation="latest").timeouts  # noqa: B018
