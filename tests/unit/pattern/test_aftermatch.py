# SPDX-License-Identifier: Apache-2.0
"""After-match skip strategies, by themselves and on matches."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from pyflinkcep import AfterMatchSkipStrategy as Skip
from pyflinkcep.errors import SkipError
from tests.shorthand import matches, run

PATH = {"a": [(1, 0), (3, 0)], "b": [(4, 0), (4, 1)]}


@pytest.mark.parametrize(
    ("strategy", "pruning_id", "pruned"),
    [
        (Skip.noSkip(), None, ""),
        (Skip.skipToNext(), (1, 0), "before at"),
        (Skip.skipPastLastEvent(), (4, 1), "before at"),
        (Skip.skipToFirst("b"), (4, 0), "before"),
        (Skip.skipToLast("a"), (3, 0), "before"),
        (Skip.skipToLast("b"), (4, 1), "before"),
        (Skip.skipToFirst("c"), None, ""),
    ],
)
def test_what_is_discarded(strategy: Skip, pruning_id: Any, pruned: str) -> None:
    """Each strategy finds its event in the match and discards what began before, or at, it."""
    found = strategy.pruning_id([PATH])
    names = []
    if found is not None:
        timestamp, counter = found
        starts = {
            "before": (timestamp, counter - 1),
            "at": found,
            "after": (timestamp, counter + 1),
        }
        names = [name for name, start in starts.items() if strategy.should_prune(start, found)]

    assert (found, " ".join(names)) == (pruning_id, pruned)


def test_only_no_skip_discards_nothing() -> None:
    """``isSkipStrategy`` is false for ``noSkip`` alone."""
    strategies = [
        Skip.noSkip(),
        Skip.skipToNext(),
        Skip.skipPastLastEvent(),
        Skip.skipToFirst("a"),
        Skip.skipToLast("a"),
    ]

    assert [s.isSkipStrategy() for s in strategies] == [False, True, True, True, True]


def test_names() -> None:
    """Strategies that skip to a stage give its name, the others none."""
    strategies = [Skip.skipToFirst("a"), Skip.skipToLast("b"), Skip.skipToNext(), Skip.noSkip()]

    assert [s.getPatternName() for s in strategies] == ["a", "b", None, None]


def test_strategies_compare_by_value() -> None:
    """Kind, stage and strictness make a strategy."""
    one = Skip.skipToFirst("a")

    assert [
        one == other
        for other in (
            Skip.skipToFirst("a"),
            Skip.skipToFirst("b"),
            Skip.skipToLast("a"),
            one.throwExceptionOnMiss(),
        )
    ] == [True, False, False, False]


def test_strictness_is_a_copy() -> None:
    """``throwExceptionOnMiss`` leaves the strategy it is called on as it was."""
    lenient = Skip.skipToLast("a")
    strict = lenient.throwExceptionOnMiss()

    assert (lenient.shouldThrowException, strict.shouldThrowException) == (False, True)


def test_a_strict_strategy_needs_its_stage() -> None:
    """A match without the stage is an error that shows the match's event ids."""
    with pytest.raises(SkipError) as caught:
        run("a -> b? -> c", "a c", Skip.skipToFirst("b").throwExceptionOnMiss())
    message = caught.value.message

    assert (message.split(" found match ")[0], caught.value.stage) == (
        "Could not skip to b. No such element in the",
        "b",
    )


def test_a_strict_strategy_must_get_on() -> None:
    """To skip to the first event of the match would find the same match again."""
    with pytest.raises(SkipError) as caught:
        run("a -> b", "a b", Skip.skipToFirst("a").throwExceptionOnMiss())

    assert (caught.value.message, bool(caught.value.hint)) == (
        "Could not skip to first element of a match.",
        True,
    )


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (Skip.noSkip(), "{a1 a2 a3} {a2 a3 a4} {a3 a4 a5} {a4 a5 a6}"),
        (Skip.skipToNext(), "{a1 a2 a3} {a2 a3 a4} {a3 a4 a5} {a4 a5 a6}"),
        (Skip.skipPastLastEvent(), "{a1 a2 a3} {a4 a5 a6}"),
        (Skip.skipToFirst("a"), "{a1 a2 a3} {a2 a3 a4} {a3 a4 a5} {a4 a5 a6}"),
        (Skip.skipToLast("a"), "{a1 a2 a3} {a3 a4 a5}"),
    ],
)
def test_strategies_on_a_count(strategy: Skip, expected: str) -> None:
    """Where the next match may begin depends on the strategy."""
    assert matches("a{3}", "a1 a2 a3 a4 a5 a6", strategy) == expected


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (Skip.noSkip(), "{a b1 c1} {a b2 c1} {a b1 c2} {a b2 c2}"),
        (Skip.skipToNext(), "{a b1 c1}"),
        (Skip.skipToFirst("b"), "{a b1 c1}"),
        (Skip.skipToFirst("c"), "{a b1 c1}"),
    ],
)
def test_strategies_on_combinations(strategy: Skip, expected: str) -> None:
    """Of matches with one first event a skip strategy leaves the first."""
    assert matches("a ->> b ->> c", "a b1 b2 c1 c2", strategy) == expected


@pytest.mark.parametrize(
    "strategy", [Skip.noSkip(), Skip.skipToNext(), Skip.skipToFirst("a").throwExceptionOnMiss()]
)
def test_pickling(strategy: Skip) -> None:
    """A strategy survives pickling."""
    assert pickle.loads(pickle.dumps(strategy)) == strategy
