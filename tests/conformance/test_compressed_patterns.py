# SPDX-License-Identifier: Apache-2.0
"""Compressed matches of patterns: their number and the matches are Flink's, duplicates included."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np
import pytest

from pyflinkcep.engines.compressed.nodes import paths
from pyflinkcep.engines.compressed.patterns import (
    CompressiblePattern,
    EventViews,
    KeyedEvents,
    PatternMatches,
)
from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.errors import NotSupportedError
from tests.conformance.cases import Case, build_pattern, chunks, is_iterative, make_event
from tests.kernel_harness import HAS_KERNEL

FILES = ("flink_itcases", "nfa_cases")
MIN_TIME = -(1 << 63)


def usable(case: Case) -> bool:
    """No skip strategy, no error, no condition that looks at the partial match."""
    if case["skip"] not in (None, {"type": "NO_SKIP"}) or case["expect"].get("error"):
        return False
    return not any(map(is_iterative, conditions(case["pattern"])))


def conditions(stages: Any) -> Iterator[Any]:
    for stage in stages:
        yield from conditions(stage.get("group", ()))
        yield from (m[1] for m in stage.get("mods", ()) if m[0] in ("where", "or", "until"))


def matches_of(case: Case, by_kernel: bool) -> PatternMatches:
    """The matches of a case's pattern, counted in the kernel or by the plain path."""
    nfa = NFACompiler.compile(build_pattern(case), False)
    pattern = CompressiblePattern.of(nfa, None, nfa.stages)
    if not by_kernel:
        pattern = attrs.evolve(pattern, counter=None)
    shown = [(row["ts"], make_event(row)) for row in case["events"] if "id" in row]
    times = np.asarray([time for time, _ in shown], np.int64)
    last = case["events"][-1]
    reached = MIN_TIME if "id" in last else last["ts"]
    events = KeyedEvents(times, None, np.asarray([0, len(shown)]), watermark=reached)
    views = EventViews(lambda at: shown[at][1], lambda at: (), (), lambda: [0] * len(shown))
    return PatternMatches(pattern, events, views)


def multiset(matches: Any) -> Counter[str]:
    return Counter(repr(sorted(match)) for match in matches)


def check(case: Case) -> None:
    wanted = [m["match"] for m in case["expect"]["matches"]]
    ids = [row["id"] for row in case["events"] if "id" in row]
    matches = matches_of(case, False)
    unpacked = []
    for way in (
        way for _, roots in matches.roots_by_event() for root in roots for way in paths(root)
    ):
        match: dict[str, list[Any]] = {}
        for stage, at in way:
            match.setdefault(matches.pattern.nfa.stages[stage], []).append(ids[at])
        unpacked.append([[stage, *taken] for stage, taken in match.items()])
    assert multiset(unpacked) == multiset(wanted), case["id"]
    counted = list(matches.totals_by_event([]))
    assert sum(count for _, count, _ in counted) == len(wanted), case["id"]
    if HAS_KERNEL:
        assert list(matches_of(case, True).totals_by_event([])) == counted, case["id"]


@pytest.mark.parametrize(("label", "cases"), chunks(FILES, 400))
def test_recorded_matches(label: str, cases: tuple[Case, ...]) -> None:
    """Counting and unpacking give the matches that Flink gave."""
    for case in filter(usable, cases):
        check(case)


def test_skip_strategies_are_refused() -> None:
    """A skip strategy looks at single matches, which compressed ones have not."""
    skipping = next(
        case
        for _, cases in chunks(FILES, 400)
        for case in cases
        if case["skip"]
        and case["skip"]["type"] == "SKIP_TO_NEXT"
        and not case["expect"].get("error")
    )
    with pytest.raises(NotSupportedError, match="compressed matches"):
        matches_of(skipping, True)
