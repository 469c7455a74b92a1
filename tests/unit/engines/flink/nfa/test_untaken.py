# SPDX-License-Identifier: Apache-2.0
"""Which events no stage can take, by the answers to conditions known beforehand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.engines.flink.nfa.relevance import untaken_events
from tests.shorthand import matches, parse

A, B, C = 1, 2, 4


def untaken(pattern: str, unknown: str = "") -> set[int]:
    """Return the events that no stage takes, of a pattern with a condition for each stage."""
    nfa = NFACompiler.compile(parse(pattern))
    bits = {atom.stage: atom.bit for atom in nfa.atoms}
    known = sum(bit for stage, bit in bits.items() if stage not in unknown.split())
    ours = {bits[stage]: own for stage, own in zip("abc", (A, B, C), strict=True) if stage in bits}
    return {
        sum(own for bit, own in ours.items() if event & bit) for event in untaken_events(nfa, known)
    }


@pytest.mark.parametrize(
    "pattern", ["a >> b", "a -> b", "a ->> b", "a+ >> b", "a >> b?", "(a >> b)+"]
)
def test_an_event_without_an_answer_is_taken_by_no_stage(pattern: str) -> None:
    """Whatever the contiguity, a stage takes an event only if its condition holds."""
    assert untaken(pattern) == {0}


def test_a_not_stage_takes_nothing() -> None:
    """What ends a partial match is not in it."""
    assert untaken("a !>> b >> c") == {0, B}


def test_what_is_not_known_may_hold() -> None:
    """A condition that is evaluated while matching may take any event."""
    assert untaken("a >> b", unknown="b") == set()


@given(
    st.sampled_from(
        [
            "a >> b >> c",
            "a+ >> b? -> c",
            "a !>> b >> c",
            "(a >> b)+ -> c",
            "a !-> b -> c",
            "a ->> b+ >> c",
        ]
    ),
    st.lists(st.sampled_from(["a", "b", "c", "x"]), max_size=12),
)
def test_no_match_has_such_an_event(pattern: str, names: list[str]) -> None:
    """An event that satisfies one condition alone is in a match only if it is not untaken."""
    left_out = {
        name for name, bit in {"a": A, "b": B, "c": C, "x": 0}.items() if bit in untaken(pattern)
    }
    found = matches(pattern, " ".join(f"{name}{place}" for place, name in enumerate(names)))

    assert not left_out & set(found)
