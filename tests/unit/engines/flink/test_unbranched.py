# SPDX-License-Identifier: Apache-2.0
"""Patterns whose partial matches do not branch: queues find what the automaton finds."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pyflinkcep import AfterMatchSkipStrategy, Pattern, funnel, match
from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.engines.flink.nfa.analysis import Unbranched
from pyflinkcep.engines.flink.nfa.atoms import known_bits
from tests.seeds import each_seed

CONDITIONS = ["n < 3", "n % 3 = 1", "n = 5 or n = 2", "n > 4", "n <> 7", "n IS NOT NULL"]


def chain(random: np.random.Generator) -> Pattern:
    """Return a random chain of stages, strict and relaxed, some of them taken twice."""
    pattern = Pattern.begin("s0").where(random.choice(CONDITIONS[:4]))
    for number in range(1, int(random.integers(2, 5))):
        join: Any = random.choice(["next", "followedBy"])
        pattern = getattr(pattern, join)(f"s{number}").where(str(random.choice(CONDITIONS)))
        if random.random() < 0.2:
            pattern = pattern.times(2)
            pattern = pattern.consecutive() if random.random() < 0.5 else pattern
    if random.random() < 0.8:
        pattern = pattern.within(timedelta(milliseconds=int(random.integers(1, 40))))
    return pattern


def events(random: np.random.Generator) -> pa.Table:
    """Return events of some keys, with ties in time, in order or not."""
    size = 200
    at = random.integers(0, 300, size)
    return pa.table(
        {
            "key": random.integers(0, 6, size),
            "at": np.sort(at) if random.random() < 0.5 else at,
            "n": pa.array(random.integers(0, 8, size), mask=random.random(size) < 0.05),
        }
    )


@each_seed(40)
def test_matches_timeouts_and_stages_are_those_of_plain_python(seed: int) -> None:
    """Events one by one are matched by the plain path, those of a table by queues in C."""
    random = np.random.default_rng(seed)
    pattern, table = chain(random), events(random)
    rows, how = table.to_pylist(), {"timestamp": "at", "key": "key"}
    nfa = NFACompiler.compile(pattern, timeoutHandling=True)
    assert Unbranched.of(nfa, known_bits(nfa.atoms)) is not None

    found, plain = match(pattern, table, **how), match(pattern, rows, **how)
    assert found == plain
    assert found.timeouts == plain.timeouts
    for more in ({"quantiles": ()}, {"quantiles": (0, 0.4)}, {"by": ["n"]}, {"by": ["key", "n"]}):
        assert (
            funnel(pattern, table, **how, **more).rows == funnel(pattern, rows, **how, **more).rows
        )


A = Pattern.begin("a").where("n = 1")
SKIPS = Pattern.begin("a", AfterMatchSkipStrategy.skipPastLastEvent()).where("n = 1")


@pytest.mark.parametrize(
    "pattern",
    [
        A,
        A.followedByAny("b").where("n = 2"),
        A.followedBy("b").where("n = 2").oneOrMore(),
        A.followedBy("b").where("n = 2").optional().followedBy("c").where("n = 3"),
        A.notFollowedBy("b").where("n = 2").followedBy("c").where("n = 3"),
        A.notFollowedBy("b").where("n = 2").within(timedelta(seconds=1)),
        A.followedBy("b").where(lambda event: event.n == 2),
        SKIPS.followedBy("b").where("n = 2"),
    ],
    ids=["alone", "any", "loop", "optional", "not", "absence", "function", "skips"],
)
def test_other_patterns_are_left_to_the_automaton(pattern: Pattern) -> None:
    """What may branch, wait for time, skip or ask Python has no table."""
    nfa = NFACompiler.compile(pattern)
    assert Unbranched.of(nfa, known_bits(nfa.atoms)) is None
