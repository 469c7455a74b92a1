# SPDX-License-Identifier: Apache-2.0
"""Which events of a pattern may be dropped, and why not others."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from pyflinkcep import AfterMatchSkipStrategy, Pattern, match
from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.engines.flink.nfa.relevance import Relevance
from tests.shorthand import parse

SKIP = AfterMatchSkipStrategy.skipPastLastEvent()


def decide(
    pattern: str | Pattern,
    skip: AfterMatchSkipStrategy | None = None,
    timeouts: bool = False,
    shows_next: bool = True,
    unknown: str = "",
) -> Relevance:
    """Decide about a pattern whose conditions are known beforehand, but for some stages'."""
    built = parse(pattern, skip) if isinstance(pattern, str) else pattern
    nfa = NFACompiler.compile(built, timeouts)
    known = sum(atom.bit for atom in nfa.atoms if atom.stage not in unknown.split())
    return Relevance.of(nfa, known, shows_next)


NOTHING_HOLDS = frozenset({0})


@pytest.mark.parametrize(
    "pattern",
    [
        "a -> b -> c",
        "a ->> b",
        "a -> b within[9]",
        "a -> b? -> c",
        "a -> b+ -> c",
        "a -> b+:any -> c",
        "a -> b+:greedy -> c",
        "a -> b{2,4}:greedy -> c within[9]",
        "a -> b+ until[u] -> c",
        "a+",
        "a !-> b -> c",
        "a !-> b -> c? -> d",
        "a -> (b -> c)? -> d",
    ],
)
def test_relaxed_patterns_do_without_what_fulfils_no_condition(pattern: str) -> None:
    """Where events may come in between, those that fulfil no condition may be dropped."""
    assert decide(pattern) == Relevance(NOTHING_HOLDS)


def test_conditions_that_count_only_together() -> None:
    """An event that fulfils one of two conditions of a stage is as good as one that has none."""
    nfa = NFACompiler.compile(Pattern.begin("a").where("x").where("y").followedBy("b").where("z"))
    z, x, y = (atom.bit for atom in nfa.atoms)

    assert Relevance.of(nfa, x | y | z, True).droppable == {0, x, y}


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("a >> b", "stage 'b' must follow directly: any event in between ends the partial match"),
        ("a{2}:cons", "stage 'a' must follow directly"),
        ("a -> b+:cons -> c", "an ignored event changes what stage 'b' does"),
        ("a !>> b", "the event right before stage 'b' decides, whatever it is (notNext)"),
        ("a !>> b -> c", "the event right after the one before stage 'b' decides (notNext)"),
        ("a -> x[*]", "stage 'x' may take an event that satisfies no condition"),
        ("a -> b gap[4]", "stage 'b' has a window since the previous event"),
        ("a -> (b -> c)+ -> d", "ignored events keep changing partial matches at stage 'b'"),
        ("a -> b+ !-> c within[9]", "a match that ends with notFollowedBy('c') carries the time"),
    ],
)
def test_patterns_that_need_every_event(pattern: str, reason: str) -> None:
    """Where any event at all can make a difference, nothing is dropped, and the stage is named."""
    decided = decide(pattern)

    assert decided.droppable == frozenset()
    assert reason in decided.reason


def test_a_python_condition_may_hold_for_any_event() -> None:
    """While a stage takes what only Python can tell, every event is needed."""
    decided = decide("a -> b -> c", unknown="b")

    assert decided.droppable == frozenset()
    assert decided.reason.startswith("the condition b of stage 'b' is in Python")


def test_a_python_condition_beside_one_in_spark() -> None:
    """A stage whose condition in Spark fails does not take an event, whatever Python says."""
    pattern = Pattern.begin("a").where("x").where(lambda e: True).followedBy("b").where("y")
    nfa = NFACompiler.compile(pattern)
    known = sum(a.bit for a in nfa.atoms if type(a.condition).__name__ == "ExpressionCondition")

    assert Relevance.of(nfa, known, True) == Relevance(NOTHING_HOLDS)


