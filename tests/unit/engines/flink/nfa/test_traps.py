# SPDX-License-Identifier: Apache-2.0
"""Surprising answers of Flink 2.3.0 that this project gives too: stages, loops, groups, NOT, windows."""

from __future__ import annotations

import pytest

from pyflinkcep import AfterMatchSkipStrategy as Skip
from pyflinkcep import MalformedPatternException, Pattern
from pyflinkcep.testing import match
from tests.shorthand import Named, matches, parse, run


def test_optional_before_a_quantifier_is_lost() -> None:
    """The quantifier is made anew, so ``optional()`` counts only when it comes after it."""
    before, after = (matches(p, "z c1 a c2") for p in ("z -> a?+ -> c", "z -> a+? -> c"))

    assert (before, after) == ("{z a c2}", "{z c1} {z a c2}")


def test_skip_strategies_hold_matches_back() -> None:
    """With a skip strategy a match waits while a partial match with an earlier start lives."""
    loop, strict = (
        matches(pattern, "b1 b2 b3 c", Skip.skipToFirst("b"))
        for pattern in ("b+ -> c", "b+:cons >> c")
    )

    assert (loop, strict) == ("{b1 b2 b3 c} {b1 b2 c} {b1 c}", "{b1 b2 b3 c} {b2 b3 c} {b3 c}")


def test_ties_are_ordered_as_in_a_java_heap() -> None:
    """Of matches with one start and one end the first found comes first, the rest in reverse."""
    actual = matches("c ->> a+:any? -> b", "c a1 a2 b")

    assert actual == "{c a1 a2 b} {c b} {c a2 b} {c a1 b}"


def test_the_first_of_tied_matches_prunes_the_others() -> None:
    """With ``skipToNext`` only the first match of a start is left, which is the longest."""
    actual = matches("c ->> a+:any? -> b", "c a1 a2 b", Skip.skipToNext())

    assert actual == "{c a1 a2 b}"


def test_not_at_the_end_of_a_group() -> None:
    """A group's last ``notFollowedBy`` counts only where the group is last and has a window."""
    actual = [
        run("z -> (a !-> b) -> c", "z a b c").emitted,
        run("z -> (a !-> b)", "z a b").emitted,
        run("z -> (a !-> b) within[10]", "z@1 a@2 b@3 @50").emitted,
        run("z -> (a !-> b) within[10]", "z@1 a@2 @50").emitted,
    ]

    assert actual == [["c: {z a c}"], ["a: {z a}"], [], ["50: {z a}"]]


def test_not_followed_by_before_not_next_is_dropped() -> None:
    """``!->`` directly before ``!>>`` is without effect; in the other order both hold."""
    actual = [matches("a !-> b !>> c -> d", "a x b d"), matches("a !>> b !-> c -> d", "a x c d")]

    assert actual == ["{a d}", ""]


@pytest.mark.parametrize("pattern", ["a !>> b -> c?", "a !-> b -> c?"])
def test_not_before_an_optional_end(pattern: str) -> None:
    """The NOT condition is asked about the event just taken, so the match comes at once."""
    actual = run(pattern, "a b").emitted

    assert actual == ["a: {a}"]


def test_an_event_that_completes_the_match_beats_the_not() -> None:
    """A NOT event that also completes the match does not kill it, unless it is a ``notNext``."""
    actual = [
        matches("a !-> n[c] -> c", "a c"),
        matches("a !-> n[*] -> c", "a c"),
        matches("a !-> n[c] -> c -> d", "a c d"),
        matches("a !>> n[c] -> c", "a c"),
    ]

    assert actual == ["{a c}", "{a c}", "", ""]


@pytest.mark.parametrize("times", ["+", "{1,2}"])
def test_relaxed_loops_of_groups_repeat_matches(times: str) -> None:
    """After a looping or ranged group each ignored event gives the same match once more."""
    actual = matches(f"z -> (a -> b){times} -> c", "z a b x x c")

    assert actual == "{z a b c} {z a b c} {z a b c}"


def test_combinations_of_groups_repeat_matches() -> None:
    """A ranged group that allows combinations gives its shortest match several times."""
    actual = run("(a -> b){1,2}:any -> c", "a1 b1 a2 b2 a3 b3 c").matches

    assert (actual.count("{a1 b1 c}"), len(actual)) == (5, 12)


def test_next_after_a_looping_group_is_not_strict() -> None:
    """Events between a relaxed looping group and its ``next`` stage are passed by."""
    actual = [
        matches("z -> (a -> b)+ >> c", "z a b x x c"),
        matches("z -> (a -> b)+:cons >> c", "z a b x x c"),
    ]

    assert actual == ["{z a b c}", ""]


