# SPDX-License-Identifier: Apache-2.0
"""The states of alternatives and of patterns in any order, and what they match."""

from __future__ import annotations

import pytest

from pyflinkcep import AfterMatchSkipStrategy, CepError
from pyflinkcep.engines.flink.nfa import NFACompiler
from tests.shorthand import matches, parse, run


def states(text: str) -> list[str]:
    """The states of a pattern, the start state last."""
    return [str(table.state) for table in NFACompiler.compile(parse(text)).tables.values()]


def test_a_fork() -> None:
    """One state tries an event on the alternatives, the first one first; all go on alike."""
    assert states("a -> (b | c) -> d")[1:] == [
        "d: T→$endState$[d] I→d[not d]",
        "b: T→d[b] I→b[not b]",
        "c: T→d[c] I→c[not c]",
        "GroupPattern: P→c[true] P→b[true]",
        "a(start): T→GroupPattern[a]",
    ]


def test_any_order() -> None:
    """There is a fork for each set of patterns that are left; the last one has none."""
    assert states("a -> (b &>> c) -> d")[2:] == [
        "c: T→d[c]",
        "b: T→c[b] I→b[not b]",
        "b:0: T→d[b]",
        "c:0: T→b:0[c] I→c:0[not c]",
        "GroupPattern: P→c:0[true] P→b[true]",
        "a(start): T→GroupPattern[a]",
    ]
    assert len(states("(a & b & c & d & e & f)")) == 6 * 2**5 + 2**6 - 6


@pytest.mark.parametrize(
    ("text", "events", "found"),
    [
        ("a -> (b | c) -> d", "a b c d", "{a b d} {a c d}"),  # a match for each
        ("a -> (b | c[b|c]) -> d", "a b d", "{a b d} {a b d}"),  # under another name
        ("a >> (b | c) >> d", "a c d a x c d", "{a c d}"),
        ("(a | b -> c) -> d", "b a c d", "{b c d} {a d}"),
        ("a -> (b | c)? -> d", "a d a x c d", "{a d} {a c d} {a c d} {a d}"),
        ("(a | b)+ until[u] >> d", "a b d u a d", "{a b d} {b d} {a d}"),
        ("(a & b) -> d", "b x a d", "{b a d}"),
        ("(a &>> b) >> d", "b x a d b a d", "{b a d}"),
        ("(a & b{2}) -> c", "b a b a b c", "{a b b c} {b b a c}"),
        ("a !-> n -> (b | c) -> d", "a n b d a c n d", "{a c d}"),
        ("a !-> n -> (b | c)? -> d", "a x n d a b n d", "{a b d}"),
        ("a !>> n -> (b | c)", "a n b a x c", "{a c}"),
        ("(a+ | b) !-> n -> c", "a n c b n c", ""),
        ("a -> (b !>> n | c) -> d", "a b n d a b x d", "{a b d}"),
    ],
)
def test_what_they_match(text: str, events: str, found: str) -> None:
    """Each alternative, or order, matches as if it were written out in the place of the group."""
    wanted = found.replace("} ", "}\n").split("\n") if found else []

    assert sorted(run(text, events).matches) == sorted(wanted)


def test_skip_strategies() -> None:
    """The first alternative is preferred; the others of the same events are skipped."""
    skip = AfterMatchSkipStrategy.skipPastLastEvent()

    found = run("(a | b[a])", "a1 a2", skip).harness
    assert run("(a | b[a])", "a1 a2", skip).matches == ["{a1}", "{a2}"]
    assert found.partialMatches == 1


def test_a_skip_strategy_names_no_stage_inside() -> None:
    """A stage inside a group, here in one alternative only, is none that can be skipped to."""
    skip = AfterMatchSkipStrategy.skipToFirst("b")
    with pytest.raises(CepError, match="can not be found in the given Pattern"):
        NFACompiler.compile(parse("a -> (b | c)", skip))


def test_gaps_before_a_group() -> None:
    """The alternatives have one state before them, so one window for the gap; none at the start."""
    assert matches("a -> (b gap[5] | c gap[5])", "a@1 b@6 a@10 x@11 c@14") == "{a c}"
    assert matches("(b gap[5] | c) -> d", "b d") == "{b d}"
    with pytest.raises(CepError, match="differ in the window for the gap"):
        NFACompiler.compile(parse("a -> (b gap[5] | c)"))


def test_timeouts() -> None:
    """An alternative that is waited for times out for itself, once it waits."""
    assert run("a -> (b | c) within[5]", "a1@1 @9").timeouts == ["{a1}@6"]
    assert run("a -> (b | c) within[5]", "a1@1 x@2 @9").timeouts == ["{a1}@6", "{a1}@6"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(a | a)", "Duplicate pattern name: a"),
        ("a -> (b & (c | b))", "Duplicate pattern name: b"),
        ("a !-> n -> (b? | c) -> d", "follows a notFollowedBy stage"),
        ("(a? | b)+ -> c", "looping group whose stages are all optional"),
        ("((a & b & c & d & e & f){100} & b1 & b2 & b3){10}", "states"),
    ],
)
def test_refusals(text: str, message: str) -> None:
    """What the compiler refuses of groups, it refuses of these; the number of states is known."""
    with pytest.raises(CepError, match=message):
        NFACompiler.compile(parse(text))