def test_without_conditions_in_spark() -> None:
    """With no condition known beforehand there is nothing to tell events apart by."""
    assert decide("a -> b", unknown="a b").reason.startswith("no condition is evaluated before")


def test_timeouts_of_a_loop() -> None:
    """An ignored event makes two partial matches of a satisfied loop, and so two timeouts."""
    assert decide("a -> b+ -> c within[9]").droppable
    assert decide("a -> b within[9]", timeouts=True).droppable
    assert "timeouts are requested" in decide("a -> b+ -> c within[9]", timeouts=True).reason


def test_the_time_of_a_match_that_waited() -> None:
    """In process(), a trailing notFollowedBy's match has the next event's time."""
    assert not decide("a !-> b within[9]").droppable
    assert decide("a !-> b within[9]", shows_next=False).droppable


def test_a_loop_before_a_trailing_absence() -> None:
    """Only an ignored event begins the wait after a loop, so that it is needed."""
    reason = decide("a -> b+ !-> c within[9]", shows_next=False).reason

    assert reason == "an event ignored at stage 'b' begins the wait for an absent event"


def test_skip_strategies_and_windows() -> None:
    """What a window releases shows when it was seen to end; without windows all is the same."""
    assert decide("a -> b+ -> c", SKIP).droppable
    assert decide("a -> b within[9]", SKIP, shows_next=False).droppable
    assert "held back" in decide("a -> b within[9]", SKIP).reason
    assert "held back" in decide("a -> b within[9]", SKIP, timeouts=True, shows_next=False).reason


def test_many_conditions() -> None:
    """With very many conditions only events that fulfil none of them are looked at."""
    pattern = Pattern.begin("s0").where("x0").where("y")
    for number in range(1, 20):
        pattern = pattern.followedBy(f"s{number}").where(f"x{number}")

    assert decide(pattern) == Relevance(NOTHING_HOLDS)


@pytest.mark.parametrize(
    ("text", "skip"),
    [("a -> b within[9]", SKIP), ("a !-> b within[9]", None), ("a -> b -> c+ within[7]", SKIP)],
)
def test_a_match_has_the_time_of_its_window_with_and_without_dropped_events(
    text: str, skip: AfterMatchSkipStrategy | None
) -> None:
    """Where the end of a window is the time of what it released, no other event shows."""
    pattern = of_kinds(text, skip)
    nfa = NFACompiler.compile(pattern)
    known = sum(atom.bit for atom in nfa.atoms)
    bits = {repr(atom.condition): atom.bit for atom in nfa.atoms}
    droppable = Relevance.of(nfa, known, shows_next=False).droppable
    chance, dropped = random.Random(6), 0
    for _ in range(60):
        times = sorted(chance.choices(range(30), k=12))
        events = [{"t": t, "k": chance.choice("abcxy")} for t in times]
        few = [e for e in events if bits.get(f"k = '{e['k']}'", 0) not in droppable]
        dropped += len(events) - len(few)

        assert found(pattern, few) == found(pattern, events)
    assert dropped > 60


def of_kinds(text: str, skip: AfterMatchSkipStrategy | None) -> Pattern:
    """Return a pattern whose stages take the events that are named as they are."""
    first = Pattern.begin("a", skip or AfterMatchSkipStrategy.noSkip()).where("k = 'a'")
    window = timedelta(milliseconds=int(text[-2]))
    if "!" in text:
        return first.notFollowedBy("b").where("k = 'b'").within(window)
    pattern = first.followedBy("b").where("k = 'b'")
    if "c" in text:
        pattern = pattern.followedBy("c").where("k = 'c'").oneOrMore()
    return pattern.within(window)


def found(pattern: Pattern, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return matches with their times."""
    table = pa.table(
        {"t": pa.array([e["t"] for e in events], pa.int64()), "k": [e["k"] for e in events]}
    )
    return match(pattern, table, timestamp="t").toArrow().to_pylist()
