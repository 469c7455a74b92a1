# SPDX-License-Identifier: Apache-2.0
"""Nodes that hundreds of runs reached, in the kernel as on the plain path."""

from __future__ import annotations

import random

import pytest

from pyflinkcep import AfterMatchSkipStrategy as Skip
from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.engines.flink.operator import PartialMatchLimit
from pyflinkcep.errors import StateLimitError
from tests.kernel_harness import KernelRun, needs_kernel
from tests.shorthand import parse
from tests.unit.engines.flink.test_same_as_plain import Both

pytestmark = needs_kernel


@pytest.mark.parametrize(
    ("pattern", "skip"),
    [
        ("a+:any ->> b", None),
        ("a+:any ->> b within[9]", None),
        ("s[a] ->> a+:any ->> b within[9]", None),
        ("a[a|b]+ ->> b[a|b]+ -> c within[14]", None),
        ("a{2,}:any -> b within[8]", None),
        ("(a -> b)+:any ->> c within[12]", None),
        ("a+:any ->> b within[8]", Skip.skipToFirst("a")),
        ("a+:any ->> b within[8]", Skip.skipToLast("a")),
        ("a+:any ->> b within[8]", Skip.skipPastLastEvent()),
        ("a[a|b]+:any -> b within[7]", Skip.skipToNext()),
    ],
)
def test_results_and_state(pattern: str, skip: Skip | None) -> None:
    """Edges come and go by hundreds: after each event, the kernel has what the plain path has."""
    chance = random.Random(7)
    limit = PartialMatchLimit(600, "dropOldest")
    both = Both(NFACompiler.compile(parse(pattern, skip), True), limit)
    for time in range(1, 25):
        both.process([time], [f"{chance.choice('aaaabbc')}{time}"])
        plain, kernel = both.found()
        assert kernel == plain
        plain_state, kernel_state = both.states()
        assert kernel_state == plain_state
        if time % 8 == 0:
            both.exchange()
    both.advance(99)

    plain, kernel = both.found()
    assert kernel == plain


def test_a_bound_is_reached_in_time() -> None:
    """A hundred thousand partial matches take a moment: none looks at the ways of the others."""
    limit = PartialMatchLimit(100_000)
    run = KernelRun(NFACompiler.compile(parse("a+:any ->> b")), limit)

    with pytest.raises(StateLimitError, match="196606 partial matches"):
        run.process(run.kernel.new_key(), range(40), ["a"] * 40)
