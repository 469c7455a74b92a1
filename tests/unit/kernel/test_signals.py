# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and other signals are handled while the kernel is at work, within an event too."""

from __future__ import annotations

import signal
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from pyflinkcep import Pattern
from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.engines.lists.matching import EventLists, joined_frames
from pyflinkcep.engines.sequences.compiler import compile_query
from pyflinkcep.engines.sequences.evaluation import KernelCounter, KernelQuery
from pyflinkcep.engines.table import Coded, EventTable
from pyflinkcep.expressions.program import Kind
from pyflinkcep.sase import parse as query_of
from tests.kernel_harness import KernelRun, needs_kernel
from tests.shorthand import parse
from tests.unit.engines.compressed.test_pattern_counts import keyed, matches_of
from tests.unit.engines.rows.test_search import TAKE_ALL, search

pytestmark = needs_kernel

Work = Callable[[], object]


def handled(work: Work) -> int:
    """Return how many of the signals that come each millisecond are handled meanwhile."""
    count = 0

    def handle(*_: Any) -> None:
        nonlocal count
        count += 1

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        work()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return count


def combinations(size: int) -> tuple[KernelRun, Any]:
    """A kernel whose key has all combinations of so many events as partial matches."""
    run = KernelRun(NFACompiler.compile(parse("a+:any ->> b within[90]")))
    key = run.kernel.new_key()
    run.process(key, list(range(size)), ["a"] * size)
    return run, key


def next_event(name: str) -> Work:
    """One event more for many partial matches."""
    run, key = combinations(16)
    return lambda: run.process(key, [20], [name])


def end_of_window() -> Work:
    """The end of the window of many partial matches."""
    run, key = combinations(17)
    return lambda: run.kernel.advance(key, 200)


def table(size: int, types: str) -> EventTable:
    """Events of random numbers."""
    codes = np.arange(size, dtype=np.int32) % len(types)
    numbers = np.random.default_rng(1).integers(0, 1 << 40, size)
    return EventTable(range(size), Coded(codes, list(types)), {"x": numbers}, {"x": Kind.BIGINT})


def by_lists() -> Work:
    """Lists of which nothing matches."""
    query = query_of("PATTERN A a; B b; C c WHERE a.x + b.x = c.x + 0.5")
    events = table(2400, "ABC")
    lists = EventLists.of(query, events)
    frames = joined_frames(lists)
    assert frames is not None
    return lambda: list(lists.frames(frames))


_RUNS = query_of("PATTERN SEQ(A+ a[], B b) WHERE a[i].x <> a[i-1].x")


def by_listing() -> Work:
    """Runs that each remember another number, of which none ends."""
    events = table(900, "A")
    lister = KernelQuery.of(compile_query(_RUNS, events.kinds), events)
    assert lister is not None
    return lambda: list(lister.listed([range(900)]))


def by_counting() -> Work:
    """The same, counted."""
    events = table(2000, "A")
    counter = KernelCounter.of(compile_query(_RUNS, events.kinds), events)
    assert counter is not None
    return lambda: counter.count(range(2000))


def by_backtracking() -> Work:
    """Starts that have no end."""
    events = table(1500, "A")
    query = query_of("PATTERN SEQ(A a, A b) WHERE b.x < a.x - 1099511627776")
    found = KernelQuery.of(compile_query(query, events.kinds), events)
    assert found is not None
    return lambda: list(found.searched([range(1500)], "onePerStart"))


def by_pattern_counting() -> Work:
    """Partial matches that each remember another number."""
    pattern: Any = (
        Pattern.begin("a").where("x > 0")
        .followedByAny("b").where("x > 0 OR x = b.x").oneOrMore().allowCombinations()
        .followedByAny("c").where("x < 0").within(timedelta(hours=1))
    )  # fmt: skip
    matches = matches_of(pattern, [{"x": 1 + at} for at in range(900)], keyed(range(900)))
    return lambda: list(matches.totals_by_event([]))


def by_rows() -> Work:
    """A search that fails from each of many rows."""
    size = 4000
    never = ((1, 1, 3), (0, 0, 0), (2, 0, 0), (0, 1, 0), (7, 0, 0))
    assert len(never) == len(TAKE_ALL) + 1
    found = search(
        never, rows=size, programs=(None, None), answers=(None, bytearray(size)), slots=()
    )
    found.turn_to(0, size, True)
    return lambda: found.find(0, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "work",
    [
        lambda: next_event("a"),
        lambda: next_event("b"),
        end_of_window,
        by_lists,
        by_listing,
        by_counting,
        by_backtracking,
        by_pattern_counting,
        by_rows,
    ],
    ids=[
        "partial matches",
        "matches",
        "time",
        "lists",
        "runs",
        "counts",
        "search",
        "merged",
        "rows",
    ],
)
def test_signals_are_handled_at_work(work: Callable[[], Work]) -> None:
    """What takes a fifth of a second handles signals, fifty times a second or as they come."""
    assert handled(work()) > 4


def test_an_interrupted_kernel_matches_on() -> None:
    """Ctrl-C within an event ends the work on its key; other keys go on."""
    run, key = combinations(16)

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.002)
        with pytest.raises(KeyboardInterrupt):
            run.process(key, list(range(20, 40)), ["a"] * 20)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

    run.process(run.kernel.new_key(), [1, 2], ["a1", "b1"])
    assert run.results() == [(True, 2, {"a": ["a1"], "b": ["b1"]})]
