# SPDX-License-Identifier: Apache-2.0
"""Windows, pending matches and timeouts, with the surprises of Flink 2.3.0."""

from __future__ import annotations

import pytest

from pyflinkcep import AfterMatchSkipStrategy as Skip
from tests.shorthand import run


@pytest.mark.parametrize(
    ("pattern", "events", "matches", "timeouts"),
    [
        ("a -> b within[10]", "a@1 b@10", ["{a b}"], []),
        ("a -> b within[10]", "a@1 b@11", [], ["{a}@11"]),
        ("a -> b gap[10]", "a@1 b@10", ["{a b}"], []),
        ("a -> b gap[10]", "a@1 b@11", [], ["{a}@11"]),
    ],
)
def test_windows_are_half_open(
    pattern: str, events: str, matches: list[str], timeouts: list[str]
) -> None:
    """An event that comes exactly a window later is outside."""
    actual = run(pattern, events)

    assert (actual.matches, actual.timeouts) == (matches, timeouts)


def test_a_gap_window_starts_anew_at_every_event() -> None:
    """PREVIOUS_AND_CURRENT bounds the time between two events, not that of the whole match."""
    gap, whole = (run(f"a -> b {w}[5] -> c {w}[5]", "a@1 b@5 c@9") for w in ("gap", "within"))

    assert (gap.matches, whole.timeouts) == (["{a b c}"], ["{a b}@6"])


def test_a_window_on_an_earlier_stage_does_not_make_the_end_wait() -> None:
    """A trailing ``notFollowedBy`` waits only for a window on its own stage."""
    actual = [
        run("a within[5] !-> b", "a@1 b@2 @30").emitted,
        run("a !-> b within[5]", "a@1 @30").emitted,
        run("a !-> b gap[5]", "a@1 @30").emitted,
        run("a !-> b within[5]", "a@1 b@2 @30").emitted,
    ]

    assert actual == [["a: {a}"], ["30: {a}"], ["30: {a}"], []]


@pytest.mark.parametrize(
    ("pattern", "events", "matches", "timeouts"),
    [
        ("a{3}<5>", "a1@1 a2@3 a3@100", ["{a1 a2 a3}"], ["{a2}@8"]),
        ("c -> a{2}<5> -> d", "c@1 a1@3 a2@50 d@60", ["{c a1 a2 d}"], []),
        ("c -> a{2}<5> -> d", "c@1 a1@10 a2@11 d@12", [], ["{c}@6"]),
        ("c -> a+<5> -> d", "c@1 a1@3 a2@50 d@60", ["{c a1 a2 d}", "{c a1 d}"], []),
        ("c -> a+ gap[5] -> d", "c@1 a@20 d@50", ["{c a d}"], []),
        ("a gap[5] -> d", "a@1 d@50", ["{a d}"], []),
        ("a -> b? gap[5] -> c", "a@1 b@50 c@51", [], ["{a}@6"]),
        ("a -> b? gap[5] -> c", "a@1 x@2 b@50 c@51", ["{a b c}", "{a c}"], []),
    ],
    ids=[
        "not the last repetition",
        "not the last of two",
        "the first repetition",
        "not the loop",
        "a gap on a loop is ignored",
        "a gap on the first stage is ignored",
        "a gap on an optional stage holds",
        "until an event is passed by",
    ],
)
def test_windows_of_quantifiers(
    pattern: str, events: str, matches: list[str], timeouts: list[str]
) -> None:
    """A quantifier's window bounds the way to a repetition, except to the last one and the loop."""
    actual = run(pattern, events)

    assert (actual.matches, actual.timeouts) == (matches, timeouts)


@pytest.mark.parametrize(
    ("pattern", "events", "timeouts"),
    [
        ("a -> b? within[10]", "a@1 @11", ["{a}@11"]),
        ("a -> b+ within[10]", "a@1 b1@2 b2@3 @30", ["{a b1 b2}@11"]),
        ("a ->> b ->> c within[10]", "a@1 b@2 c@3 @30", ["{a b}@11", "{a}@11"]),
    ],
)
def test_timeouts_after_a_match(pattern: str, events: str, timeouts: list[str]) -> None:
    """What may go on after its match, and each fork of it, times out as well."""
    actual = run(pattern, events)

    assert (len(actual.matches) > 0, actual.timeouts) == (True, timeouts)


