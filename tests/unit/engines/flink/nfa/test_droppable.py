# SPDX-License-Identifier: Apache-2.0
"""Which events of a pattern may be dropped, and why not others."""

from __future__ import annotations

import pytest

from pyflinkcep import AfterMatchSkipStrategy, Pattern
from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.engines.flink.nfa.relevance import Relevance
from tests.shorthand import parse

SKIP = AfterMatchSkipStrategy.skipPastLastEvent()


def decide(
    pattern: str | Pattern,
    skip: AfterMatchSkipStrategy | None = None,
    timeouts: bool = False,
    shows_time: bool = True,
    unknown: str = "",
) -> Relevance:
    """Decide about a pattern whose conditions are known beforehand, but for some stages'."""
    built = parse(pattern, skip) if isinstance(pattern, str) else pattern
    nfa = NFACompiler.compile(built, timeouts)
    known = sum(atom.bit for atom in nfa.atoms if atom.stage not in unknown.split())
    return Relevance.of(nfa, known, shows_time)


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
    """A trailing notFollowedBy's match has the next event's time: droppable if nobody sees it."""
    assert not decide("a !-> b within[9]").droppable
    assert decide("a !-> b within[9]", shows_time=False).droppable


def test_a_loop_before_a_trailing_absence() -> None:
    """Only an ignored event begins the wait after a loop, so that it is needed."""
    reason = decide("a -> b+ !-> c within[9]", shows_time=False).reason

    assert reason == "an event ignored at stage 'b' begins the wait for an absent event"


def test_skip_strategies_and_windows() -> None:
    """What a window releases shows when it was seen to end; without windows all is the same."""
    assert decide("a -> b+ -> c", SKIP).droppable
    assert decide("a -> b within[9]", SKIP, shows_time=False).droppable
    assert "held back" in decide("a -> b within[9]", SKIP).reason
    assert "held back" in decide("a -> b within[9]", SKIP, timeouts=True, shows_time=False).reason


def test_many_conditions() -> None:
    """With very many conditions only events that fulfil none of them are looked at."""
    pattern = Pattern.begin("s0").where("x0").where("y")
    for number in range(1, 20):
        pattern = pattern.followedBy(f"s{number}").where(f"x{number}")

    assert decide(pattern) == Relevance(NOTHING_HOLDS)
