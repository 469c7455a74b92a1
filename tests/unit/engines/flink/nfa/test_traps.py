# SPDX-License-Identifier: Apache-2.0
"""Surprising answers of Flink 2.3.0 that this project gives too: stages, loops, groups, NOT."""

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

    assert (loop, strict) == (
        "{b1 b2 b3 c} {b1 b2 c} {b1 c}",
        "{b1 b2 b3 c} {b2 b3 c} {b3 c}",
    )


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
    actual = [
        matches("a !-> b !>> c -> d", "a x b d"),
        matches("a !>> b !-> c -> d", "a x c d"),
    ]

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

    assert actual == [
        "{a1 a2} {a2 a3}",
        "{a1 a2 a3} {a3 a4 a5}",
        "{b1} {b1} {b1 b2} {b2} {b2}",
    ]


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