def test_consecutive_groups_do_not_repeat_matches() -> None:
    """A consecutive looping group gives each match once."""
    actual = matches("z -> (a -> b)+:cons -> c", "z a b x x c")

    assert actual == "{z a b c}"


@pytest.mark.parametrize("pattern", ["(a?)+", "(a? -> b?)+", "z -> (a?)+ -> c", "z -> (a?){2,}"])
def test_a_loop_that_may_stay_empty_is_refused(pattern: str) -> None:
    """A looping group of optional stages alone, on which Flink hangs, is an error."""
    with pytest.raises(MalformedPatternException, match="stages are all optional") as caught:
        run(pattern, "z a c")

    assert caught.value.hint


def test_a_loop_that_the_partial_match_may_keep_open_is_accepted() -> None:
    """Where an iterative condition decides, only a partial match that gets caught is an error."""

    def few(limit: int) -> Pattern:
        inner = parse("a -> b[*]").where(lambda e, ctx: len(ctx.getEventsForPattern("b")) < limit)
        return Pattern.begin(Pattern.begin(inner.oneOrMore().greedy()).optional()).oneOrMore()

    with pytest.raises(MalformedPatternException, match="stages are all optional"):
        run(few(0), "x")

    assert run(few(9), "x").matches == []


def test_a_loop_that_cannot_even_be_compiled_is_refused() -> None:
    """After a NOT and an optional stage such a loop overflows the stack of Flink's compiler."""
    with pytest.raises(MalformedPatternException, match="stages are all optional") as caught:
        run("a !-> x -> b? -> (c?)+", "a")

    assert caught.value.hint


def test_the_head_of_a_nested_group_is_strict() -> None:
    """A group begun by a group follows directly, whatever the outer group's contiguity."""
    actual = [
        matches("z -> ((a -> b){2}) -> c", "z x a1 b1 a2 b2 c"),
        matches("z -> ((a -> b){2}) -> c", "z a1 b1 a2 b2 c"),
    ]

    assert actual == ["", "{z a1 a2 b1 b2 c}"]


def test_greedy_takes_from_the_following_stage() -> None:
    """Greedy forbids the following stage every event that the loop could take."""
    actual = [
        matches("a -> b[b|c]+:greedy -> c", "a b1 c"),
        matches("z -> a{2,4}:greedy -> c", "z a1 a2 a3 a4 a5 c"),
        matches("a{2,4}:greedy -> c", "a1 a2 a3 a4 a5 c"),
    ]

    assert actual == ["", "", "{a2 a3 a4 a5 c} {a3 a4 a5 c} {a4 a5 c}"]


def test_greedy_at_the_beginning_gives_suffixes() -> None:
    """A greedy first stage gives the longest match of every start."""
    actual = matches("a+:greedy -> c", "a1 a2 a3 c")

    assert actual == "{a1 a2 a3 c} {a2 a3 c} {a3 c}"


def test_greedy_without_effect() -> None:
    """Greedy changes nothing on the last stage and on an exact count."""
    actual = [
        matches("z -> a+:greedy", "z a1 a2"),
        matches("z -> a{2}:greedy -> c", "z a1 a2 a3 c"),
    ]

    assert actual == ["{z a1} {z a1 a2}", "{z a1 a2 c}"]


def test_greedy_then_combinations() -> None:
    """``greedy().allowCombinations()`` is accepted and tries combinations."""
    actual = run("a -> b+:greedy:any", "a b1 b2 b3").emitted

    assert actual == ["b1: {a b1}", "b2: {a b1 b2}", "b3: {a b1 b2 b3} {a b1 b3}"]


def test_optional_after_greedy_in_disguise() -> None:
    """``times(0, n)`` and a group with an optional head may follow a greedy stage."""
    actual = [
        matches("a -> b+:greedy -> c{0,2} -> d", "a b c d"),
        matches("a -> b+:greedy -> (c? -> e) -> d", "a b c e d"),
    ]

    assert actual == ["{a b c d} {a b d}", "{a b c e d} {a b e d}"]


@pytest.mark.parametrize(
    ("pattern", "events", "expected"),
    [
        ("z -> a+ until[u] -> c", "z u a c", "{z a c}"),
        ("z -> a+ until[u] -> c", "z a1 u a2 x c", "{z a1 c}"),
        ("z -> a[a|u]+ until[u] -> c", "z u a c", ""),
        ("z -> a{2,} until[u] -> c", "z a1 u a2 c", ""),
        ("a+ until[b]", "a1 c a2 b a3", "{a1} {a1 a2} {a2} {a3}"),
    ],
    ids=["ignored before", "closes the loop", "kills the wait", "kills a count", "new runs begin"],
)
def test_until(pattern: str, events: str, expected: str) -> None:
    """An until event closes a loop for good, or kills it where repetitions are still missing."""
    actual = matches(pattern, events)

    assert actual == expected


