# SPDX-License-Identifier: Apache-2.0
"""Patterns of which explain() warns: what may double with each event."""

from __future__ import annotations

import pytest

from pyflinkcep import AfterMatchSkipStrategy as Skip
from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.engines.flink.nfa.growth import doubling_stages, splitting_stages, warnings_of
from tests.shorthand import parse, run


@pytest.mark.parametrize(
    ("pattern", "stages"),
    [
        ("a+:any -> b", ["a"]),
        ("s -> a{2,}:any -> b", ["a"]),
        ("a+:any ->> b[a]+:any", ["a", "b"]),
        ("s[a] -> a+:any? -> b", ["a"]),
        ("a+ ->> b", []),
        ("a ->> b[a] ->> c[a]", []),
        ("a{2,4}:any -> b", []),
        ("a+:cons -> b", []),
    ],
)
def test_stages_that_double(pattern: str, stages: list[str]) -> None:
    """Loops that allow combinations double the partial matches with each event, and no others."""
    before, after = (run(pattern, "s" + " a" * n).harness.partialMatches for n in (7, 10))

    assert doubling_stages(NFACompiler.compile(parse(pattern))) == stages
    assert (after > 4 * before) == bool(stages)


@pytest.mark.parametrize(
    ("pattern", "stages"),
    [
        ("(a+)+ >> b", ["a"]),
        ("(a+:cons)+:cons >> b", ["a"]),
        ("((a >> b[a])+:cons)+:cons >> c", ["a"]),
        ("(a+:cons >> b)+:cons", []),
        ("(a >> b+:cons)+:cons", []),
        ("(a+){2} >> b", []),
        ("(a)+ >> b", []),
        ("(a >> b?)+", []),
        ("a+ >> b[a]+", []),
    ],
)
def test_stages_of_loops_within_loops(pattern: str, stages: list[str]) -> None:
    """A loop in a loop takes equal events in twice as many ways with each, and no other does."""
    before, after = (run(pattern, "s" + " a" * n).harness.partialMatches for n in (6, 10))

    assert splitting_stages(NFACompiler.compile(parse(pattern))) == stages
    assert (after > 4 * max(1, before)) == bool(stages)


def test_what_is_said_of_a_loop_within_a_loop() -> None:
    """The warning names the stage, what grows, and what bounds it."""
    line, bound = warnings_of(NFACompiler.compile(parse("(a+)+ >> b within[5000]")))

    assert line.startswith("stage 'a' loops within a loop: ")
    assert line.endswith("n such events of a key within 5 s make up to 2ⁿ partial matches")
    assert "maxPartialMatches" in bound


def test_what_is_said() -> None:
    """The warning says what grows, within what, and what bounds it; then how to count."""
    line, bound = warnings_of(NFACompiler.compile(parse("a+:any -> b within[5000]")))

    assert line.startswith("stage 'a' may take or leave each event that fits")
    assert line.endswith("n such events of a key within 5 s make up to 2ⁿ partial matches")
    assert "maxPartialMatches" in bound
    assert bound.endswith("; .compressed() counts the matches without listing them")


def test_a_skip_strategy_cannot_count() -> None:
    """What compressed() refuses is not proposed."""
    skips = parse("a+:any -> b within[5000]", Skip.skipPastLastEvent())
    _, bound = warnings_of(NFACompiler.compile(skips))

    assert bound.endswith("maxPartialMatches=... bounds them")


def test_patterns_with_a_window_that_do_not_double() -> None:
    """Nothing is said of a pattern whose window bounds it well."""
    assert not list(warnings_of(NFACompiler.compile(parse("a+ ->> b within[9]"))))
