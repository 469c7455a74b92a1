# SPDX-License-Identifier: Apache-2.0
"""A bound on a key's partial matches."""

from __future__ import annotations

import pytest

from pyflinkcep import AfterMatchSkipStrategy
from pyflinkcep.errors import InvalidArgumentError, StateLimitError
from pyflinkcep.testing import OperatorTestHarness
from tests.shorthand import parse


def harness(most: int | None, policy: str = "fail") -> OperatorTestHarness:
    """Make a harness of a pattern whose partial matches never end by themselves."""
    return OperatorTestHarness(
        parse("a -> b"), maxPartialMatches=most, onTooManyPartialMatches=policy
    )


def feed(into: OperatorTestHarness, names: str) -> None:
    """Return one key events a millisecond apart, and a watermark after them."""
    for time, name in enumerate(names.split()):
        into.processElement(name, time, key="k")
    into.processWatermark(99)


def test_at_the_bound_nothing_happens() -> None:
    """As many partial matches as allowed are kept, and match."""
    bounded = harness(3)
    feed(bounded, "a1 a2 a3 b")

    assert (len(bounded.matches), bounded.numPartialMatchesDropped) == (3, 0)


def test_one_more_fails_the_job() -> None:
    """With the policy to fail, the error names the bound, the key and the time."""
    with pytest.raises(StateLimitError, match="maxPartialMatches is 3") as caught:
        feed(harness(3), "a1 a2 a3 a4 b")

    assert (caught.value.key, caught.value.timestamp_ms) == ("'k'", 3)


def test_the_oldest_are_dropped_and_counted() -> None:
    """With the policy to drop, those that began first give no match, and nothing leaks."""
    bounded = harness(2, "dropOldest")
    feed(bounded, "a1 a2 a3 a4 b")

    starts = [match["a"][0] for _, _, match in bounded.matches]
    assert (starts, bounded.numPartialMatchesDropped) == (["a3", "a4"], 2)
    assert bounded.keysWithState == 0


def test_the_error_names_what_counts_without_listing() -> None:
    """compressed() is proposed, but not for a pattern whose matches it cannot count."""
    hints = []
    for skip in (None, AfterMatchSkipStrategy.skipToNext()):
        with pytest.raises(StateLimitError) as caught:
            feed(OperatorTestHarness(parse("a -> b", skip), maxPartialMatches=1), "a1 a2")
        hints.append(str(caught.value.hint))

    assert [".compressed()" in hint for hint in hints] == [True, False]


@pytest.mark.parametrize(("most", "policy"), [(0, "fail"), (-1, "fail"), (2, "ignore")])
def test_bounds_that_make_no_sense(most: int, policy: str) -> None:
    """A bound is a number from 1, a policy one of two."""
    with pytest.raises(InvalidArgumentError) as caught:
        harness(most, policy)

    assert caught.value.hint