def test_a_loop_before_a_trailing_not_needs_one_event_more() -> None:
    """The longest repetitions are not pending yet when time runs out, and end as timeouts."""
    loop = run("a+ !-> b within[10]", "a1@1 a2@2 a3@3 @30")
    single = run("a -> c !-> b within[10]", "a@1 c@2 @30")

    assert (loop.matches, loop.timeouts, single.matches) == (
        ["{a1 a2}", "{a1}", "{a2}"],
        ["{a1 a2 a3}@11", "{a2 a3}@12", "{a3}@13"],
        ["{a c}"],
    )


def test_not_next_at_the_end_waits_for_an_event() -> None:
    """``notNext`` as the last stage is decided by the next event; without one it times out."""
    actual = [
        run("a !>> b", "a x").emitted,
        run("a !>> b", "a b").emitted,
        run("a !>> b within[10]", "a@1 @30").timeouts,
    ]

    assert actual == [["x: {a}"], [], ["{a}@11"]]


@pytest.mark.parametrize(
    ("pattern", "events", "timeouts"),
    [
        ("a -> b within[20] -> c within[10]", "a@1 b@2 c@11", ["{a b}@11"]),
        ("a -> b within[10] -> c within[20]", "a@1 b@2 c@11", ["{a b}@11"]),
        ("z -> (a -> b within[5]) -> c", "z@1 a@2 b@3 c@50", []),
        ("z -> (a within[5] -> b) -> c", "z@1 a@2 b@3 c@50", ["{z a b}@6"]),
        ("z -> (a -> b){2}<5> -> c", "z@1 a@2 b@3 a@50 b@60 c@70", []),
        ("z -> (a -> b) within[5] -> c", "z@1 a@2 b@3 c@6", ["{z a b}@6"]),
        ("z -> (a -> b) gap[5] -> c", "z@1 a@12 b@33 c@56", []),
    ],
    ids=[
        "the smallest",
        "wherever it stands",
        "not of a group's last stage",
        "of a group's other stages",
        "not of a group's quantifier",
        "of a group",
        "no gap of a group",
    ],
)
def test_which_window_holds(pattern: str, events: str, timeouts: list[str]) -> None:
    """The smallest window holds for the whole pattern; some windows inside groups do not count."""
    actual = run(pattern, events)

    assert (actual.timeouts, len(actual.matches)) == (timeouts, 0 if timeouts else 1)


def test_a_match_held_back_is_released_when_the_older_one_expires() -> None:
    """Time frees a waiting match as soon as no partial match with an earlier start is left."""
    actual = run("a+ -> c within[10]", "a1@1 a2@2 c@3 @10 @11", Skip.skipToFirst("a"))

    assert actual.emitted == ["c: {a1 a2 c} {a1 c}", "11: {a2 c}"]


def test_timeouts_are_silent_unless_asked_for() -> None:
    """Without timeout handling an expired partial match leaves nothing but freed memory."""
    actual = run("a -> b within[10]", "a@1 @30", timeouts=False)

    assert (actual.timeouts, actual.harness.partialMatches, actual.harness.bufferedEvents) == (
        [],
        1,
        0,
    )


@pytest.mark.xfail(reason="never: our integers do not overflow, and Spark has no such timestamp")
def test_the_earliest_time_never_expires() -> None:
    """Flink's window arithmetic overflows for an event at ``Long.MIN_VALUE``; it never expires."""
    start = -(2**63)
    actual = run("a -> b within[10]", f"a@{start} b@5")

    assert (actual.matches, actual.timeouts) == (["{a b}"], [])


def test_matches_held_back_wait_in_a_java_heap() -> None:
    """Of two waiting matches with one start the later one may come first, as in Flink."""
    actual = run(
        "a -> b+ -> c within[50]",
        "a1@1 a2@2 b1@3 c1@4 x@5 b2@6 c2@7 @90",
        Skip.skipToFirst("a"),
    )

    assert actual.emitted == [
        "c1: {a1 b1 c1}",
        "c2: {a1 b1 b2 c2}",
        "90: {a2 b1 b2 c2} {a2 b1 c1}",
    ]