def test_optional_greedy_loop_with_until_after_a_not_is_refused() -> None:
    """A pattern that Flink compiles to an edge without a target is an error."""
    with pytest.raises(MalformedPatternException, match="crashes Flink at run time") as caught:
        run("a !-> x -> b+?:greedy until[u] -> c", "a u b c")

    assert caught.value.hint


def test_names_keep_their_colons() -> None:
    """Stages whose names are equal up to a colon are apart in matches; Flink mixes them."""
    pattern = Pattern.begin("x:y").where(Named(("a",))).next("x:z").where(Named(("b",)))
    [match] = run(pattern, "a").harness.process("b", 2)

    assert match == {"x:y": ["a"], "x:z": ["b"]}


@pytest.mark.parametrize("name", [":", "::", ":b", "b:0", "b:1", "$endState$:0", ""])
def test_any_name_of_a_stage(name: str) -> None:
    """A name may look like one of the automaton's own: it changes nothing but the key."""
    a, b, c = (Named((letter,)) for letter in "abc")
    begins = [Pattern.begin(first).where(a).oneOrMore() for first in (name, "a")]
    found, plain = (
        match(begin.followedBy("b").where(b).timesOrMore(2).next("c").where(c), list("ababbc"))
        for begin in begins
    )

    assert [list(one.values()) for one in found] == [list(one.values()) for one in plain]
    assert [list(one) for one in found] == [[name, "b", "c"]] * len(plain)


def test_skipping_to_a_group_never_skips() -> None:
    """``skipToFirst("GroupPattern")`` is accepted and discards nothing."""
    plain, skipping = (
        matches("z ->> (a -> b)", "z1 a1 b1 a2 b2", skip)
        for skip in (Skip.noSkip(), Skip.skipToFirst("GroupPattern"))
    )

    assert (plain, skipping) == ("{z1 a1 b1} {z1 a2 b2}", "{z1 a1 b1} {z1 a2 b2}")


def test_an_event_serves_several_runs() -> None:
    """One event may stand in matches of different runs, but only once in a match."""
    actual = [
        matches("a -> b[a]", "a1 a2 a3"),
        matches("a{3}", "a1 a2 a3 a4 a5", Skip.skipToLast("a")),
        matches("x[b]? -> y[b]?", "b1 b2"),
    ]

    assert actual == ["{a1 a2} {a2 a3}", "{a1 a2 a3} {a3 a4 a5}", "{b1} {b1} {b1 b2} {b2} {b2}"]


def test_optional_first_stage() -> None:
    """The start state tries the second stage too, and never passes an event by."""
    actual = matches("a? -> b", "a1 a2 b")

    assert actual == "{a1 b} {a2 b} {b}"


def test_loops_before_a_relaxed_stage_give_every_prefix() -> None:
    """``b+ -> c`` gives all prefixes of all starts, ``b+ >> c`` only what ends at ``c``."""
    relaxed, strict = (matches(p, "b1 b2 b3 c") for p in ("b+ -> c", "b+ >> c"))

    assert (relaxed, strict) == (
        "{b1 b2 b3 c} {b1 b2 c} {b1 c} {b2 b3 c} {b2 c} {b3 c}",
        "{b1 b2 b3 c} {b2 b3 c} {b3 c}",
    )


@pytest.mark.parametrize("pattern", ["(a?) !>> b -> c", "(a?) !-> b -> c", "(a? -> d?) !-> b -> c"])
def test_a_not_after_a_beginning_that_may_stay_empty_is_refused(pattern: str) -> None:
    """A NOT stage that could discard the start state, which crashes Flink, is an error."""
    with pytest.raises(MalformedPatternException, match="may stay empty") as caught:
        run(parse(pattern), "b")

    assert caught.value.hint


# --- windows, pending matches and timeouts, with the surprises of Flink 2.3.0


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
        "a -> b+ -> c within[50]", "a1@1 a2@2 b1@3 c1@4 x@5 b2@6 c2@7 @90", Skip.skipToFirst("a")
    )

    assert actual.emitted == ["c1: {a1 b1 c1}", "c2: {a1 b1 b2 c2}", "90: {a2 b1 b2 c2} {a2 b1 c1}"]
